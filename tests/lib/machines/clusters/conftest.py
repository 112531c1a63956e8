"""Infrastructure clusters on the ground of machines, and lives of a controller."""

import datetime
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lib.kube import events, resources, store
from lib.machines import kinds
from lib.machines.clusters import flow, model, observe
from lib.machines.model import MachineSettings
from lib.reconcile import queue, runner

SPACE = "machines"
CLUSTER = resources.Resource(
    "infrastructure.cluster.x-k8s.io", "v1", "fakeclusters", "FakeCluster", True
)
CLUSTER_KINDS = model.ClusterKinds(
    CLUSTER,
    "fakecluster.infrastructure.cluster.x-k8s.io",
    "fake-capi",
    mirrors=(("ready",), ("initialization", "infrastructureProvisioned")),
)
ENDPOINT = kinds.ControlPlaneEndpoint("10.0.0.1", 6443)
ZONES = ("zone-a", "zone-b")
Json = dict[str, Any]


class ClusterGround:
    """One Cluster with its infrastructure. ground: of the machines."""

    def __init__(self, ground: Any) -> None:
        self.ground = ground
        self.settings: Json = {}
        self.zones = ZONES
        self.kinds = CLUSTER_KINDS
        self.places: Any = None
        self.create("infra")

    def create(self, name: str, cluster: str = "one", **metadata: Any) -> Json:
        """Create what the core creates for a cluster."""
        owner = self.ground.get(self.ground.kinds.clusters, cluster)
        reference = {
            "apiVersion": self.ground.kinds.clusters.api_version,
            "kind": "Cluster",
            "name": cluster,
            "uid": owner["metadata"]["uid"],
        }
        about = {
            "labels": {kinds.CLUSTER_NAME: cluster},
            "ownerReferences": [reference],
            **metadata,
        }
        return dict(self.ground.put(CLUSTER, name, metadata=about, spec={}))

    def get(self, name: str = "infra") -> Json | None:
        document = self.ground.get(CLUSTER, name)
        return None if document is None else dict(document)

    def delete(self, name: str = "infra") -> None:
        self.ground.api.remove(CLUSTER, name, SPACE)

    def condition(self, type_: str = "Ready") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        status = (self.get() or {}).get("status", {})
        for row in status.get("conditions", ()):
            if row["type"] == type_:
                return row["status"], row["reason"], row["message"]
        return "", "", ""

    def writes(self) -> int:
        return sum(
            call.is_write and call.resource == CLUSTER.plural
            for call in self.ground.api.calls
        )


class ClusterProcess:
    """One life of the controller of clusters."""

    def __init__(self, of: ClusterGround) -> None:
        self.of, ground = of, of.ground
        api = ground.api
        self.stores = model.ClusterStores(
            store.Store(api, CLUSTER, kinds.ClusterObject),
            store.Store(api, ground.kinds.clusters, kinds.OwnerCluster),
            store.Store(api, ground.kinds.machine, kinds.MachineObject),
        )
        self.queue = queue.Queue(
            queue.Backoff(base_s=5, max_s=300),
            clock=lambda: ground.now_s,
            chance=lambda: 0.0,
        )
        self.recorder = events.Recorder(
            api,
            component="fake-capi",
            host="",
            clock=lambda: ground.now_s,
            poll_s=0.01,
        )
        self.flow = flow.ClustersFlow(
            observe.ClusterSources(
                self.stores,
                api,
                of.kinds,
                MachineSettings("cluster-1", **of.settings),
                lambda: ground.cloud,
                lambda: ENDPOINT,
                None if of.places is None else lambda: of.places,
            ),
            self.recorder,
            of.zones,
            clock=lambda: ground.now_s,
        )
        flow.watch(self.stores, self.flow, self.queue.add)

    def relist(self) -> None:
        """Read what a watch would have shown."""
        stores = self.stores
        for kept in (stores.clusters, stores.machines, stores.infrastructure):
            kept.relist()

    def settle(self, quiet_s: float = 30.0) -> None:
        """Go on until nothing is due for a while."""
        ground = self.of.ground
        began = last = ground.now_s
        self.relist()
        while ground.now_s < last + quiet_s:
            if self.turn():
                last = ground.now_s
                self.relist()
            assert last < began + 3600, "the flow does not converge"
            ground.now_s += 0.5

    def turn(self) -> int:
        """Reconcile all keys that are due; return their number."""
        claims = self.queue.take_due(1000)
        snapshots = self.flow.read(self.flow.observe(claims)) if claims else {}
        for claim in claims:
            if claim.key in snapshots:
                self._pass(claim, snapshots[claim.key])
            self.queue.done(claim.key)
        return len(claims)

    def _pass(self, claim: queue.Claim, snapshot: model.Snapshot) -> None:
        outcome = runner.decide(self.flow, snapshot, self.of.ground.now())
        error = outcome.failure
        for action in outcome.actions:
            self.of.ground.acting = type(action).__name__
            try:
                snapshot = self.flow.act(snapshot, action)
            except Exception as raised:
                error = raised
                break
            finally:
                self.of.ground.acting = "reading"
        if error is not None:
            failure = self.flow.failure(error)
            if failure is None:
                raise error
            self.queue.retry(claim.key, claim.topics, failure.retry_after_s)
            return
        self.queue.forget(claim.key)
        if outcome.requeue_after_s is not None:
            self.queue.add_all(claim.key, claim.topics, outcome.requeue_after_s)

    def events(self) -> list[str]:
        """Send the Events that wait; return type and reason of all."""
        stop = threading.Event()
        sender = threading.Thread(target=self.recorder.run, args=(stop,))
        sender.start()
        assert self.recorder.flush(10.0)
        stop.set()
        sender.join()
        recorded: list[Json] = [
            dict(event) for event in self.of.ground.api.all(resources.EVENTS)
        ]
        return [f"{event['type']} {event['reason']}" for event in recorded]


@pytest.fixture()
def clusters(make_ground: Callable[[], Any]) -> ClusterGround:
    return ClusterGround(make_ground())


@pytest.fixture(scope="session")
def make_clusters(make_ground: Callable[[], Any]) -> Callable[[], ClusterGround]:
    return lambda: ClusterGround(make_ground())


@pytest.fixture(scope="session")
def make_cluster_process() -> Callable[[ClusterGround], ClusterProcess]:
    return ClusterProcess


@pytest.fixture(scope="session")
def now() -> datetime.datetime:
    return datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC)

"""A management cluster and a cloud in memory, and lives of the provider upon them."""

import base64
import collections
import copy
import dataclasses
import datetime
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lib.cloud.fake import machines as fake_cloud
from lib.kube import events, resources, store
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.machines import bootstrap, flow, kinds, model, observe
from lib.reconcile import carrying, failure, outcome, queue, runner

START = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
QUIET_S = 30.0
"""So long nothing may be due for the process to count as settled."""
SPACE = "machines"
SECRET = "join-token-that-no-one-may-see"
MACHINE = resources.Resource(
    "infrastructure.cluster.x-k8s.io", "v1", "fakemachines", "FakeMachine", True
)
KINDS = kinds.Kinds(
    MACHINE,
    "fakemachine.infrastructure.cluster.x-k8s.io",
    "VirtualMachineReady",
    "fake-capi",
    id_path=("id",),
    infrastructure=resources.Resource(
        "infrastructure.cluster.x-k8s.io", "v1", "fakeclusters", "FakeCluster", True
    ),
)
Json = dict[str, Any]


class Death(BaseException):
    """The process ends here."""


class Ground:
    """A cluster and a cloud, which outlive the processes that work on them."""

    kinds = KINDS

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(self.now)
        self.cloud = fake_cloud.FakeMachines(
            lambda: self.now_s, bootstrap.Reader(self.api)
        )
        self.settings: Json = {}
        self.acting = "reading"
        self.actions = collections.Counter[str]()
        self.passed = 0
        self.is_starting = False
        self.die_at: int | None = None
        self.died_in = ""
        self.cluster()
        self.api.before_call = self.api.after_call = self._at_call
        self.cloud.before_call = self.cloud.after_call = self._at_call

    def now(self) -> datetime.datetime:
        return START + datetime.timedelta(seconds=self.now_s)

    def _at_call(self, call: object) -> None:
        """Crash here if it is time; the lists that stand for a watch do not count."""
        is_list = isinstance(call, calls.Call) and call.verb == "list"
        if is_list and not self.is_starting:
            return
        self.passed += 1
        if self.passed - 1 == self.die_at:
            self.died_in = self.acting
            raise Death

    def put(self, kind: resources.Resource, name: str, **parts: Any) -> Json:
        """Create an object, or replace parts of it; None removes one."""
        old = self.get(kind, name) or {"metadata": {"name": name, "namespace": SPACE}}
        metadata = {**old["metadata"], **parts.pop("metadata", {})}
        merged = {**old, **parts, "metadata": metadata}
        kept = {key: value for key, value in merged.items() if value is not None}
        return dict(self.api.put(kind, kept))

    def get(self, kind: resources.Resource, name: str) -> Json | None:
        for document in self.api.all(kind):
            typed: Json = dict(document)
            if typed["metadata"]["name"] == name:
                return copy.deepcopy(typed)
        return None

    def cluster(self, *, provisioned: bool = True, paused: bool = False) -> None:
        begun = {"infrastructureProvisioned": provisioned}
        infrastructure = {"name": "infra", "kind": "FakeCluster"}
        spec = {"paused": paused, "infrastructureRef": infrastructure}
        status = {"initialization": begun}
        self.put(KINDS.clusters, "one", spec=spec, status=status)

    def machine(self, name: str, secret: str | None = "", **spec: Any) -> Json:
        """Create what the core creates for a machine. secret: its name; "": usual."""
        usual = f"{name}-bootstrap" if secret == "" else secret
        owner_spec: Json = {
            "clusterName": "one",
            "bootstrap": {"dataSecretName": usual} if usual else {},
            "infrastructureRef": {"name": name},
            "failureDomain": "zone-a",
        }
        owner = self.put(KINDS.owners, name, spec=owner_spec)
        if secret == "":
            self.secret(f"{name}-bootstrap")
        reference = {
            "apiVersion": KINDS.owners.api_version,
            "kind": "Machine",
            "name": name,
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        metadata = {
            "labels": {kinds.CLUSTER_NAME: "one"},
            "ownerReferences": [reference],
        }
        desired = {"cores": 2, "disk": 20, **spec}
        return self.put(MACHINE, name, metadata=metadata, spec=desired)

    def secret(self, name: str, **data: str) -> None:
        text = {"value": f"#cloud-config {SECRET}", "format": "cloud-config", **data}
        encoded = {
            key: base64.b64encode(value.encode()).decode()
            for key, value in text.items()
            if value
        }
        self.put(resources.SECRETS, name, data=encoded)

    def delete(self, name: str) -> None:
        self.api.remove(MACHINE, name, SPACE)

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition, by type."""
        machine = self.get(MACHINE, name) or {}
        return {
            row["type"]: (row["status"], row["reason"])
            for row in machine.get("status", {}).get("conditions", ())
        }

    def state(self) -> Json:
        """What a user sees: each machine object, and the cloud; no IDs, no times."""
        shown = {}
        for document in copy.deepcopy(self.api.all(MACHINE)):
            typed: Json = dict(document)
            name, status = typed["metadata"]["name"], typed.get("status", {})
            shown[name] = {
                "finalizers": typed["metadata"].get("finalizers"),
                "has ID": bool(typed["spec"].get("providerID")),
                "provisioned": status.get("initialization", {}).get("provisioned"),
                "ready": status.get("ready"),
                "addresses": len(status.get("addresses", ())),
                "zone": status.get("failureDomain"),
                "failure": status.get("failureReason"),
                "conditions": self.conditions(name),
            }
        cloud = sorted(
            (vm.name, vm.state.value, vm.disk_gib, tuple(vm.nics), tuple(vm.tags))
            for vm in self.cloud.vms.values()
        )
        return {"machines": shown, "cloud": cloud}

    def events(self) -> list[str]:
        """Type, reason and message of each Event, in order."""
        recorded: list[Json] = [dict(e) for e in self.api.all(resources.EVENTS)]
        return [f"{e['type']} {e['reason']}: {e['message']}" for e in recorded]


@dataclasses.dataclass(frozen=True)
class _Counted(carrying.Steps[model.Snapshot, model.Action]):
    """The steps of a flow; the ground counts its actions."""

    flow: flow.MachinesFlow
    ground: Ground
    name = "machines"

    def act(self, snapshot: model.Snapshot, action: model.Action) -> model.Snapshot:
        self.ground.acting = type(action).__name__
        try:
            snapshot = self.flow.act(snapshot, action)
        finally:
            self.ground.acting = "reading"
        self.ground.actions[type(action).__name__] += 1
        return snapshot

    def decide(
        self, snapshot: model.Snapshot, now: datetime.datetime
    ) -> outcome.Outcome[model.Action]:
        return self.flow.decide(snapshot, now)

    def failure(self, error: Exception) -> failure.Failure | None:
        return self.flow.failure(error)

    def left_after(
        self, failed: model.Action, error: Exception, rest: Sequence[model.Action]
    ) -> Sequence[model.Action]:
        return self.flow.left_after(failed, error, rest)


class Process:
    """One life of the provider, with all that it keeps in memory."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        api, infrastructure = ground.api, KINDS.infrastructure
        assert infrastructure is not None
        self.infrastructure = store.Store(api, infrastructure, kinds.ClusterObject)
        self.stores = model.Stores(
            store.Store(api, MACHINE, kinds.MachineObject),
            store.Store(api, KINDS.owners, kinds.OwnerMachine),
            store.Store(api, KINDS.clusters, kinds.OwnerCluster),
            store.Store(api, resources.SECRETS, bootstrap.BootstrapSecret),
            self.infrastructure,
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
        sources = observe.Sources(
            self.stores,
            api,
            KINDS,
            model.MachineSettings("cluster-1", **ground.settings),
            lambda: ground.cloud,
            ground.now,
        )
        self.flow = flow.MachinesFlow(
            sources=sources,
            recorder=self.recorder,
            clock=lambda: ground.now_s,
            on_open=self.queue.add_all,
        )
        flow.watch(self.stores, self.flow, self.queue.add)
        ground.is_starting = True
        self._listed = 0
        self.relist()
        ground.is_starting = False

    def relist(self) -> None:
        """Read what a watch would have shown: nothing when nothing was written."""
        version = self.ground.api.version
        if version == self._listed:
            return
        stores = self.stores
        for kept in (stores.owners, stores.clusters, stores.secrets, stores.machines):
            kept.relist()
        self.infrastructure.relist()
        self._listed = version

    def settle(self, quiet_s: float = QUIET_S) -> float:
        """Go on until nothing is due for a while; return the seconds that it took."""
        began = last = self.ground.now_s
        self.relist()
        while self.ground.now_s < last + quiet_s:
            if self.turn():
                last = self.ground.now_s
                self.relist()
            assert last < began + 3600, "the flow does not converge"
            self.ground.now_s += 0.5
        return last - began

    def drift(self) -> None:
        """Have all machines compared with the cloud."""
        for key in self.stores.machines.items():
            self.queue.add(key, model.Topic.DRIFT)

    def turn(self) -> int:
        """Reconcile all keys that are due, as one batch; return their number."""
        claims = self.queue.take_due(1000)
        if not claims:
            return 0
        snapshots = self.flow.read(self.flow.observe(claims))
        for claim in claims:
            if claim.key in snapshots:
                self._pass(claim, snapshots[claim.key])
            self.queue.done(claim.key)
        return len(claims)

    def _pass(self, claim: queue.Claim, snapshot: model.Snapshot) -> None:
        decided = runner.decide(self.flow, snapshot, self.ground.now())
        carrier = carrying.Carrier(_Counted(self.flow, self.ground))
        snapshot, error = carrier.carry_out(claim.key, snapshot, decided)
        self.flow.ended(snapshot, error)
        for requeue in self.flow.requeues(snapshot, error):
            self.queue.add_all(claim.key, requeue.topics, requeue.after_s)
        if error is not None:
            known = self.flow.failure(error)
            if known is None:
                raise error
            self.queue.retry(claim.key, claim.topics, known.retry_after_s)
            return
        self.queue.forget(claim.key)
        if decided.requeue_after_s is not None:
            self.queue.add_all(claim.key, claim.topics, decided.requeue_after_s)

    def send_events(self) -> None:
        """Send the Events that wait."""
        stop = threading.Event()
        sender = threading.Thread(target=self.recorder.run, args=(stop,))
        sender.start()
        assert self.recorder.flush(10.0)
        stop.set()
        sender.join()


MakeGround = Callable[[], Ground]
MakeProcess = Callable[[Ground], Process]


@pytest.fixture()
def ground() -> Ground:
    return Ground()


@pytest.fixture(scope="session")
def make_ground() -> MakeGround:
    return Ground


@pytest.fixture(scope="session")
def make_process() -> MakeProcess:
    return Process


@pytest.fixture(scope="session")
def death() -> type[BaseException]:
    return Death

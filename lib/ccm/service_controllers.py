"""The balancers flow with its queue, its watches and its drift detection."""

import dataclasses
import threading
from collections.abc import Callable, Mapping

from lib.balancers import flow, model, observe, receivers, serving_nodes
from lib.balancers.model import Topic
from lib.ccm import cluster_id, disabling, metrics, options
from lib.ccm.parts import Parts
from lib.cloud import load_balancers, protocol, write_places
from lib.daemon import metrics as daemon_metrics
from lib.kube import resources, store
from lib.plans.writing import Writing
from lib.process import logs, probes
from lib.reconcile import loops, periodic, queue, runner

BATCH_MAX = 10_000
BATCH_S = 0.3
"""Services wait this long for others, to share the reads of the cloud."""
GATHER_S = 0.5
"""Changes of Nodes within this time are processed together."""
FIRST_BACKOFF_S = 5.0
LONGEST_BACKOFF_S = 300.0
"""Source: k8s.io/cloud-provider service controller, minRetryDelay, maxRetryDelay."""
STALL_S = 600.0
"""A loop without a heartbeat for this time fails the liveness check: an observation
may take two minutes for each of three depths."""
READ_S = 420.0
"""A read without an end for this time fails the liveness check; each of its three
depths ends after two minutes."""
TURN_S = 1.0
SERVICE_NAME = "load-balancer"
"""Label of metrics: the type of the service in the cloud's catalogue."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What a provider brings besides its load balancers.

    source: component of its Events. disabled_by: "namespace/name" of a ConfigMap: as
    long as it exists, no load balancer is created, changed or deleted; empty: there is
    none. changes: reports of the cloud; None: it has none.
    """

    source: str
    disabled_by: str = ""
    changes: Callable[[], protocol.ChangeReports[str]] | None = None


class ServiceControllers:
    """The service controller of the reference, as one flow."""

    def __init__(
        self,
        balancers: Callable[[], load_balancers.LoadBalancers],
        parts: Parts,
        manager_options: options.ManagerOptions,
        settings: ServiceSettings,
    ) -> None:
        self._parts = parts
        self._options = manager_options
        self._balancers = balancers
        self._log = logs.get(__name__)
        self._cluster: load_balancers.Cluster | None = None
        self._nodes_changed = threading.Event()
        self._receivers = receivers.Receivers(self._nodes_changed.set)
        self._queue = queue.Queue(queue.Backoff(FIRST_BACKOFF_S, LONGEST_BACKOFF_S))
        self._heartbeat = probes.Heartbeat(record=self._turned)
        self.services = store.Store(parts.reading, resources.SERVICES, model.Service)
        self._slices = self._serving = None
        if balancers().uses_endpoints:
            self._serving = serving_nodes.ServingNodes(self._endpoints_changed)
            self._slices = store.Store(
                parts.reading,
                resources.ENDPOINT_SLICES,
                serving_nodes.EndpointSlice,
                label_selector=serving_nodes.SELECTOR,
            )
        self._disabling = None
        if settings.disabled_by:
            self._disabling = disabling.DisablingConfigMap(
                parts.reading, settings.disabled_by, self.look_again
            )
        self._changes = settings.changes
        self._followed: protocol.ChangeReports[str] | None = None
        balancer_metrics = metrics.BalancerMetrics(parts.registry, parts.reference)
        names = {
            model.Source.SERVICE: str(model.Source.SERVICE),
            model.Source.PROVIDER: settings.source,
        }
        self._flow = flow.BalancersFlow(
            sources=observe.Sources(
                self.services,
                parts.reading,
                self._receivers.all,
                self._known_cluster,
                self._serving_nodes,
                lambda: self._disabling is not None and self._disabling.exists,
            ),
            load_balancers=balancers,
            writing=parts.writing,
            recorders={source: parts.recorder(name) for source, name in names.items()},
            on_open=self._queue.add_now,
            applying=Writing(parts.permit, parts.unsettled_s, self._places),
            ended=balancer_metrics.ended,
        )
        balancer_metrics.watch(self._flow.problems, self._flow.reasons)
        if balancers().places is not None:
            writes = daemon_metrics.WriteMetrics(parts.registry)
            writes.watch(SERVICE_NAME, self._standing)
            parts.show_work(lambda: self._standing().text("load balancers", "Services"))
        self._runner = runner.Runner(
            self._flow,
            self._queue,
            parts.metrics,
            runner.RunnerSettings(
                manager_options.service_workers,
                BATCH_MAX,
                BATCH_S,
                manager_options.dry_run,
            ),
            runner.Clocks(beat=self._heartbeat.beat),
            reading=self._flow,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """See the protocol."""
        return (options.SERVICE,)

    def watch(self, loop: loops.Loops) -> None:
        """See the protocol."""
        self._parts.probes.add_ready("services", self._not_ready)
        self._parts.nodes.subscribe(self._receivers.follow)
        flow.watch(self.services, self._flow, self._queue.add)
        self._follow()
        loop.start("watch services", self.services.run)
        if self._slices is not None and self._serving is not None:
            self._slices.subscribe(self._serving.follow)
            loop.start("watch endpoints", self._slices.run)
        if self._disabling is not None:
            loop.start("watch disabling ConfigMap", self._disabling.store.run)

    def _places(self) -> write_places.Places | None:
        """Return the places of the load balancers in use: clouds are opened again."""
        limited = self._balancers().places
        if limited is not None:
            limited.bound(self._options.first_writes, self._options.max_writes)
        return limited

    def _standing(self) -> write_places.Standing:
        limited = self._places()
        return (
            write_places.Standing(0, 0, 0, 0.0)
            if limited is None
            else limited.standing()
        )

    def _needed(self) -> Mapping[str, threading.Event]:
        """Return what is set once each kind is listed, by its name."""
        needed = {"Services": self.services.synced}
        if self._slices is not None:
            needed["EndpointSlices"] = self._slices.synced
        if self._disabling is not None:
            needed["ConfigMaps"] = self._disabling.store.synced
        return needed

    def _not_ready(self) -> str | None:
        for kind, listed in self._needed().items():
            if not listed.is_set():
                return f"the {kind} are not listed yet"
        return None

    def _serving_nodes(self, key: str) -> frozenset[str] | None:
        return None if self._serving is None else self._serving.of(key)

    def _endpoints_changed(self, key: str) -> None:
        """Enqueue a Service of which other Nodes have ready endpoints now."""
        service = self.services.get(key)
        if service is not None and service.concerns_us and service.spec.is_local:
            self._queue.add(key, Topic.NODES)

    def _follow(self) -> None:
        """Hear of changed load balancers, also after the cloud was opened again."""
        changes = self._changes() if self._changes is not None else None
        if changes is not None and changes is not self._followed:
            self._followed = changes
            changes.subscribe(flow.hints(self.services, self._queue.add))

    def look_again(self) -> None:
        """See the protocol."""
        self._follow()
        self._queue.add_many(flow.concerned(self.services), Topic.DRIFT)

    def _is_live(self) -> str | None:
        """Return why not; None: the loop turns, and its reads end."""
        turns = self._heartbeat.within(STALL_S)
        return turns() or self._runner.reads_within(READ_S)()

    def _turned(self, seconds: float) -> None:
        self._parts.metrics.turned(self._flow.name, seconds)

    def start(self, loop: loops.Loops) -> None:
        """See the protocol."""
        self._heartbeat.begin()
        self._parts.probes.add_live(options.SERVICE, self._is_live)
        loop.start("services", self._run)
        loop.start("nodes of services", self._spread)
        period_s = self._options.drift_s
        drift = flow.Drift(self.services, self._queue.add_many, period_s)
        task = periodic.Periodic(
            "drift", period_s, drift.check, self._parts.metrics, at_once=False
        )
        loop.start("drift of load balancers", task.run)

    def _run(self, stop: threading.Event) -> None:
        if self._wait(stop):
            self._runner.run(stop)

    def _wait(self, stop: threading.Event) -> bool:
        """Wait until the stores are listed and the cluster is known; False at a stop.

        Without all Nodes a load balancer would lose healthy members.
        """
        needed = (*self._needed().values(), self._parts.nodes.synced)
        self._cluster = cluster_id.wait(
            self._identified, needed, self._heartbeat.beat, stop
        )
        if self._cluster is None:
            return False
        self._log.info("cluster identified", cluster_id=self._cluster.id)
        return True

    def _identified(self) -> load_balancers.Cluster:
        manager_options = self._options
        return cluster_id.read(
            self._parts.reading,
            manager_options.cluster_id,
            manager_options.cluster_name,
        )

    def _known_cluster(self) -> load_balancers.Cluster:
        if self._cluster is None:
            raise TypeError("a reconciliation began before the cluster was identified")
        return self._cluster

    def _spread(self, stop: threading.Event) -> None:
        """Enqueue all Services when the Nodes that may receive traffic change."""
        while not stop.is_set():
            if not self._nodes_changed.wait(TURN_S):
                continue
            stop.wait(GATHER_S)
            self._nodes_changed.clear()
            if self._cluster is not None:  # else each Service is still to come
                self._queue.add_many(flow.concerned(self.services), Topic.NODES)

"""The routes flow with its queue, its watch and its periodic checks for drift."""

import threading
from collections.abc import Callable

from lib.ccm import cluster_id, metrics, options
from lib.ccm.parts import Parts
from lib.cloud import load_balancers, routes
from lib.kube import events, resources
from lib.plans.writing import Writing
from lib.process import logs, probes
from lib.process.clock import utc_now
from lib.reconcile import loops, periodic, queue, runner
from lib.routes import flow, model, observe, records
from lib.routes.model import Topic

COMPONENT = "route_controller"
"""Source: k8s.io/cloud-provider controllers/route/route_controller.go."""
BATCH_MAX = 10_000
WORKERS = 8
"""Ports and Nodes that are written in parallel."""
FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 300.0
STALL_S = 300.0
"""A loop without a heartbeat for this time fails the liveness check."""
DEEP_EVERY_S = 300.0
"""How often address pairs and the record are compared as well."""


class RouteControllers:
    """The route controller of the reference, as one flow."""

    def __init__(
        self,
        tables: Callable[[], routes.Routes],
        parts: Parts,
        manager_options: options.ManagerOptions,
    ) -> None:
        """tables: returns the route tables of the cloud in use."""
        self._parts = parts
        self._options = manager_options
        self._log = logs.get(__name__)
        self._cluster_id = ""
        self._queue = queue.Queue(queue.Backoff(FIRST_BACKOFF_S, LONGEST_BACKOFF_S))
        self._heartbeat = probes.Heartbeat(record=self._turned)
        lease = events.ObjectRef(
            "Lease",
            manager_options.lease_name,
            manager_options.lease_namespace,
            "",
            resources.LEASES.api_version,
        )
        self._flow = flow.RoutesFlow(
            sources=observe.Sources(
                parts.nodes,
                tables,
                records.Records(parts.reading, parts.writing),
                lambda: self._cluster_id,
                manager_options.cluster_cidrs,
                utc_now,
            ),
            reading=parts.reading,
            writing=parts.writing,
            recorder=parts.recorder(COMPONENT),
            add=self._queue.add,
            table_ref=lease,
            applying=Writing(parts.permit, parts.unsettled_s),
            on_disabled=self._disabled,
        )
        route_metrics = metrics.RouteMetrics(parts.registry)
        route_metrics.watch(self._flow.problems, self._flow.reasons)
        self._runner = runner.Runner(
            self._flow,
            self._queue,
            parts.metrics,
            runner.RunnerSettings(WORKERS, BATCH_MAX, dry_run=manager_options.dry_run),
            runner.Clocks(beat=self._heartbeat.beat),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """See the protocol."""
        return (options.ROUTE,)

    def watch(self, loop: loops.Loops) -> None:
        """See the protocol."""
        del loop  # the Nodes are watched for all
        flow.watch(self._parts.nodes, self._flow, self._queue.add)

    def look_again(self) -> None:
        """See the protocol."""
        self._queue.add(model.TABLE, Topic.DEEP_DRIFT)

    def _turned(self, seconds: float) -> None:
        self._parts.metrics.turned(self._flow.name, seconds)

    def _disabled(self, why: str) -> None:
        self._log.info("routes are disabled", reason=why)

    def start(self, loop: loops.Loops) -> None:
        """See the protocol."""
        self._heartbeat.begin()
        self._parts.probes.add_live(options.ROUTE, self._heartbeat.within(STALL_S))
        loop.start("routes", self._run)
        self._every("drift of routes", self._options.route_s, Topic.DRIFT, loop)
        deep_s = max(DEEP_EVERY_S, self._options.route_s)
        self._every("drift of address pairs", deep_s, Topic.DEEP_DRIFT, loop)

    def _every(
        self, name: str, period_s: float, topic: Topic, loop: loops.Loops
    ) -> None:
        def due() -> None:
            self._queue.add(model.TABLE, topic)

        metrics_ = self._parts.metrics
        task = periodic.Periodic(name, period_s, due, metrics_, at_once=False)
        loop.start(name, task.run)

    def _run(self, stop: threading.Event) -> None:
        if self._wait(stop):
            self._queue.add(model.TABLE, Topic.SYNC)
            self._runner.run(stop)

    def _wait(self, stop: threading.Event) -> bool:
        """Wait until the stores are listed and the cluster is known; False at a stop.

        Without all Nodes the routes of some would be removed.
        """
        needed = (self._parts.nodes.synced,)
        cluster = cluster_id.wait(self._identified, needed, self._heartbeat.beat, stop)
        if cluster is None:
            return False
        self._cluster_id = cluster.id
        return True

    def _identified(self) -> load_balancers.Cluster:
        manager_options = self._options
        return cluster_id.read(
            self._parts.reading,
            manager_options.cluster_id,
            manager_options.cluster_name,
        )

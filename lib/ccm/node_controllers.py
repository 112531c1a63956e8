"""The nodes flow with its queue, its watch and its periodic reconciliations."""

import threading
import time
from collections.abc import Callable

from lib.ccm import metrics, options
from lib.ccm.parts import Parts
from lib.cloud import errors, protocol
from lib.cloud.model import InstanceRef, Unknown
from lib.kube import events, resources
from lib.kube import nodes as kube_nodes
from lib.nodes import act, flow, model, observe
from lib.process import logs, probes
from lib.process.clock import utc_now
from lib.reconcile import loops, periodic, queue, runner

BATCH_MAX = 10_000
BATCH_S = 0.5
"""New Nodes wait this long for others, to share one read of the cloud."""
STALL_S = 300.0
"""A loop without a heartbeat for this time fails the liveness check."""


class NodeControllers:
    """Both node controllers of the reference, as one flow."""

    def __init__(
        self,
        instances: Callable[[], protocol.Instances],
        parts: Parts,
        manager_options: options.ManagerOptions,
        settings: model.NodeSettings,
        changes: Callable[[], protocol.ChangeReports[InstanceRef]] | None = None,
    ) -> None:
        """changes: reports of the cloud; None: it has none, and its VMs are polled."""
        self._options = manager_options
        self._settings = settings
        self.nodes = parts.nodes
        recorders = {source: parts.recorder(source) for source in model.Source}
        self._queue = queue.Queue(queue.Backoff(base_s=0.1, max_s=60.0))
        self._metrics = parts.metrics
        heartbeat = probes.Heartbeat(record=self._turned)
        clocks = runner.Clocks(beat=heartbeat.beat)
        observer = observe.NodeObserver(
            self.nodes,
            parts.reading,
            instances,
            settings,
            clocks,
            on_availability=self._report_availability,
            count=metrics.InstanceMetrics(parts.registry).observed,
        )
        deletions = metrics.DeletionMetrics(parts.registry)
        actor = act.NodeActor(parts.writing, self.nodes, recorders, deletions.deleted)
        self._new_nodes = metrics.NodeMetrics(parts.registry)
        self._flow = flow.NodesFlow(observer, actor, settings, self._initialised)
        deletions.watch(lambda: self._flow.suspended, lambda: self._flow.waiting)
        metrics.NodeProblemMetrics(parts.registry).watch(self._flow.problems.counts)
        self._runner = runner.Runner(
            self._flow,
            self._queue,
            self._metrics,
            runner.RunnerSettings(
                manager_options.workers, BATCH_MAX, BATCH_S, manager_options.dry_run
            ),
            clocks,
        )
        self._heartbeat = heartbeat
        self._probes = parts.probes
        self._recorder = recorders[model.Source.NODE]
        self._instances = instances
        self._changes = changes
        self._followed: protocol.ChangeReports[InstanceRef] | None = None
        self._log = logs.get(__name__)

    @property
    def names(self) -> tuple[str, ...]:
        """See the protocol."""
        both = (options.NODE, options.LIFECYCLE)
        return tuple(name for name in both if name in self._options.controllers)

    def watch(self, loop: loops.Loops) -> None:
        """See the protocol."""
        del loop  # the Nodes are watched for all
        flow.watch(self.nodes, self._flow, self._queue.add)
        self._follow()

    def _follow(self) -> None:
        """Hear of changed instances, also after the cloud was opened again."""
        changes = self._changes() if self._changes is not None else None
        if changes is not None and changes is not self._followed:
            self._followed = changes
            changes.subscribe(flow.hints(self.nodes, self._queue.add))

    def look_again(self) -> None:
        """See the protocol; includes Nodes that wait for a retry."""
        self._follow()
        for name in self.nodes.items():
            for topic in (model.Topic.SYNC, model.Topic.LIVENESS):
                self._queue.add(name, topic)

    def _turned(self, seconds: float) -> None:
        self._metrics.turned(self._flow.name, seconds)

    def start(self, loop: loops.Loops) -> None:
        """See the protocol."""
        self._heartbeat.begin()
        for name in self.names:
            self._probes.add_live(name, self._heartbeat.within(STALL_S))
        loop.start("nodes", self._run)
        if self._settings.watches_lifecycle:
            monitor = flow.LifecycleMonitor(self.nodes, self._queue.add, utc_now)
            period_s = self._options.node_monitor_s
            self._every("monitor nodes", period_s, monitor.look, loop)
        if self._settings.initialises:
            period_s = self._options.node_status_s
            self._every("refresh addresses", period_s, self.refresh_addresses, loop)

    def refresh_addresses(self) -> None:
        """Enqueue all Nodes for their refresh of addresses."""
        flow.refresh_addresses(self.nodes, self._queue.add_many)

    def _run(self, stop: threading.Event) -> None:
        while not self.nodes.synced.wait(1.0):
            self._heartbeat.beat()
            if stop.is_set():
                return
        self._greet()
        self._runner.run(stop)

    def _initialised(self, node: kube_nodes.Node) -> None:
        created = node.metadata.creation_timestamp
        if created is not None:
            self._new_nodes.initialised(created, utc_now())

    def _report_availability(self, error: errors.CloudError | None) -> None:
        """Record an Event of the Lease when the availability of the cloud changes."""
        name, namespace = self._options.lease_name, self._options.lease_namespace
        about = events.ObjectRef(
            "Lease", name, namespace, "", resources.LEASES.api_version
        )
        if error is None:
            text = "The instances of the Nodes can be read again"
            self._recorder.emit(about, "Normal", "CloudAvailable", text)
        else:
            self._recorder.emit(about, "Warning", error.reason, error.advice)

    def _greet(self) -> None:
        """Read the cloud once, so that wrong credentials are logged at the start."""
        unnamed = InstanceRef("")
        answer = self._instances().observe({unnamed}, time.monotonic())[unnamed]
        if isinstance(answer, Unknown):
            self._log.error("initial cloud API request failed", error=str(answer.error))

    def _every(
        self,
        name: str,
        interval_s: float,
        fn: Callable[[], None],
        loop: loops.Loops,
    ) -> None:
        task = periodic.Periodic(name, interval_s, fn, self._metrics)
        loop.start(name, task.run)

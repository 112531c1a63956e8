"""The flows of machines, clusters and templates, each with its queue and its events."""

import threading
from collections.abc import Callable
from typing import Any

from lib.capi import metrics
from lib.capi.provider_parts import STALL_S, ProviderParts
from lib.cloud import protocol
from lib.machines import flow, model, observe
from lib.machines.clusters import flow as clusters_flow
from lib.machines.clusters import observe as clusters_observe
from lib.machines.kinds import ControlPlaneEndpoint
from lib.machines.templates import flow as templates_flow
from lib.plans.writing import Writing
from lib.process import probes
from lib.process.clock import utc_now
from lib.reconcile import loops, periodic, queue, runner

BATCH_MAX = 10_000
BATCH_S = 0.2
"""Machines wait this long for others, to share the reads of the cloud."""
BACKOFF = queue.Backoff(base_s=2.0, max_s=300.0)
TURN_S = 1.0


class CloudReports:
    """Subscribes to the changes that a cloud reports, also once it was opened again."""

    def __init__(
        self,
        reports: Callable[[], protocol.ChangeReports[str]] | None,
        hint: Callable[[str], None],
    ) -> None:
        """reports: of the cloud in use; None: it has none. hint: see `subscribe`."""
        self._reports = reports
        self._hint = hint
        self._followed: protocol.ChangeReports[str] | None = None

    def follow(self) -> None:
        """Subscribe, unless that was done for the cloud in use."""
        changes = self._reports() if self._reports is not None else None
        if changes is not None and changes is not self._followed:
            self._followed = changes
            changes.subscribe(self._hint)


class FlowLoop:
    """Reconciles one flow as soon as all kinds are listed."""

    def __init__(
        self,
        parts: ProviderParts,
        of: (
            flow.MachinesFlow
            | clusters_flow.ClustersFlow
            | templates_flow.TemplatesFlow
        ),
        pending: queue.Queue,
        settings: runner.RunnerSettings,
    ) -> None:
        self._parts = parts
        self._name = of.name
        self._heartbeat = probes.Heartbeat(record=self._turned)
        typed: Any = of
        self._runner: runner.Runner[Any, Any] = runner.Runner(
            typed,
            pending,
            parts.metrics,
            settings,
            runner.Clocks(beat=self._heartbeat.beat),
            reading=typed,
        )

    def start(self, loop: loops.Loops) -> None:
        """Begin to reconcile."""
        self._heartbeat.begin()
        self._parts.probes.add_live(self._name, self._heartbeat.within(STALL_S))
        loop.start(self._name, self._run)

    def _turned(self, seconds: float) -> None:
        self._parts.metrics.turned(self._name, seconds)

    def _run(self, stop: threading.Event) -> None:
        """Reconcile; without all objects a machine would seem to have no owner."""
        while self._parts.stores.missing() is not None:
            self._heartbeat.beat()
            if stop.wait(TURN_S):
                return
        self._runner.run(stop)


class MachineControllers:
    """The controller of the provider's machines."""

    def __init__(
        self, parts: ProviderParts, settings: runner.RunnerSettings, sync_s: float
    ) -> None:
        """sync_s: interval of drift detection, in seconds."""
        self._parts = parts
        self._sync_s = sync_s
        self._stores = parts.stores.machines
        self._queue = queue.Queue(BACKOFF)
        self._flow = flow.MachinesFlow(
            sources=observe.Sources(
                self._stores,
                parts.writing,
                parts.kinds.machine,
                parts.settings,
                parts.machines,
                utc_now,
            ),
            recorder=parts.recorder,
            applying=Writing(parts.permit, parts.unsettled_s),
            on_open=self._queue.add_all,
        )
        hint = flow.hints(self._stores.machines, self._queue.add)
        self._reports = CloudReports(parts.changes, hint)
        counted = metrics.MachineMetrics(parts.registry)
        counted.watch(self._count, self._flow.problems, self._flow.reasons)
        self._loop = FlowLoop(parts, self._flow, self._queue, settings)

    def _count(self, is_provisioned: bool) -> int:
        machines = self._stores.machines.items().values()
        return sum(m.is_provisioned is is_provisioned for m in machines)

    def watch(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`; the kinds are watched for all."""
        del loop
        flow.watch(self._stores, self._flow, self._queue.add)
        self._reports.follow()

    def look_again(self) -> None:
        """Enqueue all machines: the configuration has changed, or time has passed."""
        self._reports.follow()
        self._queue.add_many(self._stores.machines.items(), model.Topic.DRIFT)

    def start(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`."""
        self._loop.start(loop)
        task = periodic.Periodic(
            "sync", self._sync_s, self.look_again, self._parts.metrics, at_once=False
        )
        loop.start("sync of machines", task.run)


class ClusterControllers:
    """The controller of the provider's infrastructure clusters."""

    def __init__(
        self,
        parts: ProviderParts,
        settings: runner.RunnerSettings,
        endpoint: ControlPlaneEndpoint,
        zones: tuple[str, ...],
    ) -> None:
        """endpoint: of the API server. zones: failure domains."""
        self._parts = parts
        self._stores = parts.stores.clusters
        self._queue = queue.Queue(BACKOFF)
        self._flow = clusters_flow.ClustersFlow(
            clusters_observe.ClusterSources(
                self._stores,
                parts.writing,
                parts.kinds.cluster,
                parts.settings,
                parts.machines,
                lambda: endpoint,
                parts.places,
            ),
            parts.recorder,
            zones,
            Writing(parts.permit, parts.unsettled_s),
        )
        # What is left belongs to no machine: any change may concern it.
        self._reports = CloudReports(parts.changes, lambda uid: self._continue())
        self._loop = FlowLoop(parts, self._flow, self._queue, settings)

    def watch(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`; the kinds are watched for all."""
        del loop
        clusters_flow.watch(self._stores, self._flow, self._queue.add)
        self._reports.follow()

    def _continue(self) -> None:
        """Enqueue the clusters that are being deleted."""
        clusters_flow.add_deleted(self._stores.infrastructure, self._queue.add)

    def look_again(self) -> None:
        """Enqueue the clusters that are being deleted: the cloud was opened again."""
        self._reports.follow()
        self._continue()

    def start(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`."""
        self._loop.start(loop)


class TemplateControllers:
    """The controller of the provider's machine templates."""

    def __init__(self, parts: ProviderParts, settings: runner.RunnerSettings) -> None:
        self._stores = parts.stores.templates
        self._queue = queue.Queue(BACKOFF)
        self._flow = templates_flow.TemplatesFlow(
            self._stores, parts.writing, parts.kinds.template, parts.settings
        )
        self._loop = FlowLoop(parts, self._flow, self._queue, settings)

    def watch(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`; the kinds are watched for all."""
        del loop
        templates_flow.watch(self._stores, self._queue.add)

    def start(self, loop: loops.Loops) -> None:
        """See `daemon.DaemonPart`."""
        self._loop.start(loop)

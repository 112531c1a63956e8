"""Dependencies that the controllers of one manager share."""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import prometheus_client

from lib.daemon import counting
from lib.kube import client, events, guarded, store
from lib.kube.nodes import Node
from lib.process import probes
from lib.reconcile import loops
from lib.reconcile import metrics as reconcile_metrics


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """Dependencies of the controllers.

    reading: for reads and the watch. writing: refuses when the Lease is lost. nodes:
    one watch for all. recorder: returns the Event recorder of a component. metrics: of
    reconciliations. permit: entered before each write to the cloud. unsettled_s,
    show_work: see lib/kube/election.py. reference: whose metrics are shown besides
    ours.
    """

    reading: client.Api
    writing: client.Api
    nodes: store.Store[Node]
    recorder: Callable[[str], events.Recorder]
    registry: prometheus_client.CollectorRegistry
    metrics: reconcile_metrics.ReconcileMetrics
    probes: probes.Probes
    permit: guarded.Permit
    unsettled_s: Callable[[float], float]
    show_work: Callable[[Callable[[], str]], None]
    reference: counting.Reference | None = None


class Controllers(Protocol):
    """Controllers of the reference that are one flow here."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the controllers of the reference that this flow replaces."""
        ...

    def watch(self, loop: loops.Loops) -> None:
        """Begin to watch its objects; also before this process holds the Lease."""
        ...

    def look_again(self) -> None:
        """Enqueue everything immediately: the configuration has changed."""
        ...

    def start(self, loop: loops.Loops) -> None:
        """Begin to act."""
        ...

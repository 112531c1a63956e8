"""What the controllers of one manager share."""

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
    """What controllers are built from.

    reading: for reads and the watch. writing: refuses when the Lease is lost. nodes:
    one watch for all. recorder: gives the Event recorder of a component. metrics: of
    passes. permit: asked before each write of the cloud. unsettled_s: see
    lib/kube/election.py. reference: whose metrics are shown besides ours.
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
    reference: counting.Reference | None = None


class Controllers(Protocol):
    """Some controllers of the reference, that are one flow here."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the reference's controllers for which this stands."""
        ...

    def watch(self, loop: loops.Loops) -> None:
        """Begin to follow what concerns it; also before the Lease is ours."""
        ...

    def look_again(self) -> None:
        """Bring everything in at once: the cloud's files have changed."""
        ...

    def start(self, loop: loops.Loops) -> None:
        """Begin to act."""
        ...

"""The numbers of the loops: what passes did, how long they took, what waits.

Labels come from closed sets: the controllers of a process, and `Result`.
"""

import enum
from typing import Protocol

import prometheus_client

_DURATION_BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_TURN_BUCKETS_S = (0.1, 1.5, 2.5, 5, 10, 30, 60, 300, 600)


class Result(enum.StrEnum):
    """Outcome of a reconciliation, the label of `mooring_reconcile_total`."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    """Succeeded, and due again after a time."""
    ABSENT = "absent"
    """The key named nothing that concerns the flow."""
    FAILURE = "failure"
    """An error the flow knows."""
    UNEXPECTED_ERROR = "unexpected_error"
    """An unexpected error."""


class Waiting(Protocol):
    """What a queue reports about itself."""

    def depth(self) -> int:
        """Count the keys due."""
        ...

    def age_s(self) -> float:
        """Return how long the oldest of them has been due, in seconds."""
        ...


class ReconcileMetrics:
    """The families, registered once per process and shared by its loops."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._passes = prometheus_client.Counter(
            "mooring_reconcile_total",
            "Reconciliations by controller and outcome.",
            ("controller", "outcome"),
            registry=registry,
        )
        self._durations = prometheus_client.Histogram(
            "mooring_reconcile_duration_seconds",
            "Seconds from decide to the end of act, for one key.",
            ("controller",),
            buckets=_DURATION_BUCKETS_S,
            registry=registry,
        )
        self._turns = prometheus_client.Histogram(
            "mooring_loop_turn_seconds",
            "Seconds between two heartbeats of a loop, by controller.",
            ("controller",),
            buckets=_TURN_BUCKETS_S,
            registry=registry,
        )
        self._retries = prometheus_client.Counter(
            "mooring_retries_total",
            "Retries by controller.",
            ("controller",),
            registry=registry,
        )
        self._depth = prometheus_client.Gauge(
            "mooring_queue_depth",
            "Keys in the queue that are due.",
            ("controller",),
            registry=registry,
        )
        self._age = prometheus_client.Gauge(
            "mooring_queue_oldest_age_seconds",
            "Age of the oldest due key in seconds.",
            ("controller",),
            registry=registry,
        )

    def watch(self, controller: str, waiting: Waiting) -> None:
        """Show depth and age of a controller's queue, read when they are asked for."""
        self.show(controller)
        self._depth.labels(controller).set_function(waiting.depth)
        self._age.labels(controller).set_function(waiting.age_s)

    def show(self, controller: str) -> None:
        """Show every outcome of a controller from now on, at zero."""
        self._retries.labels(controller)
        for result in Result:
            self._passes.labels(controller, result.value)

    def passed(self, controller: str, result: Result, duration_s: float) -> None:
        """Count one pass over one key."""
        self._passes.labels(controller, result.value).inc()
        self._durations.labels(controller).observe(duration_s)

    def turned(self, controller: str, seconds: float) -> None:
        """Record the time between two heartbeats of a controller's loop."""
        self._turns.labels(controller).observe(seconds)

    def ended(self, controller: str, result: Result) -> None:
        """Count a key whose pass ended before decide, so that it has no duration."""
        self._passes.labels(controller, result.value).inc()

    def retried(self, controller: str) -> None:
        """Count a key put back after an error."""
        self._retries.labels(controller).inc()

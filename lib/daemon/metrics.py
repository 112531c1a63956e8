"""Metrics of a daemon: its Events and its Lease."""

import prometheus_client


class EventMetrics:
    """Counts Events by type and reason."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "mooring_events_recorded",
            "Events recorded by type and reason, including repetitions.",
            ("type", "reason"),
            registry=registry,
        )

    def emitted(self, type: str, reason: str) -> None:
        """Count one Event; type and reason are members of closed sets."""
        self._total.labels(type, reason).inc()


class LeaderMetrics:
    """Shows whether this process holds the Lease, and counts slow renewals.

    Source: client-go leader_election_master_status{name} and
    leader_election_slowpath_total{name}.
    """

    def __init__(
        self, name: str, registry: prometheus_client.CollectorRegistry
    ) -> None:
        """name: of the Lease."""
        gauge = prometheus_client.Gauge(
            "leader_election_master_status",
            "1 while this process holds the Lease.",
            ("name",),
            registry=registry,
        )
        counter = prometheus_client.Counter(
            "leader_election_slowpath",
            "Renewals of the Lease that had to read it first.",
            ("name",),
            registry=registry,
        )
        self._status = gauge.labels(name)
        self._slow_paths = counter.labels(name)

    def leading(self) -> None:
        """Record that this process holds the Lease."""
        self._status.set(1)

    def slow_path(self) -> None:
        """Count a renewal that was not the usual single write."""
        self._slow_paths.inc()

"""Metrics of a daemon: its Events and its Lease."""

from collections.abc import Callable

import prometheus_client

from lib.cloud.write_places import Standing


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


class WriteMetrics:
    """Shows the places of services of the cloud whenever the metrics are read."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._limit = prometheus_client.Gauge(
            "mooring_cloud_writes_limit",
            "Objects of a cloud service that may be in progress.",
            ("service",),
            registry=registry,
        )
        self._held = prometheus_client.Gauge(
            "mooring_cloud_writes_in_progress",
            "Objects of a cloud service in progress.",
            ("service",),
            registry=registry,
        )
        self._waiting = prometheus_client.Gauge(
            "mooring_cloud_writes_waiting",
            "Objects that wait for those in progress.",
            ("service",),
            registry=registry,
        )
        self._oldest = prometheus_client.Gauge(
            "mooring_cloud_writes_oldest_wait_seconds",
            "Seconds that the longest of these has waited.",
            ("service",),
            registry=registry,
        )
        self._duration = prometheus_client.Gauge(
            "mooring_cloud_writes_duration_seconds",
            "Seconds for which objects are in progress, on average.",
            ("service",),
            registry=registry,
        )

    def watch(self, service: str, standing: Callable[[], Standing]) -> None:
        """Show the places of one service."""
        self._limit.labels(service).set_function(lambda: float(standing().limit))
        self._held.labels(service).set_function(lambda: float(standing().held))
        self._waiting.labels(service).set_function(lambda: float(standing().waiting))
        self._oldest.labels(service).set_function(lambda: standing().oldest_s)
        self._duration.labels(service).set_function(lambda: standing().took_s)

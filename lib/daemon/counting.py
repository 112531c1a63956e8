"""What a daemon counts of its calls to cloud and API server."""

import dataclasses
import threading
from collections.abc import Callable

import prometheus_client

_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """The metrics of a reference daemon, which dashboards and alerts read.

    calls: what the names of the metrics of cloud calls begin with; request: returns the
    value of their label `request` for an operation. reconciliations: what the names of
    the metrics of Services begin with.
    """

    calls: str
    request: Callable[[str], str]
    reconciliations: str = ""


class CloudMetrics:
    """Counts cloud calls: under our names, and under the reference's if there is one.

    worked: set once a call has succeeded.
    """

    def __init__(
        self,
        provider: str,
        registry: prometheus_client.CollectorRegistry,
        reference: Reference | None = None,
    ) -> None:
        self._provider = provider
        self._reference = None
        if reference is not None:
            self._reference = _ReferenceMetrics(reference, registry)
        self.worked = threading.Event()
        self._total = prometheus_client.Counter(
            "mooring_cloud_requests",
            "Cloud calls by operation and outcome.",
            ("provider", "operation", "outcome"),
            registry=registry,
        )
        self._duration = prometheus_client.Histogram(
            "mooring_cloud_request_duration_seconds",
            "Seconds a cloud call took.",
            ("provider", "operation"),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._circuits = prometheus_client.Gauge(
            "mooring_cloud_circuit_open",
            "Circuit breaker per cloud service: 1 = open.",
            ("provider", "service"),
            registry=registry,
        )

    def circuit(self, service: str, is_open: bool) -> None:
        """Show whether the circuit breaker of a service is open."""
        self._circuits.labels(self._provider, service).set(is_open)

    def observe(self, operation: str, outcome: str, seconds: float) -> None:
        """Count one call. outcome: "ok", or the class of error."""
        self._total.labels(self._provider, operation, outcome).inc()
        self._duration.labels(self._provider, operation).observe(seconds)
        if self._reference is not None:
            self._reference.observe(operation, outcome, seconds)
        if outcome == "ok":
            self.worked.set()


class _ReferenceMetrics:
    """Counts cloud calls under the names of a reference daemon."""

    def __init__(
        self, names: Reference, registry: prometheus_client.CollectorRegistry
    ) -> None:
        self._names = names
        self._total = prometheus_client.Counter(
            f"{names.calls}_api_requests",
            "Cloud calls.",
            ("request",),
            registry=registry,
        )
        self._errors = prometheus_client.Counter(
            f"{names.calls}_api_request_errors",
            "Cloud calls that failed.",
            ("request",),
            registry=registry,
        )
        self._duration = prometheus_client.Histogram(
            f"{names.calls}_api_request_duration_seconds",
            "Seconds a cloud call took.",
            ("request",),
            buckets=_BUCKETS_S,
            registry=registry,
        )

    def observe(self, operation: str, outcome: str, seconds: float) -> None:
        """Count one call; see `CloudMetrics`."""
        request = self._names.request(operation)
        self._total.labels(request).inc()
        self._duration.labels(request).observe(seconds)
        if outcome != "ok":
            self._errors.labels(request).inc()


class KubeMetrics:
    """Counts requests to the API server.

    Source: client-go metrics rest_client_requests_total{code,method,host}; the host
    is omitted, the resource added.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._total = prometheus_client.Counter(
            "rest_client_requests",
            "Requests to the API server.",
            ("code", "method", "resource"),
            registry=registry,
        )
        self._duration = prometheus_client.Histogram(
            "rest_client_request_duration_seconds",
            "Seconds a request to the API server took.",
            ("method", "resource"),
            buckets=_BUCKETS_S,
            registry=registry,
        )

    def observe(self, method: str, resource: str, code: int, seconds: float) -> None:
        """Count one request. code: 0 when there was no answer."""
        self._total.labels(str(code), method, resource).inc()
        self._duration.labels(method, resource).observe(seconds)

"""What a daemon counts of its calls to cloud and API server."""

import threading

import prometheus_client

_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class CloudMetrics:
    """Counts cloud calls: under our names, and under the reference's.

    worked: set once a call has succeeded.

    Source: cloud-provider-openstack docs/metrics.md: the counters
    openstack_api_requests_total and _errors_total and the histogram
    openstack_api_request_duration_seconds, each with the label `request`.
    """

    def __init__(
        self, provider: str, registry: prometheus_client.CollectorRegistry
    ) -> None:
        self._provider = provider
        self.worked = threading.Event()
        self._total = prometheus_client.Counter(
            "cloud_requests",
            "Cloud calls, by outcome.",
            ("provider", "operation", "outcome"),
            registry=registry,
        )
        self._duration = prometheus_client.Histogram(
            "cloud_request_duration_seconds",
            "Seconds a cloud call took.",
            ("provider", "operation"),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._reference_total = prometheus_client.Counter(
            f"{provider}_api_requests",
            "Cloud calls.",
            ("request",),
            registry=registry,
        )
        self._reference_errors = prometheus_client.Counter(
            f"{provider}_api_request_errors",
            "Cloud calls that failed.",
            ("request",),
            registry=registry,
        )
        self._reference_duration = prometheus_client.Histogram(
            f"{provider}_api_request_duration_seconds",
            "Seconds a cloud call took.",
            ("request",),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._circuits = prometheus_client.Gauge(
            "cloud_circuit_open",
            "1 while a service of the cloud is not called, for it does not answer.",
            ("provider", "service"),
            registry=registry,
        )

    def circuit(self, service: str, is_open: bool) -> None:
        """Show whether a service is left alone."""
        self._circuits.labels(self._provider, service).set(is_open)

    def observe(self, operation: str, outcome: str, seconds: float) -> None:
        """Count one call. outcome: "ok", or the class of error."""
        self._total.labels(self._provider, operation, outcome).inc()
        self._duration.labels(self._provider, operation).observe(seconds)
        request = _reference_request(operation)
        self._reference_total.labels(request).inc()
        self._reference_duration.labels(request).observe(seconds)
        if outcome == "ok":
            self.worked.set()
        else:
            self._reference_errors.labels(request).inc()


_VERBS = ("attach", "create", "delete", "detach", "get", "list", "update")
_OTHERWISE = {
    "extend volume": "volume_expand",
    "find volumes": "volume_list",
    "find servers": "server_list",
    "list states": "loadbalancer_list",
    "update members": "loadbalancer_members_update",
}
"""Calls whose verb differs from the reference's, too."""
_NOUNS = {
    "load balancer": "loadbalancer",
    "listener": "loadbalancer_listener",
    "pool": "loadbalancer_pool",
    "monitor": "loadbalancer_healthmonitor",
    "healthmonitor": "loadbalancer_healthmonitor",
    "member": "loadbalancer_member",
    "floating IP": "floating_ip",
    "floatingip": "floating_ip",
    "external network": "network",
}
"""Our nouns, in the singular, and the reference's.

Source: kubernetes/cloud-provider-openstack v1.36.0, the arguments of NewMetricContext
in pkg/openstack, pkg/util/openstack and pkg/csi/cinder/openstack.
"""


def _reference_request(operation: str) -> str:
    """Return the reference's name of a call: "list servers" is server_list."""
    if operation in _OTHERWISE:
        return _OTHERWISE[operation]
    verb, _, noun = operation.partition(" ")
    if verb not in _VERBS:
        return operation.replace(" ", "_")
    noun = noun.removesuffix("s")
    return f"{_NOUNS.get(noun, noun).replace(' ', '_').replace('-', '_')}_{verb}"


class KubeMetrics:
    """Counts requests to the API server.

    Source: client-go metrics rest_client_requests_total{code,method,host}; the host
    is left out, the resource added.
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

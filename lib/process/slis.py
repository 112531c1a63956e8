"""Results of each health check, from which service level indicators are computed.

Source: k8s.io/component-base metrics/prometheus/slis; KEP-3466.
"""

import prometheus_client


class Slis:
    """Counts the answers of health checks, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._last = prometheus_client.Gauge(
            "kubernetes_healthcheck",
            "1 if a health check passed when it was last asked, else 0.",
            ("name", "type"),
            registry=self.registry,
        )
        self._total = prometheus_client.Counter(
            "kubernetes_healthchecks",
            "Answers of a health check, by status.",
            ("name", "type", "status"),
            registry=self.registry,
        )

    def observe(self, kind: str, name: str, is_well: bool) -> None:
        """Count one answer. kind: healthz, livez or readyz; name: the check's."""
        status = "success" if is_well else "error"
        self._last.labels(name, kind).set(is_well)
        self._total.labels(name, kind, status).inc()

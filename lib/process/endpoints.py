"""The paths that every component serves."""

from collections.abc import Mapping

import prometheus_client

from lib.process import exchange, metrics, probes


def standard(
    checks: probes.Probes, registry: prometheus_client.CollectorRegistry
) -> Mapping[str, exchange.Handler]:
    """Give the handlers of /healthz, /livez, /readyz and /metrics."""

    def show(request: exchange.Request) -> exchange.Reply:
        rendered = metrics.render(registry, request.headers.get("accept", ""))
        return exchange.Reply(rendered.body, content_type=rendered.content_type)

    return {
        "/healthz": lambda r: _reply(checks.live(r.query, "healthz")),
        "/livez": lambda r: _reply(checks.live(r.query)),
        "/readyz": lambda r: _reply(checks.ready(r.query)),
        "/metrics": show,
    }


def _reply(report: probes.Report) -> exchange.Reply:
    return exchange.Reply(report.body.encode(), 200 if report.is_well else 500)

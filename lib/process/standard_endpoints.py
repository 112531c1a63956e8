"""The paths that every component serves."""

from collections.abc import Mapping

import prometheus_client

from lib.process import exchange, metrics, probes


def standard(
    checks: probes.Probes,
    registry: prometheus_client.CollectorRegistry,
    health: prometheus_client.CollectorRegistry,
) -> Mapping[str, exchange.Handler]:
    """Return the handlers of /healthz, /livez, /readyz, /metrics and /metrics/slis.

    health: what the checks have answered; see lib/process/slis.py.
    """

    return {
        "/healthz": lambda r: _reply(checks.live(r.query, "healthz")),
        "/livez": lambda r: _reply(checks.live(r.query)),
        "/readyz": lambda r: _reply(checks.ready(r.query)),
        "/metrics": _showing(registry),
        "/metrics/slis": _showing(health),
    }


def _showing(registry: prometheus_client.CollectorRegistry) -> exchange.Handler:
    def show(request: exchange.Request) -> exchange.Reply:
        rendered = metrics.render(registry, request.headers.get("accept", ""))
        return exchange.Reply(rendered.body, content_type=rendered.content_type)

    return show


def _reply(report: probes.ProbeReport) -> exchange.Reply:
    return exchange.Reply(report.body.encode(), 200 if report.is_well else 500)

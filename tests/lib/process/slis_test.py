"""What health checks answer is counted as Go servers count it."""

from collections.abc import Callable

from lib.process import exchange, metrics, probes, slis, standard_endpoints


def ask(
    handlers: Callable[[str], exchange.Handler], path: str, **query: tuple[str, ...]
) -> str:
    request = exchange.Request("GET", path, query, {})
    return handlers(path)(request).body.decode()


def test_each_check_is_counted_by_probe_and_status() -> None:
    """The gauge has the last answer, the counter all; no other metrics are shown."""
    counted = slis.Slis()
    checks = probes.Probes(counted.observe)
    why_not: list[str | None] = ["not yet", None]
    checks.add_ready("cloud", lambda: why_not.pop(0))
    registry = metrics.new_registry(metrics.Build("a-daemon", "1"))
    handlers = standard_endpoints.standard(checks, registry, counted.registry)
    for path in ("/readyz", "/readyz", "/healthz"):
        ask(handlers.__getitem__, path)
    text = ask(handlers.__getitem__, "/metrics/slis")
    assert 'kubernetes_healthcheck{name="cloud",type="readyz"} 1.0' in text
    for labels in (
        'name="cloud",status="error",type="readyz"} 1.0',
        'name="cloud",status="success",type="readyz"} 1.0',
        'name="ping",status="success",type="readyz"} 2.0',
        'name="ping",status="success",type="healthz"} 1.0',
    ):
        assert f"kubernetes_healthchecks_total{{{labels}" in text.splitlines()
    assert "mooring_build_info" not in text
    assert "kubernetes_healthcheck" not in ask(handlers.__getitem__, "/metrics")


def test_a_check_that_was_excluded_is_not_counted() -> None:
    """It was not asked."""
    counted = slis.Slis()
    checks = probes.Probes(counted.observe)
    checks.live({"exclude": ("ping",)}, "healthz")
    assert not [family for family in counted.registry.collect() if family.samples]

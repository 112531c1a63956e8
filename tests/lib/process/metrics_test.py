"""The registry and its texts."""

import prometheus_client
import pytest

from lib.process import metrics


@pytest.fixture()
def registry() -> prometheus_client.CollectorRegistry:
    return metrics.new_registry(metrics.Build("a-daemon", "1.2.3", "abc"))


def test_build_and_process_are_shown(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    text = metrics.render(registry, "").body.decode()
    assert (
        'mooring_build_info{component="a-daemon",revision="abc",version="1.2.3"} 1.0'
        in text
    )
    assert "process_resident_memory_bytes" in text
    assert "python_info" in text


def test_two_registries_do_not_share_anything(
    registry: prometheus_client.CollectorRegistry,
) -> None:
    metrics.new_registry(metrics.Build("another", "1"))
    assert b"another" not in metrics.render(registry, "").body


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("text/plain", "text/plain"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text"),
    ],
)
def test_the_format_is_the_one_asked_for(
    registry: prometheus_client.CollectorRegistry, accept: str, kind: str
) -> None:
    rendered = metrics.render(registry, accept)
    assert rendered.content_type.startswith(kind)
    assert rendered.body.endswith(b"# EOF\n") == (kind != "text/plain")

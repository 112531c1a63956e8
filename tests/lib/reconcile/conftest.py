"""What the loops count and write to the log."""

from collections.abc import Iterator

import prometheus_client
import pytest
import structlog

from lib.reconcile import metrics


@pytest.fixture()
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


@pytest.fixture()
def reconcile_metrics(
    registry: prometheus_client.CollectorRegistry,
) -> metrics.ReconcileMetrics:
    return metrics.ReconcileMetrics(registry)


@pytest.fixture()
def log() -> Iterator[list[dict[str, object]]]:
    """Yield the list of entries logged so far."""
    merge = structlog.contextvars.merge_contextvars
    with structlog.testing.capture_logs(processors=[merge]) as entries:
        yield entries  # type: ignore[misc] # a MutableMapping of the same

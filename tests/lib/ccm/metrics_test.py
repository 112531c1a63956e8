"""The reference's metrics of new Nodes."""

import datetime

import prometheus_client

from lib.ccm import metrics

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
NAMES = (
    "node_controller_cloud_provider_taint_removal_delay_seconds",
    "node_controller_initial_node_sync_delay_seconds",
)


def test_a_new_node_is_told_under_both_names_of_the_reference() -> None:
    """In the reference's buckets, by the time since the Node's creation."""
    registry = prometheus_client.CollectorRegistry()
    new_nodes = metrics.NodeMetrics(registry)
    new_nodes.initialised(NOON, NOON + datetime.timedelta(seconds=10))
    for name in NAMES:
        found = {
            le: registry.get_sample_value(f"{name}_bucket", {"le": le})
            for le in ("1.0", "4.0", "16.0", "64.0", "256.0", "1024.0", "+Inf")
        }
        assert list(found.values()) == [0, 0, 1, 1, 1, 1, 1]
        assert registry.get_sample_value(f"{name}_sum") == 10


def test_a_clock_that_is_behind_counts_as_no_delay() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics.NodeMetrics(registry).initialised(
        NOON, NOON - datetime.timedelta(seconds=3)
    )
    assert registry.get_sample_value(f"{NAMES[0]}_sum") == 0

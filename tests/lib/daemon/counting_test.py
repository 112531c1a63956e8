"""Cloud calls are counted under the reference's names, too."""

import prometheus_client
import pytest

from lib.daemon import counting


@pytest.mark.parametrize(
    ("operation", "request_name"),
    [
        ("list servers", "server_list"),
        ("get volume", "volume_get"),
        ("find volumes", "volume_list"),
        ("create volume", "volume_create"),
        ("delete volume", "volume_delete"),
        ("attach volume", "volume_attach"),
        ("detach volume", "volume_detach"),
        ("extend volume", "volume_expand"),
        ("log in", "log_in"),
    ],
)
def test_a_call_has_the_references_name(operation: str, request_name: str) -> None:
    registry = prometheus_client.CollectorRegistry()
    counting.CloudMetrics("openstack", registry).observe(operation, "ok", 0.1)
    name = "openstack_api_requests_total"
    assert registry.get_sample_value(name, {"request": request_name}) == 1

"""Cloud calls are counted under the reference's names, too."""

import prometheus_client
import pytest

from lib.cloud.openstack import reference_metrics
from lib.daemon import counting
from tests.lib.cloud.openstack import reference_calls


@pytest.mark.parametrize(
    ("operation", "request_name"),
    [*reference_calls.BY_OPERATION.items(), *reference_calls.OF_OUR_OWN.items()],
)
def test_a_call_has_the_references_name(operation: str, request_name: str) -> None:
    registry = prometheus_client.CollectorRegistry()
    names = counting.Reference(reference_metrics.CALLS, reference_metrics.request)
    calls = counting.CloudMetrics("openstack", registry, names)
    calls.observe(operation, "ok", 0.1)
    name = "openstack_api_requests_total"
    assert registry.get_sample_value(name, {"request": request_name}) == 1

"""The chart osdpl-controller, as helm renders it."""

import pytest

from lib.lab import places
from lib.lab.charts import charts
from tests.lab.charts import rendering

CHART = "osdpl-controller"
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("chartSource=ftp://x", "'/chartSource': 'ftp://x' does not"),
    ("allowedChartSources[0]=charts", "'/allowedChartSources/0': 'charts' does not"),
    ("chartSourceSecret=A", "'/chartSourceSecret': 'A' does not match"),
    ("helm.slots=0", "'/helm/slots': minimum: got 0, want 1"),
    ("helm.timeout=1d", "'/helm/timeout': '1d' does not match"),
    ("webhook.failurePolicy=fail", "'/webhook/failurePolicy': value must be one of"),
    ("webhook.timeoutSeconds=31", "'/webhook/timeoutSeconds': maximum: got 31"),
    ("replicas=2", "'replicas' not allowed"),
]
"""What is set, what helm must name."""


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)

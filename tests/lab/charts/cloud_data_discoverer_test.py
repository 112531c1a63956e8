"""The chart cloud-data-discoverer: rendered, installed, changed and removed by helm."""

import pytest

from lib.lab import places
from lib.lab.charts import charts
from lib.lab.daemons import discoverer
from tests.harness import deckhouse_names
from tests.lab.charts import installing, rendering

CHART = "cloud-data-discoverer"
CASE = installing.Case(
    chart=CHART,
    home=charts.PLATFORM,
    rights=lambda values: discoverer.permissions(
        manages_classes=values["storageClasses"]["manage"],
        creates_secret=values["createDiscoverySecret"],
        reader=False,
    ),
    readers=frozenset(
        {"access-to-cloud-data-discoverer", "access-to-cloud-data-discoverer-role"}
    ),
    replicas=1,
    plain="verticalPodAutoscaler=false,metrics.podMonitor.enabled=false,metrics.alerts=false",
    deckhouse=deckhouse_names.DeckhouseNames(
        CHART,
        "cloud-data-discoverer",
        "d8:cloud-provider-openstack:cloud-data-discoverer",
    ),
)
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("discoveryPeriod=1d", "'/discoveryPeriod': '1d'"),
    ("metrics.mode=plain", "'/metrics/mode'"),
    ("openstack.authURL=keystone", "'/openstack/authURL'"),
]
"""What is set, what helm must name."""
BAD_DVP = [
    ("parent.secretName=", "'/parent/secretName': ''"),
    ("parent.namespace=", "'/parent/namespace': minLength: got 0, want 1"),
    ("clusterUUID=", "'/clusterUUID': minLength: got 0, want 1"),
    ("openstack.password=x", "'/openstack/password': maxLength"),
    ("cloudConfig.secretName=x", "'/cloudConfig/secretName': maxLength"),
    ("storageClasses.exclude={[}", "'/storageClasses/exclude/0': '[' is not valid"),
    ("discoverySecret=A", "'/discoverySecret': 'A' does not match pattern"),
]
"""The same for DVP."""


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)


def test_bad_values_for_dvp_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD_DVP, "dvp")


def test_installed_changed_and_removed(ground: installing.Ground) -> None:
    installing.installed_changed_removed(ground, CASE)


def test_without_the_kinds_of_others_nothing_is_created(
    ground: installing.Ground,
) -> None:
    installing.refused_without_kinds(ground, CASE)


def test_with_the_kinds_of_others(ground: installing.Ground, operators: None) -> None:
    del operators
    installing.with_kinds_of_others(ground, CASE)

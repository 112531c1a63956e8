"""The chart dvp-ccm: rendered, installed, changed and removed by helm."""

import pytest

from lib.cloud.dvp import needs
from lib.lab import errors, places
from lib.lab.charts import charts
from tests.harness import deckhouse_names
from tests.lab.charts import installing, rendering

CHART = "dvp-ccm"
SWITCH = "dvp-cloud-controller-manager-disable-lb"
UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("parent.secretName=", "'/parent/secretName': ''"),
    ("parent.secretName=A_B", "'/parent/secretName': 'A_B' does not match pattern"),
    ("parent.namespace=", "'/parent/namespace': minLength: got 0, want 1"),
    ("parent.namespace=a/b", "'/parent/namespace': 'a/b' does not match pattern"),
    ("parent.kubeconfig=x", "'kubeconfig' not allowed"),
    ("clusterUUID=", "'/clusterUUID': minLength: got 0, want 1"),
    ("clusterUUID=a b", "'/clusterUUID': 'a b' does not match pattern"),
    ("loadBalancers.enabled=no", "'/loadBalancers/enabled': got string, want boolean"),
    ("replicas=0", "'/replicas': minimum: got 0, want 1"),
    ("securePort=70000", "'/securePort': maximum: got 70,000"),
    ("nodeDeletion.window=10", "'/nodeDeletion/window'"),
    ("lbDriftPeriod=600", "'/lbDriftPeriod': got number, want string"),
    ("controllers={node-route-controller}", "'/controllers/0': value must be one of"),
    ("extraArgs={-v}", "'/extraArgs/0': '-v' does not match pattern"),
    ("leaderElection.resourceName=A b", "'/leaderElection/resource"),
]
"""What is set, what helm must name."""


CASE = installing.Case(
    chart=CHART,
    home=charts.SYSTEM,
    # The ConfigMap that disables load balancers is in the namespace of the release.
    rights=lambda values: needs.manifest().replace(
        charts.PLATFORM_OF_DVP, charts.SYSTEM
    ),
    readers=frozenset({"dvp-ccm:metrics"}),
    replicas=2,
    plain="verticalPodAutoscaler=false,metrics.podMonitor.enabled=false,metrics.alerts=false",
    deckhouse=deckhouse_names.DeckhouseNames(
        CHART,
        "cloud-controller-manager",
        "d8:cloud-provider-dvp:cloud-controller-manager",
    ),
)


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)


def test_installed_changed_and_removed(ground: installing.Ground) -> None:
    installing.installed_changed_removed(ground, CASE)


def test_without_the_kinds_of_others_nothing_is_created(
    ground: installing.Ground,
) -> None:
    installing.refused_without_kinds(ground, CASE)


def test_an_upgrade_keeps_the_cluster(ground: installing.Ground) -> None:
    """Another UUID is rejected; prints the message. The switch comes and goes."""
    before = installing.until(ground.everything)
    usual = charts.of(CHART)["usual"]
    release = installing.prepare(ground, CASE, CASE.home)
    release.run("install", usual)
    installed = installing.until(ground.everything)
    with pytest.raises(errors.LabError) as caught:
        release.run("upgrade", usual, "--set", "clusterUUID=other")
    print(caught.value)
    assert f'clusterUUID: invalid value "other": must be "{UUID}"' in str(caught.value)
    release.run("upgrade", usual, "--set", "loadBalancers.enabled=false")
    switch = ("ConfigMap", CASE.home, SWITCH)
    assert switch in installing.until(ground.everything) - installed
    release.run("upgrade", usual)
    assert switch not in installing.until(ground.everything)
    release.uninstall(before)


def test_with_the_kinds_of_others(ground: installing.Ground, operators: None) -> None:
    del operators
    installing.with_kinds_of_others(ground, CASE)

"""The chart openstack-ccm: rendered, installed, changed and removed by helm."""

import contextlib
import pathlib
import shutil
import sys
from collections.abc import Iterator

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import programs
from lib.lab.charts import charts
from lib.lab.daemons import ccm
from lib.lab.kube import control_plane
from lib.lab.run import processes, progress
from tests.lab.charts import installing, rendering

CHART = "openstack-ccm"
LIBRARY = "charts/library/templates"
THREE = ("--set", "replicas=3")
CASE = installing.Case(
    chart=CHART,
    home=charts.SYSTEM,
    rights=lambda values: ccm.manifest(),
    readers=frozenset({"openstack-ccm:metrics"}),
    replicas=2,
    plain="verticalPodAutoscaler=false,metrics.podMonitor.enabled=false,metrics.alerts=false",
)
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("cloudConfig.secretName=", "'/cloudConfig/secretName': ''"),
    ("cloudConfig.text=x", "'/cloudConfig': additional properties"),
    ("replicas=0", "'/replicas': minimum: got 0, want 1"),
    ("securePort=70000", "'/securePort': maximum: got 70,000"),
    ("nodeDeletion.window=10", "'/nodeDeletion/window'"),
    ("nodeDeletion.maxPercent=101", "'/nodeDeletion/maxPercent'"),
    ("clusterID=a b", "'/clusterID': 'a b' does not match pattern"),
    ("lbDriftPeriod=600", "'/lbDriftPeriod': got number, want string"),
    ("controllers={node}", "'/controllers/0': value must be one of"),
    ("extraArgs={-v}", "'/extraArgs/0': '-v' does not match pattern"),
    ("metrics.podmonitor=true", "'podmonitor' not allowed"),
    ("leaderElection.resourceName=A b", "'/leaderElection/resource"),
]
"""What is set, what helm must name."""


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


def test_with_the_kinds_of_others(ground: installing.Ground, operators: None) -> None:
    del operators
    installing.with_kinds_of_others(ground, CASE)


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        (f"{LIBRARY}/_availability.tpl", "maxUnavailable: 1", "maxUnvailable: 1"),
        (f"{LIBRARY}/_availability.tpl", "containerPolicies:", "containersPolicies:"),
        ("templates/deployment.yaml", "revisionHistoryLimit", "revisionsHistoryLimit"),
        (f"{LIBRARY}/_monitoring.tpl", "scrapeTimeout", "scrapeTimeOut"),
    ],
)
def test_a_field_that_nobody_knows_is_refused(
    ground: installing.Ground,
    operators: None,
    tmp_path: pathlib.Path,
    file: str,
    right: str,
    wrong: str,
) -> None:
    """What is taken above was looked at strictly, by the real definitions."""
    del operators
    snapshot = charts.of(CHART)["beside-the-reference"]
    copy = tmp_path / "chart"
    shutil.copytree(charts.folder(installing.ROOT, snapshot.chart), copy)
    template = copy / file
    assert right in template.read_text()
    template.write_text(template.read_text().replace(right, wrong))
    place = ("--namespace", snapshot.namespace)
    values = ("--values", snapshot.values(installing.ROOT))
    with pytest.raises(errors.LabError, match=wrong.partition(":")[0]):
        ground.helm("install", "wrong", copy, *place, *values)
    with contextlib.suppress(errors.LabError):
        ground.helm("uninstall", "wrong", *place)


@pytest.fixture()
def scheduler(ground: installing.Ground) -> Iterator[None]:
    """Run kube-scheduler."""
    shown = progress.Lines(sys.stderr)
    programs.build(ground.where, [control_plane.SCHEDULER_GROUP], shown)
    control_plane.start_scheduler(ground.where, shown)
    yield
    processes.stop(ground.where, [control_plane.SCHEDULER], patience_s=1)


def test_each_replica_has_a_host_of_the_control_plane(
    ground: installing.Ground, scheduler: None
) -> None:
    """Placed by the real scheduler, on Nodes that only this program can initialise.

    Last of all: where there is no kubelet, pods that were placed do not go.
    """
    del scheduler
    for name in ("master-0", "master-1"):
        installing.make_node(ground, name, is_control_plane=True)
    installing.make_node(ground, "worker-0", is_control_plane=False)
    first, _ = CASE.snapshots
    installing.prepare(ground, CASE, first.namespace).run("install", first, *THREE)
    path = f"/api/v1/namespaces/{first.namespace}/pods?labelSelector=app={first.chart}"

    def placed() -> list[str]:
        pods = ground.get(path)["items"]
        return sorted(pod["spec"].get("nodeName", "") for pod in pods)

    def refused() -> list[str]:
        return [
            condition["message"]
            for pod in ground.get(path)["items"]
            for condition in pod.get("status", {}).get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]

    installing.until(lambda: placed() == ["", "master-0", "master-1"])
    (why,) = installing.until(refused)
    print(why)
    assert "2 node(s) didn't have free ports" in why
    assert "1 node(s) didn't match Pod's node affinity/selector" in why

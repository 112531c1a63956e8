"""The umbrella with Deckhouse's names: beside its objects, in their place, refused."""

import functools
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from lib.lab import errors
from lib.lab.charts import charts
from lib.lab.kube import control_plane
from tests.lab.charts import installing, reference_of_deckhouse

CHART = charts.UMBRELLA
HOME = charts.PLATFORM
CASE = installing.Case(
    chart=CHART,
    home=HOME,
    rights=lambda values: "",
    readers=frozenset(),
    replicas=0,
    plain="",
)
DRIVER = ("CSIDriver", "", "cinder.csi.openstack.org")
SETTINGS = (
    "global.deckhouse.enabled=true,global.cloudConfig.secretName=cloud-controller-manager,"
    "global.cloudConfig.key=cloud-config,csi-controller.csiDriver.podInfoOnMount=false"
)
"""The CSIDriver's modes are immutable."""
BESIDE = f"{SETTINGS},global.deckhouse.names=false"
Objects = Mapping[installing.Name, installing.Document]


@pytest.fixture()
def stopped(ground: installing.Ground) -> Iterator[Objects]:
    """Have the objects of Deckhouse, stopped; return them."""
    before = installing.until(ground.everything)
    text = reference_of_deckhouse.manifest(is_stopped=True)
    control_plane.apply_manifests(ground.where, text)
    names = _stored(ground, before)
    yield {name: document for name, document in names.items() if name[0] != "Pod"}
    for kind, namespace, name in installing.until(ground.everything) - before:
        if kind in ("Deployment", "DaemonSet", "ServiceAccount", "Secret"):
            group = "apis/apps/v1" if kind.startswith("D") else "api/v1"
            plural = f"{kind.lower()}s"
            ground.delete(f"/{group}/namespaces/{namespace}/{plural}/{name}")
        elif kind.startswith("Cluster"):
            plural = f"{kind.lower()}s"
            ground.delete(f"/apis/rbac.authorization.k8s.io/v1/{plural}/{name}")
        elif kind == "CSIDriver":
            ground.delete(f"/apis/storage.k8s.io/v1/csidrivers/{name}")
    rest = functools.partial(_kinds, ground, before, {"Deployment", "DaemonSet"})
    installing.until_none(rest)


def _kinds(
    ground: installing.Ground, before: set[installing.Name], kinds: set[str]
) -> set[installing.Name]:
    return {name for name in ground.everything() - before if name[0] in kinds}


def _stored(
    ground: installing.Ground, before: set[installing.Name]
) -> dict[installing.Name, installing.Document]:
    """Return the objects that are new, without what the server counts."""
    observed: dict[installing.Name, installing.Document] = {}
    for (_, kind), (path, _) in installing.until(ground.kinds).items():
        for item in ground.get(path)["items"]:
            about = item["metadata"]
            name = (kind, about.get("namespace", ""), about["name"])
            if name not in before:
                for field in ("resourceVersion", "managedFields"):
                    about.pop(field, None)
                observed[name] = {
                    key: value for key, value in item.items() if key != "status"
                }
    return observed


def _helm(ground: installing.Ground, verb: str, *words: str | pathlib.Path) -> str:
    return ground.helm(verb, CHART, *words, "--namespace", HOME)


def test_beside_the_stopped_objects(
    ground: installing.Ground, stopped: Objects
) -> None:
    """None of them changes but for the CSIDriver's metadata; all remain afterwards."""
    before = installing.until(ground.everything)
    folder = charts.folder(installing.ROOT, CHART)
    _helm(ground, "install", folder, "--take-ownership", "--set", BESIDE)
    during = _stored(ground, set())
    changed = {name for name in stopped if during[name] != stopped[name]}
    print(f"{len(stopped)} objects of Deckhouse, changed: {changed}")
    assert changed == {DRIVER}
    spec = dict(during[DRIVER]["spec"])
    assert spec.pop("nodeAllocatableUpdatePeriodSeconds") == 60
    assert spec == stopped[DRIVER]["spec"]
    new = {name[2] for name in during.keys() - before if name[0].startswith("D")}
    assert new == {
        "cloud-data-discoverer-openstack",
        "csi-controller-openstack",
        "csi-node-openstack",
        "openstack-ccm",
    }
    _helm(ground, "uninstall")
    assert stopped.keys() <= installing.until(ground.everything)


@pytest.mark.parametrize("more", [(), ("--take-ownership",)])
def test_objects_of_others_are_not_merged(
    ground: installing.Ground, stopped: Objects, more: tuple[str, ...]
) -> None:
    """Their containers would remain in the pods: nothing is created or changed."""
    before = installing.until(ground.everything)
    folder = charts.folder(installing.ROOT, CHART)
    with pytest.raises(errors.LabError) as caught:
        _helm(ground, "install", folder, *more, "--set", SETTINGS)
    message = " ".join(str(caught.value).split())
    print(message)
    assert f" {HOME}/c" in message
    assert "exists, and is not of this chart: must be deleted" in message
    assert installing.until(ground.everything) == before
    during = _stored(ground, set())
    assert {name for name in stopped if during[name] != stopped[name]} == set()


def _workloads(ground: installing.Ground) -> dict[str, installing.Document]:
    """Return the workloads of the namespace by name."""
    return {
        item["metadata"]["name"]: item
        for kind in ("deployments", "daemonsets")
        for item in ground.get(f"/apis/apps/v1/namespaces/{HOME}/{kind}")["items"]
    }


def _containers(workload: installing.Document) -> tuple[str, ...]:
    pod = workload["spec"]["template"]["spec"]
    return tuple(container["name"] for container in pod["containers"])


def test_the_release_of_the_reference_is_upgraded_in_place(
    ground: installing.Ground, tmp_path: pathlib.Path
) -> None:
    """And rolled back: the workloads are the same objects, with other containers."""
    before = installing.until(ground.everything)
    _helm(ground, "install", reference_of_deckhouse.chart(tmp_path / "chart"))
    reference = _workloads(ground)
    folder = charts.folder(installing.ROOT, CHART)
    _helm(ground, "upgrade", folder, "--set", SETTINGS)
    release = installing.prepare(ground, CASE, HOME)
    release.check()
    upgraded = _workloads(ground)
    assert upgraded.keys() == reference.keys()
    for name, workload in upgraded.items():
        old = reference[name]
        print(f"{name:28} {_containers(old)} -> {_containers(workload)}")
        assert workload["metadata"]["uid"] == old["metadata"]["uid"]
        assert workload["spec"]["selector"] == old["spec"]["selector"]
        account = workload["spec"]["template"]["spec"]["serviceAccountName"]
        assert account in reference_of_deckhouse.ACCOUNTS
        assert "snapshotter" not in _containers(workload)
    _helm(ground, "rollback", "1")
    for name, workload in _workloads(ground).items():
        assert _containers(workload) == reference_of_deckhouse.CONTAINERS[name]
        assert workload["metadata"]["uid"] == reference[name]["metadata"]["uid"]
    _helm(ground, "uninstall")
    rest = functools.partial(_kinds, ground, before, {"Deployment", "DaemonSet", "Pod"})
    installing.until_none(rest)


def test_another_selector_is_reported(
    ground: installing.Ground, tmp_path: pathlib.Path
) -> None:
    """It is immutable: the upgrade fails, a rollback has the objects of before."""
    more = ", module: cloud-provider-openstack"
    chart = reference_of_deckhouse.chart(tmp_path / "chart", more_selector=more)
    _helm(ground, "install", chart)
    reference = _workloads(ground)
    folder = charts.folder(installing.ROOT, CHART)
    with pytest.raises(errors.LabError, match=r"spec\.selector.*field is immutable"):
        _helm(ground, "upgrade", folder, "--set", SETTINGS)
    assert _workloads(ground).keys() == reference.keys()
    _helm(ground, "rollback", "1")
    for name, workload in _workloads(ground).items():
        assert _containers(workload) == reference_of_deckhouse.CONTAINERS[name]
        assert workload["metadata"]["uid"] == reference[name]["metadata"]["uid"]
    _helm(ground, "uninstall")

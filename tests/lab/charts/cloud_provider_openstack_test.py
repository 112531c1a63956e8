"""The umbrella chart: rendered, installed, changed, rolled back and removed by helm."""

import functools
import json
import sys

import pytest

from lib.kube import resources
from lib.lab import errors, places
from lib.lab.charts import charts
from lib.lab.kube import control_plane
from lib.lab.run import processes, progress
from tests.harness import testing
from tests.lab.charts import installing, rendering

CHART = "cloud-provider-openstack"
CSI_DRIVER = ("CSIDriver", "", "cinder.csi.openstack.org")
CASE = installing.Case(
    chart=CHART,
    home=charts.SYSTEM,
    rights=lambda values: "",
    readers=frozenset(),
    replicas=0,
    plain="",
    kept={CSI_DRIVER: f"/apis/storage.k8s.io/v1/csidrivers/{CSI_DRIVER[2]}"},
)
MISTAKES = [
    ("unknown key", "global.registry=x", "additional properties 'registry'"),
    ("no registry", "global.imageRegistry=", "'/global/imageRegistry': minLength"),
    ("not a name", "global.cloudConfig.secretName=A_B", "'/global/cloudConfig"),
    ("Secret in values", "global.cloudConfig.text=x", "'text' not allowed"),
    ("not a key", "global.cloudConfig.key=a/b", "'/global/cloudConfig/key'"),
    ("negative number", "global.controlPlaneNodes=-1", "'/global/controlPlane"),
    ("no port", "global.kubeApiServer.port=0", "'/global/kubeApiServer/port'"),
    ("two words", "global.clusterID=a b", "'/global/clusterID': 'a b'"),
    ("text as switch", "global.deckhouse.enabled=yes", "'/global/deckhouse/enabled'"),
    ("number as label", "global.nodeSelector.x=1", "'/global/nodeSelector/x'"),
    ("no such chart", "components.csi-snapshotter=true", "'csi-snapshotter' not"),
    ("zero replicas", "openstack-ccm.replicas=0", "'/replicas': minimum"),
    ("image without version", "openstack-ccm.image=r/ccm", "'/image': 'r/ccm'"),
    (
        "port in use",
        "openstack-ccm.securePort=9819",
        'csi-node.httpEndpoint: invalid value "9819"',
    ),
    ("no unit", "openstack-ccm.nodeDeletion.window=10", "'/nodeDeletion/window'"),
    (
        "two Secrets of csi-controller",
        "csi-controller.cloudConfig.secretName=a,csi-controller.cloudConfig.text=b",
        "'/cloudConfig': 'not' failed",
    ),
    (
        "two Secrets of the discoverer",
        "cloud-data-discoverer.cloudConfig.secretName=a,"
        "cloud-data-discoverer.openstack.password=b",
        "'/openstack/password': maxLength",
    ),
    ("no version", "csi-controller.sidecars.resizer.version=", "'/sidecars/resizer"),
    ("no unit of time", "csi-controller.sidecars.timeout=180", "'/sidecars/timeout'"),
    (
        "unknown policy",
        "csi-controller.storageClasses[0].name=a,"
        "csi-controller.storageClasses[0].reclaimPolicy=Keep",
        "'/storageClasses/0/reclaimPolicy'",
    ),
    ("relative folder", "csi-node.kubeletDirectory=kubelet", "'/kubeletDirectory'"),
    ("no update", "csi-node.maxUnavailable=0", "'/maxUnavailable'"),
    ("unknown mode", "csi-node.registrar.mode=none", "'/registrar/mode': value"),
    ("unknown unit", "cloud-data-discoverer.discoveryPeriod=1d", "'/discoveryPeriod'"),
    (
        "nothing at all",
        ",".join(f"components.{name}=false" for name in charts.COMPONENTS),
        "components: invalid value: must enable at least one component",
    ),
]
"""What is wrong, what is set, what helm must name."""
SETS = ("defaults", "production", "deckhouse")
"""Values of the releases: install, upgrade, upgrade; then two rollbacks."""
SERVERS = {
    "1.36": (),
    "1.33": ("--emulated-version=1.33", "--min-compatibility-version=1.33"),
}
NOT_STORED = "csi-controller.csiDriver.nodeAllocatableUpdatePeriodSeconds=0"
"""For an emulated server: helm reads the program's version; the field is dropped."""
VERSIONS = testing.by_tier(("1.36",), tuple(SERVERS))


def release(ground: installing.Ground, home: str) -> installing.Release:
    return installing.prepare(ground, CASE, home)


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_it_renders_without_values(renderer: places.Places) -> None:
    """The same as the snapshot of no values."""
    snapshot = charts.of(CHART)["defaults"]
    assert snapshot.values(installing.ROOT).read_text() == "{}\n"
    rendered = charts.render(renderer, installing.ROOT, snapshot)
    assert rendered == snapshot.file(installing.ROOT).read_text()


def test_mistakes_are_rejected_before_anything_is_created(
    ground: installing.Ground,
) -> None:
    """By helm install, which names the field; prints the table."""
    before = installing.until(ground.everything)
    folder = charts.folder(installing.ROOT, CHART)
    wrong = []
    for title, setting, named in MISTAKES:
        words = ("install", CHART, folder, "--namespace", CASE.home, "--skip-crds")
        try:
            ground.helm(*words, "--set", setting)
            message = "installed"
        except errors.LabError as error:
            message = " ".join(str(error).split())
        print(f"{title:30} {message[-110:]}")
        if named not in message:
            wrong.append((title, named, message))
    assert wrong == []
    assert len(MISTAKES) >= 20
    assert installing.until(ground.everything) == before


def test_a_missing_kind_is_reported_before_anything_is_created(
    ground: installing.Ground,
) -> None:
    """A CRD of others that is missing, or too old to have the version."""
    before = installing.until(ground.everything)
    production = charts.of(CHART)["production"]
    deployed = release(ground, CASE.home)
    with pytest.raises(errors.LabError, match='kind "VerticalPodAutoscaler"'):
        deployed.run("install", production, "--skip-crds")
    assert installing.until(ground.everything) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_installed_upgraded_rolled_back_and_removed(
    ground: installing.Ground, operators: None, version: str
) -> None:
    """With three sets of values; every object is stored as it was rendered."""
    del operators
    if SERVERS[version]:
        processes.stop(ground.where, ["kube-apiserver"], patience_s=0.5)
        shown = progress.Lines(sys.stderr)
        control_plane.up(ground.where, shown, api_arguments=SERVERS[version])
    served = installing.until(lambda: ground.get("/version"))
    minor = served.get("emulationMinor") or served["minor"]
    assert f"1.{minor}" == version
    before = installing.until(ground.everything)
    deployed = release(ground, CASE.home)
    names: dict[int, set[installing.Name]] = {}
    for revision, name in enumerate(SETS, 1):
        verb = "install" if revision == 1 else "upgrade"
        more = ("--set", NOT_STORED) if SERVERS[version] else ()
        deployed.run(verb, charts.of(CHART)[name], *more)
        names[revision] = deployed.check()
    for revision in (2, 1):
        place = ("--namespace", CASE.home)
        ground.helm("rollback", CHART, str(revision), *place)
        assert deployed.check() == names[revision]
        others = set.union(*names.values()) - names[revision]
        installing.until_none(functools.partial(remaining, ground, others))
    print(f"{version}: {[len(rows) for rows in names.values()]} objects")
    assert_second_release_is_rejected(ground)
    deployed.uninstall(before)


def remaining(
    ground: installing.Ground, names: set[installing.Name]
) -> set[installing.Name]:
    """Return those of some objects that still exist."""
    return names & ground.everything()


def assert_second_release_is_rejected(ground: installing.Ground) -> None:
    """Objects of the cluster belong to the first release, which helm names."""
    before = installing.until(ground.everything)
    folder = charts.folder(installing.ROOT, CHART)
    words = ("install", "second", folder, "--namespace", charts.PLATFORM)
    with pytest.raises(errors.LabError, match="exists and cannot be") as caught:
        ground.helm(*words)
    assert f'"{CHART}"' in str(caught.value)
    records = installing.until(ground.everything) - before
    # helm keeps a record of the failed release.
    assert {kind for kind, _, _ in records} <= {"Secret"}
    assert {home for _, home, _ in records} <= {charts.PLATFORM}
    for _, home, name in records:
        ground.delete(f"/api/v1/namespaces/{home}/secrets/{name}")


def test_pods_of_all_components_are_admitted(ground: installing.Ground) -> None:
    """Also those of the DaemonSet, on a host of the control plane."""
    installing.make_node(ground, "host", is_control_plane=True)
    labels = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
    body = json.dumps(labels).encode()
    ground.api.patch(resources.NODES, "host", body, timeout_s=installing.TIMEOUT_S)
    before = installing.until(ground.everything)
    deployed = release(ground, CASE.home)
    deployed.run("install", charts.of(CHART)["defaults"])

    def created() -> dict[str, int]:
        pods = ground.get(f"/api/v1/namespaces/{CASE.home}/pods")["items"]
        apps = [pod["metadata"]["labels"]["app"] for pod in pods]
        return {name: apps.count(name) for name in sorted(set(apps))}

    expected = dict.fromkeys(charts.COMPONENTS, 1) | {"openstack-ccm": 2}
    installing.until(lambda: created() == expected)
    print(created())
    notes = ground.helm("get", "notes", CHART, "--namespace", CASE.home)
    assert "this Secret does not exist" in notes
    deployed.uninstall(before)
    ground.delete("/api/v1/nodes/host")

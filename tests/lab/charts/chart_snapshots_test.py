"""The snapshots of the charts are what the real helm renders; it finds no fault.

Nothing runs here but helm. `./pants run cmd/mooring -- lab charts` renders them anew.
"""

import difflib
import pathlib
import sys

import pytest

from lib.lab import charts, errors, helm, places, programs, progress

ROOT = pathlib.Path()
"""A checkout, or a sandbox with all charts in it."""
EVERY = [pytest.param(one, id=f"{one.chart}/{one.name}") for one in charts.SNAPSHOTS]
NAMES = sorted({one.chart for one in charts.SNAPSHOTS})


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> places.Places:
    """Give the places of a lab of which only helm is there."""
    place = places.Places(places.default().cache, tmp_path_factory.mktemp("helm"))
    programs.build(place, [helm.GROUP], progress.Lines(sys.stderr))
    return place


@pytest.mark.parametrize("snapshot", EVERY)
def test_a_snapshot_is_what_helm_renders(
    renderer: places.Places, snapshot: charts.Snapshot
) -> None:
    """Templates, values and files that change, change the snapshot with them."""
    kept = snapshot.file(ROOT).read_text()
    made = charts.render(renderer, ROOT, snapshot)
    change = difflib.unified_diff(kept.splitlines(), made.splitlines(), "kept", "made")
    print("\n".join(change))
    assert kept == made


@pytest.mark.parametrize("snapshot", EVERY)
def test_helm_finds_no_fault(
    renderer: places.Places, snapshot: charts.Snapshot
) -> None:
    """A warning is a fault, too."""
    folder = charts.folder(ROOT, snapshot.chart)
    words = ("lint", "--strict", folder, "--values", snapshot.values(ROOT))
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.run(renderer, words)


def test_every_chart_and_every_set_of_values_has_its_row() -> None:
    """And each row two files; another file is nobody's."""
    folders = {one.parent.name for one in pathlib.Path("charts").glob("*/Chart.yaml")}
    assert folders == set(NAMES)
    found = {str(one) for one in pathlib.Path("charts").glob("*/snapshots/*.yaml")}
    known = {
        str(file(ROOT)) for one in charts.SNAPSHOTS for file in (one.values, one.file)
    }
    assert found == known


# Chart, what is set, what helm must name.
BAD = [
    ("cloud-data-discoverer", "image=", "'/image': minLength: got 0, want 1"),
    ("cloud-data-discoverer", "discoveryPeriod=1d", "'/discoveryPeriod': '1d'"),
    ("cloud-data-discoverer", "metrics.mode=plain", "'/metrics/mode'"),
    ("cloud-data-discoverer", "openstack.authURL=keystone", "'/openstack/authURL'"),
    ("csi-controller", "image=", "'/image': minLength: got 0, want 1"),
    ("csi-controller", "clusterUUID=", "'/clusterUUID': minLength"),
    ("csi-controller", "sidecars.attacher.version=", "'/sidecars/attacher/version'"),
    ("csi-controller", "sidecars.snapshotter.image=x", "'snapshotter' not allowed"),
    ("openstack-ccm", "image=", "'/image': minLength: got 0, want 1"),
    ("openstack-ccm", "cloudConfig.secretName=", "'/cloudConfig/secretName': ''"),
    ("openstack-ccm", "cloudConfig.text=x", "'/cloudConfig': additional properties"),
    ("openstack-ccm", "replicas=0", "'/replicas': minimum: got 0, want 1"),
    ("openstack-ccm", "securePort=70000", "'/securePort': maximum: got 70,000"),
    ("openstack-ccm", "nodeDeletion.window=10", "'/nodeDeletion/window'"),
    ("openstack-ccm", "nodeDeletion.maxPercent=101", "'/nodeDeletion/maxPercent'"),
    ("openstack-ccm", "clusterID=a b", "'/clusterID': 'a b' does not match pattern"),
    ("openstack-ccm", "lbDriftPeriod=600", "'/lbDriftPeriod': got number, want string"),
    ("openstack-ccm", "controllers={node}", "'/controllers/0': value must be one of"),
    ("openstack-ccm", "extraArgs={-v}", "'/extraArgs/0': '-v' does not match pattern"),
    ("openstack-ccm", "metrics.podmonitor=true", "'podmonitor' not allowed"),
    ("osdpl-controller", "image=", "'/image': minLength: got 0, want 1"),
    ("osdpl-controller", "chartSource=ftp://x", "'/chartSource': 'ftp://x' does not"),
    ("osdpl-controller", "helm.slots=0", "'/helm/slots': minimum: got 0, want 1"),
    ("osdpl-controller", "helm.timeout=1d", "'/helm/timeout': '1d' does not match"),
    ("osdpl-controller", "replicas=2", "'replicas' not allowed"),
    ("openstack-ccm", "leaderElection.resourceName=A b", "'/leaderElection/resource"),
]


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    """Nothing is rendered; helm says which field, and what would be right."""
    wrong = []
    for chart, given, named in BAD:
        usual = next(one for one in charts.SNAPSHOTS if one.chart == chart)
        words = ("template", charts.folder(ROOT, chart), "--set", given)
        values = ("--values", usual.values(ROOT))
        with pytest.raises(errors.LabError) as refused:
            helm.run(renderer, (*words, *values))
        said = " ".join(str(refused.value).split())
        print(f"{chart:22} {given:32} {said[-160:]}")
        if named not in said:
            wrong.append((given, said))
    assert wrong == []
    assert {chart for chart, _, _ in BAD} == set(NAMES)

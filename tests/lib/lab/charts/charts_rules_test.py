"""Rules of the charts, in all that helm renders from them.

tests/lab/charts holds the snapshots to what helm renders.
"""

import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.lab.charts import charts

ROOT = pathlib.Path()
CHARTS = (
    "cloud-data-discoverer",
    "csi-controller",
    "dvp-ccm",
    "openstack-ccm",
    "osdpl-controller",
)
EVERY_CHART = (*CHARTS, "csi-node")
"""Those with one workload each; the umbrella has a test of its own."""
RENDERED = tuple(row for row in charts.SNAPSHOTS if row.chart in CHARTS)
SNAPSHOTS = [pytest.param(row, id=f"{row.chart}-{row.name}") for row in RENDERED]
EVERY_SNAPSHOT = [
    pytest.param(row, id=f"{row.chart}-{row.name}") for row in charts.SNAPSHOTS
]
LEFT_WITHIN_S = 300
"""Source: Kubernetes, DefaultTolerationSeconds."""
UNREACHABLE = "node.kubernetes.io/unreachable"
"""The taint of a Node whose kubelet does not report any more."""
REFERENCE_PORTS = {
    9808: "livenessprobe of cinder-csi-plugin's node plugin",
    10258: "openstack-cloud-controller-manager",
}
"""Of the reference's pods in their hosts' network."""
OWN_ROWS = {
    ("osdpl-controller", "imagePullSecrets"): "any text, since its first release",
    ("csi-node", "proxy"): "has none: it connects to the metadata service alone",
    ("osdpl-controller", "deckhouse"): "Deckhouse has no such module, hence no names",
}
"""Rows that differ from the library's on purpose."""
FIXED = {
    "cloud-data-discoverer",
    "kube-system",
    "d8-monitoring",
    charts.PLATFORM,
    charts.PLATFORM_OF_DVP,
}
"""A Secret and namespaces that no value names, or that helm quotes where required."""
DECKHOUSE = re.compile(r"heritage|deckhouse|\bd8[-_.]|cluster-low|severity_level")
ANYWHERE = re.compile(
    r"d8-cloud-provider-openstack"  # the namespace of the snapshot
    r"|d8-(cloud-provider-discovery-data|provider-cluster-configuration)"
    r"|^deckhouse\.io$"  # the group of the catalog
    r"|\bd8_cloud_provider_dvp_[a-z_]+"  # metrics of the module's alerts
    r"|csi[.-]dvp[.-]deckhouse[.-]io"  # the driver of DVP, and its Leases
    r"|^deckhouse(clusters|clustertemplates|machines|machinetemplates)(/status)?$"
)
"""Names that consumers of the discoverer's objects know."""


def has_deckhouse(snapshot: charts.Snapshot) -> bool:
    """Report whether the values of a snapshot enable Deckhouse."""
    values = snapshot.all_values(ROOT)
    switched = values.get("deckhouse") or values["global"]["deckhouse"]
    return bool(switched["enabled"])


def pod(snapshot: charts.Snapshot) -> dict[str, Any]:
    return snapshot.pod(ROOT)


def texts(value: object) -> Iterator[str]:
    """Yield all keys and values of a manifest."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    else:
        yield str(value)


def tolerated(
    toleration: Mapping[str, Any], key: str, effect: str, value: str = ""
) -> bool:
    """Report whether a toleration matches a taint.

    Source: Kubernetes core/v1, Toleration.ToleratesTaint.
    """
    return (
        toleration.get("effect", effect) == effect
        and toleration.get("key", key) == key
        and (toleration.get("operator") == "Exists" or toleration.get("value") == value)
    )


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_permissions_are_listed_one_by_one(snapshot: charts.Snapshot) -> None:
    """No wildcard, and no role that Kubernetes brings and that has one."""
    rules = [
        rule
        for document in snapshot.objects(ROOT)
        if document["kind"] in ("Role", "ClusterRole")
        for rule in document["rules"]
    ]
    assert rules
    granted = {text for rule in rules for texts in rule.values() for text in texts}
    assert "*" not in granted
    bound = {
        document["roleRef"]["name"]
        for document in snapshot.objects(ROOT)
        if document["kind"] in ("RoleBinding", "ClusterRoleBinding")
    }
    assert not bound & {"cluster-admin", "admin", "edit"}


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_a_host_that_does_not_answer_is_left(snapshot: charts.Snapshot) -> None:
    """Within the time that Kubernetes gives every other pod."""
    tolerations = [
        toleration
        for toleration in pod(snapshot)["tolerations"]
        if tolerated(toleration, UNREACHABLE, "NoExecute")
    ]
    print(snapshot.chart, snapshot.name, tolerations)
    assert tolerations
    assert all(
        toleration.get("tolerationSeconds", 10**9) <= LEFT_WITHIN_S
        for toleration in tolerations
    )


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_pods_are_evicted_by_taints_of_others(snapshot: charts.Snapshot) -> None:
    """Nobody's NoExecute taint is tolerated unseen; NoSchedule taints all are."""
    tolerations = pod(snapshot)["tolerations"]
    assert not [
        toleration
        for toleration in tolerations
        if tolerated(toleration, "example.com/x", "NoExecute")
    ]
    assert [
        toleration
        for toleration in tolerations
        if tolerated(toleration, "example.com/x", "NoSchedule")
    ]


@pytest.mark.parametrize("snapshot", EVERY_SNAPSHOT)
def test_deckhouse_is_seen_only_with_its_switch(snapshot: charts.Snapshot) -> None:
    """Labels, namespaces, priority classes and labels of alerts."""
    enabled = has_deckhouse(snapshot)
    matches = {
        text
        for document in snapshot.objects(ROOT)
        for text in texts(document)
        if DECKHOUSE.search(ANYWHERE.sub("", text))
    }
    if not enabled:
        assert matches == set()
        return
    assert {"heritage", "deckhouse", "dedicated.deckhouse.io"} <= matches
    labelled = [
        document["metadata"].get("labels", {}).get("heritage") == "deckhouse"
        for document in snapshot.objects(ROOT)
        if document["kind"] in ("Deployment", "DaemonSet")
    ]
    assert set(labelled) == {True}


def test_each_chart_has_a_snapshot_with_and_without_deckhouse() -> None:
    rows = {(snapshot.chart, has_deckhouse(snapshot)) for snapshot in charts.SNAPSHOTS}
    every = (*EVERY_CHART, "capdvp", *charts.UMBRELLAS)
    assert rows == {(chart, on) for chart in every for on in (False, True)}


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_addresses_are_of_either_ip_family(snapshot: charts.Snapshot) -> None:
    """An address of IPv6 before a port needs brackets, which $(POD_IP) has not."""
    for container in pod(snapshot)["containers"]:
        for argument in container["args"]:
            assert not re.search(r"\$\((HOST|POD)_IP\):", argument), argument
            assert "0.0.0.0" not in argument  # noqa: S104


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_no_port_of_the_host_is_one_of_the_reference(snapshot: charts.Snapshot) -> None:
    """And all are declared, so that the scheduler knows of them."""
    if not pod(snapshot).get("hostNetwork"):
        return
    declared = set()
    for container in pod(snapshot)["containers"]:
        declared |= {
            declared_port["containerPort"]
            for declared_port in container.get("ports", ())
        }
        for argument in container["args"]:
            for port in REFERENCE_PORTS:
                assert not argument.endswith(f":{port}"), argument
    assert declared
    assert not declared & set(REFERENCE_PORTS)


@pytest.mark.parametrize("snapshot", EVERY_SNAPSHOT)
def test_texts_of_the_user_are_quoted(snapshot: charts.Snapshot) -> None:
    """Where they stand alone: a text that looks like a number stays a text."""
    for line in snapshot.file(ROOT).read_text().splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key in ("image", "priorityClassName", "secretName", "namespace"):
            assert value in FIXED or value.startswith('"'), line


@pytest.mark.parametrize("chart", EVERY_CHART)
def test_notes_lead_to_the_next_steps(chart: str) -> None:
    notes = (charts.folder(ROOT, chart) / "templates" / "NOTES.txt").read_text()
    kind = "daemonset" if chart == "csi-node" else "deployment"
    name = '{{ include "library.name" . }}' if "library.name" in notes else chart
    assert f"rollout status {kind}/{name}" in notes


@pytest.mark.parametrize("chart", EVERY_CHART)
def test_schemas_know_every_nested_value(chart: str) -> None:
    folder = charts.folder(ROOT, chart)
    usual = yaml.safe_load((folder / "values.yaml").read_text())
    schema = json.loads((folder / "values.schema.json").read_text())
    for key, value in usual.items():
        inner = schema["properties"][key].get("properties")
        # An empty value has optional fields only.
        if isinstance(value, dict) and value and inner is not None:
            assert set(inner) == set(value), key


@pytest.mark.parametrize("chart", [*EVERY_CHART, "capdvp", *charts.UMBRELLAS])
def test_a_chart_contains_the_library_as_it_is(chart: str) -> None:
    folder = charts.folder(ROOT, chart) / "charts" / charts.LIBRARY
    files = (folder / "Chart.yaml", *folder.glob("templates/*"))
    contained = {str(file.relative_to(folder)): file.read_text() for file in files}
    assert contained == charts.library(ROOT)


@pytest.mark.parametrize("chart", EVERY_CHART)
def test_the_library_is_the_only_dependency_of_a_component(chart: str) -> None:
    head = yaml.safe_load((charts.folder(ROOT, chart) / "Chart.yaml").read_text())
    version = yaml.safe_load(charts.library(ROOT)["Chart.yaml"])["version"]
    needed = {
        dependency["name"]: dependency["version"] for dependency in head["dependencies"]
    }
    assert needed == {charts.LIBRARY: version}


@pytest.mark.parametrize("chart", EVERY_CHART)
def test_no_chart_defines_again_what_the_library_has(chart: str) -> None:
    """Kinds and names of templates of the library stand in the library alone."""
    shared = "".join(charts.library(ROOT).values())
    kinds = r"^kind: (PodDisruptionBudget|VerticalPodAutoscaler|\w+Monitor|\w+Rule)$"
    once = re.findall(kinds, shared, re.MULTILINE)
    assert len(once) >= 4
    own = "".join(
        file.read_text()
        for file in (charts.folder(ROOT, chart) / "templates").iterdir()
    )
    for kind in once:
        assert f"kind: {kind}" not in own
    names = re.findall(r'define "library\.(\w+)"', shared)
    assert len(names) >= 10
    assert not [name for name in names if re.search(rf'define "\w+\.{name}"', own)]


def bounds(row: object) -> object:
    """Return a row without what describes it: default and meaning differ by chart."""
    if isinstance(row, dict):
        described = row if isinstance(row.get("description"), str) else {}
        return {
            key: bounds(inner)
            for key, inner in row.items()
            if key not in described or key not in ("description", "default")
        }
    return [bounds(inner) for inner in row] if isinstance(row, list) else row


@pytest.mark.parametrize("chart", EVERY_CHART)
def test_rows_of_the_schema_are_those_of_the_library(chart: str) -> None:
    shared = json.loads((ROOT / "charts/library/shared.schema.json").read_text())
    schema = json.loads((charts.folder(ROOT, chart) / "values.schema.json").read_text())
    for name, definition in shared["definitions"].items():
        assert schema["definitions"][name] == definition
    compared = 0
    for key, row in shared["properties"].items():
        if key == "metrics":
            # Charts add rows of their own; csi-controller has no metrics to scrape.
            own = schema["properties"].get(key, {}).get("properties", row)
            assert bounds({name: own[name] for name in row}) == row
        elif (chart, key) not in OWN_ROWS:
            assert bounds(schema["properties"][key]) == row, key
            compared += 1
    print(f"{chart:24} {compared} rows of the library")
    assert compared >= 6


def test_every_chart_has_its_snapshots_and_its_own_lab_test() -> None:
    """And each row of SNAPSHOTS two files; no file is without a row."""
    folders = {path.parent.name for path in pathlib.Path("charts").glob("*/Chart.yaml")}
    folders -= {charts.LIBRARY}
    assert folders == {snapshot.chart for snapshot in charts.SNAPSHOTS}
    files = {str(path) for path in pathlib.Path("charts").glob("*/snapshots/*.yaml")}
    assert files == {
        str(file(ROOT))
        for snapshot in charts.SNAPSHOTS
        for file in (snapshot.values, snapshot.file)
    }
    for name in folders:
        test = pathlib.Path("tests/lab/charts") / f"{name.replace('-', '_')}_test.py"
        assert f'CHART = "{name}"' in test.read_text()


def test_only_the_table_of_the_library_compares_clouds() -> None:
    """A third cloud is a row of _clouds.tpl: no template would render it as another."""
    compares = re.compile(
        r"\b(?:eq|ne|has)\b[^}]*(?:\.Values|\$)\.cloud\b|csi\.dvp|cinder"
    )
    count = 0
    for path in sorted((ROOT / "charts").glob("*/templates/*")):
        text = path.read_text().replace("cinder-csi-openstack-org", "")
        count += 1
        if path.name != "_clouds.tpl":
            assert not compares.findall(text), path
    assert count > 20

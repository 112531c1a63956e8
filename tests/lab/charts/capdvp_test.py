"""The chart capdvp, as helm renders it, and its components for clusterctl."""

import json
import pathlib
import re

import pytest
import yaml

from capdvp import version
from lib.kube import resources
from lib.lab import places
from lib.lab.charts import charts, clusterctl
from tests.harness import deckhouse_names
from tests.lab.charts import installing, rendering

CHART = "capdvp"
TIMEOUT_S = 10.0
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("parent.secretName=", "'/parent/secretName': minLength: got 0, want 1"),
    ("parent.namespace=A", "'/parent/namespace': 'A' does not match pattern"),
    ("clusterUUID=", "'/clusterUUID': minLength: got 0, want 1"),
    ("clusterUUID=a b", "'/clusterUUID': 'a b' does not match pattern"),
    ("zones={a,a}", "'/zones': items at 0 and 1 are equal"),
    ("deletionTimeout=600", "'/deletionTimeout': got number, want string"),
    ("replicas=0", "'/replicas': minimum: got 0, want 1"),
    ("metricsPort=70000", "'/metricsPort': maximum: got 70,000"),
    ("extraArgs={-v}", "'/extraArgs/0': '-v' does not match pattern"),
    ("parent.name=x", "'name' not allowed"),
]
"""What is set, what helm must name."""


HOME = "capdvp-system"
MANIFEST = charts.folder(rendering.ROOT, CHART) / "files/rbac.yaml"
CASE = installing.Case(
    chart=CHART,
    home=HOME,
    rights=lambda values: MANIFEST.read_text().replace(charts.SYSTEM, HOME),
    readers=frozenset({"capdvp:metrics"}),
    replicas=2,
    plain="verticalPodAutoscaler=false,metrics.podMonitor.enabled=false,metrics.alerts=false",
    deckhouse=deckhouse_names.DeckhouseNames(
        CHART,
        "capdvp-controller-manager",
        "d8:cloud-provider-dvp:capdvp-controller-manager",
    ),
)


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)


def test_components_for_clusterctl_are_those_of_the_chart(
    renderer: places.Places,
) -> None:
    folder = charts.folder(rendering.ROOT, CHART)
    text = (folder / clusterctl.FILE).read_text()
    assert text == clusterctl.components(renderer, rendering.ROOT)
    documents = [document for document in yaml.safe_load_all(text) if document]
    kinds = [document["kind"] for document in documents]
    print(", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds)))
    assert kinds.count("Namespace") == 1
    assert kinds.count("CustomResourceDefinition") == 4
    variables = set(re.findall(r"\$\{([A-Z_]+)\}", text))
    assert variables == set(clusterctl.VARIABLES.values())
    assert "invalid" not in json.dumps(documents)
    aggregated = [
        document
        for document in documents
        if (document["metadata"].get("labels") or {}).get(
            "cluster.x-k8s.io/aggregate-to-manager"
        )
    ]
    assert [document["kind"] for document in aggregated] == ["ClusterRole"]


def test_metadata_names_the_contract_of_this_release() -> None:
    path = charts.folder(rendering.ROOT, CHART) / "clusterctl/metadata.yaml"
    series = yaml.safe_load(pathlib.Path(path).read_text())["releaseSeries"]
    major, minor, _ = version.VERSION.split(".")
    contracts = {(row["major"], row["minor"]): row["contract"] for row in series}
    assert contracts[int(major), int(minor)] == "v1beta2"


@pytest.fixture(scope="module")
def home(ground: installing.Ground) -> None:
    """Create the namespace of the release."""
    about = {"metadata": {"name": HOME}}
    ground.api.create(
        resources.NAMESPACES, json.dumps(about).encode(), timeout_s=TIMEOUT_S
    )


@pytest.mark.usefixtures("home")
def test_installed_changed_and_removed(ground: installing.Ground) -> None:
    """The CRDs stay, with both labels of their contracts."""
    installing.installed_changed_removed(ground, CASE)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    labels = {
        item["metadata"]["name"]: item["metadata"]["labels"]
        for item in ground.get(path)["items"]
        if item["spec"]["group"] == "infrastructure.cluster.x-k8s.io"
    }
    print(*sorted(labels), sep="\n")
    assert len(labels) == 4
    for of_definition in labels.values():
        assert of_definition["cluster.x-k8s.io/v1beta2"] == "v1alpha1"


@pytest.mark.usefixtures("home")
def test_without_the_kinds_of_others_nothing_is_created(
    ground: installing.Ground,
) -> None:
    installing.refused_without_kinds(ground, CASE)


@pytest.mark.usefixtures("home", "operators")
def test_with_the_kinds_of_others(ground: installing.Ground) -> None:
    installing.with_kinds_of_others(ground, CASE)

"""The chart capdvp, as helm renders it, and its components for clusterctl."""

import json
import pathlib
import re

import pytest
import yaml

from capdvp import version
from lib.lab import places
from lib.lab.charts import charts, clusterctl
from tests.lab.charts import rendering

CHART = "capdvp"
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
    assert kinds.count("CustomResourceDefinition") == 3
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

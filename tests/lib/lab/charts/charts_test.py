"""What is read of a snapshot, from a chart in a folder of its own."""

import pathlib

import pytest

from lib.lab.charts import charts

VALUES = """\
image: a
probe: {port: 80, path: /}
extra: {key: value}
"""
GIVEN = "{image: b, probe: {port: 81}, extra: null}"
RENDERED = """\
---
kind: Secret
---
# Nothing in this document.
---
kind: Deployment
metadata: {name: web}
spec: {replicas: 2, template: {spec: {hostNetwork: true}}}
"""
SCHEMA = """\
{"properties": {"probe": {"properties": {"port": {"type": "integer"}}}}}
"""
SNAPSHOT = charts.Snapshot("web", "usual", "default")


@pytest.fixture()
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a checkout with one chart, which has one snapshot."""
    chart = charts.folder(tmp_path, SNAPSHOT.chart)
    (chart / "snapshots").mkdir(parents=True)
    (chart / "values.yaml").write_text(VALUES)
    (chart / "values.schema.json").write_text(SCHEMA)
    SNAPSHOT.values(tmp_path).write_text(GIVEN)
    SNAPSHOT.file(tmp_path).write_text(RENDERED)
    return tmp_path


def test_empty_documents_are_no_objects(root: pathlib.Path) -> None:
    kinds = [document["kind"] for document in SNAPSHOT.objects(root)]
    assert kinds == ["Secret", "Deployment"]
    assert SNAPSHOT.objects(root, "Secret") == [{"kind": "Secret"}]
    assert SNAPSHOT.deployment(root)["replicas"] == 2
    assert SNAPSHOT.pod(root) == {"hostNetwork": True}


def test_values_lie_over_those_of_the_chart_as_helm_lays_them(
    root: pathlib.Path,
) -> None:
    """Null takes a value away."""
    assert SNAPSHOT.all_values(root) == {
        "image": "b",
        "probe": {"port": 81, "path": "/"},
    }


def test_what_the_schema_refuses_is_named_by_its_path(root: pathlib.Path) -> None:
    values = SNAPSHOT.all_values(root)
    assert charts.refused(root, "web", values) == []
    bad = charts.merged(values, {"probe": {"port": "http"}})
    assert charts.refused(root, "web", bad) == ["probe.port"]


def test_each_chart_has_its_snapshots() -> None:
    assert sorted(charts.of("openstack-ccm")) == ["beside-the-reference", "usual"]

"""The CRD files of the chart, and the rules of structural schemas."""

import pathlib
from typing import Any

import pytest
import yaml

from lib.kube import resources
from lib.osdpl.api import crds, schema_types, spec
from tests.lib.osdpl import samples

FOLDER = pathlib.Path("charts/osdpl-controller/crds")


def dump(document: dict[str, Any]) -> str:
    """Return a CRD as its file holds it."""

    class Dumper(yaml.SafeDumper):
        """Writes shared parts of a document each time."""

        def ignore_aliases(self, data: Any) -> bool:
            """Report that no part is written as an alias."""
            return True

    return yaml.dump(document, Dumper=Dumper, sort_keys=False, width=88)


@pytest.mark.parametrize("name", crds.documents())
def test_file_is_current(name: str) -> None:
    assert (FOLDER / name).read_text() == dump(crds.documents()[name])


def test_names_are_those_of_the_reference() -> None:
    """Source: rockoon, its CRD templates and rockoon/kube.py."""
    names = {
        document["spec"]["names"]["kind"]: (
            document["metadata"]["name"],
            document["spec"]["names"].get("shortNames"),
            document["spec"]["names"].get("categories"),
        )
        for document in crds.documents().values()
    }
    group = "lcm.mirantis.com"
    assert names == {
        "OpenStackDeployment": (f"openstackdeployments.{group}", ["osdpl"], ["all"]),
        "OpenStackDeploymentStatus": (
            f"openstackdeploymentstatus.{group}",
            ["osdplst"],
            None,
        ),
        "HelmBundle": (f"helmbundles.{group}", None, None),
    }
    kind = resources.OPENSTACK_DEPLOYMENT_STATUSES
    assert f"{kind.plural}.{kind.group}" in names[kind.kind]


def test_no_other_files() -> None:
    names = {path.name for path in FOLDER.glob("*.yaml")}
    assert names == set(crds.documents())


def nodes(schema: Any, path: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every schema below a schema, with its path."""
    observed = [(path, schema)]
    for name, below in (schema.get("properties") or {}).items():
        observed += nodes(below, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            observed += nodes(schema[key], f"{path}[]")
    return observed


@pytest.mark.parametrize("name", crds.documents())
def test_schema_is_structural(name: str) -> None:
    version = crds.documents()[name]["spec"]["versions"][0]
    schemas = nodes(version["schema"]["openAPIV3Schema"], "")
    print(f"{name}: {len(schemas)} schemas")
    for path, node in schemas:
        assert "type" in node or node.get(schema_types.PRESERVE), path
        assert not ({"anyOf", "oneOf", "allOf", "not"} & set(node)), path
        assert not ({"properties", "additionalProperties"} <= set(node)), path
        assert node.get("additionalProperties") is not False, path


def test_sample_satisfies_the_schema() -> None:
    assert spec.problems(samples.DOCUMENT["spec"]) == ()

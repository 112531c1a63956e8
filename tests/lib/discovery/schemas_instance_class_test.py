"""The CRD of OpenStackInstanceClass and our schema of its spec say the same."""

import pathlib
from typing import Any

import pytest
import yaml

from lib.discovery.openstack import schemas

CRD = pathlib.Path("charts/cloud-data-discoverer/crds/openstackinstanceclasses.yaml")


def plain(node: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Put a JSON schema into the form that CRDs have."""
    if "$ref" in node:
        node = {**known[node["$ref"].rsplit("/", 1)[1]], **node}
    kept: dict[str, Any] = {
        key: node[key]
        for key in ("required", "minLength", "maxLength", "minimum", "pattern")
        if key in node
    }
    if isinstance(node["type"], list):
        kept["x-kubernetes-int-or-string"] = True
    else:
        kept["type"] = node["type"]
    if "items" in node:
        kept["items"] = plain(node["items"], known)
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = plain(node["additionalProperties"], known)
    if "properties" in node:
        # An API server drops, or refuses, what is not known; we refuse it.
        assert node["additionalProperties"] is False
        fields = node["properties"].items()
        kept["properties"] = {name: plain(field, known) for name, field in fields}
    return kept


def without_words(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    return {
        key: (
            {name: without_words(item) for name, item in value.items()}
            if key == "properties"
            else without_words(value)
        )
        for key, value in node.items()
        if key != "description"
    }


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_both_say_the_same(version: str) -> None:
    """What the API server takes is what `mooring render` takes."""
    versions = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    by_version = {
        version["name"]: version["schema"]["openAPIV3Schema"] for version in versions
    }
    spec = without_words(by_version[version]["properties"]["spec"])
    owned = schemas.validator(schemas.Schema.INSTANCE_CLASS).schema
    assert isinstance(owned, dict)
    assert spec == plain(owned, owned["$defs"])


def test_each_field_is_explained() -> None:
    """`kubectl explain` has a sentence for each."""
    for version in yaml.safe_load(CRD.read_text())["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for name, field in spec["properties"].items():
            assert field["description"].endswith("."), name

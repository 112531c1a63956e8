"""The CRD of DVPInstanceClass and our schema of its spec have the same rules."""

import pathlib
from collections.abc import Iterator
from typing import Any

import yaml

from lib.discovery.dvp import schemas

CRD = pathlib.Path("charts/cloud-provider-dvp/crds/dvpinstanceclasses.yaml")
KEPT = (
    *("required", "minLength", "maxLength", "minimum", "maximum", "maxItems"),
    *("pattern", "enum", "default"),
)


def plain(node: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Convert a JSON schema to the form that CRDs have."""
    if "$ref" in node:
        node = {**known[node["$ref"].rsplit("/", 1)[1]], **node}
    kept: dict[str, Any] = {key: node[key] for key in KEPT if key in node}
    if isinstance(node["type"], list):
        kept["x-kubernetes-int-or-string"] = True
    else:
        kept["type"] = node["type"]
    if "items" in node:
        kept["items"] = plain(node["items"], known)
    if "properties" in node:
        # An API server drops, or rejects, unknown fields; we reject them.
        assert node["additionalProperties"] is False
        fields = node["properties"].items()
        kept["properties"] = {name: plain(field, known) for name, field in fields}
    elif isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = plain(node["additionalProperties"], known)
    elif node["type"] == "object":
        kept["x-kubernetes-preserve-unknown-fields"] = True
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


def spec_of_crd() -> dict[str, Any]:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def fields(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in node.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
        yield from fields(field.get("items", {}), f"{path}.{name}[]")


def test_both_have_the_same_rules() -> None:
    """The API server accepts exactly what `mooring render` accepts."""
    owned = schemas.validator(schemas.Schema.INSTANCE_CLASS).schema
    assert isinstance(owned, dict)
    assert without_words(spec_of_crd()) == plain(owned, owned["$defs"])


def test_each_field_is_explained() -> None:
    """`kubectl explain` has a sentence for each."""
    described = dict(fields(spec_of_crd()))
    assert len(described) > 30
    for path, field in described.items():
        assert field.get("description", "").endswith("."), path

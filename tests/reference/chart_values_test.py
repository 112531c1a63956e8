"""Each value of a chart has a description, bounds, and the default of values.yaml."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.lab.charts import charts
from tests.reference import chart_values

OPEN = {
    "global": "described by the umbrella chart, whose schema validates it",
    "library": "ignored",
    **dict.fromkeys(
        (*charts.COMPONENTS, "dvp-ccm", "capdvp"), "validated by the chart of its own"
    ),
    "moduleConfig": "the rest is validated by the program",
    "moduleConfig.instances": "the rest is validated by the program",
    "cloud-data-discoverer.storageClasses": "validated by the chart of its own",
    "csi-controller.sidecars": "validated by the chart of its own",
    "csi-controller.sidecars.livenessprobe": "validated by the chart of its own",
    "csi-node.livenessprobe": "validated by the chart of its own",
}
"""Objects with any keys, with the reason."""
WITHOUT_DEFAULT = {
    "storageClasses[].type": "the default type of the cloud",
    "storageClasses[].dvpStorageClass": "required with DVP",
    "storageClasses[].availability": "the zone of the Node",
    "tolerations[].tolerationSeconds": "the pod is never evicted",
    "moduleConfig.zones": "the zones of the cloud",
    "moduleConfig.instances.imageName": "required without the installer's document",
    "moduleConfig.instances.mainNetwork": "required without the installer's document",
}
"""Optional values without a default, with what applies without them."""


def leaves(prefix: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield path and value of each entry of values.yaml, maps included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{prefix}{key}", inner
            yield from leaves(f"{prefix}{key}.", inner)


@pytest.mark.parametrize("chart", chart_values.CHARTS)
def test_each_value_has_a_description(chart: str) -> None:
    """A sentence; that of a definition does not count."""
    rows = list(chart_values.properties(chart))
    without = [row.path for row in rows if len(row.schema.get("description", "")) < 10]
    unfinished = [
        row.path for row in rows if not row.schema.get("description", "").endswith(".")
    ]
    print(f"{chart}: {len(rows)} values")
    assert without == unfinished == []
    assert len(rows) >= 25


@pytest.mark.parametrize("chart", chart_values.CHARTS)
def test_the_schema_has_each_value(chart: str) -> None:
    """Those below a map of any keys, such as labels, excepted."""
    rows = {row.path: row.schema for row in chart_values.properties(chart)}
    free = tuple(
        f"{path}."
        for path, schema in rows.items()
        if schema.get("type") == "object" and "properties" not in schema
    )
    lacking = [
        path
        for path, _ in leaves("", chart_values.values(chart))
        if path not in rows and not path.startswith(free)
    ]
    assert lacking == []


def boundless(path: str, schema: Mapping[str, Any]) -> list[str]:
    """Return what a value of a schema lacks: its bounds, and those of its items."""
    if schema.keys() & {"enum", "const"} or schema.get("type") == "boolean":
        return []
    if "anyOf" in schema:
        return [row for item in schema["anyOf"] for row in boundless(path, item)]
    match schema.get("type"):
        case "string":
            has_bounds = bool(schema.keys() & {"pattern", "maxLength"})
        case "integer" | "number":
            has_bounds = {"minimum", "maximum"} <= schema.keys()
        case "array":
            items = boundless(f"{path}[]", schema["items"])
            return items if "maxItems" in schema else [path, *items]
        case "object":
            return _boundless_object(path, schema)
        case _:
            has_bounds = False
    return [] if has_bounds else [path]


def _boundless_object(path: str, schema: Mapping[str, Any]) -> list[str]:
    """Properties have rows of their own; other keys are excluded or bounded."""
    more = schema.get("additionalProperties", True)
    if isinstance(more, dict):
        is_bounded = {"maxProperties", "propertyNames"} <= schema.keys()
        return [*([] if is_bounded else [path]), *boundless(f"{path}.*", more)]
    patterns = schema.get("patternProperties", {})
    return [] if more is False and (patterns or "properties" in schema) else [path]


@pytest.mark.parametrize("chart", chart_values.CHARTS)
def test_each_value_has_bounds(chart: str) -> None:
    """Prints path and bounds of each one."""
    lacking, kept_open = [], set()
    for row in chart_values.properties(chart):
        print(f"{row.path:52} {chart_values.bounds(row.schema)}")
        if row.path in OPEN and "additionalProperties" not in row.schema:
            kept_open.add(row.path)
        else:
            lacking += boundless(row.path, row.schema)
    assert lacking == []
    assert {"library"} <= kept_open


@pytest.mark.parametrize("chart", chart_values.CHARTS)
def test_each_default_is_that_of_values_yaml(chart: str) -> None:
    """Prints path and default of each value that is not required."""
    defaults = dict(leaves("", chart_values.values(chart)))
    lacking, differing, compared = [], [], 0
    for row in chart_values.properties(chart):
        is_parent = "properties" in row.schema or row.path in OPEN
        if is_parent or row.is_required or row.path in WITHOUT_DEFAULT:
            if "default" in row.schema:
                differing.append(row.path)
        elif "default" not in row.schema:
            lacking.append(row.path)
        elif row.path in defaults:
            stated = row.schema["default"]
            print(f"{row.path}: {stated!r}")
            if json.dumps(stated) != json.dumps(defaults[row.path]):
                differing.append(row.path)
            compared += 1
    assert lacking == []
    assert differing == []
    assert compared >= 13


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 1},
        {"type": "number", "maximum": 1},
        {"type": "array", "items": {"type": "boolean"}},
        {"type": "array", "maxItems": 1, "items": {"type": "string"}},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": {"type": "boolean"}},
        {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        {},
    ],
    ids=json.dumps,
)
def test_a_value_without_bounds_is_reported(schema: Mapping[str, Any]) -> None:
    assert boundless("x", schema)

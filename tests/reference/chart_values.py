"""Tables of chart values: the schema of each chart, and its values.yaml."""

import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from lib.lab.charts import charts
from tests.reference import sheets

ROOT = pathlib.Path()
CHARTS = tuple(sorted({snapshot.chart for snapshot in charts.SNAPSHOTS}))
HEADS = ("value", "type", "default", "bounds", "meaning")
BOUNDS: Mapping[str, str] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters or fewer",
    "minItems": "at least {} items",
    "pattern": "pattern `{}`",
}
"""Bounds of the schema, and how the page shows them."""

NOT_EMPTY = BOUNDS["minLength"].format(1)


@dataclasses.dataclass(frozen=True, slots=True)
class Property:
    """A property of a chart's schema.

    path: its keys, with `[]` after that of a list. schema: with what it refers to.
    default: the value in values.yaml; None: it has none.
    """

    path: str
    schema: Mapping[str, Any]
    default: object


def tables() -> sheets.Tables:
    """Return a table per chart."""
    return {chart: sheets.table(HEADS, list(rows(chart))) for chart in CHARTS}


def rows(chart: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each property of a chart's schema."""
    required = set(charts.refused(ROOT, chart, values(chart)))
    for item in properties(chart):
        default = "required" if item.path in required else _default(item)
        bounds = _bounds(item.schema)
        meaning = item.schema["description"]
        yield sheets.code(item.path), _kind(item.schema), default, bounds, meaning


def schema(chart: str) -> Mapping[str, Any]:
    """Return the schema of a chart."""
    text = (charts.folder(ROOT, chart) / "values.schema.json").read_text()
    return dict(json.loads(text))


def values(chart: str) -> Mapping[str, Any]:
    """Return the default values of a chart."""
    text = (charts.folder(ROOT, chart) / "values.yaml").read_text()
    return dict(yaml.safe_load(text))


def properties(chart: str) -> Iterator[Property]:
    """Yield each property of a chart's schema, those of items of lists included."""
    document = schema(chart)
    definitions = document["definitions"]
    yield from _inside("", document, values(chart), definitions)


def _inside(
    prefix: str,
    node: Mapping[str, Any],
    defaults: object,
    definitions: Mapping[str, Any],
) -> Iterator[Property]:
    for key, own in node.get("properties", {}).items():
        default = defaults.get(key) if isinstance(defaults, dict) else None
        row = _resolved(own, definitions)
        if "items" in row:
            row = {**row, "items": _resolved(row["items"], definitions)}
        path = f"{prefix}{key}"
        yield Property(path, row, default)
        yield from _inside(f"{path}.", row, default, definitions)
        yield from _inside(f"{path}[].", row.get("items", {}), None, definitions)


def _resolved(
    node: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Mapping[str, Any]:
    reference = str(node.get("$ref", "")).rpartition("/")[2]
    return {**definitions[reference], **node} if reference else node


def _kind(node: Mapping[str, Any]) -> str:
    kind = str(node.get("type", "string"))
    inner = node.get("items") or node.get("additionalProperties")
    if kind in ("array", "object") and inner:
        return f"{kind} of {_kind(inner)}s"
    return kind


def _default(item: Property) -> str:
    if item.default is None or (item.default and "properties" in item.schema):
        return ""  # its properties have rows
    if isinstance(item.default, list | dict):
        text = yaml.safe_dump(item.default, default_flow_style=True, width=10**6)
        return sheets.code(text.strip().replace("''", '""').replace("'", '"'))
    return sheets.code(str(json.dumps(item.default)).strip('"'))


def _bounds(node: Mapping[str, Any]) -> str:
    inner = node.get("items", {})
    parts = [BOUNDS[key].format(node[key]) for key in BOUNDS if key in node]
    parts = ["not empty" if part == NOT_EMPTY else part for part in parts]
    for one_of in (node.get("enum"), inner.get("enum")):
        if one_of:
            shown = (sheets.code(value) or "empty" for value in one_of)
            parts.insert(0, ", ".join(shown))
    if any_of := node.get("anyOf"):
        alternatives = (
            str(row["const"]) if "const" in row else _bounds(row) for row in any_of
        )
        parts.append(" or ".join(alternatives))
    if "pattern" in inner:
        parts.append(f"items: {_bounds(inner)}")
    if node.get("uniqueItems"):
        parts.append("no item twice")
    return "; ".join(parts)

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
    "maxItems": "at most {} items",
    "maxProperties": "at most {} keys",
    "pattern": "pattern `{}`",
}
"""Bounds of the schema, and how the page shows them."""

NOT_EMPTY = BOUNDS["minLength"].format(1)


@dataclasses.dataclass(frozen=True, slots=True)
class Property:
    """A property of a chart's schema.

    path: its keys, with `[]` after that of a list. schema: with what it refers to.
    default: the value in values.yaml, otherwise that of the schema; None: it has none.
    """

    path: str
    schema: Mapping[str, Any]
    default: object
    is_required: bool


def tables() -> sheets.Tables:
    """Return a table per chart."""
    return {chart: sheets.table(HEADS, list(rows(chart))) for chart in CHARTS}


def rows(chart: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each property of a chart's schema."""
    for item in properties(chart):
        default = "required" if item.is_required else _default(item)
        meaning = item.schema["description"]
        kind = _kind(item.schema)
        yield sheets.code(item.path), kind, default, bounds(item.schema), meaning


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
    inside = _Inside(document, frozenset(charts.refused(ROOT, chart, values(chart))))
    yield from inside.properties("", document, values(chart))


@dataclasses.dataclass(frozen=True, slots=True)
class _Inside:
    """A schema. refused: paths of default values that it rejects."""

    document: Mapping[str, Any]
    refused: frozenset[str]

    def properties(
        self, prefix: str, node: Mapping[str, Any], defaults: object
    ) -> Iterator[Property]:
        """Yield what is below a node. defaults: its value in values.yaml."""
        for key, own in node.get("properties", {}).items():
            row = self._resolved(own)
            if "items" in row:
                row = {**row, "items": self._resolved(row["items"])}
            default = row.get("default")
            if isinstance(defaults, dict):
                default = defaults.get(key, default)
            path = f"{prefix}{key}"
            of_item = prefix.endswith("[].") and key in node.get("required", ())
            yield Property(path, row, default, of_item or path in self.refused)
            yield from self.properties(f"{path}.", row, default)
            yield from self.properties(f"{path}[].", row.get("items", {}), None)

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = str(node.get("$ref", "")).rpartition("/")[2]
        shared = self.document["definitions"][reference] if reference else {}
        return {**shared, **node}


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


def bounds(node: Mapping[str, Any]) -> str:
    """Return the bounds of a value, as a sentence of the page."""
    inner = node.get("items", {})
    parts = [BOUNDS[key].format(node[key]) for key in BOUNDS if key in node]
    parts = ["not empty" if part == NOT_EMPTY else part for part in parts]
    for one_of in (node.get("enum"), inner.get("enum")):
        if one_of:
            shown = (sheets.code(value) or "empty" for value in one_of)
            parts.insert(0, ", ".join(shown))
    if any_of := node.get("anyOf"):
        alternatives = (
            str(row["const"]) if "const" in row else bounds(row) for row in any_of
        )
        parts.append(" or ".join(alternatives))
    if inner and not inner.keys() & {"properties", "enum"}:
        parts.append(f"items: {bounds(inner)}")
    parts += [node["title"]] if "title" in node else []
    if node.get("uniqueItems"):
        parts.append("no item twice")
    return "; ".join(parts)

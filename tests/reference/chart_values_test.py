"""Each value of a chart has a description, and the default that values.yaml sets."""

import json
from collections.abc import Iterator

import pytest

from lib.lab.charts import charts
from tests.reference import chart_values

FREE = ("object", "array")
"""Types whose default stands in values.yaml alone."""


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


@pytest.mark.parametrize("chart", chart_values.CHARTS)
def test_each_default_is_that_of_values_yaml(chart: str) -> None:
    """Prints path and default; what is required or not in values.yaml has none."""
    defaults = dict(leaves("", chart_values.values(chart)))
    required = charts.refused(chart_values.ROOT, chart, chart_values.values(chart))
    compared = 0
    for row in chart_values.properties(chart):
        if row.schema.get("type") in FREE or row.path in required:
            assert "default" not in row.schema, row.path
        elif "default" not in row.schema:
            assert row.path not in defaults, row.path
        elif "[]" not in row.path:
            stated = row.schema["default"]
            print(f"{row.path}: {stated!r}")
            assert json.dumps(stated) == json.dumps(defaults[row.path]), row.path
            compared += 1
    assert compared >= 13

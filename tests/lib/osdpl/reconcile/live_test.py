"""Paths at which objects differ, as `mooring plan osdpl --live` shows them."""

import pytest

from lib.osdpl.reconcile import live

ROWS: tuple[tuple[str, object, object, list[str]], ...] = (
    ("equal", {"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
    ("a value", {"spec": {"size": 1}}, {"spec": {"size": 3}}, ["spec.size"]),
    ("removed", {"data": {}}, {"data": {"a": "b"}}, ["data.a"]),
    ("added", {"data": {"a": "b"}}, {}, ["data"]),
    ("an item", {"l": [{"a": 1}, {"a": 2}]}, {"l": [{"a": 1}, {"a": 3}]}, ["l[1].a"]),
    ("another length", {"l": [1]}, {"l": [1, 2]}, ["l"]),
    ("another type", {"a": "1"}, {"a": 1}, ["a"]),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_paths(row: tuple[str, object, object, list[str]]) -> None:
    """Paths only: a value may be secret."""
    _, before, after, paths = row
    assert list(live.differences(before, after)) == paths

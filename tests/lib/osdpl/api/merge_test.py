"""Merge of layers: a table, and laws that hold for random JSON values."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.osdpl.api import merge

TABLE: list[tuple[str, Any, Any, Any]] = [
    ("new key", {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ("scalar overrides", {"a": 1}, {"a": 2}, {"a": 2}),
    ("deep", {"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
    ("list appends", {"a": [1]}, {"a": [2]}, {"a": [1, 2]}),
    ("list keeps each item once", {"a": [1, 2]}, {"a": [2, 3]}, {"a": [1, 2, 3]}),
    ("list removes", {"a": ["x", "y"]}, {"a": ["~x"]}, {"a": ["y"]}),
    ("removal of what is absent", {"a": ["y"]}, {"a": ["~x"]}, {"a": ["y"]}),
    ("a new list", {}, {"a": ["-c", "a", "-c", "b"]}, {"a": ["-c", "a", "-c", "b"]}),
    ("a new list with ~", {}, {"a": ["~/.ssh", "x"]}, {"a": ["~/.ssh", "x"]}),
    ("a new list over null", {"a": None}, {"a": ["x", "x"]}, {"a": ["x", "x"]}),
    (
        "items that are equal below",
        *([{"a": [1]}], [{"a": [1]}, {"a": [2]}], [{"a": [1]}, {"a": [2]}]),
    ),
    ("items below stay in the list", ["x", "x"], ["y"], ["x", "x", "y"]),
    ("all equal items are removed", ["x", "x", "y"], ["~x"], ["y"]),
    ("added again after a removal", ["x", "y"], ["~x", "x"], ["y", "x"]),
    ("1 and true are different items", [1], [True], [1, True]),
    ("null accepts an object", {"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ("null accepts a list", {"a": None}, {"a": [1]}, {"a": [1]}),
    ("null over null", {"a": None}, {"a": None}, {"a": None}),
    ("float over integer", {"a": 1}, {"a": 1.5}, {"a": 1.5}),
    ("boolean over integer", {"a": 1}, {"a": True}, {"a": True}),
]

CONFLICTS: list[tuple[str, Any, Any, str, str, str]] = [
    ("string over object", {"a": {}}, {"a": "x"}, "a", "object", "string"),
    ("object over string", {"a": "x"}, {"a": {}}, "a", "string", "object"),
    ("list over object", {"a": {}}, {"a": []}, "a", "object", "array"),
    (
        "string over number",
        {"a": {"b": 1}},
        {"a": {"b": "1"}},
        "a.b",
        "number",
        "string",
    ),
    ("null over object", {"a": {}}, {"a": None}, "a", "object", "null"),
    ("null over string", {"a": "x"}, {"a": None}, "a", "string", "null"),
]


@pytest.mark.parametrize(
    ("base", "override", "expected"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_merge(base: Any, override: Any, expected: Any) -> None:
    merged = merge.merge(base, override)

    # repr tells 1 from True.
    assert repr(merged) == repr(expected)


@pytest.mark.parametrize(
    ("base", "override", "path", "below", "above"),
    [row[1:] for row in CONFLICTS],
    ids=[row[0] for row in CONFLICTS],
)
def test_conflict_names_path_and_types(
    base: Any, override: Any, path: str, below: str, above: str
) -> None:
    with pytest.raises(merge.MergeError) as caught:
        merge.merge(base, override, "spec")

    error = caught.value
    assert (error.path, error.base, error.override) == (f"spec.{path}", below, above)


@pytest.mark.parametrize("base", ["x", 1, True, {"a": 1}, [1]])
def test_null_removes_a_value_of_a_chart(base: Any) -> None:
    assert merge.merge({"a": base}, {"a": None}, removes=True) == {"a": None}


@pytest.mark.parametrize("item", ["{}", 7, [1, {"a": 2}]])
def test_long_lists_are_merged_in_linear_time(item: Any) -> None:
    """200,000 items, of which a quadratic merge would need half an hour."""
    base = [f"{item}-{number}" for number in range(100_000)]
    override = [f"~{text}" for text in base[::2]] + base[1::2] + [item, item]
    merged = merge.merge(base, override)
    assert merged == [*base[1::2], item]


LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no failure."""

KEYS = st.sampled_from("abcd")
_TEXTS = st.text(max_size=3).filter(lambda text: not text.startswith(merge.REMOVAL))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), _TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)
    ),
    max_leaves=12,
)
TREES = st.dictionaries(KEYS, VALUES, max_size=4)


def try_merge(base: Any, override: Any) -> Any:
    """Return the merge, or None when the types differ."""
    try:
        return merge.merge(base, override)
    except merge.MergeError:
        return None


@LAW
@given(TREES)
def test_empty_override_changes_nothing(tree: dict[str, Any]) -> None:
    assert merge.merge(tree, {}) == tree


@LAW
@given(TREES, TREES)
def test_merge_is_idempotent(base: dict[str, Any], override: dict[str, Any]) -> None:
    once = try_merge(base, override)
    if once is not None:
        assert merge.merge(once, override) == once


@LAW
@given(TREES, TREES)
def test_inputs_are_not_changed(base: dict[str, Any], override: dict[str, Any]) -> None:
    before = repr((base, override))

    try_merge(base, override)

    assert repr((base, override)) == before


@LAW
@given(TREES, TREES)
def test_every_key_is_kept(base: dict[str, Any], override: dict[str, Any]) -> None:
    merged = try_merge(base, override)
    if merged is not None:
        assert set(merged) == set(base) | set(override)


@LAW
@given(TREES, TREES, TREES)
def test_merge_of_disjoint_layers_is_associative(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    layers = [
        {f"{index}-{key}": value for key, value in tree.items()}
        for index, tree in enumerate((first, second, third))
    ]
    left = try_merge(merge.merge(layers[0], layers[1]), layers[2])
    right = try_merge(layers[0], merge.merge(layers[1], layers[2]))

    assert left == right

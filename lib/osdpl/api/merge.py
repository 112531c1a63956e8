"""Merge of layers: presets, sizes, the spec and the values of charts.

Rules, as in the reference: objects are merged key by key; the items of a list are
appended to the list below unless it holds them already, and an item "~x" removes "x"; a
list without a list below is taken as it is; scalars override; null may be overridden by
anything; numbers and booleans may override each other. Any other change of type is an
error that names the path. Values of charts may be overridden by null, which removes the
chart's default, as in helm. A reference to a Secret is a text: it becomes one.
"""

from collections.abc import Hashable
from typing import Any

from lib.osdpl.api import references

REMOVAL = "~"
"""Prefix of a list item that removes the item named after it."""


class MergeError(Exception):
    """Two layers hold different types at one path; the values are not kept."""

    def __init__(self, path: str, base: object, override: object) -> None:
        self.path = path
        self.base = type_name(base)
        self.override = type_name(override)
        super().__init__()

    def __str__(self) -> str:
        return f"{self.path}: {self.override} over {self.base}"

    def put_below(self, path: str) -> None:
        """Prepend the path of the values above; empty: there are none."""
        self.path = ".".join(filter(None, (path, self.path)))


def type_name(value: object) -> str:
    """Return the name that JSON Schema has for the type of a value."""
    if references.is_reference(value):
        return "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def merge(base: Any, override: Any, path: str = "", *, removes: bool = False) -> Any:
    """Return the merge of two JSON values; neither of them is changed.

    removes: null may override anything.

    Raises:
        MergeError: the types differ at a path.
    """
    try:
        return _merge(base, override, removes)
    except MergeError as error:
        error.put_below(path)
        raise


def _merge(base: Any, override: Any, removes: bool) -> Any:
    if references.is_reference(override):
        if base is None or type_name(base) == "string":
            return override
        raise MergeError("", base, override)
    if isinstance(override, dict) and (base is None or isinstance(base, dict)):
        return _merge_objects(base or {}, override, removes)
    if isinstance(override, list) and isinstance(base, list):
        return _merge_lists(base, override)
    is_removal = removes and override is None
    if base is None or is_removal or _is_same_type(base, override):
        return override
    raise MergeError("", base, override)


def _is_same_type(base: object, override: object) -> bool:
    if isinstance(base, int | float) and isinstance(override, int | float):
        return True
    return type(base) is type(override)


def _merge_objects(
    base: dict[str, Any], override: dict[str, Any], removes: bool
) -> dict[str, Any]:
    """Return the merge of two objects; a path is built only when there is an error."""
    merged = dict(base)  # keeps the order of its keys
    for key, value in override.items():
        try:
            merged[key] = _merge(base.get(key), value, removes)
        except MergeError as error:
            error.put_below(str(key))
            raise
    return merged


def _merge_lists(base: list[Any], override: list[Any]) -> list[Any]:
    """Return the merge of two lists, in a time that grows with their lengths."""
    merged: list[Any] = []
    places: dict[Hashable, list[int]] = {}
    for item in base:
        _append(merged, places, item)
    for item in override:
        if isinstance(item, str) and item.startswith(REMOVAL):
            for place in places.pop(_key(item[len(REMOVAL) :]), ()):
                merged[place] = _REMOVED
        elif _key(item) not in places:
            _append(merged, places, item)
    return [item for item in merged if item is not _REMOVED]


_REMOVED = object()


def _append(merged: list[Any], places: dict[Hashable, list[int]], item: Any) -> None:
    places.setdefault(_key(item), []).append(len(merged))
    merged.append(item)


def _key(item: Any) -> Hashable:
    """Return what equal items have in common; 1 and true are different items."""
    if isinstance(item, dict):
        return frozenset((name, _key(value)) for name, value in item.items())
    if isinstance(item, list | tuple):
        return tuple(map(_key, item))
    return isinstance(item, bool), item

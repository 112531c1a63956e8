"""Schemas of custom resources, judged as the API server judges them; pure.

Unlike it: a field that no schema names is an error instead of being dropped, and rules
in CEL are not judged. Source: Kubernetes apiextensions v1, structural schemas.
"""

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lib.kube.fake.documents import Json

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_LIMITS: Sequence[tuple[str, type, Callable[[typing.Any, typing.Any], bool]]] = (
    ("minimum", int, lambda value, limit: value >= limit),
    ("maximum", int, lambda value, limit: value <= limit),
    ("minLength", str, lambda value, limit: len(value) >= limit),
    ("maxLength", str, lambda value, limit: len(value) <= limit),
    ("pattern", str, lambda value, limit: re.search(limit, value) is not None),
    ("minItems", list, lambda value, limit: len(value) >= limit),
    ("maxItems", list, lambda value, limit: len(value) <= limit),
    ("enum", object, lambda value, limit: value in limit),
)
_EVERYWHERE = ("apiVersion", "kind", "metadata")
_ANY_INT_OR_TEXT = "x-kubernetes-int-or-string"
_ANY_FIELD = "x-kubernetes-preserve-unknown-fields"

Schemas = Mapping[tuple[str, str], Mapping[str, Json]]
"""By group and plural: the schema of each version."""


def of(definitions: Iterable[Mapping[str, typing.Any]]) -> Schemas:
    """Return the schemas of CustomResourceDefinitions."""
    return {
        (spec["group"], spec["names"]["plural"]): {
            version["name"]: version["schema"]["openAPIV3Schema"]
            for version in spec["versions"]
        }
        for spec in (definition["spec"] for definition in definitions)
    }


def problems(schema: Json, document: Json) -> Sequence[str]:
    """Return what the schema refuses in an object, or would drop from it."""
    whole = {name: document[name] for name in document if name not in _EVERYWHERE}
    required = _strings(schema, "required")
    kept = [name for name in required if name not in _EVERYWHERE]
    return tuple(_problems({**schema, "required": kept}, whole, ""))


def _problems(
    schema: Json, value: object, path: str, *, is_open: bool = False
) -> Iterator[str]:
    """Yield what is wrong. is_open: other fields than those named are admitted."""
    if value is None:
        if not schema.get("nullable"):
            yield f"{path}: must not be null"
        return
    if not _has_type(schema, value):
        asked = "integer or string" if schema.get(_ANY_INT_OR_TEXT) else schema["type"]
        yield f"{path}: must be {asked}, is {value!r}"
        return
    yield from _beyond_limits(schema, value, path)
    if isinstance(value, dict):
        yield from _fields(schema, value, path, is_open=is_open)
    if isinstance(value, list):
        items = typing.cast(Json, schema.get("items") or {_ANY_FIELD: True})
        for place, item in enumerate(value):
            where = f"{path}[{place}]"
            yield from _problems(items, item, where, is_open=is_open)
    yield from _combined(schema, value, path)


def _has_type(schema: Json, value: object) -> bool:
    if schema.get(_ANY_INT_OR_TEXT):
        return isinstance(value, int | str) and not isinstance(value, bool)
    kinds = _TYPES.get(str(schema.get("type", "")))
    if kinds is None:
        return True
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _beyond_limits(schema: Json, value: object, path: str) -> Iterator[str]:
    for name, kind, holds in _LIMITS:
        is_judged = name in schema and isinstance(value, kind)
        if is_judged and not holds(value, schema[name]):
            yield f"{path}: {value!r} is against {name} {schema[name]!r}"


def _fields(schema: Json, value: Json, path: str, *, is_open: bool) -> Iterator[str]:
    for name in _strings(schema, "required"):
        if name not in value:
            yield f"{path}.{name}: is required"
    properties = typing.cast(Mapping[str, Json], schema.get("properties") or {})
    others = schema.get("additionalProperties")
    for name, below in value.items():
        inner = f"{path}.{name}"
        if name in properties:
            yield from _problems(properties[name], below, inner, is_open=is_open)
        elif isinstance(others, dict):
            yield from _problems(others, below, inner, is_open=is_open)
        elif not (others or is_open or schema.get(_ANY_FIELD)):
            yield f"{inner}: unknown field"


def _combined(schema: Json, value: object, path: str) -> Iterator[str]:
    """Judge anyOf, oneOf, not: what they name is no field of its own."""
    any_of = typing.cast(Sequence[Json], schema.get("anyOf") or ())
    if any_of and not any(_fits(part, value) for part in any_of):
        yield f"{path}: fits no part of anyOf"
    one_of = typing.cast(Sequence[Json], schema.get("oneOf") or ())
    if one_of and sum(_fits(part, value) for part in one_of) != 1:
        yield f"{path}: does not fit exactly one part of oneOf"
    if "not" in schema and _fits(typing.cast(Json, schema["not"]), value):
        yield f"{path}: fits what it must not"


def _fits(schema: Json, value: object) -> bool:
    return not tuple(_problems(schema, value, "", is_open=True))


def _strings(schema: Json, name: str) -> Sequence[str]:
    return typing.cast(Sequence[str], schema.get(name) or ())

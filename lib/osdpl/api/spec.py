"""Reads an OpenStackDeployment; every problem names its field."""

import dataclasses
import difflib
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

from lib.osdpl.api import confidential, limits, merge, model, schema, schema_types
from lib.process import config

KIND = "OpenStackDeployment"
API_VERSION = f"{model.GROUP}/{model.VERSION}"
DEFAULT_NAMESPACE = "openstack"
SHOWN_MAX = 80
"""Characters of a value that a message shows."""

_REFERENCE = {
    "type": "object",
    "properties": {
        "value_from": {
            "type": "object",
            "properties": {
                "secret_key_ref": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "key": {"type": "string"},
                    },
                    "required": ["name", "key"],
                    "additionalProperties": False,
                }
            },
            "required": ["secret_key_ref"],
            "additionalProperties": False,
        }
    },
    "required": ["value_from"],
    "additionalProperties": False,
}
_SECRET = {"anyOf": [{"type": "string"}, _REFERENCE], "writeOnly": True}
_REFERENCE_EXPECTED = (
    "a string, or value_from.secret_key_ref with the name and the key of a Secret"
)


def parse(document: Mapping[str, Any]) -> model.Deployment:
    """Return the OpenStackDeployment of a decoded object.

    Raises:
        ConfigError: it is not one, or its spec does not satisfy the schema.
    """
    config.require(_identity_problems(document))
    metadata = document.get("metadata") or {}
    spec = document.get("spec")
    config.require(problems(spec))
    return model.Deployment(
        name=str(metadata.get("name") or ""),
        namespace=str(metadata.get("namespace") or DEFAULT_NAMESPACE),
        uid=str(metadata.get("uid") or ""),
        generation=int(metadata.get("generation") or 0),
        is_draft=bool(spec.get("draft")) if isinstance(spec, dict) else False,
        spec=spec if isinstance(spec, dict) else {},
    )


def problems(spec: object) -> tuple[config.FieldProblem, ...]:
    """Return what is wrong with a spec, sorted by field."""
    too_large = tuple(limits.problems(spec))
    if too_large:
        return too_large
    by_text = {
        (problem.field, str(problem)): problem
        for error in _validator().iter_errors(spec)
        for problem in _problems_of(_finding(error))
    }
    for problem in (*confidential.misplaced(spec), *confidential.addresses(spec)):
        by_text[problem.field, str(problem)] = problem
    return tuple(by_text[key] for key in sorted(by_text))


def _identity_problems(document: Mapping[str, Any]) -> list[config.FieldProblem]:
    expected = {"apiVersion": API_VERSION, "kind": KIND}
    wrong = [
        config.FieldProblem(field, _shown(document.get(field)), value)
        for field, value in expected.items()
        if document.get(field) != value
    ]
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        wrong.append(config.not_set("metadata.name"))
    return wrong


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(_strict(schema.spec()))


def _strict(node: Any) -> Any:
    """Return the JSON Schema of a structural schema whose objects are closed."""
    if node is schema_types.SECRET:
        return _SECRET
    if not isinstance(node, dict):
        return node
    strict = {
        key: (
            {name: _strict(below) for name, below in value.items()}
            if key == "properties"
            else _strict(value)
        )
        for key, value in node.items()
    }
    if "properties" in node and not node.get(schema_types.PRESERVE):
        strict["additionalProperties"] = False
    if node.get("nullable"):
        strict["type"] = [node["type"], "null"]
    return strict


@dataclasses.dataclass(frozen=True, slots=True)
class _Finding:
    """Rule of the schema that does not hold, for the value at a path."""

    path: str
    keyword: str
    rule: Any
    schema: Mapping[str, Any]
    value: Any


def _finding(error: jsonschema.ValidationError) -> _Finding:
    node = error.schema if isinstance(error.schema, Mapping) else {}
    return _Finding(
        _path(error), str(error.validator), error.validator_value, node, error.instance
    )


def _problems_of(error: _Finding) -> Iterator[config.FieldProblem]:
    path = error.path
    if error.keyword == "additionalProperties":
        known = sorted(error.schema["properties"])
        for name in sorted(set(error.value) - set(known)):
            yield _unknown(path, name, known)
    elif error.keyword == "required":
        for name in error.rule:
            if name not in error.value:
                yield config.FieldProblem(
                    f"{path}.{name}", None, _required(error, name)
                )
    else:
        is_secret = bool(error.schema.get("writeOnly"))
        value = _shown(error.value)
        yield config.FieldProblem(path, value, _expected(error), is_secret)


def _unknown(path: str, name: str, known: list[str]) -> config.FieldProblem:
    """Return the problem of an unknown field; its value may be a secret."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"{close[0]} (this field is unknown)" if close else ""
    expected = hint or f"one of the known fields: {', '.join(known)}"
    return config.FieldProblem(f"{path}.{name}", None, expected)


def _required(error: _Finding, name: str) -> str:
    field = error.schema["properties"][name]
    return f"{_describe(field)}; the field is required"


def _expected(error: _Finding) -> str:
    if error.schema.get("writeOnly"):
        return _REFERENCE_EXPECTED
    rule = error.rule
    if error.keyword == "pattern":
        return f"a string that matches {rule}"
    if error.keyword == "minLength":
        return "a string that is not empty"
    described = _describe(error.schema)
    if error.keyword == "type":
        return f"{described} (this is {_article(merge.type_name(error.value))})"
    return described


def _describe(node: Mapping[str, Any]) -> str:
    """Return what a schema accepts, in words."""
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    if node.get("writeOnly"):
        return _REFERENCE_EXPECTED
    kinds = node.get("type", "value")
    names = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(_article(name) for name in names)


def _article(name: str) -> str:
    if name == "null":
        return name
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _path(error: jsonschema.ValidationError) -> str:
    path = "spec"
    for part in error.absolute_path:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path


def _shown(value: object) -> str | None:
    """Return a value for a message; objects and lists are shown by their type."""
    if value is None:
        return None
    if isinstance(value, dict | list):
        return _article(merge.type_name(value))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."

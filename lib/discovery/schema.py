"""Validates documents by their published schemas; problems name the field.

Rules: values of fields that a schema calls `writeOnly`, and of fields with the name of
a secret, are never shown; nor is a whole object or list.
"""

import dataclasses
import importlib.resources
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

import jsonschema

from lib.discovery import formats
from lib.process import config

SHOWN_MAX = 80
"""Characters of a value that a message shows."""


def problems(
    validator: jsonschema.Draft202012Validator, document: object
) -> tuple[config.FieldProblem, ...]:
    """Return the problems of a document; none when it is valid.

    document: as JSON or YAML decodes it. Fields read like `volumeTypes[0].name`; the
    document itself is `document`. Sorted by field.
    """
    findings = [_finding(error) for error in validator.iter_errors(document)]
    # Further problems of a value of the wrong type are omitted.
    mistyped = {finding.field for finding in findings if finding.keyword == "type"}
    problems: dict[str, config.FieldProblem] = {}
    for finding in findings:
        if finding.keyword == "type" or finding.field not in mistyped:
            problems.update((str(problem), problem) for problem in _problems(finding))
    return tuple(sorted(problems.values(), key=lambda problem: problem.field))


def read(package: str, path: str) -> jsonschema.Draft202012Validator:
    """Read a schema from a package, by its path there."""
    text = (importlib.resources.files(package) / path).read_text()
    return jsonschema.Draft202012Validator(
        json.loads(text), format_checker=formats.checker()
    )


def kind_of(value: object) -> str:
    """Return the name of the JSON type of a decoded value, with its article."""
    names: Sequence[tuple[type | tuple[type, ...], str]] = (
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a number"),
        (str, "a string"),
        ((list, tuple), "a list"),
        (Mapping, "an object"),
        (type(None), "null"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a value")


@dataclasses.dataclass(frozen=True, slots=True)
class _Finding:
    """One violated rule.

    keyword, rule: of the schema, such as minItems and 1. schema: the schema with the
    rule. value: the validated value at `field`.
    """

    field: str
    keyword: str
    rule: object
    schema: Mapping[str, object]
    value: object


def _finding(error: jsonschema.ValidationError) -> _Finding:
    field = ""
    for part in error.absolute_path:
        field = f"{field}[{part}]" if isinstance(part, int) else _join(field, str(part))
    return _Finding(
        field or _WHOLE,
        str(error.validator),
        error.validator_value,
        error.schema if _is_object(error.schema) else {},
        error.instance,
    )


def _problems(finding: _Finding) -> Iterator[config.FieldProblem]:
    """Convert a finding; the validator's own messages quote values."""
    per_field = _PER_FIELD.get(finding.keyword)
    if per_field is not None:
        yield from per_field(finding)
        return
    choice = _choice(finding) if finding.keyword in ("oneOf", "anyOf") else ""
    if choice:
        yield config.stated(finding.field, choice)
        return
    # A plain value of a secret field could be a secret.
    is_secret = bool(finding.schema.get("writeOnly"))
    shown = _shown(finding.value)
    yield config.FieldProblem(finding.field, shown, _expected(finding), is_secret)


def _expected(finding: _Finding) -> str:
    """Return the required value: the schema's own description, if it has any."""
    own = finding.schema.get("description")
    if finding.keyword == "uniqueItems":
        return f"a list of unique items (repeated: {_repeated(finding.value)})"
    if finding.keyword == "type":
        return f"{own or _types(finding.rule)} (this is {kind_of(finding.value)})"
    if own:
        return str(own)
    describe = _EXPECTED.get(finding.keyword)
    if describe is None:
        return f"a value that satisfies {finding.keyword}"
    return describe(finding.rule)


def _types(rule: object) -> str:
    kinds = rule if isinstance(rule, list) else [rule]
    return " or ".join(_TYPE_NAMES[str(kind)] for kind in kinds)


def _repeated(value: object) -> str:
    items = value if isinstance(value, list) else []
    texts = {
        json.dumps(item, ensure_ascii=False) for item in items if items.count(item) > 1
    }
    return ", ".join(_cut(text) for text in sorted(texts))


_WHOLE = "document"
_TYPE_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_EXPECTED: Mapping[str, Callable[[object], str]] = {
    "enum": lambda rule: "one of " + ", ".join(_texts(rule)),
    "const": str,
    "minLength": lambda rule: f"a text of at least {_counted(rule, 'character')}",
    "maxLength": lambda rule: f"a text of at most {_counted(rule, 'character')}",
    "minItems": lambda rule: f"a list of at least {_counted(rule, 'item')}",
    "maxItems": lambda rule: f"a list of at most {_counted(rule, 'item')}",
    "minProperties": lambda rule: f"an object of at least {_counted(rule, 'field')}",
    "minimum": lambda rule: f"{rule} or more",
    "maximum": lambda rule: f"{rule} or less",
    "pattern": lambda rule: f"text that matches {rule}",
}


def _required(finding: _Finding) -> Iterator[config.FieldProblem]:
    """Yield the fields that are missing; the validator names one with each finding."""
    for name in _texts(finding.rule):
        if not (_is_object(finding.value) and name in finding.value):
            expected = str(_about(finding.schema, name) or "")
            yield config.not_set(_join(finding.field, name), expected)


def _unknown(finding: _Finding) -> Iterator[config.FieldProblem]:
    known = finding.schema.get("properties")
    allowed = sorted(known) if _is_object(known) else []
    for name in finding.value if _is_object(finding.value) else ():
        if name not in allowed:
            hint = f": must be one of {', '.join(allowed)}" if allowed else ""
            yield config.unknown(_join(finding.field, str(name)), "field", hint)


def _forbidden(finding: _Finding) -> Iterator[config.FieldProblem]:
    """Return violations of `not: {required: [...]}`, which forbids fields."""
    rule = finding.rule if _is_object(finding.rule) else {}
    condition = f" {rule['description']}" if "description" in rule else ""
    for name in _texts(rule.get("required")):
        field, problem = _join(finding.field, name), f"must not be set{condition}"
        yield config.stated(field, problem)


_PER_FIELD: Mapping[str, Callable[[_Finding], Iterator[config.FieldProblem]]] = {
    "required": _required,
    "additionalProperties": _unknown,
    "not": _forbidden,
}


def _choice(finding: _Finding) -> str:
    """Describe a choice of fields: `oneOf: [{required: [a]}, {required: [b]}]`."""
    options = finding.rule if isinstance(finding.rule, list) else []
    fields = [" with ".join(_texts(option.get("required"))) for option in options]
    count = "exactly one of" if finding.keyword == "oneOf" else "at least one of"
    return f"must set {count} {', '.join(fields)}" if all(fields) else ""


def _about(schema: Mapping[str, object], name: str) -> object:
    """Return the schema's description of a field."""
    known = schema.get("properties")
    field = known.get(name) if _is_object(known) else None
    return field.get("description") if _is_object(field) else None


def _join(field: str, name: str) -> str:
    return name if field in ("", _WHOLE) else f"{field}.{name}"


def _shown(value: object) -> str | None:
    """Return a plain value; None for values that may hold secrets."""
    if isinstance(value, list | Mapping):
        return None
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return _cut(text)


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []


def _counted(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"

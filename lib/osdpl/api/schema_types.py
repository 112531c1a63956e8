"""Building blocks of the structural OpenAPI schemas of the CRDs."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
ANY: Schema = {PRESERVE: True}
"""Any JSON value; a structural schema can't describe it further."""
ANY_OBJECT: Schema = {"type": "object", PRESERVE: True}
SECRET: Schema = {
    **ANY,
    "description": "String, or value_from.secret_key_ref with name and key.",
}
"""String or reference to a Secret; structural schemas can't hold alternatives, so
lib/osdpl/api/spec validates it."""
SECRETS: Schema = {
    **ANY_OBJECT,
    "description": "Any text in it may be value_from.secret_key_ref with name and key.",
}
"""Object in which references are accepted at any depth."""
ANY_SECRETS: Schema = {
    **ANY,
    "description": "Any text in it may be value_from.secret_key_ref with name and key.",
}
"""Any JSON value in which references are accepted at any depth."""


def holds_secrets(schema: Schema) -> bool:
    """Report whether a value of the schema may be a reference to a Secret."""
    return any(schema is marked for marked in (SECRET, SECRETS, ANY_SECRETS))


def closed(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object that has these fields and no others."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    return {**schema, "required": list(required)} if required else schema


def open_object(properties: Mapping[str, Schema], *required: str) -> Schema:
    """Return the schema of an object with known fields and any others.

    The reference accepts others there, and nothing reads them: they are reported.
    """
    return {**closed(properties, required), PRESERVE: True}


def preserving(node: Any) -> Any:
    """Return a schema of which the API server drops no unknown field.

    It would drop them before any program sees them; our own checks refuse them.
    """
    if isinstance(node, list):
        return [preserving(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: (
            {name: preserving(below) for name, below in value.items()}
            if key == "properties"
            else preserving(value)
        )
        for key, value in node.items()
    }
    return {**kept, PRESERVE: True} if "properties" in node else kept


def fields(schema: Schema, *names: str) -> dict[str, Schema]:
    """Return the same schema for several fields."""
    return dict.fromkeys(names, schema)


def enum(*values: str) -> Schema:
    """Return the schema of a string with fixed values."""
    return {"type": "string", "enum": list(values)}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def map_of(values: Schema) -> Schema:
    """Return the schema of an object with free keys."""
    return {"type": "object", "additionalProperties": values}


def nullable(schema: Schema) -> Schema:
    """Return the schema that also accepts null."""
    return {**schema, "nullable": True}


def enabled(**properties: Schema) -> Schema:
    """Return the schema of a feature: an object that requires `enabled`."""
    return closed({"enabled": BOOLEAN, **properties}, ("enabled",))

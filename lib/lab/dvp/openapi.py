"""Parts of OpenAPI openapi as CustomResourceDefinitions have them. Pure."""

from collections.abc import Sequence

from lib.lab.dvp.kinds import Json

QUANTITY = r"^([0-9]+(\.[0-9]+)?)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$"
"""Of quantities without a sign. Source: Kubernetes resource.Quantity."""


def text(*, longest: int = 0, **more: object) -> Json:
    """Return a string that is not empty. longest: characters; 0: no limit."""
    limit = {"maxLength": longest} if longest else {}
    return {"type": "string", "minLength": 1, **limit, **more}


def loose_text(**more: object) -> Json:
    """Return a string that may be empty."""
    return {"type": "string", **more}


def choice(*values: str, default: str = "") -> Json:
    """Return one of some words."""
    preset = {"default": default} if default else {}
    return {"type": "string", "enum": list(values), **preset}


def number(least: int | None = None, most: int | None = None, **more: object) -> Json:
    """Return a whole number."""
    bounds = {"minimum": least, "maximum": most}
    limits = {key: value for key, value in bounds.items() if value is not None}
    return {"type": "integer", **limits, **more}


def flag(*, default: bool | None = None) -> Json:
    """Return a boolean."""
    return {"type": "boolean", **({} if default is None else {"default": default})}


def quantity() -> Json:
    """Return an amount such as 10Gi."""
    return {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
    }


def struct(
    fields: Json, required: Sequence[str] = (), rules: Sequence[Json] = ()
) -> Json:
    """Return an object with fields. rules: of `rule`."""
    listed = {"required": list(required)} if required else {}
    checks = {"x-kubernetes-validations": list(rules)} if rules else {}
    return {"type": "object", "properties": fields, **listed, **checks}


def rule(expression: str, message: str) -> Json:
    """Return a CEL rule of a schema."""
    return {"rule": expression, "message": message}


def rows(of: Json, *, least: int = 0, most: int = 0) -> Json:
    """Return a list. least, most: number of its elements; 0: no limit."""
    limits = {"minItems": least} if least else {}
    limits |= {"maxItems": most} if most else {}
    return {"type": "array", "items": of, **limits}


def words() -> Json:
    """Return a map from texts to texts."""
    return {"type": "object", "additionalProperties": {"type": "string"}}


def anything() -> Json:
    """Return an object with any content, such as an affinity of Pods."""
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def conditions() -> Json:
    """Return conditions. Source: Kubernetes metav1.Condition."""
    fields = {
        "type": text(),
        "status": choice("True", "False", "Unknown"),
        "reason": loose_text(),
        "message": loose_text(),
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": number(0),
    }
    return rows(struct(fields, ("type", "status")))

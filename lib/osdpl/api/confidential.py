"""Which fields of a spec may hold secrets, by its schema. Pure.

Rules: a reference to a Secret is accepted only in these fields. Nothing that can be
read without the Secrets or the spec is derived from their values: hashes are made from
a spec without them.
"""

from collections.abc import Iterator
from typing import Any

from lib.osdpl.api import references, schema, schema_types
from lib.process import config, redaction

HIDDEN = "secret"
"""In the place of a value that may be a secret."""
_MISPLACED = (
    "not supported: a reference to a Secret is accepted only in fields of secrets, in"
    " spec.services and in the values of spec.common"
)


def misplaced(spec: object) -> Iterator[config.FieldProblem]:
    """Yield the references in fields that hold no secret by the schema."""
    for path, accepts, node in _nodes(spec, schema.spec(), "spec"):
        if not accepts and references.is_reference(node):
            yield config.stated(path, _MISPLACED)


def addresses(spec: Any) -> Iterator[config.FieldProblem]:
    """Yield the sources of charts whose address has a user: HelmBundles show it."""
    common = spec.get("common") if isinstance(spec, dict) else None
    charts = common.get("charts") if isinstance(common, dict) else None
    rows = charts.get("repositories") if isinstance(charts, dict) else None
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        url = row.get("url") if isinstance(row, dict) else None
        if isinstance(url, str) and "@" in url.partition("://")[2].partition("/")[0]:
            field = f"spec.common.charts.repositories[{index}].url"
            expected = "an address without user and password"
            yield config.FieldProblem(field, None, expected)


def masked(spec: Any) -> Any:
    """Return a spec without the values that may be secrets; references stay."""
    return _masked(spec, schema.spec())


def _nodes(
    node: object, node_schema: schema_types.Schema, path: str
) -> Iterator[tuple[str, bool, object]]:
    """Yield path, whether a reference is accepted, and value of each node."""
    yield path, schema_types.holds_secrets(node_schema), node
    if references.is_reference(node):
        return
    for below, key, value in references.members(node, path):
        yield from _nodes(value, _below(node_schema, key), below)


def _below(node_schema: schema_types.Schema, key: str | int) -> schema_types.Schema:
    """Return the schema of a member; that of an open object holds for all below it."""
    if isinstance(key, int):
        items: schema_types.Schema = node_schema.get("items", node_schema)
        return items
    properties = node_schema.get("properties") or {}
    additional = node_schema.get("additionalProperties")
    member: schema_types.Schema = properties.get(key) or additional or node_schema
    return member


def _masked(node: Any, node_schema: schema_types.Schema) -> Any:
    if references.is_reference(node):
        return node
    if node_schema is schema_types.SECRET and node is not None:
        return HIDDEN
    if isinstance(node, list):
        items = _below(node_schema, 0)
        return [_masked(item, items) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: (
            HIDDEN
            if isinstance(value, str) and redaction.is_secret(key)
            else _masked(value, _below(node_schema, key))
        )
        for key, value in node.items()
    }

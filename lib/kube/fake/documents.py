"""Objects as the fake keeps them: JSON, merged and selected; pure."""

import typing
from collections.abc import Mapping

Json = dict[str, object]
"""A JSON object; never changed in place once it is kept."""


def metadata(document: Json) -> Json:
    """Return its metadata, empty when it has none."""
    return typing.cast(Json, document.get("metadata") or {})


def text(document: Json, field: str) -> str:
    """Return a text field of its metadata."""
    return str(metadata(document).get(field) or "")


def key(document: Json) -> tuple[str, str]:
    """Return namespace and name."""
    return text(document, "namespace"), text(document, "name")


def with_metadata(document: Json, fields: Json) -> Json:
    """Return it with these fields of its metadata set; None takes a field away."""
    merged = {**metadata(document), **fields}
    kept = {name: value for name, value in merged.items() if value is not None}
    return {**document, "metadata": kept}


def merged(old: object, patch: object) -> object:
    """Apply a merge patch.

    Source: RFC 7386.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merged(result.get(field), value)
    return result


def with_conditions(old: Json, patch: Json) -> Json:
    """Complete the conditions of a strategic merge patch by those it does not name.

    Source: Kubernetes API conventions: status.conditions merge by type.
    """
    status = typing.cast(Json, patch.get("status") or {})
    if "conditions" not in status:
        return patch
    now = typing.cast(list[Json], status["conditions"])
    before = typing.cast(Json, old.get("status") or {}).get("conditions") or []
    types = {condition["type"] for condition in now}
    kept = [c for c in typing.cast(list[Json], before) if c["type"] not in types]
    return {**patch, "status": {**status, "conditions": [*kept, *now]}}


def dropped(before: Json, now: Json) -> Json:
    """Return a merge patch that removes the fields of `before` that `now` lacks."""
    patch: Json = {}
    for field, value in before.items():
        if field not in now:
            patch[field] = None
            continue
        below = now[field]
        if isinstance(value, dict) and isinstance(below, dict):
            patch[field] = dropped(value, below)
    return patch


def is_selected(document: Json, query: Mapping[str, str]) -> bool:
    """Report whether labelSelector and fieldSelector choose it."""
    if not (query.get("labelSelector") or query.get("fieldSelector")):
        return True
    labels = typing.cast(Mapping[str, str], metadata(document).get("labels") or {})
    fields = {
        f"metadata.{name}": text(document, name) for name in ("name", "namespace")
    }
    about = document.get("involvedObject")
    if isinstance(about, dict):
        fields |= {f"involvedObject.{name}": str(about[name]) for name in about}
    return all(
        _holds(term.strip(), values)
        for selector, values in (("labelSelector", labels), ("fieldSelector", fields))
        for term in query.get(selector, "").split(",")
        if term.strip()
    )


def _holds(term: str, values: Mapping[str, str]) -> bool:
    """Judge one term: k=v, k==v, k!=v, k or !k; sets (in, notin) are not known."""
    if "!=" in term:
        name, _, value = term.partition("!=")
        return values.get(name) != value
    if "=" in term:
        name, _, value = term.replace("==", "=").partition("=")
        return values.get(name) == value
    if " " in term:
        raise NotImplementedError(f"the fake does not know the selector {term!r}")
    if term.startswith("!"):
        return term[1:] not in values
    return term in values

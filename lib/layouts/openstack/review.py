"""What of a plan destroys data or nodes. Pure.

Source: OpenTofu, "JSON Output Format", plan representation; how
terraform-provider-openstack 3.4 changes each type.
"""

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

INSTANCE = "openstack_compute_instance_v2"
VOLUME = "openstack_blockstorage_volume_v3"
_LOST: Mapping[str, str] = {
    INSTANCE: "the server, with the content of a disk of its flavor",
    VOLUME: "the volume and its content",
    "openstack_networking_floatingip_v2": "the address, which another project may get",
    "openstack_networking_port_v2": "the port and its address",
}


class PlannedAction(enum.StrEnum):
    """What a plan does to an object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"
    REBUILD = "rebuild"
    SHRINK = "shrink"
    FORGET = "forget"
    IMPORT = "import"
    """Nothing else is changed."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewedChange:
    """One change. lost: what is gone afterwards; empty: nothing.

    is_destructive: a node, or a disk of one, is deleted, wiped or made smaller.
    """

    address: str
    action: PlannedAction
    lost: str = ""
    is_destructive: bool = False


def review(plan: Json) -> tuple[ReviewedChange, ...]:
    """Return the changes of a plan, destructive ones first.

    plan: as `tofu show -json PLAN` prints it.

    Raises:
        ValueError: the document is no plan.
    """
    if not isinstance(plan, Mapping) or "format_version" not in plan:
        raise ValueError(
            "the document is no plan: it must be what `tofu show -json PLAN` prints"
        )
    changes = list(_changes(plan.get("resource_changes") or ()))
    return tuple(
        sorted(changes, key=lambda each: (not each.is_destructive, each.address))
    )


def _changes(resources: Any) -> Iterator[ReviewedChange]:
    for resource in resources:
        change = resource["change"]
        action = _action(resource["type"], change)
        if action is None or resource.get("mode") == "data":
            continue
        kind = resource["type"]
        lost = _lost(kind, action, change)
        is_destructive = bool(lost) and kind in (INSTANCE, VOLUME)
        yield ReviewedChange(resource["address"], action, lost, is_destructive)


def _action(kind: str, change: Json) -> PlannedAction | None:
    actions = set(change["actions"])
    if {"create", "delete"} <= actions:
        return PlannedAction.REPLACE
    if actions == {"update"}:
        return _update(kind, change.get("before") or {}, change.get("after") or {})
    known = {"create", "delete", "forget"} & actions
    if known:
        return PlannedAction(known.pop())
    return PlannedAction.IMPORT if change.get("importing") else None


def _update(kind: str, before: Json, after: Json) -> PlannedAction:
    """Distinguish updates that lose data; the tool shows all of them as in place."""
    if kind == INSTANCE and any(
        # Null: computed, as the server boots from a volume.
        after.get(field) and after.get(field) != before.get(field)
        for field in ("image_id", "image_name")
    ):
        return PlannedAction.REBUILD
    old_gib, new_gib = before.get("size"), after.get("size")
    if kind == VOLUME and old_gib and new_gib and new_gib < old_gib:
        return PlannedAction.SHRINK
    return PlannedAction.UPDATE


def _lost(kind: str, action: PlannedAction, change: Json) -> str:
    match action:
        case PlannedAction.DELETE | PlannedAction.REPLACE:
            return _LOST.get(kind, "")
        case PlannedAction.REBUILD:
            return "the content of the server's disk: a new image is written to it"
        case PlannedAction.SHRINK:
            before, after = change["before"]["size"], change["after"]["size"]
            return f"nothing yet: Cinder refuses to shrink {before} GiB to {after} GiB"
    return ""

"""Detects changes of a cluster configuration that destroy resources. Pure.

Source: deckhouse modules/030-cloud-provider-dvp, DVPClusterConfiguration (fields
labelled as unsafe to change) and layout Standard (parameters that recreate a VM).
"""

from collections.abc import Iterator, Mapping

from lib.discovery.dvp import parent_rules
from lib.discovery.findings import part_of, text_of
from lib.discovery.unsafe_change import UnsafeChange, at, shown

Document = Mapping[str, object]

_ELSEWHERE = "all VMs and disks would be created elsewhere; existing ones orphaned"
_VMS = "the VMs of the group would be recreated one by one, with their disks"
_ALL_VMS = "the VMs of all groups would be recreated one by one, with their disks"
_ROOTS = "the VMs and root disks of the group would be recreated, without the data"
_ZONE = "the VMs of the zone would be recreated in another one"
_ZONES = "the VMs in other zones would be recreated in these"
_FEWER = "the VMs and disks of the last replicas would be deleted"
_GROUP = "the VMs and disks of the group would be deleted"
_REPLACED = "the disks of the group would be recreated, without the data"

_OF_CLUSTER: Mapping[str, str] = {
    "layout": _ELSEWHERE,
    "provider.namespace": _ELSEWHERE,
    "sshPublicKey": _ALL_VMS,
}
_OF_GROUP: Mapping[str, str] = {
    **{
        f"instanceClass.virtualMachine.{field}": _VMS
        for field in (
            "cpu",
            "memory",
            "nodeSelector",
            "tolerations",
            "priorityClassName",
            "ipAddresses",
        )
    },
    "instanceClass.rootDisk.image": _ROOTS,
}
"""Effect of a change, by field."""


def find(before: Document, after: Document) -> tuple[UnsafeChange, ...]:
    """Return the changes between two configurations that are unsafe.

    Both are DVPClusterConfiguration documents that hold to their schema.
    """
    return (
        *_fields(before, after, _OF_CLUSTER),
        *_zones("zones", before, after),
        *_groups(before, after),
    )


def _fields(
    before: Document, after: Document, rules: Mapping[str, str], group: str = ""
) -> Iterator[UnsafeChange]:
    prefix = f"{group}." if group else ""
    for field, effect in rules.items():
        old, new = at(before, field), at(after, field)
        if old != new:
            yield UnsafeChange(f"{prefix}{field}", shown(old), shown(new), effect)


def _zones(field: str, before: Document, after: Document) -> Iterator[UnsafeChange]:
    old, new = before.get("zones"), after.get("zones")
    if not isinstance(new, list) or old == new:
        return
    if not isinstance(old, list):
        kept = ", ".join(map(str, new))
        yield UnsafeChange(field, "all zones", kept, _ZONES)
        return
    for zone in old:
        if zone not in new:
            yield UnsafeChange(field, f"with {zone!r}", "without it", _ZONE)


def _groups(before: Document, after: Document) -> Iterator[UnsafeChange]:
    kept = dict(map(_by_name, parent_rules.groups(after)))
    for name, old in map(_by_name, parent_rules.groups(before)):
        new = kept.get(name)
        if new is None:
            yield UnsafeChange(name, "a group of Nodes", "nothing", _GROUP)
            continue
        yield from _replicas(name, old, new)
        yield from _zones(f"{name}.zones", old, new)
        yield from _fields(old, new, _OF_GROUP, name)
        yield from _disks(name, old, new)


def _by_name(entry: tuple[str, Document]) -> tuple[str, Document]:
    """Return a group by its name: an index would change with the groups before it."""
    field, group = entry
    name = text_of(group, "name")
    return (f"nodeGroups[{name}]" if name else field), group


def _replicas(name: str, old: Document, new: Document) -> Iterator[UnsafeChange]:
    before, after = old.get("replicas"), new.get("replicas")
    if isinstance(before, int) and isinstance(after, int) and after < before:
        yield UnsafeChange(f"{name}.replicas", str(before), str(after), _FEWER)


def _disks(name: str, old: Document, new: Document) -> Iterator[UnsafeChange]:
    """Yield removed additional disks: their VMs would be recreated without them."""
    field = "additionalDisks"
    before = part_of(old, "instanceClass").get(field)
    after = part_of(new, "instanceClass").get(field)
    count = len(before) if isinstance(before, list) else 0
    left = len(after) if isinstance(after, list) else 0
    if left < count:
        yield UnsafeChange(
            f"{name}.instanceClass.{field}",
            f"{count} disks",
            f"{left} disks",
            _REPLACED,
        )

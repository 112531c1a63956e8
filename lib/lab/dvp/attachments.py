"""How VirtualMachineBlockDeviceAttachments move. Pure."""

import datetime
from collections.abc import Iterator, Mapping, Sequence

from lib.lab.dvp import writes
from lib.lab.dvp.kinds import (
    ATTACHMENTS,
    CLUSTER_IMAGES,
    DISKS,
    GROUP,
    IMAGES,
    MACHINES,
    Item,
    World,
)
from lib.lab.dvp.writes import Finding, Step

FINALIZER = f"{GROUP}/vmbda-cleanup"
LIMIT = 16
"""Block devices of a VM, of its spec and hot-plugged."""
_KINDS = {kind.kind: kind for kind in (DISKS, IMAGES, CLUSTER_IMAGES)}
_ALIVE = ("Running", "Migrating")
_USABLE = ("Ready", "Resizing")
_CAPACITY = "DiskAttachmentCapacityAvailableType"
_HOLDING = ("InProgress", "Attached", "Terminating")


def decide(world: World, now: datetime.datetime) -> Iterator[Step]:
    """Yield what happens to each attachment."""
    by_device: dict[tuple[str, ...], list[Item]] = {}
    by_machine: dict[str, int] = {}
    for item in world.of(ATTACHMENTS).values():
        by_device.setdefault(_device(item), []).append(item)
        if item.phase in _HOLDING:
            key = f"{item.namespace}/{item.spec['virtualMachineName']}"
            by_machine[key] = by_machine.get(key, 0) + 1
    for item in world.of(ATTACHMENTS).values():
        if item.is_ending:
            yield from _end(item, now)
            continue
        step = _phase(world, item, by_device[_device(item)], by_machine, now)
        if step is not None:
            yield step


def _device(item: Item) -> tuple[str, ...]:
    reference = item.spec["blockDeviceRef"]
    return item.namespace, reference["kind"], reference["name"]


def _phase(
    world: World,
    item: Item,
    same: Sequence[Item],
    by_machine: Mapping[str, int],
    now: datetime.datetime,
) -> Step | None:
    if item.phase in ("", "Failed"):
        return None if item.phase else _accept(item, now)
    vm = world.get(MACHINES, item.namespace, item.spec["virtualMachineName"])
    if item.phase == "Pending":
        conflict = _conflict(item, vm, same)
        if conflict:
            return _step("attachment-conflict", item, "Failed", conflict, now)
    waiting = _waiting(world, item, vm, by_machine)
    if waiting is not None:
        if item.phase == "Pending" and writes.holds(item, waiting):
            return None
        return _step("attachment-waits", item, "Pending", waiting, now)
    return _proceed(item, now)


def _proceed(item: Item, now: datetime.datetime) -> Step | None:
    """Return the next step of an attachment whose disk and VM are ready."""
    if item.phase == "Pending":
        row = Finding("Attached", False, "AttachmentRequestSent")
        return _step("attachment-sent", item, "InProgress", row, now)
    if item.phase == "InProgress":
        row = Finding("Attached", True, "Attached")
        return _step("attachment-attached", item, "Attached", row, now)
    return None


def _accept(item: Item, now: datetime.datetime) -> Step:
    rows = writes.conditions(item, now, Finding("Attached", False, "NotAttached"))
    fields = {
        "phase": "Pending",
        "virtualMachineName": item.spec["virtualMachineName"],
        "conditions": rows,
    }
    calls = [
        writes.finalizers(ATTACHMENTS, item, with_=FINALIZER),
        writes.status(ATTACHMENTS, item, fields),
    ]
    return Step("attachment-accepted", item, calls)


def _conflict(item: Item, vm: Item | None, same: Sequence[Item]) -> Finding | None:
    reference = item.spec["blockDeviceRef"]
    what = f"{reference['kind']} {reference['name']}"

    def age(other: Item) -> tuple[bool, str, str]:
        # Creation times are whole seconds: one that holds the device came first.
        created = str(other.metadata.creation_timestamp)
        return other.phase not in _HOLDING, created, other.uid

    # An attachment that has failed claims nothing, also if it is from the same second.
    claims = [other for other in same if other.phase != "Failed"]
    older = [other for other in claims if age(other) < age(item)]
    if older:
        text = f"{what} has another attachment: {older[0].name}"
        return Finding("Attached", False, "Conflict", text)
    rows = vm.spec.get("blockDeviceRefs", ()) if vm is not None else ()
    if any((row["kind"], row["name"]) == _device(item)[1:] for row in rows):
        text = f"{what} is listed in the spec of the VM"
        return Finding("Attached", False, "Conflict", text)
    return None


def _waiting(
    world: World, item: Item, vm: Item | None, by_machine: Mapping[str, int]
) -> Finding | None:
    if vm is None or vm.phase not in _ALIVE:
        what = "missing" if vm is None else vm.phase or "new"
        text = f"VirtualMachine {item.spec['virtualMachineName']} is {what}"
        return Finding("VirtualMachineReady", False, "NotReady", text)
    if item.phase == "Attached":
        return None
    reference = item.spec["blockDeviceRef"]
    kind = _KINDS[reference["kind"]]
    device = world.get(kind, item.namespace, reference["name"])
    if device is None or device.phase not in _USABLE:
        what = "missing" if device is None else device.phase or "new"
        text = f"{kind.kind} {reference['name']} is {what}"
        return Finding("BlockDeviceReady", False, "NotReady", text)
    static = len(vm.spec.get("blockDeviceRefs", ()))
    used = static + by_machine.get(f"{item.namespace}/{vm.name}", 0)
    if item.phase == "Pending" and used >= LIMIT:
        text = f"VirtualMachine {vm.name} has {used} block devices of {LIMIT}"
        reason = "CapacityReached"
        return Finding(_CAPACITY, False, reason, text)
    return None


def _step(
    transition: str,
    item: Item,
    phase: str,
    row: Finding,
    now: datetime.datetime,
) -> Step:
    settled = (
        Finding("BlockDeviceReady", True, "BlockDeviceReady"),
        Finding("VirtualMachineReady", True, "VirtualMachineReady"),
        Finding(_CAPACITY, True, "CapacityAvailable"),
    )
    known = () if phase in ("Pending", "Failed") else settled
    lost = (
        (Finding("Attached", False, "NotAttached"),)
        if phase == "Pending" and row.type != "Attached"
        else ()
    )
    rows = writes.conditions(item, now, *known, *lost, row)
    fields = {"phase": phase, "conditions": rows}

    def fail(reason: str, message: str) -> writes.Call:
        failed = Finding("Attached", False, reason, message)
        changed = writes.conditions(item, now, failed)
        return writes.status(
            ATTACHMENTS, item, {"phase": "Failed", "conditions": changed}
        )

    return Step(
        transition, item, [writes.status(ATTACHMENTS, item, fields)], failed=fail
    )


def _end(item: Item, now: datetime.datetime) -> Iterator[Step]:
    if item.phase != "Terminating":
        row = Finding("Terminating", True, "DetachPending")
        fields = {
            "phase": "Terminating",
            "conditions": writes.conditions(item, now, row),
        }
        yield Step(
            "attachment-ending", item, [writes.status(ATTACHMENTS, item, fields)]
        )
    elif FINALIZER in item.metadata.finalizers:
        calls = [writes.finalizers(ATTACHMENTS, item, without=FINALIZER)]
        yield Step("attachment-gone", item, calls)

"""The plan that deletes a machine: power off, detach, remove, boot disk. Pure.

Every disk but the boot disk is kept, also one that is attached at the last moment: the
VM is removed without its disks, and then its boot disk by its ID. That ID and the
ownership tag are recorded before: without its VM nothing else would show which disk it
was.
"""

import datetime
from collections.abc import Iterator

from lib.cloud.machines import ConditionState, Plan, Reason, Results, Target
from lib.cloud.steps import CommonReason, Problem, Step, Verb
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.machines import (
    engine_vm,
    vm_tags,
    vm_writes,
)
from lib.cloud.zvirt.machines.engine_vm import (
    DOWN,
    ILLEGAL,
    LOCKED,
    AttachedDisk,
    EngineVm,
)

BOOT_DISK = "mooring.io/boot-disk"
"""Annotation of a machine object: ID of the boot disk of its VM."""
ORPHANED_VM = "mooring.io/orphaned-vm"
ORPHANED_DISK = "mooring.io/orphaned-disk"
ORPHANED_AT = "mooring.io/orphaned-at"
POLL_S = 5.0
COPY_S = 900.0
"""So long the copy of a disk is waited for; then the VM is removed all the same."""
_WHY = "its machine is deleted"
_REMOVABLE = (DOWN, LOCKED, ILLEGAL, "unassigned")
"""Statuses of a VM that an engine removes. Source: ovirt-engine, RemoveVmCommand."""


def other_owner(native: EngineVm, vm: Item) -> str:
    """Return why a VM is not that of the machine, as a clause; empty: it is."""
    machine, entity = native.machine, vm.entity
    if engine_vm.is_tagged(machine, entity.description):
        return ""
    if not vm_tags.is_free(entity.description):
        return "its ownership tag is of another machine or cluster"
    is_named = entity.name == machine.name
    if is_named or machine.tag in engine_vm.tag_names(vm):
        return ""
    return f"it is not named {machine.name}, and has no tag of this cluster"


def prepared(native: EngineVm, disk: AttachedDisk, size: int) -> Step | None:
    """Return what gives a boot disk its size and tag, and records it; None: it has all.

    size: 0: as it is.
    """
    machine = native.machine
    is_tagged = engine_vm.is_tagged(machine, disk.description)
    grows = size > disk.size
    if is_tagged and not grows and machine.boot_disk == disk.id:
        return None
    description = disk.description
    if not is_tagged:
        description = vm_tags.added(description, machine.cluster_id, machine.uid)
    vm = "" if native.vm is None else native.vm.id
    write = vm_writes.PrepareDisk(vm, disk.id, description, size if grows else 0)
    why = "it is not recorded" if is_tagged else "it has no ownership tag"
    if grows:
        why = f"it has {disk.size} bytes, desired are {size}"
    return vm_writes.step(Verb.CHANGE, machine.name, write, why, f"boot disk {disk.id}")


def plan(target: Target, native: EngineVm, now: datetime.datetime) -> Plan:
    """Return what deletes all that is owned, or may be adopted."""
    state = Results(ConditionState(False, Reason.DELETING))
    vm = native.vm
    if vm is not None and other_owner(native, vm):
        vm = None
    if vm is not None and _is_meant(target, vm.id):
        return _of_vm(native, vm, now, state)
    left = native.left
    if left is None or not _is_meant(target, left.id):
        return Plan(settled=True)
    name = f"boot disk {left.entity.alias or left.id}"
    write = vm_writes.RemoveDisk(native.machine, left.id)
    step = vm_writes.step(
        Verb.DELETE,
        native.machine.name,
        write,
        _WHY,
        f"boot disk {left.id}",
        is_gated=False,
    )
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Plan(
        (step,),
        results=state,
        leftovers=(name,),
        abandoned=((ORPHANED_DISK, left.id), (ORPHANED_AT, at)),
    )


def _is_meant(target: Target, id_: str) -> bool:
    return target.only is None or id_ in target.only


def _of_vm(
    native: EngineVm, vm: Item, now: datetime.datetime, results: Results
) -> Plan:
    disk = engine_vm.boot_disk(native)
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    abandoned = [(ORPHANED_VM, vm.id), (ORPHANED_AT, at)]
    if disk is not None:
        abandoned.append((ORPHANED_DISK, disk.id))
    steps = () if _is_copied(vm, now) else tuple(_steps(native, vm, disk))
    problems = () if disk is not None else tuple(_unclear(native, vm))
    names = (f"VM {vm.entity.name}", *((f"boot disk {disk.name}",) if disk else ()))
    return Plan(
        steps,
        retry_after_s=None if steps else POLL_S,
        results=results,
        problems=problems,
        leftovers=names,
        abandoned=tuple(abandoned),
        object_id=vm.id,
    )


def _is_copied(vm: Item, now: datetime.datetime) -> bool:
    """Report whether the copy of its disk, which locks a VM, may still end."""
    created = vm.entity.creation_time
    if vm.status != LOCKED or created is None:
        return False
    return bool((now - created.astimezone(datetime.UTC)).total_seconds() < COPY_S)


def _unclear(native: EngineVm, vm: Item) -> Iterator[Problem]:
    """Yield what is wrong with a VM whose disks are kept, for want of a certain one."""
    if engine_vm.disks(vm):
        text = (
            f"VM {native.machine.name} ({vm.id}): which of its disks is the boot disk"
            " is not certain; all are kept"
        )
        yield Problem(CommonReason.CLEANUP_INCOMPLETE, text)


def _steps(native: EngineVm, vm: Item, disk: AttachedDisk | None) -> Iterator[Step]:
    name = native.machine.name
    if vm.status not in _REMOVABLE:
        stop = vm_writes.StopVm(vm.id)
        yield vm_writes.step(Verb.CHANGE, name, stop, _WHY, "power")
    if _is_kept(vm, disk):
        yield from _removal(native, vm, disk)
        return
    yield from _detachments(native, vm, disk)
    write = vm_writes.RemoveVm(vm.id, disk.id if disk else "", with_disks=True)
    yield vm_writes.step(Verb.DELETE, name, write, _WHY)


def _is_kept(vm: Item, disk: AttachedDisk | None) -> bool:
    """Report whether the VM can be removed without its disks."""
    is_usable = disk is None or disk.status in ("ok", "locked")
    is_copied = vm.status not in (LOCKED, ILLEGAL)
    return not engine_vm.is_linked(vm) and is_usable and is_copied


def _removal(native: EngineVm, vm: Item, disk: AttachedDisk | None) -> Iterator[Step]:
    name = native.machine.name
    record = None if disk is None else prepared(native, disk, 0)
    if record is not None:
        yield record
    yield from _detachments(native, vm, disk)
    write = vm_writes.RemoveVm(vm.id, disk.id if disk else "")
    yield vm_writes.step(Verb.DELETE, name, write, _WHY)


def _detachments(
    native: EngineVm, vm: Item, disk: AttachedDisk | None
) -> Iterator[Step]:
    for other in engine_vm.disks(vm):
        if disk is None or other.id != disk.id:
            write = vm_writes.DetachDisk(vm.id, other.id)
            part = f"disk {other.id}"
            name = native.machine.name
            yield vm_writes.step(Verb.CHANGE, name, write, _WHY, part)

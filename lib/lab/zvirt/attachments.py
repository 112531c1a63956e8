"""Attachments of disks to VMs. Source: 1.6 of the facts."""

import dataclasses

from ovirtsdk4 import types

from lib.lab.zvirt import calls, disks, replies, vms
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine, name_of
from lib.lab.zvirt.records import EngineRecord, Entity

_Status = types.VmStatus
_ATTACHABLE = (_Status.UP, _Status.PAUSED, _Status.DOWN)
_DETACHABLE = (_Status.UP, _Status.DOWN)


def create(engine: Engine, call: ApiCall, vm_key: str) -> ApiAnswer:
    """Attach a disk, or create one on a VM."""
    vm = engine.find("vm", vm_key)
    attachment = calls.read(engine, call, "disk_attachment", "add")
    _check_vm(engine, vm, "attach")
    if attachment.disk is None or attachment.disk.id is None:
        return _create_disk(engine, call, vm, attachment)
    disk = engine.referred("disk", attachment.disk)
    if engine.records.get("disk_attachment", f"{vm_key}/{disk.key}") is not None:
        engine.refuse("attachment-again")
    disks.check(engine, disk, "attach")
    if not disk.entity.shareable and _is_attached(engine, disk):
        engine.refuse("attachment-elsewhere")
    _check_boot(engine, vm, attachment, "attach")
    _check_plug(engine, vm, attachment)
    job = _operation(engine, call, "attach", disk, vm if attachment.bootable else None)
    attachment.disk = types.Disk(id=disk.key)
    record = disks.attach(engine, vm, attachment)
    engine.rule("attachment-created")
    _note(engine, call, vm, disk, "attached to")
    return dataclasses.replace(replies.created(engine, call, record), job=job)


def _operation(
    engine: Engine,
    call: ApiCall,
    action: str,
    disk: EngineRecord,
    vm: EngineRecord | None = None,
) -> str:
    """Hold the locks of a request. vm: whose boot disk it is about.

    Source: ovirt-engine, AttachDiskToVmCommand: exclusive locks.
    """
    locks = [] if disk.entity.shareable else [disks.lock(disk)]
    if vm is not None:
        locks.append(f"VM_DISK_BOOT/{vm.key}")
    correlation_id = call.correlation_id
    return engine.begin_operation(action, correlation_id, locks, "Virtual Disk")


def _is_attached(engine: Engine, disk: EngineRecord) -> bool:
    return any(
        row.entity.id == disk.key for row in engine.records.all("disk_attachment")
    )


def _create_disk(
    engine: Engine, call: ApiCall, vm: EngineRecord, attachment: Entity
) -> ApiAnswer:
    disk = attachment.disk
    missing = [
        name
        for name in ("provisioned_size", "format")
        if disk is None or getattr(disk, name) is None
    ]
    if missing:
        names = ", ".join(missing)
        reason = "Incomplete parameters"
        engine.refuse(
            "call-incomplete", reason, type="Disk", names=names, operation="add"
        )
    _check_boot(engine, vm, attachment, "add")
    created, job = disks.add(engine, call, disk)
    attachment.disk = types.Disk(id=created.key)
    engine.rule("attachment-new-disk")
    record = disks.attach(engine, vm, attachment)
    return replies.accepted(engine, call, record, job)


def _check_vm(engine: Engine, vm: EngineRecord, action: str) -> None:
    vms.check_unlocked(engine, vm, action)
    if vm.entity.status not in _ATTACHABLE:
        engine.refuse("attachment-status", action=action)


def _check_boot(
    engine: Engine, vm: EngineRecord, attachment: Entity, action: str, but: str = ""
) -> None:
    if not attachment.bootable:
        return
    for row in vms.attachments(engine, vm):
        if row.entity.bootable and row.entity.id != but:
            disk = engine.records.get("disk", row.entity.id)
            alias = "" if disk is None else name_of(disk)
            engine.refuse("attachment-boot", action=action, alias=alias, vm=name_of(vm))


def _check_plug(engine: Engine, vm: EngineRecord, attachment: Entity) -> None:
    is_plugged = attachment.active and vm.entity.status == _Status.UP
    if is_plugged and engine.settings.has("hot-plug-fails", name_of(vm)):
        engine.refuse("attachment-plug-failed")


def update(engine: Engine, call: ApiCall, vm_key: str, key: str) -> ApiAnswer:
    """Change an attachment: plug, unplug, interface, and the size of its disk."""
    vm = engine.find("vm", vm_key)
    record = engine.find("disk_attachment", key, vm_key)
    change = calls.read(engine, call, "disk_attachment", "update")
    disk = engine.referred("disk", record.entity.disk)
    job = None
    if change.disk is not None:
        job = disks.alter(engine, call, disk, change.disk)
    members = {
        name: getattr(change, name)
        for name in ("active", "bootable", "interface", "pass_discard", "read_only")
        if getattr(change, name) is not None
    }
    if members:
        _check_vm(engine, vm, "edit")
    if change.active is not None and change.active != record.entity.active:
        disks.check(engine, disk, "hot plug")
        _check_plug(engine, vm, change)
    _check_boot(engine, vm, change, "edit", but=key)
    held = ""
    if members:
        boot = vm if change.bootable else None
        held = _operation(engine, call, "edit", disk, boot)
    engine.rule("attachment-changed")
    engine.change(record, **members)
    return dataclasses.replace(replies.shown(engine, call, record, job), job=held)


def remove(engine: Engine, call: ApiCall, vm_key: str, key: str) -> ApiAnswer:
    """Detach a disk; it is removed with detach_only=false."""
    vm = engine.find("vm", vm_key)
    record = engine.find("disk_attachment", key, vm_key)
    vms.check_unlocked(engine, vm, "detach")
    if vm.entity.status not in _DETACHABLE:
        engine.refuse("attachment-detach-status")
    disk = engine.referred("disk", record.entity.disk)
    disks.check(engine, disk, "detach")
    boot = vm if record.entity.bootable else None
    job = _operation(engine, call, "detach", disk, boot)
    engine.records.remove(record)
    engine.rule("attachment-detached")
    _note(engine, call, vm, disk, "detached from")
    if not call.flag("detach_only", default=True):
        engine.rule("attachment-disk-removed")
        disks.free(engine, disk)
    return ApiAnswer(job=job)


def _note(
    engine: Engine, call: ApiCall, vm: EngineRecord, disk: EngineRecord, verb: str
) -> None:
    text = f"Disk {name_of(disk)} was successfully {verb} VM {name_of(vm)}"
    engine.note(
        2000 if verb == "attached to" else 2018,
        f"{text} by {call.user}.",
        correlation_id=call.correlation_id,
        vm=vm.key,
        user=call.user,
    )

"""Disks: created, resized, removed. Source: 1.6 and 1.8 of the facts."""

from collections.abc import Mapping
from typing import Any

from ovirtsdk4 import types

from lib.lab.zvirt import calls, replies
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord, Entity

Status = types.DiskStatus
_LEAST = 1 << 20
_GIB = 1 << 30
_BLOCK = (types.StorageType.ISCSI, types.StorageType.FCP)
_RESIZABLE = (types.VmStatus.UP, types.VmStatus.PAUSED, types.VmStatus.DOWN)


def create(engine: Engine, call: ApiCall) -> ApiAnswer:
    """Create a disk of its own."""
    disk = calls.read(engine, call, "disk", "add")
    record, job = add(engine, call, disk)
    return replies.accepted(engine, call, record, job)


def add(
    engine: Engine, call: ApiCall, disk: Entity
) -> tuple[EngineRecord, EngineRecord]:
    """Start the creation of a disk; return it and its job.

    Raises:
        Refused: size, format, domain or ID do not fit.
    """
    if disk.provisioned_size < _LEAST:
        engine.refuse("disk-small")
    named = disk.storage_domains or [disk.storage_domain]
    if named[0] is None:
        engine.refuse("disk-no-domain")
    domain = engine.referred("storage_domain", named[0])
    if disk.id is not None:
        engine.check_id(disk.id)
        known = engine.records.get("disk", disk.id)
        if known is not None:
            return known, _refuse_id(engine, call)
    _check_format(engine, disk, domain)
    disk.alias = disk.name = disk.alias or disk.name or ""
    record = allocate(engine, disk, domain, "add")
    engine.rule("disk-created")
    title = f"Creating Virtual Disk {disk.alias}"
    job = engine.begin_job(title, call.correlation_id, [lock(record)])
    engine.later("disk-ready", record, job=job.key)
    engine.note(
        2020,
        f"Add-Disk operation of {disk.alias} was initiated by {call.user}.",
        correlation_id=call.correlation_id,
        user=call.user,
    )
    return record, job


def _refuse_id(engine: Engine, call: ApiCall) -> EngineRecord:
    """Refuse a disk whose ID exists, in one of two ways; return the failed job."""
    if not engine.settings.has("taken-id-fails-later"):
        engine.refuse("disk-id-taken")
    engine.rule("disk-id-taken-later")
    job = engine.begin_job("Creating Virtual Disk", call.correlation_id)
    engine.end_job(job.key, failed=True)
    return job


def _check_format(engine: Engine, disk: Entity, domain: EngineRecord) -> None:
    is_block = domain.entity.storage.type in _BLOCK
    if disk.sparse is None:
        disk.sparse = not is_block or disk.format == types.DiskFormat.COW
    is_cow = disk.format == types.DiskFormat.COW
    fits = is_cow == disk.sparse if is_block else not (is_cow and not disk.sparse)
    if not fits:
        allocation = "thin" if disk.sparse else "preallocated"
        engine.refuse(
            "disk-configuration",
            format=disk.format.value.upper(),
            allocation=allocation,
        )


def allocate(
    engine: Engine, disk: Entity, domain: EngineRecord, action: str
) -> EngineRecord:
    """Store a new, locked disk in a domain.

    Raises:
        Refused: the domain is not active, or has no room.
    """
    size = disk.provisioned_size
    check_quota(engine, domain, size, action)
    reserve(engine, domain, 0 if disk.sparse else size, action)
    disk.status = Status.LOCKED
    disk.storage_domains = [types.StorageDomain(id=domain.key)]
    disk.storage_domain = None
    disk.storage_type = types.DiskStorageType.IMAGE
    disk.content_type = disk.content_type or types.DiskContentType.DATA
    disk.actual_size = disk.total_size = 0 if disk.sparse else size
    disk.image_id = engine.new_id()
    for name in ("shareable", "wipe_after_delete", "propagate_errors"):
        setattr(disk, name, getattr(disk, name) or False)
    disk.backup = disk.backup or types.DiskBackup.NONE
    return engine.add("disk", disk)


def reserve(engine: Engine, domain: EngineRecord, size: int, action: str) -> None:
    """Take space of a domain.

    Raises:
        Refused: it is not active, or the space would be below its threshold.
    """
    status = domain.extra["status"]
    if status != "active":
        engine.refuse("disk-domain-status", action=action, status=status)
    entity = domain.entity
    threshold = (entity.critical_space_action_blocker or 0) * _GIB
    if entity.available - size < threshold:
        engine.refuse("disk-low-space", action=action, domain=entity.name)
    engine.change(domain, available=entity.available - size, used=entity.used + size)


def check_quota(engine: Engine, domain: EngineRecord, size: int, action: str) -> None:
    """Check that disks of a domain may grow by a size together.

    Raises:
        Refused: they may not.
    """
    limit = engine.settings.quota_gib(domain.entity.name)
    if limit is None:
        return
    used = sum(
        int(row.entity.provisioned_size)
        for row in engine.records.all("disk")
        if domain.key in [d.id for d in row.entity.storage_domains or ()]
    )
    if used + size > limit * _GIB:
        engine.refuse("disk-quota", action=action)


def lock(record: EngineRecord) -> str:
    """Return the lock of a disk."""
    return f"DISK/{record.key}"


def settle(engine: Engine, record: EngineRecord, failed: bool) -> None:
    """End the work on a disk: ok, or illegal."""
    if failed:
        engine.rule("disk-failed")
    engine.change(record, status=Status.ILLEGAL if failed else Status.OK)


def ready(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """End the creation or the growth of a disk; its job ends later."""
    settle(engine, record, fails)
    size = args.get("size")
    if size is not None and not fails:
        engine.change(record, provisioned_size=size)
    if fails:
        _note_failure(engine, record, args["job"], size)
        engine.end_job(args["job"], failed=True)
    else:
        engine.later("disk-job-ended", record, job=args["job"])


def _note_failure(
    engine: Engine, record: EngineRecord, job: str, size: int | None
) -> None:
    """Record why a disk was not created, or did not grow."""
    engine.rule("disk-event")
    alias = record.entity.alias
    code, text = 2022, f"Add-Disk operation of {alias} failed to complete."
    if size is not None:
        code, text = 2038, f"Failed to extend size of the disk '{alias}'."
    row = engine.records.get("job", job)
    engine.note(
        code,
        text,
        correlation_id="" if row is None else row.extra["correlation_id"],
        severity=types.LogSeverity.ERROR,
    )


def job_ended(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """End the job of a disk."""
    del record
    engine.end_job(args["job"], fails)


def check(engine: Engine, record: EngineRecord, action: str) -> None:
    """Check that nothing else is done with a disk.

    Raises:
        Refused: it is locked, illegal, or its last job has not ended.
    """
    disk = record.entity
    if disk.status == Status.LOCKED:
        engine.refuse("disk-locked", action=action, alias=disk.alias)
    if disk.status == Status.ILLEGAL and action != "remove":
        engine.refuse("disk-illegal", action=action)
    if engine.is_locked(lock(record)):
        engine.refuse("disk-related", action=action)


def update(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Change a disk; a larger size takes time."""
    record = engine.find("disk", key)
    job = alter(engine, call, record, calls.read(engine, call, "disk", "update"))
    return replies.shown(engine, call, record, job)


def alter(
    engine: Engine, call: ApiCall, record: EngineRecord, change: Entity
) -> EngineRecord | None:
    """Change what a request names of a disk; return the job of its growth."""
    check(engine, record, "edit")
    engine.rule("disk-updated")
    alias = change.alias or change.name
    members = {"alias": alias, "name": alias, "description": change.description}
    for name in ("wipe_after_delete", "shareable", "backup", "propagate_errors"):
        members[name] = getattr(change, name)
    engine.change(
        record, **{name: value for name, value in members.items() if value is not None}
    )
    return _grow(engine, call, record, change.provisioned_size)


def _grow(
    engine: Engine, call: ApiCall, record: EngineRecord, size: int | None
) -> EngineRecord | None:
    disk = record.entity
    if size is None:
        return None
    if size == disk.provisioned_size:
        engine.rule("disk-equal")
        return None
    if size < disk.provisioned_size:
        engine.refuse("disk-shrunk")
    for vm in users(engine, record):
        if vm.entity.status not in _RESIZABLE:
            engine.refuse("disk-resize-vm")
    domain = engine.referred("storage_domain", disk.storage_domains[0])
    check_quota(engine, domain, size - disk.provisioned_size, "extend")
    more = 0 if disk.sparse else size - disk.provisioned_size
    reserve(engine, domain, more, "extend")
    engine.rule("disk-resized")
    title = f"Extending Virtual Disk {disk.alias}"
    job = engine.begin_job(title, call.correlation_id, [lock(record)])
    engine.change(record, status=Status.LOCKED)
    engine.later("disk-ready", record, job=job.key, size=size)
    return job


def users(engine: Engine, record: EngineRecord) -> tuple[EngineRecord, ...]:
    """Return the VMs that a disk is attached to."""
    rows = (
        engine.records.get("vm", row.entity.vm.id)
        for row in engine.records.all("disk_attachment")
        if row.entity.id == record.key and row.entity.vm is not None
    )
    return tuple(row for row in rows if row is not None)


def remove(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Remove a disk, also from VMs that are down."""
    record = engine.find("disk", key)
    discard(engine, record)
    engine.rule("disk-removed")
    engine.note(
        2014,
        f"Disk {record.entity.alias} was successfully removed (User {call.user}).",
        correlation_id=call.correlation_id,
        user=call.user,
    )
    return ApiAnswer()


def discard(engine: Engine, record: EngineRecord) -> None:
    """Remove a disk unless it is in use.

    Raises:
        Refused: it is locked, or plugged into a VM that is not down.
    """
    check(engine, record, "remove")
    for row in tuple(engine.records.all("disk_attachment")):
        if row.entity.id != record.key:
            continue
        vm = row.entity.vm and engine.records.get("vm", row.entity.vm.id)
        is_down = vm is None or vm.entity.status == types.VmStatus.DOWN
        if row.entity.active and not is_down:
            engine.refuse("disk-plugged")
        engine.records.remove(row)
    free(engine, record)


def free(engine: Engine, record: EngineRecord) -> None:
    """Return the space of a disk to its domain, and delete its record."""
    disk = record.entity
    domain = engine.records.get("storage_domain", disk.storage_domains[0].id)
    size = 0 if disk.sparse else disk.provisioned_size
    if domain is not None and size:
        entity = domain.entity
        engine.change(
            domain, available=entity.available + size, used=entity.used - size
        )
    engine.records.remove(record)


def attach(engine: Engine, vm: EngineRecord, attachment: Entity) -> EngineRecord:
    """Store an attachment; its ID is that of the disk."""
    attachment.id = attachment.disk.id
    attachment.vm = types.Vm(id=vm.key)
    names = ("active", "bootable", "pass_discard", "read_only", "uses_scsi_reservation")
    for name in names:
        setattr(attachment, name, getattr(attachment, name) or False)
    return engine.add("disk_attachment", attachment, parent=vm.key)

"""Virtual machines: created, changed, started, stopped, removed. Source: 1.4, 1.8."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from ovirtsdk4 import types

from lib.lab.zvirt import calls, disks, kinds, replies
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord, Entity

Status = types.VmStatus
RUNNING = (
    Status.WAIT_FOR_LAUNCH,
    Status.POWERING_UP,
    Status.UP,
    Status.PAUSED,
    Status.POWERING_DOWN,
    Status.NOT_RESPONDING,
    Status.REBOOT_IN_PROGRESS,
    Status.MIGRATING,
)
_LINKED = 0.1
"""Part of the delay of a copy that a thin VM needs."""
MAXIMUM_MEMORY = 4


def create(engine: Engine, call: ApiCall) -> ApiAnswer:
    """Create a VM from a template."""
    vm = calls.read(engine, call, "vm", "add")
    cluster = engine.referred("cluster", vm.cluster)
    _check_name(engine, vm.name, cluster.key)
    template = engine.referred("template", vm.template)
    if template.entity.status != types.TemplateStatus.OK:
        engine.refuse("vm-template-locked", status=template.entity.status.value)
    is_clone = call.flag("clone")
    targets = _targets(engine, vm)
    _complete(engine, vm, template.entity, cluster.entity)
    if is_clone:
        engine.rule("vm-cloned")
        vm.template = types.Template(id=kinds.BLANK)
    else:
        engine.rule("vm-linked")
    record = engine.add("vm", vm, initialized=False, snapshots=0)
    copied = _copy_disks(engine, record, template, targets)
    if not copied:
        engine.rule("vm-created-empty")
        engine.change(record, status=Status.DOWN)
        return replies.created(engine, call, record)
    engine.rule("vm-created")
    names = [f"VM/{record.key}", *(f"DISK/{key}" for key in copied)]
    job = engine.begin_job(f"Creating VM {vm.name}", call.correlation_id, names)
    times = len(copied) if is_clone else len(copied) * _LINKED
    engine.later("vm-copied", record, times, job=job.key, disks=copied)
    engine.note(
        34,
        f"VM {vm.name} creation was initiated by {call.user}.",
        correlation_id=call.correlation_id,
        vm=record.key,
        user=call.user,
    )
    return replies.accepted(engine, call, record, job)


def _check_name(engine: Engine, name: str, cluster: str) -> None:
    """Check that no VM of the same data center has a name.

    Raises:
        Refused: one has it.
    """
    center = _data_center(engine, cluster)
    for row in engine.records.all("vm"):
        is_here = _data_center(engine, row.entity.cluster.id) == center
        if row.entity.name == name and is_here:
            engine.refuse("vm-name-taken")


def _data_center(engine: Engine, cluster: str) -> str:
    row = engine.records.get("cluster", cluster)
    return "" if row is None else str(row.entity.data_center.id)


def _complete(engine: Engine, vm: Entity, template: Entity, cluster: Entity) -> None:
    """Set what the engine computes of a new VM."""
    vm.id = None
    vm.cluster = types.Cluster(id=cluster.id)
    vm.template = types.Template(id=template.id)
    vm.original_template = types.Template(id=template.id)
    vm.status = Status.IMAGE_LOCKED
    vm.creation_time = engine.time
    vm.memory = vm.memory or template.memory
    vm.cpu = _cpu(vm.cpu, template.cpu)
    vm.memory_policy = _memory_policy(engine, "add", vm.memory_policy, vm.memory)
    vm.os = vm.os or types.OperatingSystem(type="other_linux")
    vm.type = vm.type or types.VmType.SERVER
    for name in ("stateless", "delete_protected", "start_paused", "run_once"):
        setattr(vm, name, getattr(vm, name) or False)
    vm.next_run_configuration_exists = False
    vm.disk_attachments = vm.tags = vm.permissions = None
    vm.bios = vm.bios or types.Bios(type=types.BiosType.Q35_SEA_BIOS)
    vm.origin = "ovirt"


def _cpu(cpu: Entity | None, usual: Entity) -> Entity:
    """Return the CPU of a VM with a complete topology."""
    cores = usual.topology if cpu is None or cpu.topology is None else cpu.topology
    topology = types.CpuTopology(
        cores=cores.cores or 1, sockets=cores.sockets or 1, threads=cores.threads or 1
    )
    result = types.Cpu(topology=topology)
    if cpu is not None:
        result.mode, result.cpu_tune = cpu.mode, cpu.cpu_tune
    return result


def _memory_policy(
    engine: Engine, action: str, policy: Entity | None, memory: int
) -> Entity:
    engine.rule("vm-memory")
    guaranteed = (policy and policy.guaranteed) or memory
    if guaranteed > memory:
        engine.refuse("vm-guaranteed-memory", action=action)
    maximum = (policy and policy.max) or memory * MAXIMUM_MEMORY
    is_ballooning = policy is None or policy.ballooning is not False
    return types.MemoryPolicy(
        guaranteed=guaranteed, max=maximum, ballooning=is_ballooning
    )


def _targets(engine: Engine, vm: Entity) -> Mapping[str, EngineRecord]:
    """Return the domains that a request names, by ID of the template's disk."""
    targets = {}
    for attachment in vm.disk_attachments or ():
        disk = attachment.disk
        if disk is not None and disk.id and disk.storage_domains:
            domain = engine.referred("storage_domain", disk.storage_domains[0])
            targets[disk.id] = domain
    return targets


def _copy_disks(
    engine: Engine,
    vm: EngineRecord,
    template: EngineRecord,
    targets: Mapping[str, EngineRecord],
) -> list[str]:
    copied: list[str] = []
    for row in engine.within("disk_attachment", template.key):
        original = engine.referred("disk", row.entity.disk)
        usual = types.StorageDomain(id=original.entity.storage_domains[0].id)
        domain = targets.get(original.key) or engine.referred("storage_domain", usual)
        disk = copy.copy(original.entity)
        disk.id = None
        disk.alias = disk.name = f"{vm.entity.name}_Disk{len(copied) + 1}"
        disk.image_id = engine.new_id()
        key = disks.allocate(engine, disk, domain, "add").key
        disks.attach(
            engine,
            vm,
            types.DiskAttachment(
                active=True,
                bootable=row.entity.bootable,
                interface=row.entity.interface,
                read_only=False,
                disk=types.Disk(id=key),
            ),
        )
        copied.append(key)
    return copied


def copied(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """End the copy of a VM's disks."""
    for key in args["disks"]:
        disk = engine.records.get("disk", key)
        if disk is not None:
            disks.settle(engine, disk, fails)
    if fails:
        # Source: 1.8: ImageIllegal has no public value.
        engine.rule("vm-image-illegal")
    engine.change(record, status=None if fails else Status.DOWN)
    engine.end_job(args["job"], fails)
    severity = types.LogSeverity.ERROR if fails else types.LogSeverity.NORMAL
    text = (
        "Failed to complete VM {} creation."
        if fails
        else "VM {} creation has been completed."
    )
    engine.note(
        60 if fails else 53,
        text.format(record.entity.name),
        severity=severity,
        vm=record.key,
    )


def update(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Change what a request names of a VM."""
    record = engine.find("vm", key)
    change = calls.read(engine, call, "vm", "update")
    vm = record.entity
    if change.name not in (None, vm.name):
        _check_name(engine, change.name, vm.cluster.id)
    members = {
        name.removeprefix("_"): value
        for name, value in vars(change).items()
        if value is not None
    }
    for name in ("id", "href", "cluster", "template", "permissions"):
        members.pop(name, None)
    _merge(engine, vm, members)
    engine.rule("vm-updated")
    if vm.status in RUNNING:
        members = _postpone(engine, record, members)
    engine.change(record, **members)
    return replies.shown(engine, call, record)


def _merge(engine: Engine, vm: Entity, members: dict[str, Any]) -> None:
    """Complete members of which a request names only parts."""
    if "cpu" in members:
        members["cpu"] = _cpu(members["cpu"], vm.cpu)
    if "memory" in members or "memory_policy" in members:
        members["memory_policy"] = _memory_policy(
            engine,
            "update",
            members.get("memory_policy", vm.memory_policy),
            members.get("memory", vm.memory),
        )


def _postpone(
    engine: Engine, record: EngineRecord, members: dict[str, Any]
) -> dict[str, Any]:
    """Keep memory and CPU for the next run; return the rest."""
    vm = record.entity
    next_run: dict[str, object] = {}
    memory, cpu = members.pop("memory", vm.memory), members.pop("cpu", vm.cpu)
    members.pop("memory_policy", None)
    if memory != vm.memory:
        next_run["memory"] = memory
    if _numbers(cpu) != _numbers(vm.cpu):
        next_run["cpu"] = _numbers(cpu)
    if next_run:
        engine.rule("vm-next-run")
        engine.records.change(record)
        record.extra["next_run"] = next_run
        members["next_run_configuration_exists"] = True
    return members


def _numbers(cpu: Entity) -> list[int]:
    topology = cpu.topology
    return [topology.cores, topology.sockets, topology.threads]


def note_run(
    engine: Engine, call: ApiCall, record: EngineRecord, code: int, text: str
) -> None:
    """Record an event of a VM that a request has caused. text: of VM and user."""
    engine.note(
        code,
        text.format(record.entity.name, call.user),
        correlation_id=call.correlation_id,
        vm=record.key,
        user=call.user,
    )


def check_unlocked(engine: Engine, record: EngineRecord, action: str) -> None:
    """Check that no copy is under way.

    Raises:
        Refused: the image of the VM is locked.
    """
    is_locked = engine.is_locked(f"VM/{record.key}")
    if is_locked or record.entity.status in (Status.IMAGE_LOCKED, None):
        engine.refuse("vm-locked", action=action)


def remove(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Remove a VM, with its disks unless they are detached."""
    record = engine.find("vm", key)
    vm = record.entity
    if vm.delete_protected:
        engine.refuse("vm-delete-protected")
    if vm.status == Status.SUSPENDED:
        engine.refuse("vm-remove-suspended")
    if vm.status not in (Status.DOWN, Status.IMAGE_LOCKED, Status.UNASSIGNED, None):
        engine.refuse("vm-remove-running")
    is_kept = call.flag("detach_only")
    if is_kept:
        _check_detach_only(engine, record)
    rows = tuple(attachments(engine, record))
    for row in rows:
        engine.records.remove(row)
        disk = engine.records.get("disk", row.entity.id)
        if disk is not None and not is_kept:
            disks.free(engine, disk)
    for kind in ("nic",):
        for inner in engine.within(kind, key):
            engine.records.remove(inner)
    engine.rule("vm-detach-only" if is_kept else "vm-removed")
    engine.records.remove(record)
    note_run(engine, call, record, 113, "VM {} was successfully removed by {}.")
    return ApiAnswer()


def _check_detach_only(engine: Engine, record: EngineRecord) -> None:
    if record.entity.template.id != kinds.BLANK:
        engine.refuse("vm-detach-only-template")
    if record.extra.get("snapshots"):
        engine.refuse("vm-detach-only-snapshots")


def attachments(engine: Engine, record: EngineRecord) -> Iterator[EngineRecord]:
    """Return the disk attachments of a VM."""
    return engine.within("disk_attachment", record.key)

"""Virtual machines: started, booted, stopped. Source: 1.4, 1.8 of the facts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ovirtsdk4 import types

from lib.lab.zvirt import calls, replies, scheduling, vms
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine, name_of
from lib.lab.zvirt.records import EngineRecord, Entity

_Status = types.VmStatus
_RUN = (
    "vm-launched",
    "vm-booted",
    "vm-booted-silent",
    "vm-agent",
    "vm-migrated",
    "vm-stopped",
)
"""Transitions that a stop forgets."""
_STOPPABLE = (*vms.RUNNING, _Status.SUSPENDED)


def start(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Start a VM."""
    record = engine.find("vm", key)
    action = calls.read(engine, call, "action", "start")
    vm = record.entity
    vms.check_unlocked(engine, record, "run")
    if vm.status not in (_Status.DOWN, _Status.SUSPENDED, _Status.PAUSED):
        engine.refuse("vm-start-running")
    chosen = (action.use_cloud_init, action.use_sysprep, action.use_ignition)
    if sum(map(bool, chosen)) > 1:
        engine.refuse("vm-initialization-mixed")
    if not any(row.entity.bootable for row in vms.attachments(engine, record)):
        engine.refuse("vm-no-boot-disk")
    host = scheduling.host_for(engine, record)
    held = _operation(engine, call, record, "run")
    engine.rule("vm-started")
    engine.change(
        record,
        status=_Status.WAIT_FOR_LAUNCH,
        host=types.Host(id=host.key),
        start_time=engine.time,
        run_once=action.vm is not None,
    )
    _initialize(engine, record, action)
    engine.later("vm-launched", record)
    vms.note_run(engine, call, record, 153, "VM {} was started by {}")
    answer = replies.done(engine, call, f"Launching VM {vm.name}")
    return dataclasses.replace(answer, job=held)


def _operation(engine: Engine, call: ApiCall, record: EngineRecord, action: str) -> str:
    """Hold the VM for as long as a request takes; disks may be attached."""
    locks = [f"VM_RUN/{record.key}"]
    return engine.begin_operation(action, call.correlation_id, locks, "VM")


def _initialize(engine: Engine, record: EngineRecord, action: Entity) -> None:
    """Decide whether the guest gets the VM's initialization in this run."""
    engine.rule("vm-first-run")
    is_first = not record.extra.get("initialized")
    has_some = record.entity.initialization is not None
    is_asked = bool(action.use_cloud_init or action.use_initialization)
    record.extra["applied"] = has_some and (is_first or is_asked)
    record.extra["initialized"] = True


def launched(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """Have a VM begin to boot."""
    del args
    if fails:
        _power_off(engine, record)
        return
    engine.change(record, status=_Status.POWERING_UP)
    is_silent = engine.settings.has("without-agent", name_of(record))
    engine.later("vm-booted-silent" if is_silent else "vm-booted", record)


def booted(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """Have a VM with guest agent be up."""
    del args, fails
    engine.change(record, status=_Status.UP)
    engine.later("vm-agent", record)


def booted_silent(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """Have a VM without guest agent be up."""
    del args, fails
    engine.change(record, status=_Status.UP)


def reported(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """Have the guest agent report its devices."""
    del args, fails
    record.extra["agent"] = True
    engine.change(record, fqdn=f"{record.entity.name}.example.com")


def migrate(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Move a running VM to another host."""
    record = engine.find("vm", key)
    action = calls.read(engine, call, "action", "migrate")
    vms.check_unlocked(engine, record, "migrate")
    if record.entity.status != _Status.UP:
        engine.refuse("vm-migrate-status")
    asked = action.host and engine.referred("host", action.host)
    host = asked or scheduling.host_for(engine, record, but=record.entity.host.id)
    held = _operation(engine, call, record, "migrate")
    engine.rule("vm-migrating")
    engine.change(record, status=_Status.MIGRATING)
    engine.later("vm-migrated", record, host=host.key)
    vms.note_run(engine, call, record, 62, "Migration of VM {} was initiated by {}.")
    answer = replies.done(engine, call, f"Migrating VM {record.entity.name}")
    return dataclasses.replace(answer, job=held)


def migrated(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """End a migration; a VM of which it failed stays where it is."""
    host = record.entity.host if fails else types.Host(id=args["host"])
    engine.change(record, status=_Status.UP, host=host)


def stop(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Power a VM off."""
    return _stop(engine, call, key, "stop")


def shutdown(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Ask the guest of a VM to shut down."""
    return _stop(engine, call, key, "shutdown")


def _stop(engine: Engine, call: ApiCall, key: str, action: str) -> ApiAnswer:
    record = engine.find("vm", key)
    calls.read(engine, call, "action", action)
    status = record.entity.status
    if status in (_Status.IMAGE_LOCKED, None):
        engine.refuse("vm-locked", action=action)
    if status not in _STOPPABLE:
        engine.refuse("vm-not-running", action=action)
    held = _operation(engine, call, record, action)
    engine.rule("vm-stopping")
    engine.cancel(record, *_RUN)
    is_ignored = action == "shutdown" and engine.settings.has(
        "ignore-shutdown", name_of(record)
    )
    engine.change(record, status=_Status.POWERING_DOWN)
    engine.later("vm-stopped", record, ignored=is_ignored)
    vms.note_run(engine, call, record, 33, "VM {} is being stopped by {}")
    answer = replies.done(engine, call, f"Stopping VM {record.entity.name}")
    return dataclasses.replace(answer, job=held)


def stopped(
    engine: Engine, record: EngineRecord, args: Mapping[str, Any], fails: bool
) -> None:
    """Have a VM be down, unless its guest ignores the request."""
    if args["ignored"] or fails:
        engine.rule("vm-shutdown-ignored")
        engine.change(record, status=_Status.UP)
        return
    _power_off(engine, record)


def _power_off(engine: Engine, record: EngineRecord) -> None:
    engine.change(
        record, status=_Status.DOWN, host=None, fqdn=None, stop_time=engine.time
    )
    record.extra["agent"] = False
    next_run = record.extra.pop("next_run", None)
    if next_run is None:
        return
    members: dict[str, object] = {"next_run_configuration_exists": False}
    if "memory" in next_run:
        memory = members["memory"] = next_run["memory"]
        members["memory_policy"] = types.MemoryPolicy(
            guaranteed=memory, max=memory * vms.MAXIMUM_MEMORY, ballooning=True
        )
    if "cpu" in next_run:
        cores, sockets, threads = next_run["cpu"]
        topology = types.CpuTopology(cores=cores, sockets=sockets, threads=threads)
        members["cpu"] = types.Cpu(topology=topology)
    engine.change(record, **members)

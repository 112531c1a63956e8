"""The plan for one machine: its VM and boot disk in the engine. Pure.

Rules: the VM is created first, with its ownership tag in the same request; only that
and its NICs must not be repeated after a lost response. It is started once an
observation shows that its disk and its NICs are as desired. Nothing is deleted as a
repair but an owned VM that has never started.
"""

import dataclasses
import datetime
from collections.abc import Collection, Iterator

from lib.cloud.machines import (
    ConditionState,
    Observed,
    Plan,
    Reason,
    Results,
    Target,
)
from lib.cloud.steps import Notice, NoticeType, Problem, Step, Verb, grouped
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances.addresses import AddressRules
from lib.cloud.zvirt.machines import (
    desired_vm,
    engine_vm,
    vm_deletion,
    vm_differences,
    vm_prerequisites,
    vm_states,
    vm_tags,
    vm_writes,
)
from lib.cloud.zvirt.machines.desired_vm import DesiredVm
from lib.cloud.zvirt.machines.engine_vm import (
    DOWN,
    ILLEGAL,
    UP,
    AttachedDisk,
    EngineVm,
)
from lib.cloud.zvirt.machines.vm_differences import GIB
from lib.cloud.zvirt.machines.vm_reasons import ZvirtMachineReason

POLL_S = 5.0
"""When a VM is observed again that is being copied, started or stopped."""
AGENT_S = 300.0
"""So long a guest agent is expected to start with its VM."""
SLOW_S = 60.0
"""When what a creation requires, or an address, is read again."""


@dataclasses.dataclass(frozen=True, slots=True)
class MachineRules:
    """What a user sets for all machines. tags: names of tags that VMs get."""

    tags: tuple[str, ...] = ()
    addresses: AddressRules = dataclasses.field(default_factory=AddressRules)


def plan(
    target: Target, observed: Observed, now: datetime.datetime, rules: MachineRules
) -> Plan:
    """See the protocol."""
    native = engine_vm.of(observed)
    desired = desired_vm.of(target.spec)
    if desired is None:
        return vm_deletion.plan(target, native, now)
    if native.vm is None:
        return _creation(native, desired)
    other = vm_deletion.other_owner(native, native.vm)
    if other:
        return _not_owned(native.vm, other)
    return _existing(native, native.vm, desired, rules, now)


def refused(problems: tuple[Problem, ...], retry_after_s: float | None = None) -> Plan:
    """Return the plan that only reports why there is none."""
    text = "; ".join(problem.message for problem in problems)
    state = ConditionState(False, problems[0].reason, text)
    results = vm_states.creating(state)
    return Plan(problems=problems, results=results, retry_after_s=retry_after_s)


def _not_owned(vm: Item, other: str) -> Plan:
    text = (
        f"VM {vm.entity.name} of the engine ({vm.id}): {other}; it is not changed: must"
        " be renamed or deleted, or the Machine must be replaced"
    )
    return refused((Problem(Reason.NOT_OWNED, text, is_fatal=True),))


# ---------------------------------------------------------------- creation


def _creation(native: EngineVm, desired: DesiredVm) -> Plan:
    if desired.is_recorded:
        text = (
            f"VM {desired.name} ({desired.vm_id}) is absent: it was deleted by another"
            " client, and is not recreated"
        )
        return refused((Problem(Reason.MISSING, text, is_fatal=True),))
    if native.named is not None:
        return _named(native, native.named)
    if desired.bootstrap is None or native.prerequisites is None:
        state = ConditionState(False, Reason.WAITING_FOR_BOOTSTRAP)
        return Plan(results=Results(state), settled=True)
    problems = vm_prerequisites.problems(desired, native.prerequisites)
    template = vm_prerequisites.template(native.prerequisites)
    disk = None if template is None else vm_prerequisites.boot_disk(template)
    if problems or template is None or disk is None:
        return refused(problems, SLOW_S)
    write = vm_writes.CreateVm(
        native.machine, desired, template.id, disk.id, desired.bootstrap
    )
    step = vm_writes.step(Verb.CREATE, desired.name, write, "there is none")
    return Plan((step,), results=vm_states.creating())


def _named(native: EngineVm, vm: Item) -> Plan:
    """Return the plan for a VM of the same name that has no tag of this machine.

    One that the reference has created for this cluster, and has not completed, gets it.
    """
    if not native.is_adoptable:
        return _not_owned(vm, "it has no ownership tag of this machine")
    machine = native.machine
    description = vm_tags.added(vm.entity.description, machine.cluster_id, machine.uid)
    write = vm_writes.TagVm(vm.id, description)
    why = "it was created for this machine by the reference"
    step = vm_writes.step(Verb.CHANGE, machine.name, write, why, "ownership tag")
    return Plan((step,), results=vm_states.creating(), object_id=vm.id)


# ---------------------------------------------------------------- an existing VM


def _existing(
    native: EngineVm,
    vm: Item,
    desired: DesiredVm,
    rules: MachineRules,
    now: datetime.datetime,
) -> Plan:
    differences = vm_differences.of(desired, native)
    results = vm_states.results(vm, desired, differences, rules.addresses)
    common = Plan(results=results, problems=differences, object_id=vm.id)
    if vm.status == ILLEGAL:
        return _failed_copy(native, vm, desired, common)
    if vm.status == DOWN:
        return _down(native, vm, desired, rules, common)
    if vm.status != UP:
        is_stuck = vm.status in vm_states.FAILED
        retry_s = SLOW_S if is_stuck else POLL_S
        return dataclasses.replace(common, retry_after_s=retry_s)
    steps = tuple(_tags(native, vm, rules.tags))
    if steps:
        return dataclasses.replace(common, steps=steps)
    if results.state is vm_states.NO_ADDRESS:
        retry_s = POLL_S if _is_fresh(vm, now) else SLOW_S
        return dataclasses.replace(common, retry_after_s=retry_s)
    return dataclasses.replace(common, settled=True)


def _is_fresh(vm: Item, now: datetime.datetime) -> bool:
    """Report whether the guest agent of a VM may be starting yet."""
    started = vm.entity.start_time
    if started is None:
        return False
    return bool((now - started.astimezone(datetime.UTC)).total_seconds() < AGENT_S)


def _failed_copy(native: EngineVm, vm: Item, desired: DesiredVm, common: Plan) -> Plan:
    """Replace a VM whose disk could not be copied, unless it may have run."""
    is_ours = engine_vm.is_tagged(native.machine, vm.entity.description)
    if desired.is_recorded or engine_vm.has_run(vm) or not is_ours:
        return dataclasses.replace(common, retry_after_s=SLOW_S)
    disk = engine_vm.boot_disk(native)
    write = vm_writes.RemoveVm(vm.id, disk.id if disk else "", with_disks=True)
    why = "the copy of its disk has failed, and it has never started"
    step = vm_writes.step(Verb.DELETE, desired.name, write, why)
    state = common.results.state
    problem = Problem(state.reason, state.message)
    return dataclasses.replace(
        common, steps=(step,), backs_off=True, problems=(problem,)
    )


def _down(
    native: EngineVm,
    vm: Item,
    desired: DesiredVm,
    rules: MachineRules,
    common: Plan,
) -> Plan:
    """Complete a new VM and start it; start one again that had run."""
    start = vm_writes.step(
        Verb.CHANGE, desired.name, vm_writes.StartVm(vm.id), "it is down"
    )
    start = dataclasses.replace(start, group="start")
    if engine_vm.has_run(vm):
        text = f"VM {desired.name} was down, and is started again"
        notice = Notice(NoticeType.WARNING, ZvirtMachineReason.RESTARTED, text)
        return dataclasses.replace(
            common, steps=(start,), backs_off=True, notices=(notice,)
        )
    disk = engine_vm.boot_disk(native)
    if disk is None:
        text = (
            f"VM {desired.name} ({vm.id}): which of its disks is the boot disk is not"
            " certain: must have one bootable disk without another owner"
        )
        problem = Problem(ZvirtMachineReason.BOOT_DISK, text)
        state = ConditionState(False, problem.reason, text)
        results = dataclasses.replace(common.results, state=state)
        return dataclasses.replace(
            common, results=results, problems=(problem,), retry_after_s=SLOW_S
        )
    if disk.status == "locked":  # its size and tag are being changed
        return dataclasses.replace(common, retry_after_s=POLL_S)
    parts = tuple(grouped("parts", _parts(native, vm, disk, desired)))
    tags = tuple(_tags(native, vm, rules.tags))
    last = () if parts else (start,)
    return dataclasses.replace(common, steps=(*parts, *tags, *last))


def _parts(
    native: EngineVm, vm: Item, disk: AttachedDisk, desired: DesiredVm
) -> Iterator[Step]:
    """Yield what a VM lacks before it may be started."""
    size = desired.disk_gib * GIB
    prepared = vm_deletion.prepared(native, disk, max(size, disk.size))
    if prepared is not None:
        yield prepared
    has = {nic.name for nic in vm.entity.nics or ()}
    for nic in desired.nics:
        if nic.name not in has:
            write = vm_writes.AddNic(vm.id, nic)
            part = f"NIC {nic.name}"
            why = "there is none"
            yield vm_writes.step(Verb.CREATE, desired.name, write, why, part)


def _tags(native: EngineVm, vm: Item, names: Collection[str]) -> Iterator[Step]:
    """Yield the tags that a VM of this project lacks; a start waits for none."""
    machine = native.machine
    if not engine_vm.is_tagged(machine, vm.entity.description):
        return
    assigned = engine_vm.tag_names(vm)
    for name in names:
        if name in assigned:
            continue
        steps: list[Step] = []
        if name not in native.tags:
            create = vm_writes.CreateTag(name)
            steps.append(
                vm_writes.step(
                    Verb.CREATE, machine.name, create, "there is none", f"tag {name}"
                )
            )
        assign = vm_writes.AssignTag(vm.id, name)
        why = "it is not assigned"
        steps.append(
            vm_writes.step(Verb.CHANGE, machine.name, assign, why, f"tag {name}")
        )
        yield from grouped(f"tag {name}", steps)

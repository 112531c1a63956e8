"""The plan for one machine: its VM, disks and Secret in the parent. Pure.

Rules: the VM is created first. Its name is the lock on all other names, and what is
created for it names it as owner, so that the parent deletes what is left of it. Hence
the creation of the VM alone must not be repeated after a lost response. Objects of the
reference get our labels, the VM last: a VM with our labels once had all its parts.
"""

import dataclasses
import datetime
from collections.abc import Iterator

from lib.cloud.dvp import kinds
from lib.cloud.dvp.kinds import VirtualMachine
from lib.cloud.dvp.machines import (
    desired_machine,
    differences_of_machine,
    machine_deletion,
    machine_documents,
    machine_names,
    machine_ownership,
    machine_states,
    machine_writes,
    observed_machine,
    prerequisites,
)
from lib.cloud.dvp.machines.desired_machine import DesiredMachine
from lib.cloud.dvp.machines.machine_writes import AnyKind, MachineWrite
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.explained import FieldChange
from lib.cloud.machines import (
    Bootstrap,
    ConditionState,
    Observed,
    Plan,
    Reason,
    Results,
    Target,
)
from lib.cloud.steps import Problem, Step, Verb, grouped

POLL_S = 30.0
"""When a VM is observed again that is not complete; no request is sent, and the watch
reports a change before."""
_VMS = kinds.VIRTUAL_MACHINES
_FINAL = ("Running", "Stopped", "Degraded", "Pause")

Json = dict[str, object]


def plan(target: Target, observed: Observed, now: datetime.datetime) -> Plan:
    """See the protocol."""
    native = observed_machine.of(observed)
    desired = desired_machine.of(target.spec)
    if desired is None:
        return machine_deletion.plan(target, native, now)
    is_unowned = any(kind is _VMS for kind, _, _ in _unowned(native))
    if is_unowned or observed_machine.is_new(native, desired):
        refusals = tuple(_refusals(native))
        if refusals:
            return refused(refusals)
    native = _without_unowned(native)
    if native.vm is None:
        return _creation(native, desired)
    if native.vm.metadata.deletion_timestamp is not None:
        return _ending(native.vm, desired)
    return _existing(native, native.vm, desired, now)


def refused(problems: tuple[Problem, ...], results: Results | None = None) -> Plan:
    """Return the plan that only reports why there is none."""
    text = "; ".join(problem.message for problem in problems)
    state = ConditionState(False, problems[0].reason, text)
    shown = dataclasses.replace(results or machine_states.creating(), state=state)
    return Plan(problems=problems, results=shown)


# ---------------------------------------------------------------- ownership


def _unowned(native: ParentMachine) -> Iterator[tuple[AnyKind, str, str]]:
    """Yield kind, name and other owner of each object that is not the machine's."""
    for kind, about in machine_writes.objects(native):
        owner = machine_ownership.other_owner(native.machine, about)
        if owner:
            yield kind, about.name, owner


def _refusals(native: ParentMachine) -> Iterator[Problem]:
    for kind, name, owner in _unowned(native):
        text = (
            f"{kind.resource.kind} {name} of the parent: {owner}; it is not changed:"
            " must be deleted, or the machine must get another name"
        )
        yield Problem(Reason.NOT_OWNED, text, is_fatal=True)


def _without_unowned(native: ParentMachine) -> ParentMachine:
    """Drop objects that are owned by others."""
    unowned = {(kind.resource.kind, name) for kind, name, _ in _unowned(native)}
    if not unowned:
        return native
    disk, secret = kinds.VIRTUAL_DISKS.resource.kind, native.secret
    is_kept = (
        secret is not None
        and (kinds.SECRETS.resource.kind, secret.metadata.name) not in unowned
    )
    disks = {n: row for n, row in native.disks.items() if (disk, n) not in unowned}
    return dataclasses.replace(native, disks=disks, secret=secret if is_kept else None)


# ---------------------------------------------------------------- creation


def _creation(native: ParentMachine, desired: DesiredMachine) -> Plan:
    if desired.is_recorded:
        text = (
            f"VirtualMachine {desired.name} is absent: it was deleted by another"
            " client, and is not recreated"
        )
        return refused((Problem(Reason.MISSING, text, is_fatal=True),))
    if desired.bootstrap is None:
        state = ConditionState(False, Reason.WAITING_FOR_BOOTSTRAP)
        return Plan(results=Results(state), settled=True)
    ending = [
        about.name
        for _, about in machine_writes.objects(native)
        if about.deletion_timestamp is not None
    ]
    if ending:
        text = f"objects of its names are being deleted: {', '.join(ending)}"
        state = ConditionState(None, Reason.NOT_READY, text)
        return Plan(results=Results(state), retry_after_s=POLL_S)
    available = native.prerequisites or observed_machine.Prerequisites()
    problems = prerequisites.problems(desired, _missing(native, desired), available)
    if problems:
        return refused(problems)
    document = machine_documents.virtual_machine(native.machine, desired)
    write = MachineWrite(kinds.VIRTUAL_MACHINES, desired.name, document=document)
    step = machine_writes.step(Verb.CREATE, write, "there is none")
    step = dataclasses.replace(step, is_repeatable=False)
    return Plan((step,), results=machine_states.creating())


def _missing(
    native: ParentMachine, desired: DesiredMachine
) -> tuple[desired_machine.DesiredDisk, ...]:
    names = observed_machine.missing_disks(native, desired)
    return tuple(disk for disk in desired.disks if disk.name in names)


def _ending(vm: VirtualMachine, desired: DesiredMachine) -> Plan:
    """Return the plan for a VM that is being deleted by others: wait, then see."""
    text = f"VirtualMachine {vm.metadata.name} is being deleted by another client"
    is_true = False if desired.is_recorded else None
    reason = Reason.MISSING if desired.is_recorded else Reason.NOT_READY
    results = Results(ConditionState(is_true, reason, text))
    return Plan(results=results, retry_after_s=POLL_S)


# ---------------------------------------------------------------- an existing VM


def _existing(
    native: ParentMachine,
    vm: VirtualMachine,
    desired: DesiredMachine,
    now: datetime.datetime,
) -> Plan:
    differences = differences_of_machine.of(desired, native)
    results = machine_states.results(native, vm, desired, differences, now)
    problems = tuple(difference.problem for difference in differences)
    if not observed_machine.is_new(native, desired):
        steps = (*_adoptions(native), *_in_place(desired, vm))
        return _finished(steps, vm, results, problems)
    disks = _missing(native, desired)
    available = native.prerequisites or observed_machine.Prerequisites()
    fatal = prerequisites.problems(desired, disks, available) if disks else ()
    if fatal:
        return refused((*fatal, *problems), results)
    if native.secret is None and desired.bootstrap is None:
        state = ConditionState(False, Reason.WAITING_FOR_BOOTSTRAP)
        waiting = dataclasses.replace(results, state=state)
        return Plan(results=waiting, retry_after_s=POLL_S, problems=problems)
    # None is of use without the others, and a quota refuses them all.
    parts = tuple(grouped("parts", _parts(native, vm, desired)))
    steps = (*parts, *_adoptions(native), *_in_place(desired, vm))
    return _finished(steps, vm, results, problems)


def _finished(
    steps: tuple[Step, ...],
    vm: VirtualMachine,
    results: Results,
    problems: tuple[Problem, ...],
) -> Plan:
    # A final phase is not enough: the state must be reported as well, True or False.
    is_complete = vm.status.phase in _FINAL and results.state.is_true is not None
    # A paused VM is not polled: the watch shows when it is resumed.
    is_complete |= vm.status.phase == "Pause"
    return Plan(
        steps,
        settled=not steps and is_complete,
        retry_after_s=None if steps or is_complete else POLL_S,
        problems=problems,
        results=results,
    )


def _parts(
    native: ParentMachine, vm: VirtualMachine, desired: DesiredMachine
) -> Iterator[Step]:
    """Yield the creation of what a VM lacks that has never run."""
    machine, why = native.machine, "there is none"
    if native.secret is None and desired.bootstrap is not None:
        yield machine_writes.step(
            Verb.CREATE, _secret(native, vm, desired.bootstrap), why
        )
    for disk in _missing(native, desired):
        is_boot = disk.name == machine_names.boot_disk(desired.name)
        image = desired.image if is_boot else None
        document = machine_documents.disk(machine, vm, disk, image)
        write = MachineWrite(kinds.VIRTUAL_DISKS, disk.name, document=document)
        yield machine_writes.step(Verb.CREATE, write, why)


def _secret(
    native: ParentMachine, vm: VirtualMachine, bootstrap: Bootstrap
) -> MachineWrite:
    name = machine_names.secret(vm.metadata.name)
    document = machine_documents.secret(native.machine, vm)
    return MachineWrite(kinds.SECRETS, name, document=document, bootstrap=bootstrap)


def _adoptions(native: ParentMachine) -> Iterator[Step]:
    """Yield the patches that add our labels, that of the VM last, after all others."""
    rows = machine_writes.objects(native)
    for kind, about in sorted(rows, key=lambda row: row[0] is _VMS):
        is_ending = about.deletion_timestamp is not None
        if is_ending or machine_ownership.is_owned(native.machine, about):
            continue
        document = machine_documents.adoption(native.machine, about.uid)
        write = MachineWrite(kind, about.name, about.uid, document)
        step = machine_writes.step(Verb.CHANGE, write, "it lacks our labels")
        yield dataclasses.replace(step, group="") if kind is _VMS else step


def _in_place(desired: DesiredMachine, vm: VirtualMachine) -> Iterator[Step]:
    changes = differences_of_machine.in_place(desired, vm)
    if changes:
        spec = {change.field.removeprefix("spec."): change.new for change in changes}
        name, uid = vm.metadata.name, vm.metadata.uid
        document: Json = {"metadata": {"uid": uid}, "spec": spec}
        write = MachineWrite(kinds.VIRTUAL_MACHINES, name, uid, document, changes)
        why = ", ".join(_described(change) for change in changes)
        yield machine_writes.step(Verb.CHANGE, write, why)


def _described(change: FieldChange) -> str:
    return f'{change.field} is "{change.old}", desired is "{change.new}"'

"""What conditions and addresses show of a VM and its parts. Pure.

Messages are the same as long as a creation proceeds: each change is a write.

Source: deckhouse/virtualization api/core/v1alpha2 (phases, conditions and reasons).
"""

import datetime
from collections.abc import Collection, Iterator

from lib.cloud.dvp import disk_reasons
from lib.cloud.dvp.kinds import VirtualDisk, VirtualMachine
from lib.cloud.dvp.machines import machine_names, observed_machine
from lib.cloud.dvp.machines.desired_machine import DesiredMachine
from lib.cloud.dvp.machines.differences_of_machine import MachineDifference
from lib.cloud.dvp.machines.machine_reasons import (
    PARTS_READY,
    SPEC_APPLIED,
    DvpMachineReason,
)
from lib.cloud.dvp.machines.observed_machine import ALIVE, NEW, ParentMachine
from lib.cloud.machines import ConditionState, Reason, Results
from lib.cloud.model import Address, AddressType
from lib.cloud.steps import CommonReason, Problem, ProblemReason

LATE_S = 60.0
"""From this age on, what a VM waits for is shown."""
CREATING = ConditionState(None, Reason.NOT_READY, "the VM is being created or started")
STARTING = (*NEW, "Starting")
WAITS = frozenset(
    {
        "ImagePullFailed",
        "DatasourceIsNotReady",
        "DatasourceIsNotFound",
        "StorageClassIsNotReady",
        "ProvisioningFailed",
        "QuotaExceeded",
    }
)
"""Reasons of Ready=False of a disk that waits for others, or is tried again."""
_QUOTA = "QuotaExceeded"
_OF_DISKS = ("BlockDevicesReady", "Running")
"""Conditions of a VM that are false as long as one of its disks is not ready."""
_USABLE = ("Ready", "WaitForFirstConsumer", "Resizing", "Migrating")
"""Phases of a disk for which no VM waits."""
_PERCENT_STEP = 10
"""Progress is shown in such steps, so that an import costs few writes."""
_AT_ONCE = ("SizingPolicyMatched", "VirtualMachineClassReady")
"""Conditions of a VM that do not become true by themselves."""

Trouble = tuple[ProblemReason, str]


def results(
    native: ParentMachine,
    vm: VirtualMachine,
    desired: DesiredMachine,
    differences: tuple[MachineDifference, ...],
    now: datetime.datetime,
) -> Results:
    """Return what is shown of an existing VM."""
    troubles = tuple(_of_disks(native))
    state = _state(native, vm, troubles, now)
    is_provisioned = _is_provisioned(vm, desired)
    return Results(
        state,
        is_provisioned=is_provisioned,
        provider_id=machine_names.provider_id(vm.metadata.name),
        addresses=_addresses(vm) if is_provisioned else (),
        failure_domain=(vm.spec.node_selector or {}).get(machine_names.ZONE, ""),
        failure=None if is_provisioned else _failure(troubles),
        conditions=_conditions(native, desired, troubles, differences, is_provisioned),
    )


def creating() -> Results:
    """Return what is shown as long as there is no VM."""
    return Results(CREATING, conditions=_pending())


def _pending() -> tuple[tuple[str, ConditionState], ...]:
    unknown = ConditionState(None, Reason.NOT_READY)
    return ((PARTS_READY, unknown), (SPEC_APPLIED, unknown))


def _is_provisioned(vm: VirtualMachine, desired: DesiredMachine) -> bool:
    """Report whether the VM has become usable, now or earlier.

    A stopped one has run, unless its policy kept it from starting.
    """
    phase, status = vm.status.phase, vm.status
    if not status.ip_address:
        return False
    if phase == "Stopped":
        held = vm.spec.run_policy in ("AlwaysOff", "Manual")
        return desired.is_recorded or not held
    return phase in ALIVE


def _addresses(vm: VirtualMachine) -> tuple[Address, ...]:
    """Return the addresses as the reference has them."""
    name, ip = vm.metadata.name, vm.status.ip_address
    return (
        Address(AddressType.HOSTNAME, name),
        Address(AddressType.INTERNAL_DNS, name),
        Address(AddressType.INTERNAL_IP, ip),
        Address(AddressType.EXTERNAL_IP, ip),
    )


# ---------------------------------------------------------------- the VM


def _state(
    native: ParentMachine,
    vm: VirtualMachine,
    troubles: tuple[Trouble, ...],
    now: datetime.datetime,
) -> ConditionState:
    phase = vm.status.phase
    if phase == "Running" and vm.status.ip_address:
        return ConditionState(True, Reason.RUNNING)
    if phase in STARTING:
        return _starting(native, vm, troubles, now)
    fixed = {
        "Running": (None, Reason.NOT_READY, "the VM has no address yet"),
        "Migrating": (
            None,
            Reason.NOT_READY,
            "the VM is being migrated to another node of the parent",
        ),
        "Stopped": (False, Reason.STOPPED, _stopped(vm)),
        "Degraded": (False, Reason.FAILED, _with_conditions("the VM is Degraded", vm)),
    }
    usual = (None, Reason.NOT_READY, f'the VM is in phase "{phase}"')
    return ConditionState(*fixed.get(phase, usual))


def _stopped(vm: VirtualMachine) -> str:
    policy = vm.spec.run_policy
    return f"the VM is stopped; its runPolicy is {policy}" if policy else "stopped"


def _starting(
    native: ParentMachine,
    vm: VirtualMachine,
    troubles: tuple[Trouble, ...],
    now: datetime.datetime,
) -> ConditionState:
    """Return why a VM does not start; nothing special as long as it may.

    An import of an image takes many minutes, in which the VM only waits for its disks.
    """
    if troubles:
        return ConditionState(False, troubles[0][0], _joined(troubles))
    created = vm.metadata.creation_timestamp
    is_late = created is not None and (now - created).total_seconds() >= LATE_S
    waits = tuple(_unready_disks(native)) if is_late else ()
    ignored = _OF_DISKS if waits else ()
    unmet = tuple(_unmet(vm, ignored, is_late=is_late))
    if unmet:
        return ConditionState(False, DvpMachineReason.BLOCKED, "; ".join(unmet))
    if not waits:
        return CREATING
    text = f"the VM waits for its disks: {', '.join(waits)}"
    return ConditionState(None, Reason.NOT_READY, text)


def _unready_disks(native: ParentMachine) -> Iterator[str]:
    """Yield the disks that are being provisioned, with the progress of each."""
    for name, disk in sorted(native.disks.items()):
        phase = disk.status.phase
        if phase not in _USABLE:
            yield " ".join(filter(None, (name, phase, _progress(disk))))


def _progress(disk: VirtualDisk) -> str:
    """Return the rounded progress; empty where the parent shows none."""
    text = disk.status.progress.removesuffix("%")
    try:
        percent = float(text)
    except ValueError:
        return ""
    return f"{percent // _PERCENT_STEP * _PERCENT_STEP:.0f}%"


def _unmet(
    vm: VirtualMachine, ignored: Collection[str], *, is_late: bool
) -> Iterator[str]:
    for row in vm.status.conditions or ():
        is_due = is_late or row.type in _AT_ONCE
        is_false = row.status == "False" and row.message
        if is_false and is_due and row.type not in ignored:
            yield f"{row.type}: {row.reason}: {row.message}"


def _with_conditions(text: str, vm: VirtualMachine) -> str:
    rows = [
        f"{row.type}: {row.reason}: {row.message}"
        for row in vm.status.conditions or ()
        if row.status == "False" and row.message
    ]
    return "; ".join((text, *rows))


# ---------------------------------------------------------------- its parts


def _of_disks(native: ParentMachine) -> Iterator[Trouble]:
    """Yield what is wrong with each disk, failed ones first."""
    troubles = [
        trouble
        for name in sorted(native.disks)
        if (trouble := _of_disk(native.disks[name])) is not None
    ]
    is_failed = DvpMachineReason.DISK_FAILED
    yield from sorted(troubles, key=lambda trouble: trouble[0] is not is_failed)


def _of_disk(disk: VirtualDisk) -> Trouble | None:
    """Return what is wrong with a disk. Its reason decides, and then its phase."""
    ready = observed_machine.condition(disk.status.conditions, "Ready")
    row = ready if ready is not None and ready.status == "False" else None
    reason, phase = row.reason if row is not None else "", disk.status.phase
    message = f": {row.message}" if row is not None and row.message else ""
    text = f"VirtualDisk {disk.metadata.name}: {reason or phase}{message}"
    if reason in disk_reasons.FINAL or phase in disk_reasons.FINAL:
        return DvpMachineReason.DISK_FAILED, text
    if reason == _QUOTA:
        return DvpMachineReason.QUOTA, text
    is_waiting = phase == "Failed" and reason not in disk_reasons.PROCEEDS
    if reason in WAITS or is_waiting:
        return DvpMachineReason.DISK_NOT_READY, text
    return None


def _joined(troubles: tuple[Trouble, ...]) -> str:
    return "; ".join(text for _, text in troubles)


def _failure(troubles: tuple[Trouble, ...]) -> Problem | None:
    """Return a failure of a machine that never ran and that only another one helps."""
    for reason, text in troubles:
        if reason is DvpMachineReason.DISK_FAILED:
            return Problem(reason, text)
    return None


def missing(native: ParentMachine, desired: DesiredMachine) -> tuple[str, ...]:
    """Return kind and name of each part that is missing, the Secret first."""
    secret = machine_names.secret(desired.name)
    parts = () if native.secret is not None else (f"Secret {secret}",)
    disks = observed_machine.missing_disks(native, desired)
    return (*parts, *(f"VirtualDisk {name}" for name in disks))


def _conditions(
    native: ParentMachine,
    desired: DesiredMachine,
    troubles: tuple[Trouble, ...],
    differences: tuple[MachineDifference, ...],
    is_provisioned: bool,
) -> tuple[tuple[str, ConditionState], ...]:
    parts, applied = (state for _, state in _pending())
    absent = missing(native, desired)
    if is_provisioned:
        parts = ConditionState(True, DvpMachineReason.PARTS_READY)
        applied = ConditionState(True, DvpMachineReason.SPEC_APPLIED)
    if troubles:
        parts = ConditionState(False, troubles[0][0], _joined(troubles))
    elif absent and not observed_machine.is_new(native, desired):
        text = f"missing, and not recreated: {', '.join(absent)}"
        parts = ConditionState(False, DvpMachineReason.PART_MISSING, text)
    if differences:
        text = "; ".join(row.problem.message for row in differences)
        applied = ConditionState(False, CommonReason.IMMUTABLE, text)
    return ((PARTS_READY, parts), (SPEC_APPLIED, applied))

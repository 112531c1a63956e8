"""What conditions and addresses show of a VM. Pure.

Messages are the same as long as a creation proceeds: each change is a write.

Source: ovirt-engine-api-model, VmStatus; deckhouse capz-controller-manager (which
statuses are failures).
"""

from collections.abc import Mapping

from lib.cloud import provider_id
from lib.cloud.machines import ConditionState, Reason, Results
from lib.cloud.model import Address, AddressType
from lib.cloud.steps import CommonReason, Problem
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import addresses
from lib.cloud.zvirt.machines.desired_vm import DesiredVm
from lib.cloud.zvirt.machines.engine_vm import DOWN, ILLEGAL, UP, has_run
from lib.cloud.zvirt.machines.vm_reasons import SPEC_APPLIED, ZvirtMachineReason

CREATING = ConditionState(None, Reason.NOT_READY, "the VM is being created or started")
NO_ADDRESS = ConditionState(
    True,
    ZvirtMachineReason.NO_ADDRESS,
    "the VM is up, and its guest agent has reported no address that counts",
)
FAILED = (
    "paused",
    "suspended",
    "saving_state",
    "not_responding",
    "unassigned",
    "unknown",
)
"""Statuses of a VM that does not serve its Node, and of which nothing is repaired."""
_TEXTS: Mapping[str, str] = {
    "migrating": "the VM is being migrated to another host",
    "powering_down": "the VM is being powered off",
    "reboot_in_progress": "the VM is rebooting",
    "restoring_state": "the VM is being resumed",
}


def results(
    vm: Item,
    desired: DesiredVm,
    differences: tuple[Problem, ...],
    rules: addresses.AddressRules,
) -> Results:
    """Return what is shown of an existing VM."""
    shown = _addresses(vm, desired, rules)
    return Results(
        _state(vm, has_address=len(shown) > len(_NAMES)),
        is_provisioned=vm.status == UP or desired.is_recorded,
        provider_id=provider_id.zvirt(vm.id),
        addresses=shown,
        conditions=_conditions(vm, differences),
    )


def creating(state: ConditionState = CREATING) -> Results:
    """Return what is shown as long as there is no VM."""
    unknown = ConditionState(None, Reason.NOT_READY)
    return Results(state, conditions=((SPEC_APPLIED, unknown),))


_NAMES = (AddressType.HOSTNAME, AddressType.INTERNAL_DNS)
"""Types of the addresses that are the name of the Machine: kubelet requests its
certificate with it."""


def _addresses(
    vm: Item, desired: DesiredVm, rules: addresses.AddressRules
) -> tuple[Address, ...]:
    """Return names and addresses; those by the code and in the order of Nodes."""
    if vm.status != UP:
        return ()
    ips = tuple(
        address
        for address in addresses.of_vm(vm.entity, rules)
        if address.type is not AddressType.HOSTNAME
    )
    return (*(Address(type_, desired.name) for type_ in _NAMES), *ips)


def _state(vm: Item, *, has_address: bool) -> ConditionState:
    status = vm.status
    if status == UP:
        return ConditionState(True, Reason.RUNNING) if has_address else NO_ADDRESS
    if status == ILLEGAL:
        text = "the engine reports no status: the copy of the disk has failed"
        return ConditionState(False, ZvirtMachineReason.CLONE_FAILED, text)
    if status in FAILED:
        text = f"the VM is {status}"
        return ConditionState(False, Reason.FAILED, text)
    if status == DOWN and has_run(vm):
        return ConditionState(False, Reason.STOPPED, "the VM is down")
    text = _TEXTS.get(status, CREATING.message)
    return ConditionState(None, Reason.NOT_READY, text)


def _conditions(
    vm: Item, differences: tuple[Problem, ...]
) -> tuple[tuple[str, ConditionState], ...]:
    applied = ConditionState(None, Reason.NOT_READY)
    if differences:
        text = "; ".join(problem.message for problem in differences)
        applied = ConditionState(False, CommonReason.IMMUTABLE, text)
    elif has_run(vm):
        applied = ConditionState(True, ZvirtMachineReason.SPEC_APPLIED)
    return ((SPEC_APPLIED, applied),)

"""The machines of one cluster in an engine: entry point of this package."""

import datetime
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.machines import (
    Facts,
    Observation,
    Observed,
    Owned,
    Plan,
    Problems,
    ReadBootstrap,
    Reason,
    Ref,
    Spec,
    Target,
)
from lib.cloud.model import Unknown
from lib.cloud.steps import Asked, Gate, GateState, Problem, Step, StepResult
from lib.cloud.zvirt import client, home
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.machines import (
    desired_vm,
    engine_vm,
    vm_deletion,
    vm_plan,
    vm_reader,
    vm_sender,
    vm_tags,
    vm_writes,
)
from lib.cloud.zvirt.machines.engine_vm import VmIdentity
from lib.cloud.zvirt.machines.vm_plan import MachineRules
from lib.cloud.zvirt.machines.vm_reasons import SPEC_APPLIED, ZvirtMachineReason
from lib.process import config

BOOTSTRAP_BYTES_MAX = 2**20
"""Source: k8s.io/api/core/v1, MaxSecretSize; the engine's column has no limit."""
POLL_S = 2.0
STOP_S = 60.0
"""So long a VM that is powered off may need; then it is observed, and asked again."""
_CLOSED = frozenset(
    {
        "image_locked",
        "wait_for_launch",
        "powering_up",
        "powering_down",
        "reboot_in_progress",
        "saving_state",
        "restoring_state",
        "migrating",
    }
)
"""Statuses that end by themselves."""


class ZvirtMachines:
    """Implements `Machines` and `MachineClusters`."""

    bootstrap_bytes_max = BOOTSTRAP_BYTES_MAX
    conditions = (SPEC_APPLIED,)

    def __init__(
        self,
        access: client.EngineClient,
        place: home.EngineHome,
        read_bootstrap: ReadBootstrap,
        rules: MachineRules | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """read_bootstrap: called in `apply` alone. clock: the one of the client."""
        self._rules = rules or MachineRules()
        self._clock = clock
        self._reader = vm_reader.VmReader(access, place, clock)
        self._sender = vm_sender.VmSender(access, read_bootstrap)

    @property
    def reasons(self) -> tuple[ZvirtMachineReason, ...]:
        """See the protocol."""
        return tuple(ZvirtMachineReason)

    def refer(self, facts: Facts) -> Ref:
        """See the protocol; the native part is how the VM is recognized."""
        template = facts.spec.get("template")
        machine = VmIdentity(
            facts.cluster_id,
            facts.uid,
            facts.machine_name,
            template if isinstance(template, str) else "",
            desired_vm.vm_id(facts),
            facts.recorded.get(vm_deletion.BOOT_DISK, ""),
        )
        return Ref(facts.cluster_id, facts.namespace, facts.name, facts.uid, machine)

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol."""
        return desired_vm.parse(facts)

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """See the protocol."""
        return self._reader.observe(targets)

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        return vm_plan.plan(target, observed, now, self._rules)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        write, name = vm_writes.of(step), step.path[0].removeprefix("VM ")
        if within_s <= 0:
            raise errors.Unavailable(
                "no time is left",
                operation=str(step.verb),
                resource=name,
                was_rejected=True,
            )
        id_ = str(getattr(write, "vm", ""))
        try:
            result = self._sender.send(write, _correlation_id(write), within_s)
            id_ = result.id or id_
        finally:
            self._reader.note_change(name, id_)
        return result

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol: one list of those that are asked for, by their IDs.

        A plan whose last step is too new for a shared list waits for the next one.
        """
        early = {plan.id: self._reader.early_s(plan.id) for plan in asked}
        due = {id_ for id_, seconds in early.items() if not seconds}
        try:
            vms = self._reader.by_ids(due) if due else {}
        except errors.CloudError as error:
            return {plan.id: Unknown(error) for plan in asked}
        return {
            plan.id: (
                _gate(vms.get(plan.id), plan)
                if plan.id in due
                else Gate(GateState.CLOSED, early[plan.id])
            )
            for plan in asked
        }

    def owned(self, cluster_id: str) -> Iterator[Owned]:
        """See the protocol: VMs, and boot disks."""
        for vm in self._reader.listed(cluster_id, self._clock()):
            uid = vm_tags.uid_of(vm.entity.description, cluster_id)
            if uid:
                name = str(vm.entity.name)
                machine = VmIdentity(cluster_id, uid, name, vm_id=vm.id)
                yield _owned("VM", vm, name, machine)
        for disk in self._reader.boot_disks(cluster_id):
            uid = vm_tags.uid_of(disk.entity.description, cluster_id)
            name = str(disk.entity.alias or disk.id)
            machine = VmIdentity(cluster_id, uid, name, boot_disk=disk.id)
            yield _owned("disk", disk, name, machine)

    def check(self, spec: Mapping[str, object]) -> Problem | None:
        """See `MachineClusters`: the engine cluster of spec.id must exist."""
        id_ = spec.get("id")
        if not isinstance(id_, str) or not desired_vm.is_uuid(id_):
            text = "" if id_ is None else str(id_)
            expected = "the UUID of a cluster of the engine"
            wrong = config.required("spec.id", text, expected)
            return Problem(Reason.INVALID_SPEC, str(wrong))
        if self._reader.cluster(id_) is None:
            stated = config.stated("spec.id", f"{id_} is no cluster of the engine")
            return Problem(Reason.PREREQUISITE, str(stated))
        return None


def _correlation_id(write: vm_writes.VmWrite) -> str:
    """Return what jobs and events of the engine show of a write."""
    kind = type(write).__name__
    id_ = getattr(write, "vm", "") or getattr(write, "disk", "")
    if isinstance(write, vm_writes.CreateVm):
        id_ = write.machine.uid
    return f"capz-{kind}-{id_}"[:50]


def _gate(vm: Item | None, plan: Asked) -> Gate:
    """Open: the VM and its disks are not locked, and it is neither starting nor ending.

    One that is not powered off in time is observed instead, and asked once more.
    """
    if vm is None or vm.status == engine_vm.ILLEGAL:
        return Gate(GateState.LOST)
    is_late = plan.waited_s >= STOP_S
    if vm.status == "powering_down" and is_late:
        return Gate(GateState.LOST)
    locked = [d.name for d in engine_vm.disks(vm) if d.status == "locked"]
    if vm.status in _CLOSED or locked:
        why = f"VM {vm.entity.name} is {vm.status}"
        if locked:
            why = f"disk {locked[0]} of VM {vm.entity.name} is locked"
        return Gate(GateState.CLOSED, POLL_S, why)
    return Gate(GateState.OPEN)


def _owned(kind: str, item: Item, name: str, machine: VmIdentity) -> Owned:
    created = item.entity.creation_time if kind == "VM" else None
    ref = Ref(machine.cluster_id, "", name, machine.uid, machine)
    return Owned(kind, item.id, name, machine.uid, created=created, ref=ref)

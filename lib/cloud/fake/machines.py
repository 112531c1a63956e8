"""Machines of a cloud that lives in memory, created in five steps like those of zVirt.

Clone, tag, resize, attach, start: not atomic; a machine is locked after each of them.

Source: deckhouse modules/030-cloud-provider-zvirt, capz-controller-manager.
"""

import copy
import dataclasses
import datetime
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.fake import machine_plans
from lib.cloud.fake.machine_plans import POLL_S, Change, Request, Vm, VmState
from lib.cloud.machines import (
    Bootstrap,
    BootstrapData,
    Facts,
    Observation,
    Observed,
    Owned,
    Plan,
    Problems,
    ReadBootstrap,
    Ref,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import (
    Asked,
    Gate,
    GateState,
    ProblemReason,
    Step,
    StepResult,
)

LOCKED_S = 2.0
BOOTSTRAP_BYTES_MAX = 16_384


def no_bootstrap(bootstrap: Bootstrap) -> BootstrapData:
    """Return data for a cloud without a cluster."""
    return BootstrapData(f"#cloud-config of {bootstrap.name}".encode())


@dataclasses.dataclass
class FakeMachines:
    """Implements `lib.cloud.machines.Machines`.

    clock: monotonic seconds. vms: by ID; tests change it. disks: those of others; a
    machine that is removed takes what is still attached with it. faults: errors for
    the next calls, None for one that succeeds; lost: the same, after the call was
    carried out.
    half: kinds of steps of which the next is accepted, and done by half: a clone fails,
    a tag or a size is not there, a NIC is not plugged in, a start ends in a stop.
    before_call, after_call: may raise, as if the process crashed there. received: the
    bootstrap data that each machine was created with, by its ID. locked_s: how long a
    machine is locked after each write. poll_s: after how many seconds a locked one is
    to be read again.
    """

    clock: Callable[[], float]
    read_bootstrap: ReadBootstrap = no_bootstrap
    vms: dict[str, Vm] = dataclasses.field(default_factory=dict)
    disks: set[str] = dataclasses.field(default_factory=set)
    faults: list[errors.CloudError | None] = dataclasses.field(default_factory=list)
    lost: list[errors.CloudError | None] = dataclasses.field(default_factory=list)
    half: list[str] = dataclasses.field(default_factory=list)
    calls: list[str] = dataclasses.field(default_factory=list)
    received: dict[str, bytes] = dataclasses.field(default_factory=dict)
    before_call: Callable[[str], None] = lambda operation: None
    after_call: Callable[[str], None] = lambda operation: None
    locked_s: float = LOCKED_S
    poll_s: float = POLL_S

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._created = 0

    @property
    def reasons(self) -> tuple[ProblemReason, ...]:
        """See the protocol; it has no problems of its own kind."""
        return ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """See the protocol."""
        return (machine_plans.DISK_READY,)

    @property
    def bootstrap_bytes_max(self) -> int:
        """See the protocol."""
        return BOOTSTRAP_BYTES_MAX

    def refer(self, facts: Facts) -> Ref:
        """See the protocol."""
        return Ref(facts.cluster_id, facts.namespace, facts.name, facts.uid)

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol."""
        return machine_plans.parse(facts)

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """See the protocol; one call for all."""
        try:
            self._call("list machines")
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        with self._lock:
            self._settle()
            return {target.ref: Seen(self._find(target)) for target in targets}

    def _find(self, target: Target) -> Observed:
        ref = target.ref
        vm = next(
            (vm for vm in self.vms.values() if vm.owner == (ref.cluster_id, ref.uid)),
            None,
        )
        is_taken = vm is None and any(
            other.name == ref.name for other in self.vms.values()
        )
        shown = copy.deepcopy(vm)
        return Observed(vm is not None, vm.id if vm else "", (shown, is_taken))

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        return machine_plans.plan(target, observed, now, self.poll_s)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        if within_s <= 0:
            raise errors.Unavailable("no time is left", operation=str(step))
        self._call(str(step))
        change = machine_plans.change_of(step)
        data: BootstrapData | None = None
        if change.kind == "clone" and change.bootstrap is not None:
            data = self.read_bootstrap(change.bootstrap)
        with self._lock:
            self._settle()
            result = self._carry_out(str(step), change, data)
        self.after_call(str(step))
        lost = self.lost.pop(0) if self.lost else None
        if lost is not None:
            raise lost
        return result

    def _carry_out(
        self, operation: str, change: Change, data: BootstrapData | None
    ) -> StepResult:
        if change.kind == "clone":
            return self._clone(operation, change, data)
        vm = self.vms.get(change.about)
        if vm is None:
            raise errors.NotFound("absent", operation=operation, resource=change.about)
        is_possible = machine_plans.is_possible(vm, change)
        if self.clock() < vm.locked_until or not is_possible:
            raise errors.Busy("locked", operation=operation, resource=vm.id)
        is_half = change.kind in self.half
        if is_half:
            self.half.remove(change.kind)
        machine_plans.carry_out(vm, change, is_half=is_half)
        vm.locked_until = self.clock() + self.locked_s
        return StepResult(vm.id, opens_after_s=self.poll_s)

    def _clone(
        self, operation: str, change: Change, data: BootstrapData | None
    ) -> StepResult:
        if any(vm.name == change.about for vm in self.vms.values()):
            raise errors.AlreadyExists("name in use", operation=operation)
        if data is None or not isinstance(change.request, Request):
            raise errors.InvalidRequest("incomplete", operation=operation)
        self._created += 1
        vm = Vm(f"vm-{self._created}", change.about, change.owner)
        vm.cores = change.request.cores
        vm.locked_until = self.clock() + self.locked_s
        vm.next_state = VmState.DOWN
        if "clone" in self.half:
            self.half.remove("clone")
            vm.next_state = VmState.FAILED
        self.vms[vm.id] = vm
        self.received[vm.id] = data.reveal()
        return StepResult(vm.id, opens_after_s=self.poll_s)

    def _settle(self) -> None:
        """Carry out what is due by now."""
        for vm in tuple(self.vms.values()):
            if self.clock() >= vm.locked_until and vm.next_state is not None:
                vm.state, vm.next_state = vm.next_state, None
                vm.has_run |= vm.state is VmState.UP
                if vm.state is VmState.REMOVED:
                    del self.vms[vm.id]
                    self.disks -= vm.disks

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol."""
        try:
            self._call("read gates")
        except errors.CloudError as error:
            return {plan.id: Unknown(error) for plan in asked}
        with self._lock:
            self._settle()
            return {plan.id: self._gate(plan.id) for plan in asked}

    def _gate(self, vm_id: str) -> Gate:
        vm = self.vms.get(vm_id)
        if vm is None or vm.state is VmState.FAILED:
            return Gate(GateState.LOST)
        if self.clock() < vm.locked_until:
            return Gate(GateState.CLOSED, self.poll_s)
        return Gate(GateState.OPEN)

    def owned(self, cluster_id: str) -> Iterator[Owned]:
        """See the protocol."""
        self._call("list owned")
        for vm in tuple(self.vms.values()):
            if vm.owner[0] == cluster_id:
                ref = Ref(cluster_id, "", vm.name, vm.owner[1])
                yield Owned("VM", vm.id, vm.name, vm.owner[1], ref=ref)

    def _call(self, operation: str) -> None:
        self.before_call(operation)
        self.calls.append(operation)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault

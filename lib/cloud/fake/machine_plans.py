"""Plans of the machines of the fake cloud: pure, but `carry_out`, which is the cloud's.

The clone sets the owner of a machine in its description; the tag, a write of its own,
is for lists alone.
"""

import dataclasses
import datetime
import enum
from collections.abc import Iterator

from lib.cloud.machines import (
    Bootstrap,
    ConditionState,
    Facts,
    Observed,
    Plan,
    Problems,
    Reason,
    Results,
    Spec,
    Target,
)
from lib.cloud.model import Address, AddressType
from lib.cloud.steps import CommonReason, Problem, Step, Verb
from lib.process import config

POLL_S = 1.0
CORES_MAX = 64
DISK_READY = "DiskReady"
ORPHANED = "fake.example/orphaned-vm"
SCHEME = "fake-machine://"


class VmState(enum.StrEnum):
    """VmState of a machine of this cloud."""

    LOCKED = "locked"
    DOWN = "down"
    UP = "up"
    FAILED = "failed"
    REMOVED = "removed"


@dataclasses.dataclass(slots=True)
class Vm:
    """A machine of this cloud.

    owner: cluster ID and UID of its machine object. nics: whether each is plugged in.
    locked_until: on the cloud's clock; next_state: from then on. disks: attached by
    others, such as volumes of Pods.
    """

    id: str
    name: str
    owner: tuple[str, str] = ("", "")
    tags: set[str] = dataclasses.field(default_factory=set)
    cores: int = 1
    disk_gib: int = 1
    nics: list[bool] = dataclasses.field(default_factory=list)
    disks: set[str] = dataclasses.field(default_factory=set)
    state: VmState = VmState.LOCKED
    next_state: VmState | None = None
    locked_until: float = 0.0
    has_run: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """The desired state of a machine. disk_gib: size of its disk in GiB."""

    cores: int
    disk_gib: int
    zone: str
    provider_id: str
    bootstrap: Bootstrap | None


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """Native part of a step. about: ID of the machine, or the name of a new one."""

    kind: str
    about: str
    owner: tuple[str, str] = ("", "")
    request: Request | None = None
    bootstrap: Bootstrap | None = None


def change_of(step: Step) -> Change:
    """Return the native part of a step.

    Raises:
        TypeError: the step is of another cloud.
    """
    if isinstance(step.native, Change):
        return step.native
    raise TypeError(f"not of this cloud: {step!r}")


def parse(facts: Facts) -> Spec | Problems:
    """Return the desired state; a wrong number is fatal."""
    cores = facts.spec.get("cores", 1)
    disk = facts.spec.get("disk", 1)
    problems = [
        Problem(Reason.INVALID_SPEC, str(problem), is_fatal=True)
        for problem in (
            _checked("spec.cores", cores, CORES_MAX),
            _checked("spec.disk", disk, 1024),
        )
        if problem is not None
    ]
    if problems or not (isinstance(cores, int) and isinstance(disk, int)):
        return Problems(tuple(problems))
    return Spec(
        Request(cores, disk, facts.failure_domain, facts.provider_id, facts.bootstrap)
    )


def _checked(field: str, value: object, most: int) -> config.FieldProblem | None:
    if isinstance(value, int) and 1 <= value <= most:
        return None
    return config.FieldProblem(field, str(value), f"a number from 1 to {most}")


def _opened(
    target: Target, observed: Observed
) -> tuple[Request | None, Vm | None, bool]:
    """Return what is desired, what exists, and whether the name is taken."""
    request = target.spec.native if target.spec else None
    if isinstance(observed.native, tuple) and isinstance(request, Request | None):
        vm, is_taken = observed.native
        return request, vm, is_taken
    raise TypeError(f"not of this cloud: {observed.native!r}")


def plan(
    target: Target,
    observed: Observed,
    now: datetime.datetime,
    poll_s: float = POLL_S,
) -> Plan:
    """Return what brings a machine closer to its target.

    poll_s: after how many seconds a locked machine is to be read again.
    """
    request, vm, is_taken = _opened(target, observed)
    if request is None:
        return _deletion(target, vm, now, poll_s)
    if vm is None:
        return _creation(target, request, is_taken=is_taken)
    results = _results(vm, request)
    if vm.next_state is not None:
        return Plan(retry_after_s=poll_s, results=results, object_id=vm.id)
    if vm.state is VmState.FAILED and not request.provider_id:
        why = "the clone failed, and it never ran"
        step = Step(Verb.DELETE, _path(target), why, Change("remove", vm.id))
        return Plan((step,), backs_off=True, results=results)
    steps = tuple(_steps(target, vm, request))
    problems = tuple(_differences(vm, request))
    return Plan(steps, settled=not steps, results=results, problems=problems)


def _path(target: Target, *parts: str) -> tuple[str, ...]:
    return (f"machine {target.ref.key}", *parts)


def _creation(target: Target, request: Request, *, is_taken: bool) -> Plan:
    ref = target.ref
    if request.provider_id:
        text = f"VM {request.provider_id} is absent: it was deleted by another client"
        return _refused(Reason.MISSING, text)
    if is_taken:
        text = f"VM {ref.name}: exists, and is not owned by this machine"
        return _refused(Reason.NOT_OWNED, text)
    if request.bootstrap is None:
        waiting = ConditionState(False, Reason.WAITING_FOR_BOOTSTRAP)
        return Plan(results=Results(waiting), settled=True)
    owner = (ref.cluster_id, ref.uid)
    native = Change("clone", ref.name, owner, request, request.bootstrap)
    why = "there is none"
    step = Step(Verb.CREATE, _path(target), why, native, is_repeatable=False)
    return Plan((step,), results=Results(ConditionState(None, Reason.NOT_READY)))


def _refused(reason: Reason, text: str) -> Plan:
    problem = Problem(reason, text, is_fatal=True)
    return Plan(
        results=Results(ConditionState(False, reason, text)), problems=(problem,)
    )


def _steps(target: Target, vm: Vm, request: Request) -> Iterator[Step]:
    """Yield what is left of the creation, in order.

    The start is planned once an observation shows the rest: a step may be accepted and
    then fail, and a disk cannot be resized later.
    """
    if vm.has_run or vm.state is VmState.UP:
        return
    parts = tuple(_parts(target, vm, request))
    yield from parts
    if not parts:
        yield Step(Verb.CHANGE, _path(target), "it is down", Change("start", vm.id))


def _parts(target: Target, vm: Vm, request: Request) -> Iterator[Step]:
    """Yield what a machine lacks before it may be started."""
    tag = target.ref.cluster_id
    if tag not in vm.tags:
        native = Change("tag", vm.id, (tag, ""))
        yield Step(Verb.CHANGE, _path(target, "tags"), "it has no tag", native)
    if vm.disk_gib < request.disk_gib:
        why = f"it has {vm.disk_gib} GiB, desired are {request.disk_gib} GiB"
        native = Change("resize", vm.id, request=request)
        yield Step(Verb.CHANGE, _path(target, "disk"), why, native)
    if not vm.nics:
        native = Change("attach", vm.id)
        path = _path(target, "NIC")
        yield Step(Verb.CREATE, path, "there is none", native, is_repeatable=False)
    elif not vm.nics[0]:
        native = Change("plug", vm.id)
        yield Step(Verb.CHANGE, _path(target, "NIC"), "it is unplugged", native)


def _differences(vm: Vm, request: Request) -> Iterator[Problem]:
    if vm.cores != request.cores:
        text = f"the VM has {vm.cores}, and is changed only by a new machine"
        problem = config.stated("spec.cores", text)
        yield Problem(CommonReason.IMMUTABLE, str(problem))


def _state(vm: Vm) -> ConditionState:
    if vm.state is VmState.UP and vm.next_state is None:
        return ConditionState(True, Reason.RUNNING)
    if vm.state is VmState.FAILED:
        return ConditionState(False, Reason.FAILED, "the VM has failed")
    if vm.state is VmState.DOWN and vm.has_run:
        return ConditionState(False, Reason.STOPPED, "the VM is down")
    return ConditionState(None, Reason.NOT_READY)


def _results(vm: Vm, request: Request) -> Results:
    names = (
        Address(AddressType.HOSTNAME, vm.name),
        Address(AddressType.INTERNAL_DNS, vm.name),
    )
    is_up = vm.state is VmState.UP
    address = Address(AddressType.INTERNAL_IP, f"192.0.2.{int(vm.id[3:]) % 250 + 1}")
    is_sized = vm.disk_gib >= request.disk_gib
    disk = ((DISK_READY, ConditionState(True, Reason.RUNNING)),) if is_sized else ()
    failure = None
    if vm.state is VmState.FAILED:
        failure = Problem(Reason.FAILED, "the VM has failed")
    return Results(
        _state(vm),
        is_provisioned=vm.has_run or is_up,
        provider_id=f"{SCHEME}{vm.id}",
        addresses=(*names, address) if is_up else (),
        failure_domain=request.zone if is_up else "",
        failure=failure,
        conditions=disk,
    )


def _deletion(
    target: Target, vm: Vm | None, now: datetime.datetime, poll_s: float
) -> Plan:
    if vm is None or (target.only is not None and vm.id not in target.only):
        return Plan(settled=True)
    state = ConditionState(False, Reason.DELETING)
    common = Plan(
        results=Results(state),
        leftovers=(f"VM {vm.name}",),
        abandoned=((ORPHANED, vm.name), (f"{ORPHANED}-at", now.isoformat())),
        object_id=vm.id,
    )
    if vm.next_state is not None:
        return dataclasses.replace(common, retry_after_s=poll_s)
    return dataclasses.replace(common, steps=tuple(_removal(target, vm)))


def _removal(target: Target, vm: Vm) -> Iterator[Step]:
    """Yield stop, detach and remove; a machine that is down rejects a stop."""
    why = "its machine is deleted"
    if vm.state is VmState.UP:
        yield Step(Verb.CHANGE, _path(target), why, Change("stop", vm.id))
    for disk in sorted(vm.disks):
        native = Change("detach", vm.id, (disk, ""))
        yield Step(Verb.CHANGE, _path(target, f"disk {disk}"), why, native)
    yield Step(Verb.DELETE, _path(target), why, Change("remove", vm.id))


def is_possible(vm: Vm, change: Change) -> bool:
    """Report whether the state of a machine allows a change; otherwise 409."""
    if change.kind in ("remove", "resize"):
        return vm.state is not VmState.UP
    if change.kind in ("start", "stop"):
        return vm.state is (VmState.DOWN if change.kind == "start" else VmState.UP)
    return True


def carry_out(vm: Vm, change: Change, *, is_half: bool) -> None:
    """Carry a step out as the cloud does. is_half: accepted, and not completed."""
    if change.kind == "attach":
        vm.nics.append(not is_half)
    elif change.kind in _NEXT:
        vm.next_state = VmState.DOWN if is_half else _NEXT[change.kind]
    elif is_half:
        return
    elif change.kind == "tag":
        vm.tags.add(change.owner[0])
    elif change.kind == "resize" and change.request is not None:
        vm.disk_gib = change.request.disk_gib
    elif change.kind == "plug":
        vm.nics[0] = True
    elif change.kind == "detach":
        vm.disks.discard(change.owner[0])


_NEXT = {"start": VmState.UP, "stop": VmState.DOWN, "remove": VmState.REMOVED}

"""How VirtualMachineOperations move their VMs. Pure.

Restore and Clone are not simulated: they fail.
"""

import datetime
from collections.abc import Iterator

from lib.lab.dvp import machines, writes
from lib.lab.dvp.kinds import MACHINES, OPERATIONS, Item, World
from lib.lab.dvp.writes import Finding, Step

_FINAL = ("Completed", "Failed", "Superseded")
_MOVES = ("Migrate", "Evict")
_ENDS = {"Start": "Running", "Stop": "Stopped", "Restart": "Running"}

_OF_POLICY = "NotApplicableForVirtualMachineRunPolicy"
_OF_PHASE = "NotApplicableForVirtualMachinePhase"
_OF_MOVE = "NotApplicableForLiveMigrationPolicy"
"""Source: deckhouse/virtualization api/core/v1alpha2/vmopcondition."""


def decide(world: World, now: datetime.datetime) -> Iterator[Step]:
    """Yield what happens to each operation and its VM."""
    for item in world.of(OPERATIONS).values():
        if item.is_ending or item.phase in _FINAL:
            continue
        vm = world.get(MACHINES, item.namespace, item.spec["virtualMachineName"])
        if item.phase == "InProgress":
            yield from _finish(item, vm, now)
        else:
            yield _begin(world, item, vm, now)


def _done(item: Item, phase: str, row: Finding, now: datetime.datetime) -> Step:
    rows = writes.conditions(item, now, row)
    fields = {"phase": phase, "conditions": rows}
    names = {"Completed": "operation-done", "Failed": "operation-failed"}
    call = writes.status(OPERATIONS, item, fields)
    return Step(names[phase], item, [call])


def _problem(item: Item, vm: Item | None) -> str:
    """Return why an operation is not applicable; empty when it is."""
    kind = item.spec["type"]
    if vm is None:
        return f"VirtualMachine {item.spec['virtualMachineName']} is missing"
    if kind not in (*_MOVES, *_ENDS):
        return f"{kind} is not simulated"
    required = "Stopped" if kind == "Start" else "Running"
    if vm.phase != required:
        return f"VirtualMachine {vm.name} is {vm.phase}, not {required}"
    policy = vm.spec.get("runPolicy")
    if policy == {"Start": "AlwaysOff", "Stop": "AlwaysOn"}.get(kind, ""):
        return f"VirtualMachine {vm.name} has runPolicy {policy}"
    return ""


def _reason(item: Item, vm: Item | None) -> str:
    """Return the reason of an operation that a VM does not allow."""
    policy = vm.spec.get("runPolicy") if vm is not None else None
    forbidden = {"Start": "AlwaysOff", "Stop": "AlwaysOn"}.get(item.spec["type"], "")
    if vm is None:
        return "VirtualMachineNotFound"
    return _OF_POLICY if policy == forbidden else _OF_PHASE


def _begin(world: World, item: Item, vm: Item | None, now: datetime.datetime) -> Step:
    problem = _problem(item, vm)
    if problem or vm is None:
        row = Finding("Completed", False, _reason(item, vm), problem)
        return _done(item, "Failed", row, now)
    kind = item.spec["type"]
    rows = writes.conditions(item, now, Finding("SignalSent", True, "SignalSent"))
    begun = writes.status(OPERATIONS, item, {"phase": "InProgress", "conditions": rows})
    if kind in _MOVES:
        return _move(world, item, vm, begun, now)
    reason = "NotRunning" if kind == "Start" else "PodTerminating"
    fields = {
        "phase": "Pending" if kind == "Start" else "Stopping",
        "conditions": writes.conditions(vm, now, Finding("Running", False, reason)),
    }
    calls = [writes.status(MACHINES, vm, fields), begun]
    return Step("operation-started", item, calls)


def _move(
    world: World,
    item: Item,
    vm: Item,
    begun: writes.PatchObject,
    now: datetime.datetime,
) -> Step:
    source = str(vm.status.get("nodeName", ""))
    target = machines.place(world, vm, (source,))
    if target is None:
        row = Finding("Completed", False, _OF_MOVE, "no other node fits")
        return _done(item, "Failed", row, now)
    state = {"source": {"node": source}, "target": {"node": target}, "result": ""}
    rows = writes.conditions(vm, now, Finding("Migrating", True, "InProgress"))
    fields = {"phase": "Migrating", "migrationState": state, "conditions": rows}
    calls: list[writes.Call] = [
        machines.launcher(vm, target),
        writes.status(MACHINES, vm, fields),
        begun,
    ]
    return Step("operation-started", item, calls)


def _finish(item: Item, vm: Item | None, now: datetime.datetime) -> Iterator[Step]:
    kind = item.spec["type"]
    if vm is None:
        row = Finding("Completed", False, "VirtualMachineNotFound")
        yield _done(item, "Failed", row, now)
    elif kind in _MOVES and vm.phase == "Running":
        state = vm.status.get("migrationState") or {}
        failed = state.get("result") == "Failed"
        row = Finding("Completed", not failed, "Failed" if failed else "Completed")
        yield _done(item, "Failed" if failed else "Completed", row, now)
    elif vm.phase == _ENDS.get(kind):
        row = Finding("Completed", True, "Completed")
        yield _done(item, "Completed", row, now)

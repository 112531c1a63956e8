"""No part of a machine outlives it: however long nothing could be deleted before.

The inventory of the parent is checked, not what the flow reports.
"""

from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import strategies

from lib.kube import errors
from lib.kube.fake import calls
from tests.contract.dvp_machines import ATTACHMENTS, DISKS, SECRETS, VMS
from tests.lib.cloud.dvp.machines.stage import PARTS, Life, Stage

LIMIT_S = 600.0
LATE_S = LIMIT_S + 60.0
MANY = 200
WRITE_S = 2.5
"""Their requests take as long as those of 1,000 machines, with ten workers and five
seconds for each request: half an hour."""
AWAY = errors.Unavailable("no answer", operation="DELETE", status=503)
DENIED = errors.Forbidden(
    'admission webhook "guard" denied the request', operation="DELETE", status=403
)


def inventory(stage: Stage) -> list[str]:
    """Return what the parent holds, with a mark at what is being deleted."""
    return [
        f"{kind.kind} {row['metadata']['name']}"
        + (" (being deleted)" if row["metadata"].get("deletionTimestamp") else "")
        for kind in PARTS
        for row in stage.parent.each(kind)
    ]


def served(number: int = 1) -> tuple[Stage, Life]:
    """Return machines that run, and the process that has created them."""
    stage = Stage()
    stage.parent.moves = number == 1
    for index in range(number):
        stage.machine(f"worker-{index}")
    process = Life(stage)
    process.settle()
    return stage, process


def run(process: Life, seconds: float) -> None:
    """Reconcile what is due, each half second."""
    for _ in range(int(2 * seconds)):
        process.relist()
        process.turn()
        process.ground.now_s += 0.5


def refuse(
    stage: Stage, error: errors.KubeError, is_refused: Callable[[calls.Call], bool]
) -> None:
    """Have the parent refuse deletions."""
    note = stage.parent.before_call or _nothing

    def before(call: calls.Call) -> None:
        if "delete" in call.verb and is_refused(call):
            raise error
        note(call)

    stage.parent.before_call = before


def _nothing(call: calls.Call) -> None:
    del call


def paused(stage: Stage, process: Life) -> Life:
    """Pause the Cluster; the machine is deleted in the meantime."""
    stage.cluster(paused=True)
    stage.delete("worker-0")
    run(process, LATE_S)
    stage.cluster(paused=False)
    return process


def without_parent(stage: Stage, process: Life) -> Life:
    """Have the parent answer nothing while the machine is deleted."""
    ends_s = stage.now_s + LATE_S
    refuse(stage, AWAY, lambda call: stage.now_s < ends_s)
    stage.delete("worker-0")
    run(process, LATE_S)
    return process


def stopped(stage: Stage, process: Life) -> Life:
    """Have no process run while the machine is deleted."""
    stage.delete("worker-0")
    stage.now_s += LATE_S
    return Life(stage)


@pytest.mark.parametrize(
    "happening", [paused, without_parent, stopped], ids=lambda fn: fn.__name__
)
def test_nothing_is_left_after_a_time_in_which_nothing_could_be_deleted(
    happening: Callable[[Stage, Life], Life],
) -> None:
    stage, process = served()
    before = inventory(stage)
    assert len(before) == 4
    process = happening(stage, process)
    process.settle(quiet_s=400)
    process.send_events()
    print(f"before: {before}\nafter: {inventory(stage)}")
    assert inventory(stage) == []
    assert stage.get(stage.kinds.machine, "worker-0") is None
    assert not [event for event in stage.events() if "DeletionTimedOut" in event]


def refused_at_first(stage: Stage, process: Life) -> Life:
    """Have the parent refuse deletions of VMs, for less than the limit."""
    ends_s = stage.now_s + LIMIT_S - 60.0
    refuse(
        stage, DENIED, lambda call: call.resource == VMS.plural and stage.now_s < ends_s
    )
    stage.delete("worker-0")
    run(process, LIMIT_S - 60.0)
    return process


HAPPENINGS = (paused, without_parent, stopped, refused_at_first)


@hypothesis.given(
    strategies.lists(
        strategies.sampled_from(HAPPENINGS), min_size=2, max_size=4, unique=True
    ),
    strategies.booleans(),
)
@hypothesis.settings(max_examples=12, deadline=None)
def test_nothing_is_left_after_any_sequence_of_them(
    happenings: list[Callable[[Stage, Life], Life]], has_volume: bool
) -> None:
    """Each begins where the one before it has ended; the volume of a Pod stays."""
    stage, process = served()
    if has_volume:
        stage.attach("worker-0")
    for happening in happenings:
        if stage.get(stage.kinds.machine, "worker-0") is not None:
            process = happening(stage, process)
    process.settle(quiet_s=400)
    process.send_events()
    volumes = ["VirtualDisk pvc-of-worker-0"] if has_volume else []
    assert inventory(stage) == volumes
    assert stage.get(stage.kinds.machine, "worker-0") is None
    assert not [event for event in stage.events() if "DeletionTimedOut" in event]


def test_a_queue_of_many_deletions_leaves_nothing() -> None:
    """Those whose turn comes after the limit are deleted as the first are."""
    stage, process = served(MANY)
    before = len(inventory(stage))
    note = stage.parent.before_call or _nothing

    def slow(call: calls.Call) -> None:
        note(call)
        if call.is_write:
            stage.now_s += WRITE_S

    stage.parent.before_call = slow
    began_s = stage.now_s
    for index in range(MANY):
        stage.delete(f"worker-{index}")
    process.settle(quiet_s=100)
    took_s = stage.now_s - began_s
    print(f"{before} objects of {MANY} machines deleted in {took_s:.0f} s")
    assert took_s > 2 * LIMIT_S
    assert inventory(stage) == []
    assert stage.api.all(stage.kinds.machine) == ()


@pytest.mark.parametrize("plural", [VMS.plural, DISKS.plural, SECRETS.plural])
def test_a_part_that_the_parent_refuses_to_delete_stops_no_other(plural: str) -> None:
    """It is named in one Event; once it is allowed, nothing is left.

    Disks go with their VM, whose controller owns them.
    """
    stage, process = served()
    ends_s = stage.now_s + LIMIT_S / 2
    refuse(stage, DENIED, lambda call: call.resource == plural and stage.now_s < ends_s)
    stage.delete("worker-0")
    run(process, 30)
    asked = [row for row in inventory(stage) if "(being deleted)" not in row]
    print(f"not being deleted after 30 s: {asked}")
    kind = next(kind for kind in PARTS if kind.plural == plural)
    assert asked == [row for row in asked if row.startswith(kind.kind)]
    process.settle(quiet_s=400)
    process.send_events()
    assert inventory(stage) == []
    events = [event for event in stage.events() if "denied" in event]
    print(events)
    assert len(set(events)) == len(events)
    assert events or plural == DISKS.plural


def test_an_attachment_that_the_parent_refuses_to_delete_keeps_no_vm() -> None:
    """Like one whose deletion does not end, it is waited for during a minute."""
    stage, process = served()
    now_s = process.ground.now_s
    stage.attach("worker-0")
    refuse(stage, DENIED, lambda call: call.resource == ATTACHMENTS.plural)
    stage.delete("worker-0")
    run(process, 30)
    assert "VirtualMachine worker-0" in inventory(stage)
    process.settle(quiet_s=400)
    print(f"after {stage.now_s - now_s:.0f} s: {inventory(stage)}")
    assert inventory(stage) == [
        "VirtualDisk pvc-of-worker-0",
        "VirtualMachineBlockDeviceAttachment vmbda-pvc-of-worker-0",
    ]
    assert stage.get(stage.kinds.machine, "worker-0") is None


def test_a_part_that_is_refused_for_the_whole_limit_is_released() -> None:
    """Every other part is being deleted by then; an Event names what is left."""
    stage, process = served()
    refuse(stage, DENIED, lambda call: call.resource == VMS.plural)
    stage.delete("worker-0")
    run(process, LIMIT_S - 60)
    assert stage.get(stage.kinds.machine, "worker-0") is not None
    process.settle(quiet_s=400)
    process.send_events()
    assert stage.get(stage.kinds.machine, "worker-0") is None
    late = [event for event in stage.events() if "DeletionTimedOut" in event]
    print(inventory(stage), late)
    assert len(late) == 1
    assert "VirtualMachine worker-0" in late[0]
    left = [row for row in inventory(stage) if "(being deleted)" not in row]
    assert left == ["VirtualMachine worker-0"]

"""Every request comes true from any death: killed before or after each cloud call.

The table that is printed has one row per request and call; a row that is missing fails.
"""

import dataclasses
import math
from collections.abc import Callable

import pytest

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumeSpec,
)
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall

NODE, OTHER = InstanceId("node-1"), InstanceId("node-2")
ID = VolumeId("aaaaaaaa-0000-4000-8000-000000000000")
SOURCE = VolumeId("bbbbbbbb-0000-4000-8000-000000000000")
SIZE = 10 * volume_rules.GIB
VOLUME = Volume(ID, "pvc-1", SIZE, VolumePhase.AVAILABLE, type="slow", cluster="blue")
HELD = dataclasses.replace(
    VOLUME, phase=VolumePhase.IN_USE, attachments=(Attachment(NODE),)
)
SPEC = VolumeSpec("pvc-1", SIZE, "blue", type="slow")


class Died(BaseException):
    """The process ends here, whatever it was about to do."""


class World:
    """One cloud and one clock, in which processes come and go."""

    def __init__(self, *volumes: Volume) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.instances = {NODE, OTHER}
        self.cloud.put(*volumes)

    def settle(
        self, request: model.Request, patience_s: float = 600.0, is_fresh: bool = False
    ) -> Volume | None:
        """Settle a request; is_fresh: by a process that was started just now."""
        effects = callers.CallEffects(self.clock, self.clock.wait)
        started = None if is_fresh else -math.inf
        process = flow.VolumesFlow(lambda: self.cloud, effects, started)
        return process.settle(request, callers.Caller(self.clock() + patience_s))

    def now(self, volume_id: str = ID) -> Volume | None:
        """See a volume without a call."""
        observed = [volume for volume in self.cloud.volumes() if volume.id == volume_id]
        return observed[0] if observed else None


def _one_named(world: World, source: VolumeId | None = None) -> bool:
    named = [volume for volume in world.cloud.volumes() if volume.name == SPEC.name]
    return (
        len(named) == 1
        and named[0].phase is VolumePhase.AVAILABLE
        and named[0].source == source
    )


def _is_held(world: World) -> bool:
    volume = world.now()
    return (
        volume is not None
        and volume.phase is VolumePhase.IN_USE
        and [attachment.instance_id for attachment in volume.attachments] == [NODE]
    )


def _is_free(world: World) -> bool:
    volume = world.now()
    return volume is not None and volume.phase is VolumePhase.AVAILABLE


def _has(field: str, value: object) -> Callable[[World], bool]:
    return lambda world: getattr(world.now(), field) == value


@dataclasses.dataclass(frozen=True)
class Case:
    """A request, where it starts, the calls it takes, and whether it came true."""

    request: model.Request
    start: tuple[Volume, ...]
    calls: tuple[str, ...]
    is_true: Callable[[World], bool]


FAILED = dataclasses.replace(VOLUME, phase=VolumePhase.FAILED, was_ready=False)
TWIN = dataclasses.replace(VOLUME, name="other", id=SOURCE)
CLONE = dataclasses.replace(SPEC, source=SOURCE)
GET, FIND = "get volume", "find volumes"

CASES = {
    "create": Case(
        model.Make(SPEC), (), (FIND, "create volume", FIND, FIND), _one_named
    ),
    "clone": Case(
        model.Make(CLONE),
        (TWIN,),
        (FIND, GET, "create volume", FIND, FIND),
        lambda world: _one_named(world, SOURCE),
    ),
    "create what failed": Case(
        model.Make(SPEC),
        (FAILED,),
        (FIND, "delete volume", FIND, FIND, "create volume", FIND, FIND),
        _one_named,
    ),
    "publish": Case(
        model.PublishVolume(ID, NODE),
        (VOLUME,),
        (GET, "attach volume", GET, GET),
        _is_held,
    ),
    "unpublish": Case(
        model.UnpublishVolume(ID, NODE),
        (HELD,),
        (GET, "detach volume", GET, GET),
        _is_free,
    ),
    "unpublish everywhere": Case(
        model.UnpublishVolume(ID, None),
        (HELD,),
        (GET, "detach volume", GET, GET),
        _is_free,
    ),
    "expand": Case(
        model.Expand(ID, 2 * SIZE),
        (VOLUME,),
        (GET, "resize volume", GET),
        _has("size_bytes", 2 * SIZE),
    ),
    "expand while attached": Case(
        model.Expand(ID, 2 * SIZE),
        (HELD,),
        (GET, "resize volume", GET),
        _has("size_bytes", 2 * SIZE),
    ),
    "modify": Case(
        model.Modify(ID, VolumeChange("fast")),
        (VOLUME,),
        (GET, "retype volume", GET, GET),
        _has("type", "fast"),
    ),
    "delete": Case(
        model.RemoveVolume(ID),
        (VOLUME,),
        (GET, "delete volume", GET),
        lambda world: world.now() is None,
    ),
}
DEATHS = [
    (name, number, when)
    for name, case in CASES.items()
    for number in range(len(case.calls))
    for when in ("before", "after")
]


def _die_at(world: World, number: int, when: str) -> None:
    """Kill the process at its call of this number, from 0."""
    calls_made = 0

    def check(operation: str) -> None:
        del operation
        nonlocal calls_made
        calls_made += 1
        if calls_made == number + 1:
            raise Died

    if when == "before":
        world.cloud.before_call = check
    else:
        world.cloud.after_call = check


def _live(world: World) -> None:
    world.cloud.before_call = world.cloud.after_call = lambda operation: None


@pytest.mark.parametrize("name", CASES)
def test_a_request_takes_the_calls_it_must_and_no_other(name: str) -> None:
    world = World(*CASES[name].start)
    world.settle(CASES[name].request)
    assert tuple(world.cloud.calls) == CASES[name].calls
    assert CASES[name].is_true(world)


AGAIN = {
    "create": 1,
    "publish": 1,
    "unpublish": 1,
    "expand": 1,
    "modify": 1,
    "delete": 2,
}


@pytest.mark.parametrize(("name", "most"), AGAIN.items())
def test_a_request_that_is_fulfilled_costs_next_to_nothing(
    name: str, most: int
) -> None:
    world = World(*CASES[name].start)
    world.settle(CASES[name].request)
    world.cloud.calls.clear()
    world.settle(CASES[name].request)
    assert len(world.cloud.calls) <= most


def test_each_death_is_survived(capsys: pytest.CaptureFixture[str]) -> None:
    rows: dict[tuple[str, int, str], bool] = {}
    for name, number, when in DEATHS:
        case = CASES[name]
        world = World(*case.start)
        _die_at(world, number, when)
        with pytest.raises(Died):
            world.settle(case.request)
        _live(world)
        world.settle(case.request, is_fresh=True)
        rows[name, number, when] = case.is_true(world)
    with capsys.disabled():
        print(f"\n{'request':22} {'death at call':28} result")
        for (name, number, when), is_true in rows.items():
            where = f"{when} {CASES[name].calls[number]}"
            print(f"{name:22} {number} {where:26} {'true' if is_true else 'FALSE'}")
    assert set(rows) == set(DEATHS)
    assert all(rows.values())


@pytest.mark.parametrize(("name", "number", "when"), DEATHS)
def test_two_processes_at_once_agree(name: str, number: int, when: str) -> None:
    """A second process settles the same request within each call of the first."""
    case = CASES[name]
    world = World(*case.start)
    others: list[Volume | None] = []

    def other(operation: str) -> None:
        del operation
        _live(world)
        others.append(world.settle(case.request))

    _die_at(world, number, when)
    hook = world.cloud.before_call if when == "before" else world.cloud.after_call

    def once(operation: str) -> None:
        try:
            hook(operation)
        except Died:
            other(operation)

    if when == "before":
        world.cloud.before_call = once
    else:
        world.cloud.after_call = once
    mine = world.settle(case.request)
    world.clock.move(5)  # one that is too many is on its way out
    assert len(others) == 1
    assert case.is_true(world)
    assert (mine and mine.id) == (others[0] and others[0].id)


LOST = [
    (name, operation)
    for name, case in CASES.items()
    for operation in dict.fromkeys(case.calls)
    if operation not in (GET, FIND)
]


@pytest.mark.parametrize(("name", "operation"), LOST)
def test_a_lost_answer_is_told_and_the_next_call_goes_on(
    name: str, operation: str
) -> None:
    case = CASES[name]
    world = World(*case.start)
    world.cloud.faults.lost.append(operation)
    with pytest.raises(RefusedCall) as raised:
        world.settle(case.request)
    assert raised.value.code is Code.UNAVAILABLE
    world.settle(case.request)
    assert case.is_true(world)


@pytest.mark.parametrize(("name", "number", "when"), DEATHS)
def test_a_cloud_that_fails_once_fails_nothing_for_good(
    name: str, number: int, when: str
) -> None:
    if when == "after":
        return
    case = CASES[name]
    world = World(*case.start)
    down = errors.Unavailable("no answer", operation="any")
    world.cloud.faults.refusals[:] = [None] * number + [down]
    is_look_while_waiting = number > 1 and case.calls[number] in (GET, FIND)
    if is_look_while_waiting:
        world.settle(case.request)
    else:
        with pytest.raises(RefusedCall) as raised:
            world.settle(case.request)
        assert raised.value.code is Code.UNAVAILABLE
    world.settle(case.request)
    assert case.is_true(world)


SKEW_S = 180.0
LATE = fake.Late(30.0)
KILLED = fake.Late(8.0, Died())
OUTCOMES: dict[str, tuple[fake.Late, float, float]] = {
    "carried out 30 s after its answer was lost": (LATE, 0, 0),
    "carried out 30 s later, cloud's clock 3 min ahead": (LATE, SKEW_S, SKEW_S),
    "carried out 30 s later, cloud's clock 3 min behind": (LATE, -SKEW_S, -SKEW_S),
    "carried out 30 s later, cloud's clock goes 3 min back": (LATE, 0, -SKEW_S),
    "carried out 30 s later, cloud's clock goes 3 min ahead": (LATE, 0, SKEW_S),
    "killed during POST, carried out 8 s later": (KILLED, 0, 0),
    "killed during POST, cloud's clock 3 min ahead": (KILLED, SKEW_S, SKEW_S),
    "killed during POST, cloud's clock 3 min behind": (KILLED, -SKEW_S, -SKEW_S),
    "killed during POST, cloud's clock goes 3 min back": (KILLED, 0, -SKEW_S),
}
"""When it is carried out; the clock of the cloud minus ours, before and after that."""


def test_a_request_that_is_carried_out_late_changes_no_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each write of each request, with each outcome; then the request is made again."""
    rows: dict[tuple[str, str, str], bool] = {}
    for name, operation in LOST:
        for outcome, (late, skew_s, skew_after_s) in OUTCOMES.items():
            case = CASES[name]
            world = World(*case.start)
            world.cloud.skew_s = skew_s
            effects = callers.CallEffects(world.clock, world.clock.wait)
            process = flow.VolumesFlow(lambda w=world: w.cloud, effects, -math.inf)  # type: ignore[misc]  # bound now
            world.cloud.faults.late[operation] = late
            with pytest.raises((RefusedCall, Died)) as raised:
                process.settle(case.request, callers.Caller(world.clock() + 600))
            world.cloud.skew_s = skew_after_s
            if raised.type is Died:
                process = flow.VolumesFlow(lambda w=world: w.cloud, effects)  # type: ignore[misc]  # bound now
            process.settle(case.request, callers.Caller(world.clock() + 600))
            world.clock.move(200)
            rows[name, operation, outcome] = case.is_true(world)
    with capsys.disabled():
        for (name, operation, outcome), is_true in rows.items():
            print(f"{name:22} {operation:15} {outcome:60} {is_true}")
    assert len(rows) == len(LOST) * len(OUTCOMES)
    assert all(rows.values()), [row for row, is_true in rows.items() if not is_true]


def test_a_request_takes_the_same_calls_whatever_the_cloud_s_clock_shows() -> None:
    """Ages are measured by one clock: ours, or the cloud's."""
    rows: dict[tuple[str, float], tuple[str, ...]] = {}
    for name, case in CASES.items():
        for skew_s in (-SKEW_S, 0.0, SKEW_S):
            world = World(*case.start)
            world.cloud.skew_s = skew_s
            world.settle(case.request)
            assert case.is_true(world)
            rows[name, skew_s] = tuple(world.cloud.calls)
    assert all(callers == CASES[name].calls for (name, _), callers in rows.items())


def test_what_a_killed_process_sent_may_come_true_after_the_first_10_s() -> None:
    """The stated limit: a creation that is carried out 30 s after the kill.

    The volume that was handed out stays the one of its name; the other is deleted by
    the next call for the name. Where no call comes, it is reported as an orphan.
    """
    world = World()
    effects = callers.CallEffects(world.clock, world.clock.wait)
    process = flow.VolumesFlow(lambda: world.cloud, effects, -math.inf)
    world.cloud.faults.late["create volume"] = fake.Late(30.0, Died())
    with pytest.raises(Died):
        process.settle(model.Make(SPEC), callers.Caller(world.clock() + 600))
    process = flow.VolumesFlow(lambda: world.cloud, effects)
    arguments = process.settle(model.Make(SPEC), callers.Caller(world.clock() + 600))
    world.clock.move(60)
    assert arguments is not None
    assert len(world.cloud.volumes()) == 2
    again = process.settle(model.Make(SPEC), callers.Caller(world.clock() + 600))
    assert again is not None
    assert again.id == arguments.id
    world.clock.move(60)
    assert [volume.id for volume in world.cloud.volumes()] == [arguments.id]


LATE_ATTACH = {
    "answer lost": (fake.Late(30.0), False),
    "killed during POST": (fake.Late(8.0, Died()), True),
}


@pytest.mark.parametrize("name", LATE_ATTACH)
def test_an_attach_that_is_carried_out_late_comes_not_true_behind_an_ok(
    name: str,
) -> None:
    """Publish fails, Unpublish is OK, and then the volume is free for another node."""
    late, is_killed = LATE_ATTACH[name]
    world = World(VOLUME)
    effects = callers.CallEffects(world.clock, world.clock.wait)
    process = flow.VolumesFlow(lambda: world.cloud, effects, -math.inf)
    world.cloud.faults.late["attach volume"] = late
    with pytest.raises((RefusedCall, Died)):
        process.settle(
            model.PublishVolume(ID, NODE), callers.Caller(world.clock() + 60)
        )
    if is_killed:
        process = flow.VolumesFlow(lambda: world.cloud, effects)
    process.settle(model.UnpublishVolume(ID, NODE), callers.Caller(world.clock() + 180))
    world.clock.move(200)
    assert _is_free(world)
    process.settle(model.PublishVolume(ID, OTHER), callers.Caller(world.clock() + 60))
    volume = world.now()
    assert volume is not None
    assert [attachment.instance_id for attachment in volume.attachments] == [OTHER]


def test_a_create_whose_answer_was_lost_is_not_repeated_while_it_may_come_true() -> (
    None
):
    """The same process waits out the request's time-out, looking."""
    world = World()
    effects = callers.CallEffects(world.clock, world.clock.wait)
    process = flow.VolumesFlow(lambda: world.cloud, effects, -math.inf)
    down = errors.Unavailable("no answer", operation="create volume")
    world.cloud.faults.refusals[:] = [None, down]
    with pytest.raises(RefusedCall):
        process.settle(model.Make(SPEC), callers.Caller(world.clock() + 600))
    lost_at = world.clock()
    world.cloud.calls.clear()
    process.settle(model.Make(SPEC), callers.Caller(world.clock() + 600))
    assert world.cloud.calls.count("create volume") == 1
    created = world.cloud.calls.index("create volume")
    assert created > 10  # it looked all the while
    assert world.clock() - lost_at >= 60
    assert _one_named(world)

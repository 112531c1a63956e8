"""The engine of open plans, with routes of routers in place of load balancers."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping

import pytest

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.steps import Asked, CommonReason, Gate, GateState, Step, StepResult, Verb
from lib.plans import engine, memory, model
from lib.plans.writing import UNKNOWN_FIRST_S, UnknownOutcome, Writing
from lib.reconcile import failure, outcome

BUSY_S = 3.0
POLL_S = 15.0
"""How long a router is busy after a write."""
SYNC = frozenset({"sync"})


@dataclasses.dataclass(frozen=True, slots=True)
class Routes:
    """The routes that a router is to have, by destination."""

    router: str
    destinations: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"routes of {self.router}"


class Routers:
    """Routers in memory, which are busy for a while after each write.

    failures: raised by the next writes; the write is carried out where was_rejected is
    False, as when its answer is lost.
    """

    def __init__(self) -> None:
        self.now_s = 100.0
        self.routes: dict[str, list[str]] = {}
        self.busy_until: dict[str, float] = {}
        self.lost: set[str] = set()
        self.failures: list[errors.CloudError] = []
        self.asked: list[Collection[Asked]] = []
        self.within: list[float] = []

    def apply(self, step: Step, within_s: float = float("inf")) -> StepResult:
        self.within.append(within_s)
        _, router, destination = step.path
        failed = self.failures.pop(0) if self.failures else None
        if failed is not None and (failed.was_rejected or failed is REFUSED):
            raise failed
        self.routes.setdefault(router, []).append(destination)
        self.busy_until[router] = self.now_s + BUSY_S
        if failed is not None:
            raise failed
        return StepResult(id=router, opens_after_s=BUSY_S if step.is_gated else 0.0)

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        self.asked.append(asked)
        return {gate.id: self._gate(gate.id) for gate in asked}

    def _gate(self, router: str) -> Gate:
        if router in self.lost:
            return Gate(GateState.LOST)
        left_s = self.busy_until.get(router, 0.0) - self.now_s
        if left_s <= 0:
            return Gate(GateState.OPEN)
        return Gate(GateState.CLOSED, min(left_s, POLL_S), f"router {router} is busy")


class Scene:
    """An engine on these routers, and the flow that drives it."""

    def __init__(self, writing: Writing | None = None) -> None:
        self.routers = Routers()
        self.memory = memory.Memory[Routes, str](lambda: self.routers.now_s)
        self.opened: list[tuple[str, frozenset[str]]] = []
        self.engine: engine.Engine[Routes, str] = engine.Engine(
            lambda: self.routers,
            self.memory,
            lambda: self.routers.now_s,
            writing,
            on_open=lambda key, topics: self.opened.append((key, topics)),
        )

    def carry_out(
        self, uid: str, target: Routes, steps: tuple[Step, ...]
    ) -> outcome.Requeue | None:
        """Apply the first steps of a plan, as an actor does."""
        requeue = None
        for action in model.next_steps(steps, target.router):
            result = self.engine.apply(uid, action)
            if action.is_last:
                requeue = self.engine.go_on(uid, target, action, result, SYNC)
        return requeue

    def resume(self, uid: str, target: Routes | None) -> model.Resumed[Routes] | None:
        return self.engine.resume({uid: target}).get(uid)

    def converge(self, uid: str, target: Routes, steps: tuple[Step, ...]) -> int:
        """Go on until no plan is open; return the number of reconciliations."""
        requeue, count = self.carry_out(uid, target, steps), 1
        while self.memory.open(uid) is not None:
            assert requeue is not None
            self.routers.now_s += requeue.after_s
            resumed = self.resume(uid, target)
            count += 1
            if resumed is not None:
                assert isinstance(resumed.gate, Gate)
                assert resumed.gate.state is GateState.OPEN
                requeue = self.carry_out(uid, target, resumed.plan.steps)
        return count


def step(router: str, destination: str, *, is_repeatable: bool = True) -> Step:
    path = ("router", router, destination)
    return Step(Verb.CREATE, path, "missing", None, is_repeatable=is_repeatable)


def unavailable(*, was_rejected: bool = False) -> errors.Unavailable:
    return errors.Unavailable(
        "timed out", operation="add route", was_rejected=was_rejected
    )


TARGET = Routes("r1", ("10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"))
STEPS = tuple(step("r1", destination) for destination in TARGET.destinations)
OTHER = Routes("r2", ("10.1.0.0/24", "10.1.1.0/24"))
OTHERS = tuple(step("r2", destination) for destination in OTHER.destinations)


def test_steps_are_applied_in_order_each_after_the_gate_of_the_one_before() -> None:
    scene = Scene()
    assert scene.converge("u1", TARGET, STEPS) == 4
    assert scene.routers.routes == {"r1": list(TARGET.destinations)}
    assert len(scene.routers.asked) == 3
    assert {asked.waited_s for some in scene.routers.asked for asked in some} == {
        BUSY_S
    }


def test_a_gate_is_not_asked_before_it_may_be_open() -> None:
    """A reconciliation for another reason costs no call."""
    scene = Scene()
    requeue = scene.carry_out("u1", TARGET, STEPS)
    assert requeue == outcome.Requeue(BUSY_S, SYNC)
    scene.routers.now_s += 1.0
    resumed = scene.resume("u1", TARGET)
    assert resumed is not None
    assert resumed.gate == Gate(GateState.CLOSED, BUSY_S - 1.0)
    assert scene.routers.asked == []


def test_ungated_steps_are_applied_in_one_reconciliation_up_to_a_limit() -> None:
    scene = Scene()
    free = tuple(dataclasses.replace(step, is_gated=False) for step in STEPS * 10)
    requeue = scene.carry_out("u1", TARGET, free)
    assert len(scene.routers.routes["r1"]) == model.MOST_STEPS
    assert requeue == outcome.Requeue(0.0, SYNC)
    left = scene.memory.open("u1")
    assert left is not None
    assert len(left.steps) == len(free) - model.MOST_STEPS


@pytest.mark.parametrize("target", [Routes("r1", ()), None], ids=["changed", "invalid"])
def test_a_plan_for_another_target_is_dropped(target: Routes | None) -> None:
    scene = Scene()
    scene.carry_out("u1", TARGET, STEPS)
    scene.routers.now_s += BUSY_S
    assert scene.resume("u1", target) is None
    assert scene.memory.open("u1") is None
    assert scene.routers.asked == []


def test_a_plan_whose_object_was_changed_by_others_is_dropped() -> None:
    scene = Scene()
    scene.carry_out("u1", TARGET, STEPS)
    scene.routers.lost.add("r1")
    scene.routers.now_s += BUSY_S
    assert scene.resume("u1", TARGET) is None
    assert scene.memory.open("u1") is None


def test_one_call_asks_for_all_gates_and_wakes_the_plans_that_may_go_on() -> None:
    scene = Scene()
    scene.carry_out("u1", TARGET, STEPS)
    scene.routers.now_s += 1.0
    scene.carry_out("u2", OTHER, OTHERS)
    scene.routers.busy_until["r2"] = scene.routers.now_s  # faster than expected
    scene.routers.now_s += BUSY_S - 1.0
    assert scene.resume("u1", TARGET) is not None
    assert scene.opened == [(OTHER.key, SYNC)]
    resumed = scene.resume("u2", OTHER)
    assert resumed is not None
    assert resumed.gate == Gate(GateState.OPEN)
    assert len(scene.routers.asked) == 1


def test_each_of_several_stuck_objects_is_known_to_be_closed() -> None:
    """Also if the call of another plan puts off the poll of its own each time."""
    scene = Scene()
    for uid, target, steps in (("u1", TARGET, STEPS), ("u2", OTHER, OTHERS)):
        scene.carry_out(uid, target, steps)
        scene.routers.now_s += 1.0
    scene.routers.busy_until = dict.fromkeys(("r1", "r2"), float("inf"))
    scene.routers.now_s += BUSY_S
    for _ in range(10):
        first = scene.resume("u1", TARGET)
        assert first is not None
        second = scene.resume("u2", OTHER)
        assert second is not None
        scene.routers.now_s += POLL_S
    assert len(scene.routers.asked) == 10
    for resumed, router in ((first, "r1"), (second, "r2")):
        assert resumed is not None
        assert isinstance(resumed.gate, Gate)
        assert resumed.gate.why == f"router {router} is busy"
        assert resumed.closed_s >= 8 * POLL_S


def test_two_plans_do_not_change_one_object_at_the_same_time() -> None:
    scene = Scene()
    scene.carry_out("u1", TARGET, STEPS)
    with pytest.raises(failure.Postponed) as postponed:
        scene.carry_out("u2", TARGET, STEPS)
    assert postponed.value.requeue_after_s == engine.TAKEN_S
    assert scene.routers.routes == {"r1": [TARGET.destinations[0]]}
    assert postponed.value.failure().is_routine


def test_a_plan_that_only_waits_keeps_no_other_from_writing() -> None:
    scene = Scene()
    scene.engine.await_gate("u1", TARGET, model.Await("r1", 2.0), SYNC)
    scene.carry_out("u2", TARGET, STEPS)
    assert scene.routers.routes == {"r1": [TARGET.destinations[0]]}


def test_what_may_have_been_created_is_not_created_again_until_that_is_known() -> None:
    scene = Scene()
    (once,) = (step("r1", "10.0.0.0/24", is_repeatable=False),)
    scene.routers.failures = [unavailable()]
    with pytest.raises(UnknownOutcome) as unknown:
        scene.carry_out("u1", TARGET, (once,))
    explained = unknown.value.failure()
    assert explained.requeue_after_s == UNKNOWN_FIRST_S
    assert not explained.is_routine
    while scene.routers.now_s < 100.0 + memory.UNKNOWN_S:
        with pytest.raises(failure.Postponed):
            scene.engine.require_known("u1", is_recorded=True)
        with pytest.raises(failure.Postponed) as early:
            scene.carry_out("u1", TARGET, (once,))
        assert 0 < early.value.requeue_after_s <= engine.UNKNOWN_POLL_S
        scene.routers.now_s += early.value.requeue_after_s
    assert scene.routers.routes == {"r1": ["10.0.0.0/24"]}
    scene.engine.require_known("u1", is_recorded=True)
    scene.carry_out("u1", TARGET, (once,))
    assert scene.routers.routes == {"r1": ["10.0.0.0/24"] * 2}


@pytest.mark.parametrize(
    ("is_repeatable", "was_rejected"), [(True, False), (False, True)]
)
def test_a_failure_that_leaves_no_doubt_may_be_retried(
    is_repeatable: bool, was_rejected: bool
) -> None:
    scene = Scene()
    scene.routers.failures = [unavailable(was_rejected=was_rejected)]
    only = (step("r1", "10.0.0.0/24", is_repeatable=is_repeatable),)
    with pytest.raises(errors.Unavailable):
        scene.carry_out("u1", TARGET, only)
    assert scene.memory.unknown_s("u1") == 0.0
    scene.carry_out("u1", TARGET, only)
    assert scene.routers.routes["r1"]


def test_a_lasting_refusal_is_reported_once_and_counted_until_a_write_succeeds() -> (
    None
):
    scene = Scene()
    error = errors.QuotaExceeded("no more routes", operation="add route")
    assert scene.engine.refusal("u1", error) == error.advice
    assert scene.engine.refusal("u1", error) == ""
    assert scene.memory.problems() == {CommonReason.REFUSED: 1}
    scene.carry_out("u1", TARGET, STEPS)
    assert scene.memory.problems() == {}
    assert scene.engine.refusal("u1", unavailable()) == unavailable().summary
    assert scene.engine.refusal("u1", unavailable()) == unavailable().summary
    assert scene.memory.problems() == {}


def test_a_busy_object_is_reported_only_after_minutes() -> None:
    scene = Scene()
    busy = errors.Busy("in progress", operation="add route")
    assert scene.engine.refusal("u1", busy) == ""
    scene.routers.now_s += engine.LONG_S
    assert scene.engine.refusal("u1", busy) == f"{busy.summary}, for minutes"
    assert scene.engine.refusal("u1", busy) == ""


def test_creating_again_what_failed_waits_longer_each_time() -> None:
    scene = Scene()
    waits = []
    for _ in range(8):
        scene.memory.back_off("u1", is_desired=True)
        waits.append(scene.memory.backoff_s("u1", is_desired=True))
        scene.routers.now_s += waits[-1]
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600]
    assert scene.memory.backoff_s("u1", is_desired=False) == 0.0


def test_nothing_is_kept_of_an_object_that_was_deleted() -> None:
    """And nothing but its target and its problems of one that has settled."""
    scene = Scene()
    action = model.TellProblems(())
    scene.carry_out("u1", TARGET, STEPS)
    assert scene.memory.is_in_progress("u1")
    scene.memory.report("u1", action)
    scene.memory.settle("u1", TARGET, "written")
    assert scene.memory.settled("u1") == (TARGET, "written")
    assert not scene.memory.is_in_progress("u1")
    assert scene.memory.opens() == {}
    scene.carry_out("u1", TARGET, STEPS)
    assert scene.memory.settled("u1") is None
    scene.memory.forget("u1")
    assert scene.memory.opens() == {}
    assert scene.memory._records == {}


class NotLeader(Exception):
    """The Lease is lost."""


def lease(left_s: float) -> Writing:
    @contextlib.contextmanager
    def acting(operation: str) -> Iterator[float]:
        if left_s <= 0:
            raise NotLeader(operation)
        yield left_s

    return Writing(acting)


def test_a_write_may_take_as_long_as_the_lease_lasts() -> None:
    """The seconds that are left reach the provider as the bound of the request."""
    for left_s in (7.0, 0.2):
        scene = Scene(lease(left_s))
        scene.carry_out("u1", TARGET, STEPS)
        assert scene.routers.within == [left_s]


def test_without_the_lease_no_write_is_sent() -> None:
    scene = Scene(lease(0.0))
    with pytest.raises(NotLeader, match="create router / r1 / 10.0.0.0/24"):
        scene.carry_out("u1", TARGET, STEPS)
    assert scene.routers.within == []


def test_after_a_takeover_nothing_is_created_too_early() -> None:
    taken_over_at = 100.0
    writing = Writing(
        unsettled_s=lambda settle_s: taken_over_at + settle_s - scene.routers.now_s
    )
    scene = Scene(writing)
    once = step("r1", "10.0.0.0/24", is_repeatable=False)
    with pytest.raises(failure.Postponed):
        scene.carry_out("u1", TARGET, (once,))
    scene.carry_out("u1", TARGET, (step("r1", "10.0.9.0/24"),))
    scene.routers.now_s += engine.CREATE_AFTER_S
    scene.carry_out("u1", TARGET, (once,))
    assert scene.routers.routes == {"r1": ["10.0.9.0/24", "10.0.0.0/24"]}


def test_after_a_takeover_nothing_is_forgotten_too_early() -> None:
    """Where no object is recorded, the previous leader may have begun to create it."""
    writing = Writing(
        unsettled_s=lambda settle_s: 100.0 + settle_s - scene.routers.now_s
    )
    scene = Scene(writing)
    rows = {True: engine.CREATE_AFTER_S, False: engine.FORGET_AFTER_S}
    for is_recorded, wait_s in rows.items():
        scene.routers.now_s = 100.0 + wait_s - 0.1
        with pytest.raises(failure.Postponed):
            scene.engine.require_known("u1", is_recorded=is_recorded)
        scene.routers.now_s = 100.0 + wait_s
        scene.engine.require_known("u1", is_recorded=is_recorded)


def grouped_step(destination: str, group: str) -> Step:
    return dataclasses.replace(step("r1", destination), group=group)


A1, A2, B1, C1 = (
    grouped_step(destination, group)
    for destination, group in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"))
)
ALL = grouped_step("all", "")
REFUSED = errors.QuotaExceeded("no more routes", operation="add route")


@pytest.mark.parametrize(
    ("steps", "error", "left"),
    [
        pytest.param((A1, A2, B1), REFUSED, ("b1",), id="those of other groups go on"),
        pytest.param((A1, B1, A2, C1), REFUSED, ("b1",), id="in their order"),
        pytest.param((A1, A2), REFUSED, (), id="those of its own group do not"),
        pytest.param((ALL, B1), REFUSED, (), id="all depend on a step without group"),
        pytest.param((A1, B1, ALL, C1), REFUSED, ("b1",), id="which depends on all"),
        pytest.param((A1, ALL), REFUSED, (), id="so nothing is left"),
        pytest.param(
            (A1, B1),
            errors.NotFound("gone", operation="add route"),
            ("b1",),
            id="its object is absent",
        ),
        pytest.param(
            (A1, B1),
            errors.Busy("busy", operation="add route"),
            (),
            id="the object is busy",
        ),
        pytest.param((A1, B1), unavailable(), (), id="the cloud does not answer"),
        pytest.param(
            (A1, B1),
            errors.Unauthenticated("no", operation="add route"),
            (),
            id="all would fail the same",
        ),
    ],
)
def test_what_goes_on_after_a_refusal(
    steps: tuple[Step, ...], error: errors.CloudError, left: tuple[str, ...]
) -> None:
    (action, *_) = model.next_steps(steps, "r1")
    note = model.TellProblems(())
    others = model.left_after(action, error, (note,))
    applied = [x.step.path[-1] for x in others if isinstance(x, model.ApplyStep)]
    assert applied == list(left[:1])  # up to the first that closes the gate
    is_refusal = isinstance(error, errors.QuotaExceeded | errors.NotFound)
    assert (note in others) == is_refusal


def test_each_refused_step_is_reported_once_and_counted_till_it_is_accepted() -> None:
    scene = Scene()

    def report(refused: Step) -> bool:
        return bool(scene.engine.refusal("u1", REFUSED, path=refused.path))

    assert [report(x) for x in (A1, B1, A1, B1)] == [True, True, False, False]
    assert scene.memory.problems() == {CommonReason.REFUSED: 1}
    scene.carry_out("u1", TARGET, (A1, B1))
    assert scene.memory.refusal("u1") is not None, "the other one stands"
    scene.memory.drop("u1")
    scene.carry_out("u1", TARGET, (C1,))
    assert scene.memory.refusal("u1") is None, "it is no longer planned"


def test_refusals_of_one_plan_stand_while_its_other_steps_are_accepted() -> None:
    scene = Scene()
    steps, reports = (A1, B1, C1), []
    for _ in range(2):
        scene.memory.drop("u1")
        scene.routers.failures = [REFUSED]
        (action, *_) = model.next_steps(steps, "r1")
        with pytest.raises(errors.QuotaExceeded):
            scene.engine.apply("u1", action)
        reports.append(scene.engine.refusal("u1", REFUSED, path=A1.path))
        for other in model.left_after(action, REFUSED, ()):
            assert isinstance(other, model.ApplyStep)
            scene.engine.apply("u1", other)
    assert reports == [REFUSED.advice, ""]


def test_how_long_a_write_is_rejected() -> None:
    """From the first refusal to the last; a pause between them starts again."""
    scene = Scene()
    for wait_s, refused_s in ((0, 0), (300, 300), (300, 600), (5000, 0), (10, 10)):
        scene.routers.now_s += wait_s
        scene.engine.refusal("u1", REFUSED, path=A1.path)
        assert scene.memory.refused_s("u1") == {A1.path: refused_s}
    scene.memory.accept("u1", A1.path)
    assert scene.memory.refused_s("u1") == {}


@pytest.mark.parametrize(
    ("steps", "failed", "order"),
    [
        pytest.param((A1, B1, C1), ("a",), "b1 c1 a1", id="it is tried last"),
        pytest.param((A1, A2, B1), ("a",), "b1 a1 a2", id="with its group in order"),
        pytest.param((A1, B1, C1), ("b", "a"), "c1 b1 a1", id="the last at the end"),
        pytest.param((A1, B1, ALL, C1), ("a",), "b1 a1 all c1", id="before what waits"),
        pytest.param((ALL, A1, B1), ("a",), "all a1 b1", id="what it waits for first"),
        pytest.param((A1, B1), ("gone",), "a1 b1", id="no longer planned"),
    ],
)
def test_a_group_that_failed_is_tried_after_the_others(
    steps: tuple[Step, ...], failed: tuple[str, ...], order: str
) -> None:
    ordered = model.failed_last(steps, failed)
    assert " ".join(each.path[-1] for each in ordered) == order


def test_groups_that_failed_are_kept_until_a_write_of_them_is_accepted() -> None:
    """A refusal is no such failure: after it the others have gone on."""
    scene = Scene()
    for failing, error in ((A1, unavailable()), (B1, unavailable()), (C1, REFUSED)):
        scene.routers.failures = [error]
        with pytest.raises(errors.CloudError):
            scene.carry_out("u1", TARGET, (failing,))
    assert scene.memory.failed("u1") == ("a", "b")
    scene.carry_out("u1", TARGET, (A1,))
    assert scene.memory.failed("u1") == ("b",)
    scene.memory.forget("u1")
    assert scene.memory.failed("u1") == ()

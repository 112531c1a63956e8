"""Tables: a snapshot and a plan in, an outcome out."""

import dataclasses

import pytest

from lib.balancers import act, decide, model
from lib.balancers.fake.snapshots import (
    BAD,
    BARE,
    GONE,
    NOTHING,
    NOW,
    ODD,
    OUTAGE,
    RESULTS,
    SEEN,
    WANTED,
    WEB,
    snapshot_of,
)
from lib.balancers.model import Snapshot, Topic
from lib.cloud.load_balancers import Ingress, Plan, Results
from lib.cloud.model import Unknown
from lib.cloud.steps import Gate, GateState, Step, Verb
from lib.plans import model as plans

GATED = Step(Verb.CHANGE, ("pool",), "other members", None)
FREE = Step(Verb.CREATE, ("floating ip",), "none", None, is_gated=False)
ONCE = dataclasses.replace(FREE, is_repeatable=False)
OPEN = plans.OpenPlan(WANTED, (GATED, FREE), "lb-1", 0.0, 0.0, frozenset({Topic.SYNC}))


def steps(outcome: decide.Decided) -> list[Step]:
    return [a.step for a in outcome.actions if isinstance(a, plans.ApplyStep)]


def words(outcome: decide.Decided) -> list[str]:
    """Return the actions, Events by their reasons, and say whether it fails."""
    names = [
        (
            action.reason
            if isinstance(action, model.RecordEvent)
            else type(action).__name__
        )
        for action in outcome.actions
    ]
    return [*names, "failure"] if outcome.failure is not None else names


ENSURING = "EnsuringLoadBalancer"
SERVED = act.written(WEB, model.SetIngress((Ingress("192.0.2.1"),)))
ROWS: dict[str, tuple[Snapshot, Plan, list[str]]] = {
    "the gate is closed": (
        snapshot_of(resumed=plans.Resumed(OPEN, Gate(GateState.CLOSED, 1.0))),
        Plan(),
        [],
    ),
    "the gate is open": (
        snapshot_of(resumed=plans.Resumed(OPEN, Gate(GateState.OPEN))),
        Plan(),
        ["ApplyStep"],
    ),
    "the gate can't be read": (
        snapshot_of(resumed=plans.Resumed(OPEN, Unknown(OUTAGE))),
        Plan(),
        ["failure"],
    ),
    "facts can't be served": (
        snapshot_of(target=None, problems=(BAD,), observed=None),
        Plan(),
        ["TellProblems"],
    ),
    "nothing had to be read": (snapshot_of(observed=None), Plan(), []),
    "the cloud can't be read": (
        snapshot_of(observed=Unknown(OUTAGE)),
        Plan(),
        ["failure"],
    ),
    "new": (
        snapshot_of(service=BARE, observed=NOTHING),
        Plan((GATED,)),
        [ENSURING, "AddFinalizer", "ApplyStep"],
    ),
    "new, without nodes": (
        snapshot_of(service=BARE, observed=NOTHING, nodes=()),
        Plan((GATED,)),
        [
            ENSURING,
            "UnAvailableLoadBalancer",
            "AddFinalizer",
            "ApplyStep",
        ],
    ),
    "goes on": (
        snapshot_of(is_in_progress=True),
        Plan((GATED,)),
        ["ApplyStep"],
    ),
    "results first": (
        snapshot_of(is_in_progress=True),
        Plan((GATED,), results=RESULTS),
        ["SetAnnotations", "SetIngress", "ApplyStep"],
    ),
    "done": (
        snapshot_of(is_in_progress=True),
        Plan(settled=True),
        ["Settle", "EnsuredLoadBalancer"],
    ),
    "new nodes": (
        snapshot_of(topics=frozenset({Topic.NODES})),
        Plan((GATED,)),
        ["ApplyStep"],
    ),
    "new nodes, done": (
        snapshot_of(topics=frozenset({Topic.NODES}), is_in_progress=True),
        Plan(settled=True),
        ["Settle", "UpdatedLoadBalancer"],
    ),
    "all is well": (snapshot_of(), Plan(settled=True), ["Settle"]),
    "a fatal problem": (
        snapshot_of(),
        Plan(problems=(BAD,)),
        ["TellProblems", "failure"],
    ),
    "a problem that is not": (
        snapshot_of(),
        Plan(problems=(ODD,), settled=True),
        ["TellProblems", "Settle"],
    ),
    "failed, first time": (
        snapshot_of(is_in_progress=True),
        Plan((GATED,), backs_off=True),
        ["StartBackoff", "ApplyStep"],
    ),
    "failed lately": (
        snapshot_of(is_in_progress=True, backoff_s=9.0),
        Plan((GATED,), backs_off=True),
        [],
    ),
    "to be gone": (
        snapshot_of(target=GONE),
        Plan((GATED,)),
        ["DeletingLoadBalancer", "ApplyStep"],
    ),
    "gone": (
        snapshot_of(target=GONE, observed=NOTHING, is_in_progress=True),
        Plan(settled=True),
        ["RemoveFinalizer", "DeletedLoadBalancer"],
    ),
    "leaving one of others": (
        snapshot_of(service=SERVED, target=GONE, is_in_progress=True),
        Plan((GATED,), results=Results(ingress=())),
        ["SetIngress", "ApplyStep"],
    ),
    "a problem that was reported": (
        snapshot_of(reported=plans.TellProblems((ODD,))),
        Plan(problems=(ODD,), settled=True),
        ["Settle"],
    ),
    "a problem that is over": (
        snapshot_of(reported=plans.TellProblems((ODD,))),
        Plan(settled=True),
        ["TellProblems", "Settle"],
    ),
    "facts still can't be served": (
        snapshot_of(
            target=None,
            problems=(BAD,),
            reported=plans.TellProblems((BAD,)),
            observed=None,
        ),
        Plan(),
        [],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_case_has_its_actions(row: str) -> None:
    """In this order."""
    snapshot, plan, desired = ROWS[row]
    outcome = decide.decide(snapshot, NOW, lambda target, observed, now: plan)
    assert words(outcome) == desired


@pytest.mark.parametrize(
    ("planned", "now"),
    [
        ((GATED, GATED), [GATED]),
        ((FREE, GATED, FREE), [FREE, GATED]),
        ((ONCE, FREE), [ONCE]),
        ((FREE, FREE), [FREE, FREE]),
        ((), []),
    ],
    ids=["two gated", "free before", "not repeatable", "all free", "none"],
)
def test_a_pass_ends_with_the_first_step_that_must_be_waited_for(
    planned: tuple[Step, ...], now: list[Step]
) -> None:
    """The last action carries what is left."""
    plan = Plan(planned)
    outcome = decide.decide(SEEN, NOW, lambda target, observed, at: plan)
    assert steps(outcome) == now
    applied = [a for a in outcome.actions if isinstance(a, plans.ApplyStep)]
    assert [apply_step.is_last for apply_step in applied] == [False] * (
        len(now) - 1
    ) + [True] * bool(now)
    if applied:
        assert applied[-1].rest == planned[len(now) :]


@pytest.mark.parametrize(
    ("snapshot", "plan", "wait_s"),
    [
        (
            snapshot_of(resumed=plans.Resumed(OPEN, Gate(GateState.CLOSED, 1.5))),
            Plan(),
            1.5,
        ),
        (snapshot_of(), Plan(retry_after_s=3.0), 3.0),
        (snapshot_of(backoff_s=9.0), Plan((GATED,), backs_off=True), 9.0),
        (snapshot_of(), Plan(settled=True), None),
    ],
    ids=["closed", "busy", "barred", "settled"],
)
def test_when_to_look_again(
    snapshot: Snapshot, plan: Plan, wait_s: float | None
) -> None:
    outcome = decide.decide(snapshot, NOW, lambda target, observed, now: plan)
    assert outcome.requeue_after_s == wait_s


@pytest.mark.parametrize(("named", "asked"), [("", "lb-1"), ("lb-0", "lb-0")])
def test_a_plan_may_name_another_load_balancer_to_wait_for(
    named: str, asked: str
) -> None:
    """As when the Service leaves one: its gate counts for all steps of the plan."""
    plan = Plan((GATED, GATED), object_id=named)
    outcome = decide.decide(SEEN, NOW, lambda target, observed, now: plan)
    (step,) = (
        action for action in outcome.actions if isinstance(action, plans.ApplyStep)
    )
    assert (step.object_id, step.rest) == (asked, (GATED,))

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
    seen,
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
        one.reason if isinstance(one, model.RecordEvent) else type(one).__name__
        for one in outcome.actions
    ]
    return [*names, "failure"] if outcome.failure is not None else names


ENSURING = "EnsuringLoadBalancer"
SERVED = act.written(WEB, model.SetIngress((Ingress("192.0.2.1"),)))
ROWS: dict[str, tuple[Snapshot, Plan, list[str]]] = {
    "the gate is closed": (
        seen(resumed=plans.Resumed(OPEN, Gate(GateState.CLOSED, 1.0))),
        Plan(),
        [],
    ),
    "the gate is open": (
        seen(resumed=plans.Resumed(OPEN, Gate(GateState.OPEN))),
        Plan(),
        ["ApplyStep"],
    ),
    "the gate can't be read": (
        seen(resumed=plans.Resumed(OPEN, Unknown(OUTAGE))),
        Plan(),
        ["failure"],
    ),
    "facts can't be served": (
        seen(target=None, problems=(BAD,), observed=None),
        Plan(),
        ["TellProblems"],
    ),
    "nothing had to be read": (seen(observed=None), Plan(), []),
    "the cloud can't be read": (seen(observed=Unknown(OUTAGE)), Plan(), ["failure"]),
    "new": (
        seen(service=BARE, observed=NOTHING),
        Plan((GATED,)),
        [ENSURING, "AddFinalizer", "ApplyStep"],
    ),
    "new, without nodes": (
        seen(service=BARE, observed=NOTHING, nodes=()),
        Plan((GATED,)),
        [
            ENSURING,
            "UnAvailableLoadBalancer",
            "AddFinalizer",
            "ApplyStep",
        ],
    ),
    "goes on": (
        seen(is_in_progress=True),
        Plan((GATED,)),
        ["ApplyStep"],
    ),
    "results first": (
        seen(is_in_progress=True),
        Plan((GATED,), results=RESULTS),
        ["SetAnnotations", "SetIngress", "ApplyStep"],
    ),
    "done": (
        seen(is_in_progress=True),
        Plan(settled=True),
        ["Settle", "EnsuredLoadBalancer"],
    ),
    "new nodes": (
        seen(topics=frozenset({Topic.NODES})),
        Plan((GATED,)),
        ["ApplyStep"],
    ),
    "new nodes, done": (
        seen(topics=frozenset({Topic.NODES}), is_in_progress=True),
        Plan(settled=True),
        ["Settle", "UpdatedLoadBalancer"],
    ),
    "all is well": (seen(), Plan(settled=True), ["Settle"]),
    "a fatal problem": (
        seen(),
        Plan(problems=(BAD,)),
        ["TellProblems", "failure"],
    ),
    "a problem that is not": (
        seen(),
        Plan(problems=(ODD,), settled=True),
        ["TellProblems", "Settle"],
    ),
    "failed, first time": (
        seen(is_in_progress=True),
        Plan((GATED,), backs_off=True),
        ["Bar", "ApplyStep"],
    ),
    "failed lately": (
        seen(is_in_progress=True, backoff_s=9.0),
        Plan((GATED,), backs_off=True),
        [],
    ),
    "to be gone": (
        seen(target=GONE),
        Plan((GATED,)),
        ["DeletingLoadBalancer", "ApplyStep"],
    ),
    "gone": (
        seen(target=GONE, observed=NOTHING, is_in_progress=True),
        Plan(settled=True),
        ["RemoveFinalizer", "DeletedLoadBalancer"],
    ),
    "leaving one of others": (
        seen(service=SERVED, target=GONE, is_in_progress=True),
        Plan((GATED,), results=Results(ingress=())),
        ["SetIngress", "ApplyStep"],
    ),
    "a problem that was told": (
        seen(reported=plans.TellProblems((ODD,))),
        Plan(problems=(ODD,), settled=True),
        ["Settle"],
    ),
    "a problem that is over": (
        seen(reported=plans.TellProblems((ODD,))),
        Plan(settled=True),
        ["TellProblems", "Settle"],
    ),
    "facts still can't be served": (
        seen(
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
    snapshot, plan, wanted = ROWS[row]
    found = decide.decide(snapshot, NOW, lambda target, observed, now: plan)
    assert words(found) == wanted


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
    found = decide.decide(SEEN, NOW, lambda target, observed, at: plan)
    assert steps(found) == now
    applied = [a for a in found.actions if isinstance(a, plans.ApplyStep)]
    assert [one.is_last for one in applied] == [False] * (len(now) - 1) + [True] * bool(
        now
    )
    if applied:
        assert applied[-1].rest == planned[len(now) :]


@pytest.mark.parametrize(
    ("snapshot", "plan", "wait_s"),
    [
        (seen(resumed=plans.Resumed(OPEN, Gate(GateState.CLOSED, 1.5))), Plan(), 1.5),
        (seen(), Plan(retry_after_s=3.0), 3.0),
        (seen(backoff_s=9.0), Plan((GATED,), backs_off=True), 9.0),
        (seen(), Plan(settled=True), None),
    ],
    ids=["closed", "busy", "barred", "settled"],
)
def test_when_to_look_again(
    snapshot: Snapshot, plan: Plan, wait_s: float | None
) -> None:
    found = decide.decide(snapshot, NOW, lambda target, observed, now: plan)
    assert found.requeue_after_s == wait_s


@pytest.mark.parametrize(("named", "asked"), [("", "lb-1"), ("lb-0", "lb-0")])
def test_a_plan_may_name_another_load_balancer_to_wait_for(
    named: str, asked: str
) -> None:
    """As when the Service leaves one: its gate counts for all steps of the plan."""
    plan = Plan((GATED, GATED), object_id=named)
    outcome = decide.decide(SEEN, NOW, lambda target, observed, now: plan)
    (step,) = (one for one in outcome.actions if isinstance(one, plans.ApplyStep))
    assert (step.object_id, step.rest) == (asked, (GATED,))

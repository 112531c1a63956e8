"""Tables: a snapshot and a plan in, a row of what would be done out."""

from lib.balancers import model, preview
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
    snapshot_of,
)
from lib.balancers.model import Snapshot
from lib.balancers.preview import State
from lib.cloud.explained import Explanation, FieldChange, Touched
from lib.cloud.load_balancers import Observed, Plan, Target
from lib.cloud.model import Unknown
from lib.cloud.steps import Notice, NoticeType, Step, Verb

STEP = Step(Verb.CHANGE, ("load balancer x", "pool"), "other members", None)


def explain(target: Target, observed: Observed, plan: Plan) -> Explanation:
    """Put the steps into words as they are."""
    del target
    waits_for = "" if plan.steps or plan.settled else "load balancer lb-1"
    steps = tuple(Touched(s.path, s.verb, why=s.why) for s in plan.steps)
    return Explanation(observed.id, waits_for, (), steps)


def row(snapshot: Snapshot, plan: Plan) -> preview.Row:
    return preview.row(snapshot, NOW, lambda target, observed, now: plan, explain)


SERVICE = preview.SERVICE
ROWS: dict[str, tuple[Snapshot, Plan, State, list[str]]] = {
    "all is well": (SEEN, Plan(settled=True), State.IN_SYNC, []),
    "in sync, with a warning": (
        SEEN,
        Plan(settled=True, problems=(ODD,)),
        State.IN_SYNC,
        [],
    ),
    "new": (
        snapshot_of(service=BARE, observed=NOTHING),
        Plan((STEP,)),
        State.WOULD_CREATE,
        ["pool", "finalizer", "annotations later", "status later"],
    ),
    "changed": (SEEN, Plan((STEP,)), State.WOULD_CHANGE, ["pool"]),
    "a finalizer is missing": (
        snapshot_of(service=BARE),
        Plan(settled=True),
        State.WOULD_CHANGE,
        ["finalizer"],
    ),
    "the Service does not show it": (
        SEEN,
        Plan(settled=True, results=RESULTS),
        State.WOULD_CHANGE,
        ["annotations", "status"],
    ),
    "it leaves": (
        snapshot_of(target=GONE),
        Plan((STEP,)),
        State.WOULD_DELETE,
        ["pool", "finalizer later"],
    ),
    "it has left": (
        snapshot_of(target=GONE, observed=NOTHING),
        Plan(settled=True),
        State.WOULD_DELETE,
        ["finalizer"],
    ),
    "a change is in progress": (SEEN, Plan(retry_after_s=2.0), State.PENDING, []),
    "facts can't be parsed": (
        snapshot_of(target=None, problems=(BAD,), observed=None),
        Plan(),
        State.INVALID,
        [],
    ),
    "the cloud has no place": (SEEN, Plan(problems=(BAD,)), State.INVALID, []),
    "the cloud can't be read": (
        snapshot_of(observed=Unknown(OUTAGE)),
        Plan(),
        State.UNKNOWN,
        [],
    ),
}


def test_each_situation_has_its_state_and_its_things() -> None:
    """A table, situation x state; a state without a row fails."""
    for name, (snapshot, plan, state, things) in ROWS.items():
        result = row(snapshot, plan)
        shown = [t.path[-1] + (" later" if t.is_later else "") for t in result.touched]
        print(f"{name:30} {result.state:20} {shown}")
        assert (result.state, shown) == (state, things), name
        assert result.service == "default/web"
    assert {state for _, _, state, _ in ROWS.values()} == set(State)


def test_why_is_said() -> None:
    assert row(snapshot_of(observed=Unknown(OUTAGE)), Plan()).why == OUTAGE.summary
    assert row(SEEN, Plan(retry_after_s=2.0)).why == "load balancer lb-1"
    notice = Notice(NoticeType.WARNING, "Reason", "told")
    result = row(SEEN, Plan(settled=True, problems=(ODD,), notices=(notice,)))
    assert result.problems == (ODD,)
    assert result.notices == ("Reason: told",)
    assert row(snapshot_of(target=None, problems=(BAD,)), Plan()).problems == (BAD,)


def test_what_is_written_on_the_service_shows_old_and_new() -> None:
    """Annotations by key, one that goes too; addresses with their mode."""
    annotations, status = row(SEEN, Plan(settled=True, results=RESULTS)).touched
    assert annotations.path == (SERVICE, "annotations")
    assert annotations.changes == (
        FieldChange("id", "lb-0", "lb-1"),
        FieldChange("old", "x", ""),
    )
    (change,) = status.changes
    assert (change.old, change.new) == ("", "192.0.2.1 (VIP), a.example")
    (gone,) = row(snapshot_of(target=GONE), Plan(settled=True)).touched
    assert gone.changes == (FieldChange("metadata.finalizers", model.FINALIZER, ""),)


def test_things_hang_below_those_that_hold_them() -> None:
    """Also below one that is not touched, and in the order in which they come."""
    paths = (("a", "b", "c"), ("a", "d"), ("e",), ("a", "b"))
    touched = tuple(Touched(path, Verb.CHANGE) for path in paths)

    def shape(branches: tuple[preview.Branch, ...]) -> dict[str, object]:
        return {
            f"{branch.name}{'*' * len(branch.touched)}": shape(branch.branches)
            for branch in branches
        }

    assert shape(preview.tree(touched)) == {"a": {"b*": {"c*": {}}, "d*": {}}, "e*": {}}

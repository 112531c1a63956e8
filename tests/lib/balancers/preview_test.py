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
    seen,
)
from lib.balancers.model import Snapshot
from lib.balancers.preview import State
from lib.cloud.explained import Explanation, FieldChange, Touched
from lib.cloud.load_balancers import Observed, Plan, Target
from lib.cloud.model import Unknown
from lib.cloud.steps import Notice, NoticeType, Step, Verb

STEP = Step(Verb.CHANGE, ("load balancer x", "pool"), "other members", None)


def explain(target: Target, observed: Observed, made: Plan) -> Explanation:
    """Put the steps into words as they are."""
    del target
    waits_for = "" if made.steps or made.settled else "load balancer lb-1"
    steps = tuple(Touched(s.path, s.verb, why=s.why) for s in made.steps)
    return Explanation(observed.id, waits_for, (), steps)


def row(snapshot: Snapshot, made: Plan) -> preview.Row:
    return preview.row(snapshot, NOW, lambda target, observed, now: made, explain)


SERVICE = preview.SERVICE
ROWS: dict[str, tuple[Snapshot, Plan, State, list[str]]] = {
    "all is well": (SEEN, Plan(settled=True), State.IN_SYNC, []),
    "well, with something odd": (
        SEEN,
        Plan(settled=True, problems=(ODD,)),
        State.IN_SYNC,
        [],
    ),
    "new": (
        seen(service=BARE, observed=NOTHING),
        Plan((STEP,)),
        State.WOULD_CREATE,
        ["pool", "finalizer", "annotations later", "status later"],
    ),
    "changed": (SEEN, Plan((STEP,)), State.WOULD_CHANGE, ["pool"]),
    "a finalizer is missing": (
        seen(service=BARE),
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
        seen(target=GONE),
        Plan((STEP,)),
        State.WOULD_DELETE,
        ["pool", "finalizer later"],
    ),
    "it has left": (
        seen(target=GONE, observed=NOTHING),
        Plan(settled=True),
        State.WOULD_DELETE,
        ["finalizer"],
    ),
    "the cloud is at it": (SEEN, Plan(retry_after_s=2.0), State.PENDING, []),
    "facts can't be parsed": (
        seen(target=None, problems=(BAD,), observed=None),
        Plan(),
        State.INVALID,
        [],
    ),
    "the cloud has no place": (SEEN, Plan(problems=(BAD,)), State.INVALID, []),
    "the cloud can't be read": (
        seen(observed=Unknown(OUTAGE)),
        Plan(),
        State.UNKNOWN,
        [],
    ),
}


def test_each_situation_has_its_state_and_its_things() -> None:
    """A table, situation x state; a state without a row fails."""
    for name, (snapshot, made, state, things) in ROWS.items():
        found = row(snapshot, made)
        shown = [t.path[-1] + (" later" if t.is_later else "") for t in found.touched]
        print(f"{name:30} {found.state:20} {shown}")
        assert (found.state, shown) == (state, things), name
        assert found.service == "default/web"
    assert {state for _, _, state, _ in ROWS.values()} == set(State)


def test_why_is_said() -> None:
    assert row(seen(observed=Unknown(OUTAGE)), Plan()).why == OUTAGE.summary
    assert row(SEEN, Plan(retry_after_s=2.0)).why == "load balancer lb-1"
    notice = Notice(NoticeType.WARNING, "Reason", "told")
    found = row(SEEN, Plan(settled=True, problems=(ODD,), notices=(notice,)))
    assert found.problems == (ODD,)
    assert found.notices == ("Reason: told",)
    assert row(seen(target=None, problems=(BAD,)), Plan()).problems == (BAD,)


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
    (gone,) = row(seen(target=GONE), Plan(settled=True)).touched
    assert gone.changes == (FieldChange("metadata.finalizers", model.FINALIZER, ""),)


def test_things_hang_below_those_that_hold_them() -> None:
    """Also below one that is not touched, and in the order in which they come."""
    paths = (("a", "b", "c"), ("a", "d"), ("e",), ("a", "b"))
    touched = tuple(Touched(path, Verb.CHANGE) for path in paths)

    def shape(branches: tuple[preview.Branch, ...]) -> dict[str, object]:
        return {
            f"{one.name}{'*' * len(one.touched)}": shape(one.branches)
            for one in branches
        }

    assert shape(preview.tree(touched)) == {"a": {"b*": {"c*": {}}, "d*": {}}, "e*": {}}

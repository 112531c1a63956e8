"""What a pass would do to a Service's load balancer, as a tree: pure."""

import dataclasses
import datetime
import enum
from collections.abc import Iterable

from lib.balancers import decide, model, translate
from lib.balancers.model import Service, Snapshot
from lib.cloud.explained import Explain, FieldChange, Touched
from lib.cloud.load_balancers import Ingress, Observed, Plan
from lib.cloud.model import Seen
from lib.cloud.steps import Problem, Verb

SERVICE = "Service"
"""The root of what would be written in Kubernetes."""


class State(enum.StrEnum):
    """State of a Service's load balancer, compared with the desired one."""

    IN_SYNC = "InSync"
    WOULD_CREATE = "WouldCreate"
    WOULD_CHANGE = "WouldChange"
    WOULD_DELETE = "WouldDelete"
    PENDING = "Pending"
    """An operation in the cloud is in progress; `why` names it."""
    INVALID = "Invalid"
    """A problem is fatal: nothing would be written."""
    UNKNOWN = "Unknown"
    """The cloud could not be read; `why` is the error."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """What would become of one Service.

    service: namespace/name. load_balancer: its load balancer. touched: objects that
    would be changed, in the cloud and in Kubernetes. notices: Events that would be
    recorded. not_owned: load balancers of its name that it does not own.
    """

    service: str
    state: State
    why: str = ""
    load_balancer: str = ""
    touched: tuple[Touched, ...] = ()
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    not_owned: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """One thing in a tree. touched: empty for what only has others below it."""

    name: str
    touched: tuple[Touched, ...] = ()
    branches: tuple["Branch", ...] = ()


def row(
    seen: Snapshot,
    now: datetime.datetime,
    make_plan: decide.MakePlan,
    explain: Explain,
) -> Row:
    """Return what the flow would do about one Service; see `decide.decide`."""
    key = seen.service.key
    if seen.target is None:
        return Row(key, State.INVALID, problems=seen.problems)
    if not isinstance(seen.observed, Seen):
        why = "" if seen.observed is None else seen.observed.error.summary
        return Row(key, State.UNKNOWN, why or "it was not looked at")
    made = make_plan(seen.target, seen.observed.value, now)
    told = explain(seen.target, seen.observed.value, made)
    outcome = decide.decide(seen, now, lambda target, observed, at: made)
    written = tuple(_written(seen.service, outcome.actions))
    touched = (*told.touched, *written, *_later(seen, seen.observed.value, made))
    return Row(
        key,
        _state(seen, seen.observed.value, made, touched),
        told.waits_for,
        told.load_balancer,
        touched,
        made.problems,
        tuple(f"{one.reason}: {one.message}" for one in made.notices),
        told.not_owned,
    )


def _state(
    seen: Snapshot, observed: Observed, made: Plan, touched: tuple[Touched, ...]
) -> State:
    if any(problem.is_fatal for problem in made.problems):
        return State.INVALID
    is_wanted = seen.target is not None and seen.target.spec is not None
    if made.steps and is_wanted and not observed.id:
        return State.WOULD_CREATE
    if not made.steps and not made.settled:
        return State.PENDING
    if not touched:
        return State.IN_SYNC
    return State.WOULD_CHANGE if is_wanted else State.WOULD_DELETE


def _written(service: Service, actions: Iterable[model.Action]) -> Iterable[Touched]:
    """Return what would be written on the Service itself."""
    for action in actions:
        match action:
            case model.AddFinalizer():
                why = "it is kept until its load balancer is gone"
                yield _finalizer("", model.FINALIZER, why)
            case model.RemoveFinalizer():
                yield _finalizer(model.FINALIZER, "", "nothing of ours is left")
            case model.SetAnnotations(annotations):
                there = service.metadata.annotations
                changes = tuple(
                    FieldChange(key, there.get(key, ""), value or "")
                    for key, value in annotations
                )
                why = "they lead back to the load balancer"
                yield Touched((SERVICE, "annotations"), Verb.CHANGE, changes, why)
            case model.SetIngress(ingress):
                old = _addresses(translate.ingress(service))
                change = FieldChange("status.loadBalancer", old, _addresses(ingress))
                why = "clients find the load balancer there"
                yield Touched((SERVICE, "status"), Verb.CHANGE, (change,), why)


def _finalizer(old: str, new: str, why: str) -> Touched:
    change = FieldChange("metadata.finalizers", old, new)
    return Touched((SERVICE, "finalizer"), Verb.CHANGE, (change,), why)


def _addresses(ingress: Iterable[Ingress]) -> str:
    """Write a status as "192.0.2.1 (VIP), name.example"."""
    shown = (
        f"{one.ip or one.hostname}" + (f" ({one.ip_mode})" if one.ip_mode else "")
        for one in ingress
    )
    return ", ".join(shown)


def _later(seen: Snapshot, observed: Observed, made: Plan) -> Iterable[Touched]:
    """Return what is written on the Service when the steps are done."""
    if not made.steps or seen.target is None:
        return
    if seen.target.spec is None:
        why = "when nothing of ours is left"
        gone = _finalizer(model.FINALIZER, "", why)
        yield dataclasses.replace(gone, is_later=True)
    elif not observed.id:
        why = "its id and address, when it is there"
        for part in ("annotations", "status"):
            yield Touched((SERVICE, part), Verb.CHANGE, why=why, is_later=True)


def tree(touched: Iterable[Touched]) -> tuple[Branch, ...]:
    """Put things below those that hold them, in the order in which they come."""
    below: dict[str, list[Touched]] = {}
    here: dict[str, list[Touched]] = {}
    for one in touched:
        name, *rest = one.path
        here.setdefault(name, [])
        below.setdefault(name, [])
        if rest:
            deeper = dataclasses.replace(one, path=tuple(rest))
            below[name].append(deeper)
        else:
            here[name].append(one)
    return tuple(
        Branch(name, tuple(found), tree(below[name])) for name, found in here.items()
    )

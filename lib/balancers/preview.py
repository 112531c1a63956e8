"""What a reconciliation would do to a Service's load balancer, as a tree: pure."""

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
    """What would be changed for one Service.

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
    """One object in a tree. touched: empty for one that only has others below it."""

    name: str
    touched: tuple[Touched, ...] = ()
    branches: tuple["Branch", ...] = ()


def row(
    snapshot: Snapshot,
    now: datetime.datetime,
    make_plan: decide.MakePlan,
    explain: Explain,
) -> Row:
    """Return what the flow would do about one Service; see `decide.decide`."""
    key = snapshot.service.key
    if snapshot.target is None:
        return Row(key, State.INVALID, problems=snapshot.problems)
    if not isinstance(snapshot.observed, Seen):
        why = "" if snapshot.observed is None else snapshot.observed.error.summary
        return Row(key, State.UNKNOWN, why or "it was not read")
    plan = make_plan(snapshot.target, snapshot.observed.value, now)
    explanation = explain(snapshot.target, snapshot.observed.value, plan)
    outcome = decide.decide(snapshot, now, lambda target, observed, at: plan)
    written = tuple(_written(snapshot.service, outcome.actions))
    touched = (
        *explanation.touched,
        *written,
        *_later(snapshot, snapshot.observed.value, plan),
    )
    return Row(
        key,
        _state(snapshot, snapshot.observed.value, plan, touched),
        explanation.waits_for,
        explanation.load_balancer,
        touched,
        plan.problems,
        tuple(f"{notice.reason}: {notice.message}" for notice in plan.notices),
        explanation.not_owned,
    )


def _state(
    snapshot: Snapshot, observed: Observed, plan: Plan, touched: tuple[Touched, ...]
) -> State:
    if any(problem.is_fatal for problem in plan.problems):
        return State.INVALID
    is_desired = snapshot.target is not None and snapshot.target.spec is not None
    if plan.steps and is_desired and not observed.id:
        return State.WOULD_CREATE
    if not plan.steps and not plan.settled:
        return State.PENDING
    if not touched:
        return State.IN_SYNC
    return State.WOULD_CHANGE if is_desired else State.WOULD_DELETE


def _written(service: Service, actions: Iterable[model.Action]) -> Iterable[Touched]:
    """Return what would be written on the Service itself."""
    for action in actions:
        match action:
            case model.AddFinalizer():
                why = "it is kept until its load balancer is deleted"
                yield _finalizer("", model.FINALIZER, why)
            case model.RemoveFinalizer():
                yield _finalizer(model.FINALIZER, "", "all owned objects are deleted")
            case model.SetAnnotations(annotations):
                annotations_now = service.metadata.annotations
                changes = tuple(
                    FieldChange(key, annotations_now.get(key, ""), value or "")
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
        f"{address.ip or address.hostname}"
        + (f" ({address.ip_mode})" if address.ip_mode else "")
        for address in ingress
    )
    return ", ".join(shown)


def _later(snapshot: Snapshot, observed: Observed, plan: Plan) -> Iterable[Touched]:
    """Return what is written on the Service when the steps are done."""
    if not plan.steps or snapshot.target is None:
        return
    if snapshot.target.spec is None:
        why = "when all owned objects are deleted"
        gone = _finalizer(model.FINALIZER, "", why)
        yield dataclasses.replace(gone, is_later=True)
    elif not observed.id:
        why = "its ID and address, once it exists"
        for part in ("annotations", "status"):
            yield Touched((SERVICE, part), Verb.CHANGE, why=why, is_later=True)


def tree(touched: Iterable[Touched]) -> tuple[Branch, ...]:
    """Put objects below those that hold them, in the order of the changes."""
    below: dict[str, list[Touched]] = {}
    here: dict[str, list[Touched]] = {}
    for change in touched:
        name, *rest = change.path
        here.setdefault(name, [])
        below.setdefault(name, [])
        if rest:
            deeper = dataclasses.replace(change, path=tuple(rest))
            below[name].append(deeper)
        else:
            here[name].append(change)
    return tuple(
        Branch(name, tuple(changes), tree(below[name]))
        for name, changes in here.items()
    )

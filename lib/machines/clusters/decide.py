"""Next actions for a cluster: pure, snapshot to outcome."""

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence

from lib.cloud.machines import ConditionState, Observed, Plan, Reason, Target
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import CommonReason, Problem
from lib.machines import status
from lib.machines.clusters import model
from lib.machines.clusters.model import (
    Action,
    ClusterKinds,
    ClusterReason,
    ClusterStage,
    Leftover,
    PlaceReason,
    Snapshot,
)
from lib.plans import model as plans
from lib.reconcile.outcome import Outcome

MakePlan = Callable[[Target, Observed, datetime.datetime], Plan]
Decided = Outcome[Action]
POLL_S = 10.0
"""When leftovers are listed again, unless the cloud reports a change earlier."""
FAILED_S = 60.0
"""The same after a deletion was rejected."""
SHOWN_MAX = 20
"""Names that a message lists."""
AT_A_TIME = 20
"""Machines whose leftovers are deleted in one reconciliation."""
PROVISIONED = ConditionState(True, ClusterReason.PROVISIONED)


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRules:
    """What decisions depend on beside the snapshot. zones: failure domains."""

    kinds: ClusterKinds
    make_plan: MakePlan
    zones: tuple[str, ...] = ()


def decide(snapshot: Snapshot, now: datetime.datetime, rules: ClusterRules) -> Decided:
    """Return what brings a cluster closer to its desired state. now: UTC."""
    match snapshot.stage:
        case ClusterStage.IGNORED:
            return Outcome()
        case ClusterStage.PAUSED:
            return Outcome(_shown(snapshot, now, rules, {}, is_paused=True))
        case ClusterStage.DELETED:
            return _delete(snapshot, now, rules)
    return _provision(snapshot, now, rules)


def _provision(
    snapshot: Snapshot, now: datetime.datetime, rules: ClusterRules
) -> Decided:
    """Return the writes in their order.

    Cluster API reads the endpoint as soon as the cluster is provisioned. That waits for
    what the cluster refers to in the cloud; one that does not answer is no failure.
    """
    actions: list[Action] = []
    finalizer = rules.kinds.finalizer
    if finalizer and finalizer not in snapshot.cluster.metadata.finalizers:
        actions.append(model.AddClusterFinalizer())
    if not snapshot.cluster.has_endpoint:
        actions.append(model.SetEndpoint(snapshot.endpoint))
    match snapshot.place:
        case Unknown(error):
            state = ConditionState(None, PlaceReason.NOT_VERIFIED, error.summary)
            actions += _waiting(snapshot, now, rules, state)
            return Outcome(tuple(actions), failure=error)
        case Seen(Problem() as problem):
            state = ConditionState(False, problem.reason, problem.message)
            actions += _waiting(snapshot, now, rules, state)
            if _is_new(snapshot, status.READY, problem.message):
                event = model.RecordClusterEvent(problem.reason, problem.message)
                actions.append(event)
            return Outcome(tuple(actions), FAILED_S)
    states = {status.READY: PROVISIONED}
    actions += _shown(snapshot, now, rules, states, is_usable=True)
    return Outcome(tuple(actions))


def _waiting(
    snapshot: Snapshot,
    now: datetime.datetime,
    rules: ClusterRules,
    state: ConditionState,
) -> tuple[Action, ...]:
    return _shown(snapshot, now, rules, {status.READY: state})


def _shown(
    snapshot: Snapshot,
    now: datetime.datetime,
    rules: ClusterRules,
    states: Mapping[str, ConditionState | None],
    *,
    is_paused: bool = False,
    is_usable: bool = False,
) -> tuple[Action, ...]:
    """Return the write of the status, if it does not show this yet.

    Conditions that `states` lacks stay as they are recorded.
    """
    cluster, mirrors = snapshot.cluster, rules.kinds.mirrors
    states = {status.READY: None, **states, status.PAUSED: status.paused(is_paused)}
    document: dict[str, object] = {
        "conditions": status.conditions(cluster, states, now)
    }
    if is_usable or status.is_provisioned(cluster, mirrors):
        document |= status.provisioned(mirrors)
    if rules.zones:
        document["failureDomains"] = [
            {"name": zone, "controlPlane": True} for zone in rules.zones
        ]
    removed = tuple(
        field
        for field in (*status.FAILURE, "failureDomains")
        if field not in document and cluster.status.get(field) is not None
    )
    if not removed and status.holds(cluster, document):
        return ()
    return (model.WriteClusterStatus(document, removed),)


def _delete(snapshot: Snapshot, now: datetime.datetime, rules: ClusterRules) -> Decided:
    if snapshot.machines:
        reason, text = ClusterReason.WAITING_FOR_MACHINES, listed(snapshot.machines)
        return Outcome(_deleting(snapshot, now, rules, reason, text))
    if snapshot.others:
        shared = listed(snapshot.others)
        text = f"no resource was deleted: the cluster ID is also that of {shared}"
        event = model.RecordClusterEvent(ClusterReason.CLEANUP_SKIPPED, text)
        return Outcome((event, model.RemoveClusterFinalizer()))
    left = snapshot.left
    if left is None:
        return Outcome()
    if isinstance(left, Unknown):
        reason, text = ClusterReason.CLEANUP_FAILED, left.error.summary
        actions = _deleting(snapshot, now, rules, reason, text)
        return Outcome(actions, failure=left.error)
    pending = [each for each in left if each.target is not None]
    if pending:
        return _clean_up(snapshot, pending, now, rules)
    last = (*_kept(left), *_others(snapshot, now, rules))
    return Outcome((*last, model.RemoveClusterFinalizer()))


def _others(
    snapshot: Snapshot, now: datetime.datetime, rules: ClusterRules
) -> tuple[Action, ...]:
    """Report finalizers of other controllers, such as of a program that was replaced.

    The object stays until they are removed; without ours it is not reconciled again.
    """
    finalizers = snapshot.cluster.metadata.finalizers
    names = [name for name in finalizers if name != rules.kinds.finalizer]
    if not names:
        return ()
    text = (
        f"waiting for the finalizers of other controllers: {listed(names)}; one whose"
        " controller does not run any more must be removed"
    )
    return _deleting(snapshot, now, rules, ClusterReason.OTHER_FINALIZERS, text)


def _kept(left: Sequence[Leftover]) -> tuple[Action, ...]:
    """Report what this process cannot delete."""
    names = [name for each in left for name in each.names]
    if not names:
        return ()
    text = f"not deleted: {listed(names)}"
    return (model.RecordClusterEvent(CommonReason.CLEANUP_INCOMPLETE, text),)


def _clean_up(
    snapshot: Snapshot,
    pending: Sequence[Leftover],
    now: datetime.datetime,
    rules: ClusterRules,
) -> Decided:
    names = [name for each in pending for name in each.names]
    text, reason = f"waiting for: {listed(names)}", ClusterReason.CLEANING_UP
    retry_s = POLL_S
    if snapshot.failures:
        text = "; ".join((text, *sorted(set(snapshot.failures.values()))))
        reason, retry_s = ClusterReason.CLEANUP_FAILED, FAILED_S
    # Those that were rejected come after the others, which they would keep waiting.
    order = {name: number for number, name in enumerate(snapshot.failures)}
    ordered = sorted(pending, key=lambda each: order.get(each.machine, -1))
    steps = [step for each in ordered[:AT_A_TIME] for step in _steps(each, now, rules)]
    shown = _deleting(snapshot, now, rules, reason, text)
    return Outcome((*shown, *steps), retry_s)


def _steps(
    leftover: Leftover, now: datetime.datetime, rules: ClusterRules
) -> Sequence[Action]:
    """Return the next steps; those behind a gate follow from the next observation."""
    target, observed = leftover.target, leftover.observed
    if target is None or not isinstance(observed, Seen):
        return ()
    plan = rules.make_plan(target, observed.value, now)
    object_id = plan.object_id or observed.value.id
    return [
        model.CleanUp(target.ref.name, step)
        for step in plans.next_steps(plan.steps, object_id)
    ]


def _deleting(
    snapshot: Snapshot,
    now: datetime.datetime,
    rules: ClusterRules,
    reason: ClusterReason,
    message: str,
) -> tuple[Action, ...]:
    states = {
        status.READY: ConditionState(False, Reason.DELETING),
        status.DELETING: ConditionState(True, reason, message),
    }
    event: tuple[Action, ...] = ()
    is_failure = reason is ClusterReason.CLEANUP_FAILED
    if is_failure and _is_new(snapshot, status.DELETING, message):
        event = (model.RecordClusterEvent(reason, message),)
    return (*_shown(snapshot, now, rules, states), *event)


def _is_new(snapshot: Snapshot, type_: str, message: str) -> bool:
    recorded = status.recorded_conditions(snapshot.cluster).get(type_, {})
    return recorded.get("message") != message[: status.MESSAGE_MAX]


def listed(names: Sequence[str]) -> str:
    """Return names in one line, the first SHOWN_MAX of them."""
    text = ", ".join(names[:SHOWN_MAX])
    more = len(names) - SHOWN_MAX
    return f"{text} and {more} more" if more > 0 else text

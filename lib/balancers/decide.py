"""Next actions for a Service, such as its finalizer: pure, snapshot to outcome."""

import datetime
from collections.abc import Callable

from lib.balancers import contests, model, translate
from lib.balancers.model import Action, Snapshot, Source
from lib.cloud import errors
from lib.cloud.load_balancers import Observed, Plan, Reason, Results, Target
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import CommonReason, GateState, Notice, NoticeType, Problem
from lib.plans import model as plans
from lib.reconcile.outcome import Outcome

NAMED = 20
"""Nodes named in an Event, at most."""
PENDING_S = 300.0
"""A load balancer that the cloud has been changing for longer is reported; also a
creation ends within this time."""
WAITED_S = 120.0
WAITING = Notice(
    NoticeType.NORMAL,
    "WaitingForCloud",
    "the cloud works on as many load balancers as it can take; this Service has waited"
    " for two minutes, and is written as soon as others are finished",
)
UNREADABLE = "unexpected error while the Service was read"

MakePlan = Callable[[Target, Observed, datetime.datetime], Plan]
Decided = Outcome[Action]


def decide(snapshot: Snapshot, now: datetime.datetime, make_plan: MakePlan) -> Decided:
    """Return what brings the Service's load balancer one step closer.

    Pure, as `make_plan` is. At most one step that closes a gate, or that can't be
    repeated, is among the actions; the rest of its plan waits for the gate.
    """
    if snapshot.error is not None:
        return _failure(snapshot, snapshot.error, UNREADABLE)
    if snapshot.resumed is not None:
        return _go_on(snapshot, snapshot.resumed, now)
    if snapshot.target is None:
        return Outcome(_reported(snapshot, snapshot.problems))
    return _observed(snapshot, snapshot.target, now, make_plan)


def _observed(
    snapshot: Snapshot, target: Target, now: datetime.datetime, make_plan: MakePlan
) -> Decided:
    match snapshot.observed:
        case Unknown(error):
            return _failure(snapshot, error, error.advice)
        case Seen(observed):
            plan = make_plan(target, observed, now)
            return _carry_out(snapshot, target, observed, plan)
    return Outcome(_same_but_contested(snapshot))


def _same_but_contested(snapshot: Snapshot) -> tuple[Action, ...]:
    """Report what has come or gone while the cloud need not be read."""
    before = snapshot.reported or plans.TellProblems(())
    return _reported(snapshot, before.problems, before.notices)


def _failure(snapshot: Snapshot, error: Exception, why: str) -> Decided:
    """Return the outcome for a Service that could not be read.

    Its Event is repeated each time. A mass absence is counted among the problems, too;
    that it is new is reported by the same Event.
    """
    event = failed(snapshot, why)
    if not isinstance(error, errors.NotCredible):
        return Outcome(failure=error, events=(event,))
    problem = Problem(CommonReason.MASS_ABSENCE, why, is_fatal=True)
    reported = _reported(snapshot, (problem,))
    return Outcome(reported, failure=error, events=() if reported else (event,))


def failed(snapshot: Snapshot, why: str) -> model.RecordEvent:
    """Return the Event of a failed reconciliation.

    Source: k8s.io/cloud-provider service controller, updateLoadBalancerHosts.
    """
    if snapshot.operation is not model.Operation.UPDATE:
        return failed_to("ensure" if snapshot.service.is_desired else "delete", why)
    names = " ".join(node.name for node in snapshot.nodes[:NAMED])
    text = (
        f"Error updating load balancer with new hosts [{names}] [node names limited,"
        f" total number of nodes: {len(snapshot.nodes)}], error: {why}"
    )
    return _event("UpdateLoadBalancerFailed", text, is_warning=True)


def failed_to(verb: str, why: str) -> model.RecordEvent:
    """Source: k8s.io/cloud-provider service controller, SyncLoadBalancerFailed."""
    text = f"Error syncing load balancer: failed to {verb} load balancer: {why}"
    return _event("SyncLoadBalancerFailed", text, is_warning=True)


def _go_on(
    snapshot: Snapshot, resumed: plans.Resumed[Target], now: datetime.datetime
) -> Decided:
    """Apply the next step of an open plan, if its gate allows it."""
    plan, gate = resumed.plan, resumed.gate
    if isinstance(gate, Unknown):
        return _failure(snapshot, gate.error, gate.error.advice)
    before = snapshot.reported or plans.TellProblems(())
    others = tuple(p for p in before.problems if p.reason is not Reason.PENDING)
    if gate.state is GateState.CLOSED:
        pending = _pending(snapshot, resumed.closed_s, gate.why, now)
        notices = before.notices
        if resumed.waited_s >= WAITED_S and WAITING not in notices:
            notices = (*notices, WAITING)
        reported = _reported(snapshot, (*others, *pending), notices)
        return Outcome(reported, gate.retry_after_s)
    reported = _reported(snapshot, others, before.notices)
    return Outcome((*reported, *plans.next_steps(plan.steps, plan.object_id)))


def _pending(
    snapshot: Snapshot, closed_s: float, why: str, now: datetime.datetime
) -> tuple[Problem, ...]:
    """Report a state of the cloud that does not end; the same text each time."""
    known = _known_pending(snapshot)
    if not why or any(problem.message.startswith(why) for problem in known):
        return known
    if closed_s < PENDING_S:
        return ()
    since = now - datetime.timedelta(seconds=closed_s)
    message = f"{why}; observed since {since:%Y-%m-%d %H:%M} UTC"
    return (Problem(Reason.PENDING, message),)


def _carry_out(
    snapshot: Snapshot, target: Target, observed: Observed, plan: Plan
) -> Decided:
    """Turn a plan into actions, in an order in which a crash between them is safe."""
    is_desired = target.spec is not None
    actions = [*_announced(snapshot, observed, plan, is_desired=is_desired)]
    if is_desired:
        actions += lacking(snapshot, plan.results)
    else:
        actions += _noted(snapshot, plan)
    waits = bool(plan.object_id and not plan.steps and plan.retry_after_s is not None)
    problems = (*plan.problems, *(_known_pending(snapshot) if waits else ()))
    actions += _reported(snapshot, problems, plan.notices)
    if _is_fatal(plan.problems):
        text = "; ".join(p.message for p in plan.problems if p.is_fatal)
        return Outcome(tuple(actions), failure=model.TerminalError(text))
    if plan.backs_off and snapshot.backoff_s > 0:
        return Outcome(tuple(actions), snapshot.backoff_s)
    if plan.backs_off:
        actions.append(plans.StartBackoff())
    lb_id = plan.object_id or observed.id
    actions += plans.next_steps(plan.steps, lb_id, failed=snapshot.failed)
    if waits and plan.retry_after_s is not None:
        actions.append(plans.Await(lb_id, plan.retry_after_s))
    if plan.settled:
        actions += _settled(snapshot, plan, is_desired=is_desired)
    return Outcome(tuple(actions), plan.retry_after_s)


def _reported(
    snapshot: Snapshot, problems: tuple[Problem, ...], notices: tuple[Notice, ...] = ()
) -> tuple[Action, ...]:
    """Report what is wrong, if that was not reported before, or is due again."""
    others = (each for each in problems if each.reason is not CommonReason.CONTESTED)
    contested = map(contests.problem, snapshot.contested)
    now = plans.TellProblems((*others, *contested), notices)
    is_same = now == (snapshot.reported or plans.TellProblems(()))
    return () if is_same and not (now.problems and snapshot.is_report_due) else (now,)


def _known_pending(snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return what was reported of a state that does not end: its gate may end it."""
    problems = () if snapshot.reported is None else snapshot.reported.problems
    return tuple(p for p in problems if p.reason is Reason.PENDING)


def _is_fatal(problems: tuple[Problem, ...]) -> bool:
    return any(problem.is_fatal for problem in problems)


def _announced(
    snapshot: Snapshot, observed: Observed, plan: Plan, *, is_desired: bool
) -> tuple[Action, ...]:
    """Report once that something has begun."""
    if snapshot.is_in_progress or not plan.steps:
        return ()
    if not is_desired:
        return (_event("DeletingLoadBalancer", "Deleting load balancer"),)
    events: list[Action] = []
    if not observed.is_there or snapshot.topics != {model.Topic.NODES}:
        events.append(_event("EnsuringLoadBalancer", "Ensuring load balancer"))
    if not snapshot.nodes:
        text = "There are no available nodes for LoadBalancer"
        events.append(_event("UnAvailableLoadBalancer", text, is_warning=True))
    return tuple(events)


def _settled(snapshot: Snapshot, plan: Plan, *, is_desired: bool) -> tuple[Action, ...]:
    """Report once that what had begun is complete."""
    if not is_desired:
        return _deleted(snapshot, plan)
    settle = model.Settle(plan.results)
    if not snapshot.is_in_progress:
        return (settle,)
    if snapshot.topics != {model.Topic.NODES}:
        text = "Ensured load balancer"
        return (settle, _event("EnsuredLoadBalancer", text))
    if not snapshot.nodes:
        return (settle,)  # that no Node is available was reported
    text = "Updated load balancer with new hosts"
    return (settle, _event("UpdatedLoadBalancer", text))


def _deleted(snapshot: Snapshot, plan: Plan) -> tuple[Action, ...]:
    """Release a Service of which nothing is left.

    One of another class keeps the finalizer if nothing shows that it is ours.
    """
    service = snapshot.service
    is_ours = snapshot.is_in_progress or bool(_noted(snapshot, plan))
    if service.is_of_other_class and not is_ours:
        return (model.Settle(plan.results),)
    if model.RemoveFinalizer() in snapshot.withheld:
        return ()
    done = _event("DeletedLoadBalancer", "Deleted load balancer")
    return (model.RemoveFinalizer(), done)


def _noted(snapshot: Snapshot, plan: Plan) -> tuple[Action, ...]:
    """Return the removal of our notes on a Service; one that is deleted keeps them."""
    is_deleted = snapshot.service.metadata.deletion_timestamp is not None
    return () if is_deleted else missing(snapshot, plan.results)


def lacking(snapshot: Snapshot, results: Results) -> tuple[Action, ...]:
    """Return what is to be written on a Service that is to have a load balancer."""
    finalizer = model.AddFinalizer()
    if snapshot.service.has_finalizer or finalizer in snapshot.withheld:
        return missing(snapshot, results)
    return (finalizer, *missing(snapshot, results))


def missing(snapshot: Snapshot, results: Results) -> tuple[Action, ...]:
    """Return what is to be written on a Service for these results to hold there."""
    actions: list[Action] = []
    annotations = snapshot.service.metadata.annotations
    wrong = tuple(
        (key, value)
        for key, value in results.annotations
        if annotations.get(key) != value
        and model.SetAnnotations(((key, value),)) not in snapshot.withheld
    )
    if wrong:
        actions.append(model.SetAnnotations(wrong))
    ingress = results.ingress
    if ingress is not None and ingress != translate.ingress(snapshot.service):
        actions.append(model.SetIngress(ingress))
    return tuple(each for each in actions if each not in snapshot.withheld)


def _event(reason: str, message: str, *, is_warning: bool = False) -> model.RecordEvent:
    return model.RecordEvent(Source.SERVICE, is_warning, reason, message)

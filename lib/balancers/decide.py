"""What a Service needs next: pure, snapshot in, outcome out."""

import datetime
from collections.abc import Callable

from lib.balancers import model, translate
from lib.balancers.model import Action, Snapshot, Source
from lib.cloud.load_balancers import Observed, Plan, Results, Target
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import GateState, Notice, Problem
from lib.plans import model as plans
from lib.reconcile.outcome import Outcome

NAMED = 20
"""Nodes named in an Event, at most."""
UNREADABLE = "unexpected error while the Service was read"

MakePlan = Callable[[Target, Observed, datetime.datetime], Plan]
Decided = Outcome[Action]


def decide(seen: Snapshot, now: datetime.datetime, make_plan: MakePlan) -> Decided:
    """Return what brings the Service's load balancer one step closer.

    Pure, as `make_plan` is. At most one step that closes a gate, or that can't be
    repeated, is among the actions; the rest of its plan waits for the gate.
    """
    if seen.error is not None:
        return _failure(seen, seen.error, UNREADABLE)
    if seen.resumed is not None:
        return _go_on(seen, seen.resumed)
    if seen.target is None:
        return Outcome(_reported(seen, seen.problems))
    return _observed(seen, seen.target, now, make_plan)


def _observed(
    seen: Snapshot, target: Target, now: datetime.datetime, make_plan: MakePlan
) -> Decided:
    match seen.observed:
        case Unknown(error):
            return _failure(seen, error, error.summary)
        case Seen(observed):
            plan = make_plan(target, observed, now)
            return _carry_out(seen, target, observed, plan)
    return Outcome()


def _failure(seen: Snapshot, error: Exception, why: str) -> Decided:
    """Return the outcome for a Service that could not be read."""
    return Outcome(failure=error, events=(failed(seen, why),))


def failed(seen: Snapshot, why: str) -> model.RecordEvent:
    """Return the Event of a failed reconciliation.

    Source: k8s.io/cloud-provider service controller, updateLoadBalancerHosts.
    """
    if seen.operation is not model.Operation.UPDATE:
        return failed_to("ensure" if seen.service.is_wanted else "delete", why)
    names = " ".join(node.name for node in seen.nodes[:NAMED])
    text = (
        f"Error updating load balancer with new hosts [{names}] [node names limited,"
        f" total number of nodes: {len(seen.nodes)}], error: {why}"
    )
    return _event("UpdateLoadBalancerFailed", text, is_warning=True)


def failed_to(verb: str, why: str) -> model.RecordEvent:
    """Source: k8s.io/cloud-provider service controller, SyncLoadBalancerFailed."""
    text = f"Error syncing load balancer: failed to {verb} load balancer: {why}"
    return _event("SyncLoadBalancerFailed", text, is_warning=True)


def _go_on(seen: Snapshot, resumed: plans.Resumed[Target]) -> Decided:
    """Apply the next step of an open plan, if its gate allows it."""
    plan, gate = resumed.plan, resumed.gate
    if isinstance(gate, Unknown):
        return _failure(seen, gate.error, gate.error.summary)
    if gate.state is GateState.CLOSED:
        return Outcome(requeue_after_s=gate.retry_after_s)
    return Outcome(plans.next_steps(plan.steps, plan.object_id))


def _carry_out(
    seen: Snapshot, target: Target, observed: Observed, plan: Plan
) -> Decided:
    """Turn a plan into actions, in the order in which a death between them is safe."""
    is_wanted = target.spec is not None
    actions = [*_announced(seen, observed, plan, is_wanted=is_wanted)]
    if is_wanted and not seen.service.has_finalizer:
        actions.append(model.AddFinalizer())
    actions += missing(seen.service, plan.results)
    actions += _reported(seen, plan.problems, plan.notices)
    if _is_fatal(plan.problems):
        text = "; ".join(p.message for p in plan.problems if p.is_fatal)
        return Outcome(tuple(actions), failure=model.Unserved(text))
    if plan.backs_off and seen.backoff_s > 0:
        return Outcome(tuple(actions), seen.backoff_s)
    if plan.backs_off:
        actions.append(plans.Bar())
    lb_id = plan.object_id or observed.id
    actions += plans.next_steps(plan.steps, lb_id)
    if plan.object_id and not plan.steps and plan.retry_after_s is not None:
        actions.append(plans.Await(lb_id, plan.retry_after_s))
    if plan.settled:
        actions += _settled(seen, plan, is_wanted=is_wanted)
    return Outcome(tuple(actions), plan.retry_after_s)


def _reported(
    seen: Snapshot, problems: tuple[Problem, ...], notices: tuple[Notice, ...] = ()
) -> tuple[Action, ...]:
    """Report what is wrong, if that was not reported before."""
    now = plans.TellProblems(problems, notices)
    return () if now == (seen.reported or plans.TellProblems(())) else (now,)


def _is_fatal(problems: tuple[Problem, ...]) -> bool:
    return any(problem.is_fatal for problem in problems)


def _announced(
    seen: Snapshot, observed: Observed, plan: Plan, *, is_wanted: bool
) -> tuple[Action, ...]:
    """Report once that something has begun."""
    if seen.is_in_progress or not plan.steps:
        return ()
    if not is_wanted:
        return (_event("DeletingLoadBalancer", "Deleting load balancer"),)
    said: list[Action] = []
    if not observed.is_there or seen.topics != {model.Topic.NODES}:
        said.append(_event("EnsuringLoadBalancer", "Ensuring load balancer"))
    if not seen.nodes:
        text = "There are no available nodes for LoadBalancer"
        said.append(_event("UnAvailableLoadBalancer", text, is_warning=True))
    return tuple(said)


def _settled(seen: Snapshot, plan: Plan, *, is_wanted: bool) -> tuple[Action, ...]:
    """Report once that what had begun is complete."""
    if not is_wanted:
        done = _event("DeletedLoadBalancer", "Deleted load balancer")
        return (model.RemoveFinalizer(), done)
    settle = model.Settle(plan.results)
    if not seen.is_in_progress:
        return (settle,)
    if seen.topics != {model.Topic.NODES}:
        text = "Ensured load balancer"
        return (settle, _event("EnsuredLoadBalancer", text))
    if not seen.nodes:
        return (settle,)  # that there is nobody has been said
    text = "Updated load balancer with new hosts"
    return (settle, _event("UpdatedLoadBalancer", text))


def missing(service: model.Service, results: Results) -> tuple[Action, ...]:
    """Return what is to be written on a Service for these results to hold there."""
    actions: list[Action] = []
    there = service.metadata.annotations
    wrong = tuple(
        (key, value) for key, value in results.annotations if there.get(key) != value
    )
    if wrong:
        actions.append(model.SetAnnotations(wrong))
    ingress = results.ingress
    if ingress is not None and ingress != translate.ingress(service):
        actions.append(model.SetIngress(ingress))
    return tuple(actions)


def _event(reason: str, message: str, *, is_warning: bool = False) -> model.RecordEvent:
    return model.RecordEvent(Source.SERVICE, is_warning, reason, message)

"""Next actions for a machine: pure, snapshot to outcome."""

import dataclasses
import datetime
from collections.abc import Callable, Collection

from lib.cloud import errors
from lib.cloud.machines import (
    ConditionState,
    Observed,
    Plan,
    Reason,
    Results,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import CommonReason, GateState, Notice, Problem, ProblemReason
from lib.machines import model, status
from lib.machines.kinds import Kinds
from lib.machines.model import Action, MachineStage, Snapshot
from lib.plans import model as plans
from lib.reconcile.outcome import Outcome

MakePlan = Callable[[Target, Observed, datetime.datetime], Plan]
Decided = Outcome[Action]
LEFT = "waiting for: "


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What decisions depend on beside the snapshot.

    own_types: of the provider's conditions. deletion_timeout_s: after it a machine is
    released although parts are left. It counts from the first deletion that the cloud
    has accepted, and releases none of which a part was not asked to be deleted, unless
    the cloud has rejected that for the whole time.

    Source: deckhouse modules/030-cloud-provider-dvp, capdvp-controller-manager: its
    time limit begins with its own request.
    """

    kinds: Kinds
    make_plan: MakePlan
    own_types: Collection[str] = ()
    deletion_timeout_s: float = 600.0


def decide(snapshot: Snapshot, now: datetime.datetime, rules: Rules) -> Decided:
    """Return what brings a machine one step closer to its target. now: UTC.

    Of actions in this order a crash between two does no harm: finalizer, provider ID,
    status, steps of the cloud, and at the end of a deletion the finalizer again.
    """
    if snapshot.error is not None:
        return Outcome(failure=snapshot.error)
    match snapshot.assessment.stage:
        case MachineStage.IGNORED:
            return Outcome()
        case MachineStage.PAUSED:
            return Outcome(_shown(snapshot, now, rules, None))
        case MachineStage.WAITING:
            return _waiting(snapshot, now, rules)
    return _active(snapshot, now, rules)


def _active(snapshot: Snapshot, now: datetime.datetime, rules: Rules) -> Decided:
    """Return the outcome for a machine that is desired or deleted."""
    if snapshot.resumed is not None:
        return _resumed(snapshot, snapshot.resumed, now, rules)
    if snapshot.target is None:
        return _invalid(snapshot, now, rules)
    return _observed(snapshot, snapshot.target, now, rules)


def _shown(
    snapshot: Snapshot,
    now: datetime.datetime,
    rules: Rules,
    state: ConditionState | None,
    results: Results | None = None,
    deleting: str | None = None,
) -> tuple[Action, ...]:
    """Return the write of the status, if it does not show this yet."""
    owner = snapshot.related.owner
    shown = status.Shown(
        state,
        results,
        snapshot.assessment.stage is MachineStage.PAUSED,
        has_node=owner is not None and owner.status.node_ref is not None,
        deleting=deleting,
    )
    write = status.change(snapshot.machine, rules.kinds, shown, rules.own_types, now)
    return () if write is None else (write,)


def _reported(
    snapshot: Snapshot, problems: tuple[Problem, ...], notices: tuple[Notice, ...] = ()
) -> tuple[Action, ...]:
    """Report what is wrong, if that was not reported before."""
    now = plans.TellProblems(problems, notices)
    return () if now == (snapshot.reported or plans.TellProblems(())) else (now,)


def _finalizer(snapshot: Snapshot, rules: Rules) -> tuple[Action, ...]:
    if rules.kinds.finalizer in snapshot.machine.metadata.finalizers:
        return ()
    return (model.AddMachineFinalizer(),)


def _waiting(snapshot: Snapshot, now: datetime.datetime, rules: Rules) -> Decided:
    """Report what is waited for; a watch shows when it is there."""
    about = snapshot.assessment
    problems = () if about.problem is None else (about.problem,)
    return Outcome(
        (
            *_finalizer(snapshot, rules),
            *_shown(snapshot, now, rules, about.state),
            *_reported(snapshot, problems),
        )
    )


def _invalid(snapshot: Snapshot, now: datetime.datetime, rules: Rules) -> Decided:
    """Report fields that cannot be served; only another spec helps."""
    texts = "; ".join(p.message for p in snapshot.problems if p.is_fatal)
    state = ConditionState(False, _first_reason(snapshot.problems), texts)
    return Outcome(
        (
            *_finalizer(snapshot, rules),
            *_shown(snapshot, now, rules, state),
            *_reported(snapshot, snapshot.problems),
        )
    )


def _first_reason(problems: tuple[Problem, ...]) -> ProblemReason:
    return next((p.reason for p in problems if p.is_fatal), Reason.INVALID_SPEC)


def _resumed(
    snapshot: Snapshot,
    resumed: plans.Resumed[Target],
    now: datetime.datetime,
    rules: Rules,
) -> Decided:
    """Apply the next step of an open plan, if its gate allows it."""
    plan, gate = resumed.plan, resumed.gate
    if isinstance(gate, Unknown):
        return _unread(snapshot, gate, now, rules)
    if gate.state is GateState.CLOSED:
        return Outcome(requeue_after_s=gate.retry_after_s)
    return Outcome(plans.next_steps(plan.steps, plan.object_id))


def _unread(
    snapshot: Snapshot, unknown: Unknown, now: datetime.datetime, rules: Rules
) -> Decided:
    """Report that the cloud could not be read; the queue retries with backoff."""
    state = ConditionState(None, Reason.ERROR, unknown.error.summary)
    deleting = None if snapshot.is_desired else unknown.error.summary
    actions = _shown(snapshot, now, rules, state, deleting=deleting)
    if isinstance(unknown.error, errors.NotCredible):
        problem = Problem(CommonReason.MASS_ABSENCE, unknown.error.summary)
        actions += _reported(snapshot, (problem,))
    return Outcome(actions, failure=unknown.error)


def _observed(
    snapshot: Snapshot, target: Target, now: datetime.datetime, rules: Rules
) -> Decided:
    match snapshot.observed:
        case Unknown() as unknown:
            return _unread(snapshot, unknown, now, rules)
        case Seen(observed):
            plan = rules.make_plan(target, observed, now)
            if target.spec is None:
                return _delete(snapshot, observed, plan, now, rules)
            return _ensure(snapshot, observed, plan, now, rules)
    if snapshot.settled is None:
        return Outcome()
    return Outcome(_written(snapshot, snapshot.settled, now, rules))


def _written(
    snapshot: Snapshot, results: Results, now: datetime.datetime, rules: Rules
) -> tuple[Action, ...]:
    """Return the writes on the object for these results.

    The provider ID comes first: Cluster API reads it as soon as the machine is
    provisioned. It is written only then, and never changed.
    """
    actions: list[Action] = []
    if results.is_provisioned and not snapshot.machine.provider_id:
        actions.append(model.SetProviderId(results.provider_id))
    state = results.state
    if snapshot.refusal is not None and state.is_true is not True:
        state = _refused(snapshot.refusal)
    return (*actions, *_shown(snapshot, now, rules, state, results))


def _refused(refusal: Problem) -> ConditionState:
    """Return what shows a rejected write: the provider's own reason, if it has one."""
    is_usual = refusal.reason is CommonReason.REFUSED
    reason = Reason.ERROR if is_usual else refusal.reason
    return ConditionState(False, reason, refusal.message)


def _ensure(
    snapshot: Snapshot,
    observed: Observed,
    plan: Plan,
    now: datetime.datetime,
    rules: Rules,
) -> Decided:
    actions = [
        *_finalizer(snapshot, rules),
        *_written(snapshot, plan.results, now, rules),
        *_reported(snapshot, plan.problems, plan.notices),
    ]
    if any(problem.is_fatal for problem in plan.problems):
        # Until something changes the answer is the same: drift detection reads again.
        actions.append(model.SettleMachine(plan.results))
        return Outcome(tuple(actions), plan.retry_after_s)
    if plan.backs_off and snapshot.backoff_s > 0:
        return Outcome(tuple(actions), snapshot.backoff_s)
    if plan.backs_off:
        actions.append(plans.StartBackoff())
    actions += _steps(snapshot, observed, plan)
    if plan.settled:
        actions.append(model.SettleMachine(plan.results))
    return Outcome(tuple(actions), plan.retry_after_s)


def _steps(snapshot: Snapshot, observed: Observed, plan: Plan) -> tuple[Action, ...]:
    object_id = plan.object_id or observed.id
    if plan.steps:
        return plans.next_steps(plan.steps, object_id, failed=snapshot.failed)
    if plan.object_id and plan.retry_after_s is not None:
        return (plans.Await(object_id, plan.retry_after_s),)
    return ()


def _delete(
    snapshot: Snapshot,
    observed: Observed,
    plan: Plan,
    now: datetime.datetime,
    rules: Rules,
) -> Decided:
    """Delete all that is owned; after the time limit release the object."""
    if plan.settled:
        return Outcome((model.RemoveMachineFinalizer(),))
    left = ", ".join(plan.leftovers)
    if _is_late(snapshot, plan, now, rules):
        text = f"the deletion took longer than {rules.deletion_timeout_s:.0f} s"
        event = model.RecordEvent(
            True, Reason.DELETION_TIMED_OUT, f"{text}; not deleted: {left}"
        )
        release = model.RemoveMachineFinalizer(is_complete=False)
        return Outcome((model.AnnotateMachine(plan.abandoned), event, release))
    message = LEFT + left
    if snapshot.refusal is not None:
        message = f"{message}; {snapshot.refusal.message}"
    actions = [
        *_shown(snapshot, now, rules, plan.results.state, deleting=message),
        *_reported(snapshot, plan.problems, plan.notices),
        *_steps(snapshot, observed, plan),
    ]
    return Outcome(tuple(actions), _until(snapshot, plan, now, rules))


def _is_late(
    snapshot: Snapshot, plan: Plan, now: datetime.datetime, rules: Rules
) -> bool:
    """Report whether the time limit of a deletion has ended; see `Rules`."""
    timeout_s, since = rules.deletion_timeout_s, _since(snapshot, plan)
    if since is not None:
        return left_s(since, now, timeout_s) <= 0
    refused_s = (snapshot.refused_s.get(step.path, -1.0) for step in plan.steps)
    return min(refused_s, default=-1.0) >= timeout_s


def _since(snapshot: Snapshot, plan: Plan) -> datetime.datetime | None:
    """Return when the time limit began; None: it has not.

    Parts may have been deleted by others before the object was.
    """
    deleted_at = snapshot.machine.metadata.deletion_timestamp
    if plan.asked_at is None or deleted_at is None:
        return None
    return max(plan.asked_at, deleted_at)


def _until(
    snapshot: Snapshot, plan: Plan, now: datetime.datetime, rules: Rules
) -> float | None:
    """Return when to reconcile again: at the latest when the time limit ends."""
    since, retry_s = _since(snapshot, plan), plan.retry_after_s
    if since is None:
        return retry_s
    end_s = left_s(since, now, rules.deletion_timeout_s)
    return end_s if retry_s is None else min(end_s, retry_s)


def left_s(since: datetime.datetime, now: datetime.datetime, timeout_s: float) -> float:
    """Return how many seconds of a time limit are left; 0: it has ended."""
    return max(0.0, timeout_s - (now - since).total_seconds())

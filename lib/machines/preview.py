"""What a reconciliation would do for a machine, as rows: pure."""

import dataclasses
import datetime
import enum
from collections.abc import Iterator

from lib.cloud.model import Unknown
from lib.cloud.steps import Problem, Step, Verb
from lib.machines import decide, model
from lib.machines.model import MachineStage, Snapshot
from lib.plans import model as plans


class MachinePlanState(enum.StrEnum):
    """State of a machine, compared with the desired one."""

    IN_SYNC = "InSync"
    WOULD_CREATE = "WouldCreate"
    WOULD_CHANGE = "WouldChange"
    WOULD_DELETE = "WouldDelete"
    WAITING = "Waiting"
    """For objects of Cluster API, or for the cloud."""
    PAUSED = "Paused"
    IGNORED = "Ignored"
    """It has no owner, or another controller is responsible for it."""
    INVALID = "Invalid"
    """A problem is fatal: the cloud would not be written."""
    UNKNOWN = "Unknown"
    """The cloud could not be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class MachineChange:
    """One write. object: path, outermost first. is_later: after those before it."""

    object: str
    verb: Verb
    reason: str
    is_later: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class MachineRow:
    """What would be done for one machine. machine: namespace/name."""

    machine: str
    state: MachinePlanState
    reason: str = ""
    changes: tuple[MachineChange, ...] = ()
    problems: tuple[Problem, ...] = ()


def row(snapshot: Snapshot, now: datetime.datetime, rules: decide.Rules) -> MachineRow:
    """Return what the flow would do; see `decide.decide`."""
    outcome = decide.decide(snapshot, now, rules)
    changes = tuple(_changes(outcome.actions, rules.kinds.machine.kind))
    problems = tuple(_problems(snapshot, outcome.actions))
    state = _state(snapshot, changes, problems)
    return MachineRow(
        snapshot.machine.key, state, _reason(snapshot, state), changes, problems
    )


def _problems(
    snapshot: Snapshot, actions: tuple[model.Action, ...]
) -> Iterator[Problem]:
    reported = [a for a in actions if isinstance(a, plans.TellProblems)]
    yield from (problem for action in reported for problem in action.problems)
    if not reported:
        yield from snapshot.problems


def _state(
    snapshot: Snapshot,
    changes: tuple[MachineChange, ...],
    problems: tuple[Problem, ...],
) -> MachinePlanState:
    if snapshot.error is not None or isinstance(snapshot.observed, Unknown):
        return MachinePlanState.UNKNOWN
    fixed = {
        MachineStage.IGNORED: MachinePlanState.IGNORED,
        MachineStage.PAUSED: MachinePlanState.PAUSED,
        MachineStage.DELETED: MachinePlanState.WOULD_DELETE,
    }
    if snapshot.assessment.stage in fixed:
        return fixed[snapshot.assessment.stage]
    if any(problem.is_fatal for problem in problems):
        return MachinePlanState.INVALID
    if snapshot.assessment.stage is MachineStage.WAITING:
        return MachinePlanState.WAITING
    if any(change.verb is Verb.CREATE for change in changes):
        return MachinePlanState.WOULD_CREATE
    return MachinePlanState.WOULD_CHANGE if changes else MachinePlanState.IN_SYNC


def _reason(snapshot: Snapshot, state: MachinePlanState) -> str:
    if snapshot.error is not None:
        return str(snapshot.error)
    if isinstance(snapshot.observed, Unknown):
        return snapshot.observed.error.summary
    shown = snapshot.assessment.state
    is_waiting = state is MachinePlanState.WAITING
    return shown.message if shown is not None and is_waiting else ""


def _changes(actions: tuple[model.Action, ...], kind: str) -> Iterator[MachineChange]:
    for action in actions:
        match action:
            case plans.ApplyStep(step, rest, _, is_last):
                yield _of_step(step)
                if is_last:
                    yield from (_of_step(later, is_later=True) for later in rest)
            case model.AddMachineFinalizer():
                why = "it is kept until its instance is deleted"
                yield MachineChange(f"{kind} / finalizer", Verb.CHANGE, why)
            case model.RemoveMachineFinalizer():
                why = "all that it owned is deleted"
                yield MachineChange(f"{kind} / finalizer", Verb.CHANGE, why)
            case model.SetProviderId(provider_id):
                yield MachineChange(f"{kind} / provider ID", Verb.CHANGE, provider_id)
            case model.AnnotateMachine():
                why = "they name what is left"
                yield MachineChange(f"{kind} / annotations", Verb.CHANGE, why)
            case model.WriteMachineStatus():
                why = "it differs from what is observed"
                yield MachineChange(f"{kind} / status", Verb.CHANGE, why)


def _of_step(step: Step, *, is_later: bool = False) -> MachineChange:
    return MachineChange(" / ".join(step.path), step.verb, step.why, is_later)

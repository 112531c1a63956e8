"""Open plans and the actions of a flow that carries plans out."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.steps import Gate, Notice, Problem, Step


class HasKey(Protocol):
    """What an engine reads of a target."""

    @property
    def key(self) -> str:
        """The key in the queue of the object that has the target."""
        ...


Target = TypeVar("Target", bound=HasKey)
Action = TypeVar("Action")


# No slots: Python 3.11 then could not make it as OpenPlan[...](...).
@dataclasses.dataclass(frozen=True)
class OpenPlan(Generic[Target]):
    """A plan in progress: the steps that are left, and the target it was made for.

    object_id: whose gate is asked before each step. since_s, due_s: monotonic times at
    which the last step was applied, and before which no gate is asked. topics: for
    which it continues. gate: what a call for other plans has shown in the meantime.
    has_written: a step was applied; one that only waits keeps no other from writing.
    why: the gate was closed when it was asked last; empty: it was not, or not asked.
    """

    target: Target
    steps: tuple[Step, ...]
    object_id: str
    since_s: float
    due_s: float
    topics: frozenset[str]
    gate: Gate | None = None
    has_written: bool = True
    why: str = ""

    @property
    def waits_for_place(self) -> bool:
        """Report whether none of its steps was applied yet; see `Engine.apply`."""
        return bool(self.steps) and not self.has_written


@dataclasses.dataclass(frozen=True)
class Resumed(Generic[Target]):
    """An open plan that continues, and the answer of its gate.

    closed_s: for how many seconds the gate has been observed as closed. waited_s: for
    how many the object has waited for a place.
    """

    plan: OpenPlan[Target]
    gate: Gate | Unknown
    closed_s: float = 0.0
    waited_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyStep:
    """Make one write of the cloud.

    rest: the steps of the plan that are left afterwards. object_id: whose gate they
    wait for; empty when the step creates it. is_last: no further step is applied in
    this reconciliation. refused: paths of steps of the plan that were refused before.
    """

    step: Step
    rest: tuple[Step, ...]
    object_id: str
    is_last: bool
    refused: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        return str(self.step)


@dataclasses.dataclass(frozen=True, slots=True)
class Await:
    """Ask for nothing but the gate of an object until it opens."""

    object_id: str
    after_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class StartBackoff:
    """Note that what failed is created again; the next time waits longer."""


@dataclasses.dataclass(frozen=True, slots=True)
class TellProblems:
    """Report what is wrong now, where it has changed, and count it. None: all is well.

    notices: what else is reported once.
    """

    problems: tuple[Problem, ...]
    notices: tuple[Notice, ...] = ()


LASTING = (
    errors.InvalidRequest,
    errors.AlreadyExists,
    errors.Unsupported,
    errors.Forbidden,
    errors.QuotaExceeded,
    errors.LimitReached,
    errors.Unplaceable,
)
"""How a write fails as long as neither its object nor the cloud is changed."""
REFUSED = (*LASTING, errors.NotFound)
"""What concerns the object of one step; every other error stops the whole plan."""

MOST_STEPS = 20
"""Writes of the cloud in one reconciliation, at most."""


def next_steps(
    steps: tuple[Step, ...],
    object_id: str,
    refused: tuple[tuple[str, ...], ...] = (),
    failed: Sequence[str] = (),
) -> tuple[ApplyStep, ...]:
    """Return the first steps of a plan, up to one after which must be waited.

    A plan may have a step per Node: the rest waits, so that others get the worker.
    refused: see `ApplyStep`. failed: see `failed_last`.
    """
    actions: list[ApplyStep] = []
    steps = failed_last(steps, failed)
    for index, step in enumerate(steps):
        is_last = step.is_gated or not step.is_repeatable
        is_last |= index + 1 in (len(steps), MOST_STEPS)
        rest = steps[index + 1 :]
        actions.append(ApplyStep(step, rest, object_id, is_last, refused))
        if is_last:
            break
    return tuple(actions)


def failed_last(steps: tuple[Step, ...], failed: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps with those of groups that have failed behind the others.

    An error that is no refusal stops the whole plan, since the cloud may be away. If it
    concerns one object alone, those behind it would never be reached. failed: in the
    order in which they are tried again.
    """
    first = tuple(itertools.takewhile(lambda step: step.group, steps))
    order = {group: number for number, group in enumerate(failed)}
    ordered = sorted(first, key=lambda step: order.get(step.group, -1))
    return (*ordered, *steps[len(first) :])


def left_after(
    failed: object, error: Exception, rest: Sequence[Action]
) -> tuple[Action | ApplyStep, ...]:
    """Return what is still carried out of a reconciliation after an action has failed.

    One refused step does not stop those that do not depend on it; the reconciliation
    ends with its error all the same. rest: the actions that would have followed.
    """
    if not isinstance(failed, ApplyStep) or not isinstance(error, REFUSED):
        return ()
    left = independent(failed.step, failed.rest)
    others = (action for action in rest if not isinstance(action, ApplyStep))
    refused = (*failed.refused, failed.step.path)
    return (*next_steps(left, failed.object_id, refused), *others)


def independent(refused: Step, rest: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps that do not depend on a refused one; see `Step.group`."""
    if not refused.group:
        return ()
    before = itertools.takewhile(lambda step: step.group, rest)
    return tuple(step for step in before if step.group != refused.group)

"""How actions are carried out: in order, each logged, none of them in a dry run.

Shared by the runner, which takes keys from a queue, and by `waiting`, which reconciles
a key in the thread of its caller.
"""

import collections
import dataclasses
import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

import structlog

from lib.reconcile import dry_run
from lib.reconcile import failure as failures
from lib.reconcile import outcome as outcomes

Snapshot = TypeVar("Snapshot")
Action = TypeVar("Action")

MOST_ERRORS = 100
"""Errors of one reconciliation after which others go on, at most."""


class Steps(Protocol[Snapshot, Action]):
    """What a flow does with a snapshot, and what the errors of its steps mean.

    A flow that inherits from this class gets the methods that have a body.
    """

    @property
    def name(self) -> str:
        """Return the name of the controller, for logs and metrics."""
        ...

    def decide(
        self, snapshot: Snapshot, now: datetime.datetime
    ) -> outcomes.Outcome[Action]:
        """Return what is to be done; pure."""
        ...

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out; return the snapshot with our write in it.

        The next action is carried out upon that. May raise, and then the rest is not
        carried out, unless the flow is one that `GoesOn`.
        """
        ...

    def is_note(self, action: Action) -> bool:
        """Report whether an action changes only what this process remembers.

        It is not logged, and a dry run carries it out.
        """
        del action
        return False

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """Note the end of a reconciliation; error: None when it succeeded.

        Called once for each snapshot that was decided upon, also in a dry run.
        """
        del snapshot, error

    def failure(self, error: Exception) -> failures.Failure | None:
        """Explain an expected error; None for one that is a bug.

        A flow with errors of its own explains those, and leaves the rest to this.
        """
        return failures.explained(error)


@runtime_checkable
class GoesOn(Protocol[Action]):
    """What a flow has beside its steps if one error does not stop them all."""

    def left_after(
        self, failed: Action, error: Exception, rest: Sequence[Action]
    ) -> Sequence[Action]:
        """Return what is still carried out after an action has raised an error.

        The reconciliation ends with that error all the same. rest: the actions that
        would have followed.
        """
        ...


def nothing() -> None:
    """Do nothing: no heartbeat is recorded."""


def _never() -> bool:
    return False


@dataclasses.dataclass(frozen=True)
class Carrier(Generic[Snapshot, Action]):
    """Carries out what one flow has decided.

    dry_run: see `lib/reconcile/dry_run.py`. beat: called after each action.
    is_given_up: True once no further action may begin.
    """

    steps: Steps[Snapshot, Action]
    dry_run: bool = False
    beat: Callable[[], None] = nothing
    is_given_up: Callable[[], bool] = _never

    def carry_out(
        self, key: str, snapshot: Snapshot, outcome: outcomes.Outcome[Action]
    ) -> tuple[Snapshot, Exception | None]:
        """Carry all actions out, then record the Events of a failure.

        Returns what was left, and the error with which the reconciliation ends.
        """
        error: Exception | None = None
        errors: list[Exception] = []
        try:
            for written in self._act(key, snapshot, outcome.actions, errors):
                snapshot = written
            error = errors[0] if errors else outcome.failure
            if not self.dry_run and not errors:
                for event in outcome.events:
                    snapshot = self.steps.act(snapshot, event)
        except Exception as raised:
            error = raised
        return snapshot, error

    def is_skipped(self, actions: Sequence[Action]) -> bool:
        """Report whether a write among these actions was not carried out."""
        return self.dry_run and any(
            dry_run.omits_write(action, is_note=self.steps.is_note(action))
            for action in actions
        )

    def _act(
        self,
        key: str,
        snapshot: Snapshot,
        actions: Sequence[Action],
        errors: list[Exception],
    ) -> Iterator[Snapshot]:
        """Carry actions out, each upon what those before it have written.

        Yields the snapshot after each, so that it is known also when the next fails.
        errors: filled with those after which others went on.
        """
        log = structlog.stdlib.get_logger()
        left = collections.deque(actions)
        while left:
            action = left.popleft()
            if self.is_given_up():
                return
            is_note = self.steps.is_note(action)
            if self.dry_run and dry_run.omits(action, key, is_note=is_note):
                continue
            try:
                snapshot = self.steps.act(snapshot, action)
            except Exception as error:
                others = self._left_after(action, error, tuple(left))
                if not others or len(errors) == MOST_ERRORS:
                    raise
                name = type(action).__name__
                log.info("action failed", key=key, action=name, error=str(error))
                errors.append(error)
                left = collections.deque(others)
                continue
            yield snapshot
            if not is_note:
                self.beat()
                name = type(action).__name__
                log.info("action completed", key=key, action=name)

    def _left_after(
        self, failed: Action, error: Exception, rest: Sequence[Action]
    ) -> Sequence[Action]:
        if not isinstance(self.steps, GoesOn):
            return ()
        return self.steps.left_after(failed, error, rest)

"""How actions are carried out: in order, each logged, none of them in a dry run.

Shared by the runner, which takes keys from a queue, and by `waiting`, which reconciles
a key in the thread of its caller.
"""

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import structlog

from lib.reconcile import dry_run
from lib.reconcile import failure as failures
from lib.reconcile import outcome as outcomes

Snapshot = TypeVar("Snapshot")
Action = TypeVar("Action")


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
        """Carry one action out; return the snapshot with the own write in it.

        The next action is carried out upon that. May raise, and then the rest is not
        carried out.
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
        """Explain an expected error; None for one that is a bug."""
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
        try:
            for written in self._act(key, snapshot, outcome.actions):
                snapshot = written
            error = outcome.failure
            if not self.dry_run:
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
        self, key: str, snapshot: Snapshot, actions: Sequence[Action]
    ) -> Iterator[Snapshot]:
        """Carry actions out, each upon what those before it have written.

        Yields the snapshot after each, so that it is known also when the next fails.
        """
        log = structlog.stdlib.get_logger()
        for action in actions:
            if self.is_given_up():
                return
            is_note = self.steps.is_note(action)
            if self.dry_run and dry_run.omits(action, key, is_note=is_note):
                continue
            snapshot = self.steps.act(snapshot, action)
            yield snapshot
            if not is_note:
                self.beat()
                name = type(action).__name__
                log.info("action completed", key=key, action=name)

"""Keys whose callers wait: reconciled in the caller's thread until a deadline.

Rules: what is decided and carried out is logged, counted and omitted in a dry run as
by the runner. The waiting between two reconciliations belongs to `observe`, so that
callers can share one read; the deadline is its own as well. An error is not logged
here: the caller gets it.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from lib.process.clock import utc_now
from lib.reconcile import carrying, outcome
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile.carrying import Action, Snapshot
from lib.reconcile.metrics import Result


class WaitingFlow(carrying.Steps[Snapshot, Action], Protocol[Snapshot, Action]):
    """What one caller waits for. Called from its thread alone."""

    def observe(self, due: float) -> Snapshot:
        """Wait until the key is due, then read all that is needed for it.

        due: in the time of the clock; the past: immediately. Raises when the caller's
        deadline comes first.
        """
        ...


class Skipped(Exception):  # -- an answer, not an error
    """A dry run did not carry the actions out for which the caller waits."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settler:
    """Reconciles keys for callers that wait. Safe for many threads.

    metrics: None: not counted. dry_run: actions are logged, none is carried out.
    clock: monotonic seconds.
    """

    metrics: reconcile_metrics.ReconcileMetrics | None = None
    dry_run: bool = False
    clock: Callable[[], float] = time.monotonic

    def settle(self, flow: WaitingFlow[Snapshot, Action], key: str) -> Snapshot:
        """Repeat observe, decide and act until the flow needs no more of it.

        Returns the last snapshot. An error that the flow explains with a time is
        tried again then.

        Raises:
            Exception: what the flow decided or raised, and does not try again.
            Skipped: in a dry run, when an action is needed.
        """
        due = self.clock()
        with structlog.contextvars.bound_contextvars(controller=flow.name):
            while True:
                try:
                    snapshot, wait_s = self._reconcile(flow, key, due)
                except Exception as error:
                    wait_s = self._retry_s(flow, key, error)
                else:
                    if wait_s is None:
                        return snapshot
                due = self.clock() + wait_s

    def _reconcile(
        self, flow: WaitingFlow[Snapshot, Action], key: str, due: float
    ) -> tuple[Snapshot, float | None]:
        """Return what was left, and when the key is due again; None: it is settled."""
        began: float | None = None
        try:
            snapshot = flow.observe(due)
            began = self.clock()
            decided = flow.decide(snapshot, utc_now())
            snapshot = self._carry_out(flow, key, snapshot, decided)
        except Exception as error:
            is_known = isinstance(error, Skipped) or flow.failure(error) is not None
            self._count(
                flow.name,
                Result.FAILURE if is_known else Result.UNEXPECTED_ERROR,
                began,
            )
            raise
        wait_s = decided.requeue_after_s
        self._count(
            flow.name, Result.SUCCESS if wait_s is None else Result.REQUEUE, began
        )
        return snapshot, wait_s

    def _carry_out(
        self,
        flow: WaitingFlow[Snapshot, Action],
        key: str,
        snapshot: Snapshot,
        decided: outcome.Outcome[Action],
    ) -> Snapshot:
        carrier = carrying.Carrier(flow, self.dry_run)
        snapshot, error = carrier.carry_out(key, snapshot, decided)
        if error is None and carrier.is_skipped(decided.actions):
            skipped = ", ".join(type(action).__name__ for action in decided.actions)
            error = Skipped(f"dry run: not carried out: {skipped}")
        flow.ended(snapshot, error)
        if error is not None:
            raise error
        return snapshot

    def _retry_s(
        self, flow: WaitingFlow[Snapshot, Action], key: str, error: Exception
    ) -> float:
        """Return when to try again after an error; raise one that ends the waiting."""
        failure = None if isinstance(error, Skipped) else flow.failure(error)
        if failure is None or failure.requeue_after_s is None:
            raise error
        if self.metrics is not None:
            self.metrics.retried(flow.name)
        structlog.stdlib.get_logger().debug(
            "reconcile failed",
            key=key,
            next_try_s=failure.requeue_after_s,
            error=failure.summary,
        )
        return failure.requeue_after_s

    def _count(self, name: str, result: Result, began: float | None) -> None:
        if self.metrics is None:
            return
        if began is None:
            self.metrics.ended(name, result)
        else:
            self.metrics.passed(name, result, self.clock() - began)

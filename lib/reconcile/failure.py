"""How a reconciliation that failed is reported and retried."""

import dataclasses
from typing import Protocol, runtime_checkable

SLOW_S = 60.0
"""Least pause after an error that only an administrator, or another spec, can end.

A changed spec or configuration makes the key due immediately: nothing waits for it.
"""
_SLOW = ("never", "slow")
_ROUTINE = "short"
"""Values of `lib.cloud.errors.Retry`, which this package must not import."""


@runtime_checkable
class Classified(Protocol):
    """An error that states how it is retried: `CloudError`, `KubeError`."""

    @property
    def retry(self) -> str:
        """Return its class: never, short, backoff, slow or fact."""
        ...

    @property
    def retry_after_s(self) -> float | None:
        """Return the pause that the server asked for, in seconds."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A known error of a flow: its message, and when to retry.

    summary: one line without secrets. retry_after_s: a pause that the server asked
    for; None without one. requeue_after_s: the flow's own schedule, which replaces
    the backoff and is no reason to increase it. is_routine: an expected wait, logged
    at level debug, which does not increase the backoff of failures either.
    """

    summary: str
    retry_after_s: float | None = None
    requeue_after_s: float | None = None
    is_routine: bool = False


class Postponed(Exception):  # -- an answer, not an error
    """An action found that now is not the time for it; nothing was written.

    The key is due again after requeue_after_s. is_routine: see `Failure`.
    """

    def __init__(
        self, message: str, requeue_after_s: float, *, is_routine: bool = True
    ) -> None:
        super().__init__(message)
        self.requeue_after_s = requeue_after_s
        self.is_routine = is_routine

    def failure(self) -> Failure:
        """Return what a flow's `failure` explains it as."""
        return Failure(
            str(self),
            requeue_after_s=self.requeue_after_s,
            is_routine=self.is_routine,
        )


def explained(error: Exception) -> Failure | None:
    """Return how a failed reconciliation is retried; None: the error is a bug.

    Errors of all flows are explained here. A flow adds only errors of its own.
    """
    if isinstance(error, Postponed):
        return error.failure()
    if not isinstance(error, Classified):
        return None
    pause_s = error.retry_after_s
    if error.retry in _SLOW:
        pause_s = max(pause_s or 0.0, SLOW_S)
    return Failure(str(error), pause_s, is_routine=error.retry == _ROUTINE)


def none_expected(error: Exception) -> Failure | None:
    """Take every error for a bug."""
    del error
    return None

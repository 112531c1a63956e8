"""How a reconciliation that failed is reported and retried."""

import dataclasses


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


def none_expected(error: Exception) -> Failure | None:
    """Take every error for a bug."""
    del error
    return None

"""What a loop is told about an error that was to be expected."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """An error a flow knows: what to say, and when to try again.

    summary: one line without secrets. retry_after_s: a pause that the server asked
    for; None without one. requeue_after_s: the flow's own schedule, which replaces
    the backoff and is no reason to increase it. is_routine: an expected wait, logged
    at level debug, which does not increase the backoff of failures either.
    """

    summary: str
    retry_after_s: float | None = None
    requeue_after_s: float | None = None
    is_routine: bool = False


def none_expected(error: Exception) -> Failure | None:
    """Take every error for a bug."""
    del error
    return None

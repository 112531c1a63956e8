"""What a loop is told about an error that was to be expected."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """An error a flow knows: what to say, and when to try again.

    summary: one line without secrets. retry_after_s: None for the queue's backoff.
    is_routine: it comes with the trade, and is only logged at level debug.
    """

    summary: str
    retry_after_s: float | None = None
    is_routine: bool = False


def none_expected(error: Exception) -> Failure | None:
    """Take every error for a bug."""
    del error
    return None

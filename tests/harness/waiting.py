"""Waits until a condition holds."""

import time
from collections.abc import Callable

from lib.lab import errors

POLL_S = 0.1


def until(
    what: str,
    is_met: Callable[[], object],
    timeout_s: float = 180,
    poll_s: float = POLL_S,
) -> float:
    """Wait until something is seen; return the seconds that took.

    Raises:
        LabError: it was not in time. what: in words, for its message.
    """
    began = time.monotonic()
    while not is_met():
        if time.monotonic() - began > timeout_s:
            raise errors.LabError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(poll_s)
    return time.monotonic() - began

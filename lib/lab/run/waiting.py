"""Waits until a condition holds.

Rules: the limit ends what hangs; it does not judge speed. A machine under load takes
ten times as long as an idle machine. A wait of more than a minute is reported.
"""

import dataclasses
import sys
import time
from collections.abc import Callable

from lib.lab import errors

LIMIT_S = 900.0
"""After which a wait ends."""
REPORT_S = 60.0
"""Between two reports of one wait."""
POLL_S = 0.1


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """Time of a wait. clock: monotonic seconds. report: shows a line to a person."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    report: Callable[[str], None] = _report


def until(
    what: str | Callable[[], str],
    is_met: Callable[[], object],
    *,
    poll_s: float = POLL_S,
    timing: Timing | None = None,
) -> float:
    """Wait until a condition holds; return the seconds that took.

    what: the condition in words, or returns them with the present state.

    Raises:
        LabError: it did not hold within LIMIT_S.
    """
    timing = timing or Timing()
    began = reported = timing.clock()
    while not is_met():
        now = timing.clock()
        if now - began > LIMIT_S:
            raise errors.LabError(f"not within {LIMIT_S:.0f} s: {_words(what)}")
        if now - reported >= REPORT_S:
            reported = now
            timing.report(f"still waiting after {now - began:.0f} s: {_words(what)}")
        timing.sleep(poll_s)
    return timing.clock() - began


def _words(what: str | Callable[[], str]) -> str:
    return what if isinstance(what, str) else what()

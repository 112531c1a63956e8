"""Failures that repeat: the first one is reported, then one a minute with a count."""

import threading
import time
from collections.abc import Callable

PERIOD_S = 60.0
_KEPT_MAX = 1000


class Repeats:
    """Counts equal failures. Safe for many threads.

    A failure that did not occur for a period is new again.
    """

    def __init__(
        self, period_s: float = PERIOD_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._period_s = period_s
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, tuple[float, int]] = {}

    def count(self, failure: str) -> int | None:
        """Count a failure: return how often it occurred since the last report.

        None while it is not to be reported again; 1 for a new one.
        """
        now = self._clock()
        with self._lock:
            reported, count = self._since.get(failure, (0.0, 0))
            if count and now - reported < self._period_s:
                self._since[failure] = (reported, count + 1)
                return None
            if len(self._since) >= _KEPT_MAX:
                self._since.clear()
            self._since[failure] = (now, 1)
            is_new = not count or now - reported >= 2 * self._period_s
            return 1 if is_new else count

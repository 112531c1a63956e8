"""A call whose caller waits: until when, and whether it still does."""

import dataclasses
import threading
import time
from collections.abc import Callable

from lib.volumes.csi_codes import Code, RefusedCall


@dataclasses.dataclass(frozen=True, slots=True)
class CallEffects:
    """Time, and waiting for something to happen. clock: monotonic seconds.

    wait: waits on a condition that is held, at most so many seconds.
    """

    clock: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Condition, float], object] = threading.Condition.wait


class Caller:
    """One caller's patience. Safe for many threads."""

    def __init__(self, deadline: float) -> None:
        """deadline: in the time of `CallEffects.clock`."""
        self.deadline = deadline
        self.is_cancelled = False
        self._lock = threading.Lock()
        self._wakes: list[threading.Condition] = []

    def cancel(self) -> None:
        """Record that no caller waits any more; wakes whatever the call waits on."""
        with self._lock:
            self.is_cancelled = True
            wakes = tuple(self._wakes)
        for condition in wakes:
            with condition:
                condition.notify_all()

    def wait(
        self, condition: threading.Condition, until: float, effects: CallEffects
    ) -> None:
        """Wait on a condition that is held, at most until a time.

        Raises:
            Refused: CANCELLED or DEADLINE_EXCEEDED.
        """
        self.check(effects)
        with self._lock:
            self._wakes.append(condition)
        try:
            if not self.is_cancelled:
                left_s = min(until, self.deadline) - effects.clock()
                effects.wait(condition, max(left_s, 0.001))
        finally:
            with self._lock:
                self._wakes.remove(condition)
        self.check(effects)

    def check(self, effects: CallEffects) -> None:
        """Go on only while somebody waits, and there is time.

        Raises:
            Refused: CANCELLED or DEADLINE_EXCEEDED.
        """
        if self.is_cancelled:
            raise RefusedCall(Code.CANCELLED, "the caller does not wait any more")
        if effects.clock() >= self.deadline:
            raise RefusedCall(Code.DEADLINE_EXCEEDED, "the caller's time is over")

"""A call whose caller waits: its deadline, and whether it is cancelled."""

import dataclasses
import threading
import time
from collections.abc import Callable

from lib.volumes.csi_codes import Code, RefusedCall


@dataclasses.dataclass(frozen=True, slots=True)
class CallEffects:
    """Time, and waiting for a condition. clock: monotonic seconds.

    wait: waits on a condition that is held; the second argument is the time-out in s.
    """

    clock: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Condition, float], object] = threading.Condition.wait


class Caller:
    """Deadline and cancellation of one call. Safe for many threads."""

    def __init__(self, deadline: float) -> None:
        """deadline: in the time of `CallEffects.clock`."""
        self.deadline = deadline
        self.is_cancelled = False
        self._lock = threading.Lock()
        self._wakes: list[threading.Condition] = []

    def cancel(self) -> None:
        """Record that the caller cancelled; wakes the threads of the call."""
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
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
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
        """Raise unless the call is neither cancelled nor past its deadline.

        Raises:
            RefusedCall: CANCELLED or DEADLINE_EXCEEDED.
        """
        if self.is_cancelled:
            raise RefusedCall(Code.CANCELLED, "the caller cancelled the call")
        if effects.clock() >= self.deadline:
            raise RefusedCall(Code.DEADLINE_EXCEEDED, "deadline exceeded")

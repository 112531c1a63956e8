"""A clock that moves only while a caller waits, so that tests never sleep."""

import threading


class Clock:
    """Monotonic seconds. Safe for many threads."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self._lock = threading.Lock()
        self._seconds = seconds

    def __call__(self) -> float:
        """Return the time."""
        with self._lock:
            return self._seconds

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Stand in for Condition.wait: nothing happens but that time passes."""
        del condition
        self.move(seconds)

    def move(self, seconds: float) -> None:
        """Advance the time."""
        with self._lock:
            self._seconds += seconds

"""Reads that many callers share, without ever serving anyone a stale result."""

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclasses.dataclass(eq=False)
class _Run(Generic[T]):
    """One read. results: one entry once it has succeeded."""

    began: float
    is_done: bool = False
    results: tuple[T, ...] = ()
    error: BaseException | None = None

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.results[0]


class SharedRead(Generic[T]):
    """One scope that is read by at most one thread at a time (design: freshness).

    A caller that can't use the running read shares the next with all others like it.
    An error goes to those who waited for that read, and is not kept.
    """

    def __init__(
        self, read: Callable[[], T], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """read: bounded by a time-out of its own. clock: monotonic seconds."""
        self._read = read
        self._clock = clock
        self._changed = threading.Condition()
        self._running: _Run[T] | None = None
        self._last: _Run[T] | None = None
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many callers wait now for a read of another."""
        return self._waiting

    def get(self, not_before: float) -> T:
        """Return a result whose read began at `not_before` or later.

        Raises whatever the read raised that this caller waited for.
        """
        run, is_mine = self._join(not_before)
        if is_mine:
            self._carry_out(run)
        return run.outcome()

    def _join(self, not_before: float) -> tuple[_Run[T], bool]:
        """Find the run to use, waited for; or start one, to be carried out."""
        with self._changed:
            while True:
                if self._last is not None and self._last.began >= not_before:
                    return self._last, False
                run = self._running
                if run is None:
                    self._running = _Run(self._clock())
                    return self._running, True
                self._waiting += 1
                while not run.is_done:
                    self._changed.wait()
                self._waiting -= 1
                if run.began >= not_before:
                    return run, False

    def _carry_out(self, run: _Run[T]) -> None:
        try:
            run.results = (self._read(),)
        except BaseException as error:  # re-raised to every waiting caller
            run.error = error
        with self._changed:
            if run.error is None:
                self._last = run
            self._running = None
            run.is_done = True
            self._changed.notify_all()

"""Work that lasts longer than a reconciliation: a few slots, one job per name.

Rules: a job is started by a reconciliation and never awaited by it; its end makes the
key due again. What a job achieved is read from the world, not from here.
"""

import threading
from collections.abc import Callable

import structlog

Job = Callable[[threading.Event], None]
"""Given the event that asks it to end early."""


class Jobs:
    """Runs jobs in threads of their own. Safe to use from several threads.

    slots: jobs that run at the same time. on_end: called with the name after each.
    """

    def __init__(self, slots: int, on_end: Callable[[str], None]) -> None:
        self._slots = slots
        self._on_end = on_end
        self._changed = threading.Condition()
        self._running: set[str] = set()
        self._cancel = threading.Event()
        self._log = structlog.stdlib.get_logger()

    def running(self) -> frozenset[str]:
        """Return the names of the jobs that have not ended."""
        with self._changed:
            return frozenset(self._running)

    def free(self) -> int:
        """Return the number of free slots."""
        with self._changed:
            return 0 if self._cancel.is_set() else self._slots - len(self._running)

    def start(self, name: str, job: Job) -> bool:
        """Start a job, unless one of its name runs, or no slot is free."""
        with self._changed:
            is_full = len(self._running) >= self._slots
            if is_full or name in self._running or self._cancel.is_set():
                return False
            self._running.add(name)
        threading.Thread(
            target=self._run, args=(name, job), name=f"job {name}", daemon=True
        ).start()
        return True

    def stop(self, timeout_s: float) -> tuple[str, ...]:
        """Ask all jobs to end and wait for them; return those that have not."""
        self._cancel.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._running, timeout_s)
            return tuple(sorted(self._running))

    def _run(self, name: str, job: Job) -> None:
        try:
            job(self._cancel)
        except Exception as error:  # this is a loop; see lib/reconcile/runner.py
            self._log.error("unexpected error in job", job=name, exc_info=error)
        finally:
            with self._changed:
                self._running.discard(name)
                self._changed.notify_all()
            self._on_end(name)

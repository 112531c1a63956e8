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
        self._running: dict[str, threading.Event] = {}
        self._is_stopped = False
        self._log = structlog.stdlib.get_logger()

    def running(self) -> frozenset[str]:
        """Return the names of the jobs that have not ended."""
        with self._changed:
            return frozenset(self._running)

    def free(self) -> int:
        """Return the number of free slots."""
        with self._changed:
            return 0 if self._is_stopped else self._slots - len(self._running)

    def start(self, name: str, job: Job) -> bool:
        """Start a job, unless one of its name runs, or no slot is free."""
        with self._changed:
            is_full = len(self._running) >= self._slots
            if is_full or name in self._running or self._is_stopped:
                return False
            cancel = self._running[name] = threading.Event()
        threading.Thread(
            target=self._run, args=(name, job, cancel), name=f"job {name}", daemon=True
        ).start()
        return True

    def cancel(self, name: str) -> None:
        """Ask a job to end early; does nothing when none of that name runs."""
        with self._changed:
            if name in self._running:
                self._running[name].set()

    def stop(self, timeout_s: float) -> tuple[str, ...]:
        """Ask all jobs to end and wait for them; return those that have not."""
        with self._changed:
            self._is_stopped = True
            for cancel in self._running.values():
                cancel.set()
            self._changed.wait_for(lambda: not self._running, timeout_s)
            return tuple(sorted(self._running))

    def _run(self, name: str, job: Job, cancel: threading.Event) -> None:
        try:
            job(cancel)
        except Exception as error:  # this is a loop; see lib/reconcile/runner.py
            self._log.error("unexpected error in job", job=name, exc_info=error)
        finally:
            with self._changed:
                del self._running[name]
                self._changed.notify_all()
            self._on_end(name)

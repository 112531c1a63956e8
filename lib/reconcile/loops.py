"""The threads of a process, which begin one by one and end together."""

import contextlib
import pathlib
import threading
import time
from collections.abc import Callable

import structlog

Loop = Callable[[threading.Event], None]
_COMM = pathlib.Path("/proc/thread-self/comm")
"""Source: proc_pid_comm(5); the kernel keeps the first 15 bytes."""


class Loops:
    """Runs each loop in a thread of its own until `stop` is set.

    A loop that ends earlier, by itself or by an error, sets `stop`: half a daemon is
    worse than one that is restarted. `failed` distinguishes the two ends.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._log = structlog.stdlib.get_logger()
        self.failed = threading.Event()

    def start(self, name: str, loop: Loop) -> None:
        """Begin a loop."""
        thread = threading.Thread(
            target=self._run, args=(name, loop), name=name, daemon=True
        )
        thread.start()
        # Not before: another thread may be in `join`, which fails for one not started.
        self._threads.append(thread)

    def _run(self, name: str, loop: Loop) -> None:
        with contextlib.suppress(OSError):
            _COMM.write_text(name)  # `ps -L` and `top -H` show it
        try:
            loop(self._stop)
        except Exception as error:
            self._log.error(
                "unexpected error in controller loop", loop=name, exc_info=error
            )
            self.failed.set()
        if not self._stop.is_set():
            self._log.error("controller loop stopped unexpectedly", loop=name)
            self.failed.set()
            self._stop.set()

    def join(self, timeout_s: float) -> tuple[str, ...]:
        """Wait for all to end; return the names of those that have not."""
        end = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return tuple(thread.name for thread in self._threads if thread.is_alive())

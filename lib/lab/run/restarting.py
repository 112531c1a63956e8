"""Restarts programs that have exited, as a kubelet restarts containers.

Rules: the first restart is immediate, further ones wait for FIRST_S, doubled up to
MOST_S; a program that has run for WELL_S begins again.

Source: Kubernetes documentation, Pod Lifecycle, container restarts.
"""

import dataclasses
import threading
from collections.abc import Callable, Sequence

from lib.lab import places
from lib.lab.run import processes

FIRST_S = 10.0
MOST_S = 300.0
WELL_S = 600.0
PERIOD_S = 1.0


@dataclasses.dataclass(slots=True)
class _Backoff:
    """Of one program. started_s: last restart. delay_s: until the next one."""

    started_s: float
    delay_s: float = FIRST_S


class Restarter:
    """Restarts some programs of a lab; `check` is called every few seconds."""

    def __init__(
        self,
        where: places.Places,
        names: Sequence[str],
        clock: Callable[[], float],
        report: Callable[[str], object],
    ) -> None:
        """clock: monotonic seconds. report: called with each restart, in words."""
        self._where = where
        self._names = names
        self._clock = clock
        self._report = report
        self._backoffs: dict[str, _Backoff] = {}

    def run(self, stop: threading.Event) -> None:
        """Check every second until the process is to end."""
        while not stop.wait(PERIOD_S):
            self.check()

    def check(self) -> None:
        """Restart the programs that have exited and whose delay is over."""
        for name in self._names:
            if processes.has_exited(self._where, name):
                self._restart(name)

    def _restart(self, name: str) -> None:
        now = self._clock()
        backoff = self._backoffs.get(name)
        if backoff is None or now - backoff.started_s >= WELL_S + backoff.delay_s:
            self._backoffs[name] = _Backoff(now)
        elif now - backoff.started_s < backoff.delay_s:
            return
        else:
            delay_s = min(2 * backoff.delay_s, MOST_S)
            self._backoffs[name] = _Backoff(now, delay_s)
        self._report(f"{name} has exited and is restarted")
        processes.restart(self._where, name)

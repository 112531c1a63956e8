"""Liveness and readiness of the process: named checks, reported as by Go servers.

Rules: a check returns None when all is well, else the reason, which goes to the log,
never to the client: the paths need no authentication. Liveness never depends on the
cloud; readiness, once reached, stays.

Source: k8s.io/apiserver pkg/server/healthz.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Mapping

from lib.process import logs

Check = Callable[[], str | None]
Observer = Callable[[str, str, bool], None]
"""Called with each result of a check: probe, check, and whether it passed."""


def _unrecorded(seconds: float) -> None:
    del seconds


class Heartbeat:
    """When a loop last turned. Safe to use from several threads."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        record: Callable[[float], None] = _unrecorded,
    ) -> None:
        """clock: monotonic seconds. record: called with the seconds between beats."""
        self._clock = clock
        self._record = record
        self._last = clock()

    def begin(self) -> None:
        """Count from now on: the loop starts."""
        self._last = self._clock()

    def beat(self) -> None:
        """Record that the loop turned."""
        before, self._last = self._last, self._clock()
        self._record(max(0.0, self._last - before))

    def age_s(self) -> float:
        """Return how long ago that was, in seconds."""
        return self._clock() - self._last

    def within(self, seconds: float) -> Check:
        """Create a check that fails when the loop has not turned for this long."""

        def check() -> str | None:
            age_s = self.age_s()
            return None if age_s <= seconds else f"no turn for {age_s:.0f} s"

        return check


def ping() -> str | None:
    """Pass always: that it can be asked is the check."""
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class ProbeReport:
    """The answer to one probe, ready to be sent."""

    is_well: bool
    body: str


def _nobody(probe: str, name: str, is_well: bool) -> None:
    del probe, name, is_well


class Probes:
    """The checks of one process, in the order in which they were added."""

    def __init__(self, observer: Observer = _nobody) -> None:
        self._observer = observer
        self._lock = threading.Lock()
        self._live: dict[str, Check] = {"ping": ping}
        self._ready: dict[str, Check] = {"ping": ping}
        self._reached: set[str] = set()
        self._failed: set[str] = set()
        self._log = logs.get(__name__)

    def add_live(self, name: str, check: Check) -> None:
        """Add a check to /livez and /healthz."""
        with self._lock:
            self._live[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """Add a check to /readyz, until it has passed once."""
        with self._lock:
            self._ready[name] = check

    def live(
        self, query: Mapping[str, Collection[str]], path: str = "livez"
    ) -> ProbeReport:
        """Answer /livez and /healthz; `query` as in the request's URL."""
        with self._lock:
            checks = dict(self._live)
        return self._report(path, checks, query)

    def ready(self, query: Mapping[str, Collection[str]]) -> ProbeReport:
        """Answer /readyz."""
        with self._lock:
            checks = {
                name: ping if name in self._reached else self._once(name, check)
                for name, check in self._ready.items()
            }
        return self._report("readyz", checks, query)

    def _once(self, name: str, check: Check) -> Check:
        def run() -> str | None:
            why_not = check()
            if why_not is None:
                with self._lock:
                    self._reached.add(name)
            return why_not

        return run

    def _report(
        self,
        path: str,
        checks: Mapping[str, Check],
        query: Mapping[str, Collection[str]],
    ) -> ProbeReport:
        excluded = set(query.get("exclude", ()))
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            why_not = check()
            self._observer(path, name, why_not is None)
            self._note(path, name, why_not)
            failed = failed or why_not is not None
            lines.append(
                f"[+]{name} ok" if why_not is None else _withheld(name),
            )
        unknown = ",".join(f'"{name}"' for name in sorted(excluded - set(checks)))
        if unknown:
            lines.append(
                "warn: some health checks cannot be excluded:"
                f" no matches for {unknown}"
            )
        if failed:
            return ProbeReport(False, "\n".join([*lines, f"{path} check failed", ""]))
        if "verbose" not in query:
            return ProbeReport(True, "ok")
        return ProbeReport(True, "\n".join([*lines, f"{path} check passed", ""]))

    def _note(self, path: str, name: str, why_not: str | None) -> None:
        """Log when a check begins to fail or passes again, not each time it does."""
        mark = f"{path}/{name}"
        with self._lock:
            was_failed = mark in self._failed
            if (why_not is not None) == was_failed:
                return
            (self._failed.discard if was_failed else self._failed.add)(mark)
        if why_not is None:
            self._log.info("health check recovered", probe=path, check=name)
        else:
            self._log.warning(
                "health check failed", probe=path, check=name, reason=why_not
            )


def _withheld(name: str) -> str:
    return f"[-]{name} failed: reason withheld"

"""Circuit breaker of one service: pure transitions between its states.

Closed: calls pass. Open: calls are refused immediately. After its time one call passes
as a probe; its result closes the circuit, or opens it again and for longer. A service
that names a time (Retry-After) is not called until then, which is no failure.
"""

import dataclasses

FAILURES = 5
"""Failures in a row that open the circuit."""
FIRST_OPEN_S = 5.0
LONGEST_OPEN_S = 60.0
"""Each failed probe doubles the time, up to this one."""
LONGEST_PAUSE_S = 300.0
"""A service that names a longer time is asked again after this one."""
PROBE_WAIT_S = 1.0
"""For those who come while the probe is under way."""


@dataclasses.dataclass(frozen=True, slots=True)
class Circuit:
    """One circuit. Times are seconds of one monotonic clock.

    failures: in a row. open_s: how long it opens; 0: it is closed. until: no call
    before. is_probing: the one call is under way.
    """

    failures: int = 0
    open_s: float = 0.0
    until: float = 0.0
    is_probing: bool = False

    @property
    def is_open(self) -> bool:
        """Report whether calls are refused, but for the probe."""
        return self.open_s > 0


def admitted(now: Circuit, at: float) -> tuple[Circuit, float]:
    """Report whether a call may pass: the new state, and the seconds to wait if not.

    0 means that it may pass, and that its result must be reported.
    """
    if at < now.until:
        return now, now.until - at
    if not now.is_open:
        return now, 0.0
    if now.is_probing:
        return now, PROBE_WAIT_S
    return dataclasses.replace(now, is_probing=True), 0.0


def succeeded(now: Circuit) -> Circuit:
    """Close the circuit; a pause that the service asked for continues.

    The call may have begun before the pause was asked for.
    """
    return Circuit() if now.is_open else Circuit(until=now.until)


def paused(now: Circuit, at: float, retry_after_s: float) -> Circuit:
    """Close the circuit, and pause calls for as long as the service asks.

    A pause never becomes shorter.
    """
    until = at + min(retry_after_s, LONGEST_PAUSE_S)
    return Circuit(until=until if now.is_open else max(until, now.until))


def failed(now: Circuit, at: float) -> Circuit:
    """Count a failure; open when there are enough, longer after each failed probe."""
    if now.is_open and not now.is_probing:
        return now  # of a call that began before it opened
    failures = now.failures + 1
    if failures < FAILURES:
        return dataclasses.replace(now, failures=failures)
    open_s = min(max(now.open_s * 2, FIRST_OPEN_S), LONGEST_OPEN_S)
    return Circuit(failures, open_s, at + open_s)

"""When the cloud is asked for the end of an operation: by its age, and by former ones.

Without a former one the intervals are a share of the age, so the number of polls grows
with the logarithm of the duration. Where it is known how long they take, one poll comes
early, since this one may be much quicker, and the others begin shortly before the end
that is expected: it is noticed within a small share of the duration.
"""

import threading

FIRST_S = 1.0
LONGEST_S = 15.0
SHARE = 0.1
"""Of the age: the interval, while no duration is known."""
EXPECTED_SHARE, EXPECTED_LEAST_S = 0.05, 0.3
"""Of the expected duration: the interval around that; and its least, in seconds."""
LATE_SHARE = 0.1
"""Of the time since the expected end: the interval once that is greater."""
QUARTER = 0.25
"""Share of the expected duration after which one poll may find a quicker end."""
EARLY = 0.92
"""Share of the expected duration after which its end is asked for."""
FOLLOWS = 0.05
"""Share by which the expected duration follows a longer one; a shorter one counts."""
AT_ONCE = 0.8
"""Share of it that is kept after an operation that had ended at its last poll."""


def after_s(waited_s: float, expected_s: float | None = None) -> float:
    """Return the seconds until the next poll of what began waited_s ago.

    expected_s: how long it may take; None: not known.
    """
    if waited_s < FIRST_S and (expected_s is None or expected_s <= FIRST_S / QUARTER):
        return FIRST_S - waited_s
    if expected_s is None:
        return min(max(FIRST_S, waited_s * SHARE), LONGEST_S)
    for share in (QUARTER, EARLY):
        if waited_s < expected_s * share - EXPECTED_LEAST_S:
            return expected_s * share - waited_s
    usual_s = max(expected_s * EXPECTED_SHARE, (waited_s - expected_s) * LATE_SHARE)
    return min(max(EXPECTED_LEAST_S, usual_s), LONGEST_S)


class Durations:
    """How long operations take in a cloud, by their kind. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected: dict[str, float] = {}

    def expected_s(self, kind: str) -> float | None:
        """Return how long the next one may take; None: there was none before."""
        with self._lock:
            return self._expected.get(kind)

    def ended(self, kind: str, most_s: float, least_s: float | None = None) -> None:
        """Note the end of an operation.

        most_s: its duration as observed. least_s: when a poll has shown that it had
        not ended; None: there was no such poll.
        """
        with self._lock:
            former_s = self._expected.get(kind, most_s)
            if least_s is not None:
                took_s = (most_s + least_s) / 2
                longer_s = max(0.0, took_s - former_s)
                former_s = min(took_s, former_s) + longer_s * FOLLOWS
            elif kind in self._expected:
                former_s = min(former_s, most_s) * AT_ONCE
            self._expected[kind] = former_s

"""When the cloud is asked for the end of an operation: by its age, and by former ones.

An operation is asked for soon after its beginning, since it may be quick; then each
time its age has more than doubled, and when the former ones of its kind had ended;
later at intervals that are a share of its age. So the number of calls grows with the
logarithm of its duration, and its end is noticed within a share of it.
"""

import threading

FIRST_S = 1.0
LONGEST_S = 15.0
SHARE = 0.1
SURE_SHARE = 0.05
"""Of the age: the interval of later polls; the smaller where a duration is known."""
EARLY = 0.95
"""Share of the expected duration after which the end is asked for."""
AGE_STEP = 1.5
"""Before that the interval is this multiple of the age, lest it was much quicker."""
FOLLOWS = 0.05
"""Share by which the expected duration follows a longer one; a shorter one counts."""


def after_s(waited_s: float, expected_s: float | None = None) -> float:
    """Return the seconds until the next poll of what began waited_s ago.

    expected_s: how long it may take; None: not known.
    """
    if waited_s < FIRST_S:
        return FIRST_S - waited_s
    share = SHARE if expected_s is None else SURE_SHARE
    usual_s = min(max(FIRST_S, waited_s * share), LONGEST_S)
    if expected_s is None:
        return usual_s
    return max(usual_s, min(expected_s * EARLY - waited_s, waited_s * AGE_STEP))


class Durations:
    """How long operations take in a cloud, by their kind. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected: dict[str, float] = {}

    def expected_s(self, kind: str) -> float | None:
        """Return how long the next one may take; None: there was none before."""
        with self._lock:
            return self._expected.get(kind)

    def ended(self, kind: str, took_s: float) -> None:
        """Note the end of an operation, at the latest after took_s seconds."""
        with self._lock:
            former_s = self._expected.get(kind, took_s)
            longer_s = max(0.0, took_s - former_s)
            self._expected[kind] = min(took_s, former_s) + longer_s * FOLLOWS

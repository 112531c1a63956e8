"""When to poll a load balancer: soon at first, then by the time its changes took.

A load balancer whose changes take a minute is polled once or twice per change, not
every two seconds, so the number of calls does not grow with the duration of a change.
"""

import dataclasses
import threading

from lib.cloud.support import poll_times

FIRST_POLL_S = 1.0
LAST_POLL_S = 2.0
SLOW_POLL_S = 4.0
SLOW_AFTER_S = 120.0
"""Without a history, polls begin a second apart and slow down to 2 s, after two
minutes to 4 s: the end of a change is observed soon."""
SHARE = 0.1
"""Of the last duration: interval of later polls, and decrease of the estimate."""
LONG_S = 60.0
"""After a longer change the next one is polled at a quarter of the time as well."""
SURE_AFTER = 2
"""More changes than this that had ended at the first poll halve the estimate."""
CREATION = "creation"
MOST = 10_000
"""Load balancers with a history, at most."""


def poll_after_s(waited_s: float) -> float:
    """Return the seconds until the next poll without a history."""
    if waited_s >= SLOW_AFTER_S:
        return SLOW_POLL_S
    return min(FIRST_POLL_S + waited_s / 10, LAST_POLL_S)


@dataclasses.dataclass(frozen=True, slots=True)
class _Past:
    """took_s: expected duration of the next change. at_once: how many changes in
    succession had ended at the first poll, so they may have taken less."""

    took_s: float
    at_once: int = 0


class Pace:
    """Durations of the last change of each load balancer, by ID. Thread-safe.

    Only our own changes count. Creations and failovers take much longer. A creation is
    polled by the duration of those of other load balancers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._past: dict[str, _Past] = {}
        self._changing: set[str] = set()
        self._creations = poll_times.Durations()
        self._creating: dict[str, float | None] = {}  # its last poll, s after the write
        self._polled: set[str] = set()

    def created(self, id_: str) -> float:
        """Record that a creation was sent; return the seconds until the first poll."""
        with self._lock:
            self._creating[id_] = None
        return poll_times.after_s(0.0, self._creations.expected_s(CREATION))

    def began(self, id_: str) -> float:
        """Record that a change was sent; return the seconds until the first poll."""
        with self._lock:
            self._changing.add(id_)
            self._polled.discard(id_)
            past = self._past.get(id_)
        if past is None:
            return FIRST_POLL_S
        is_long = past.took_s > LONG_S
        return max(FIRST_POLL_S, past.took_s / 4 if is_long else past.took_s)

    def closed(self, id_: str, waited_s: float) -> float:
        """Record that a change has not ended; return the seconds until the next poll.

        waited_s: since the write.
        """
        usual = poll_after_s(waited_s)
        with self._lock:
            if id_ in self._creating:
                self._creating[id_] = waited_s
                expected_s = self._creations.expected_s(CREATION)
                if expected_s is None:
                    return usual
                return poll_times.after_s(waited_s, expected_s)
            self._polled.add(id_)
            past = self._past.get(id_) if id_ in self._changing else None
        if past is None:
            return usual
        return max(usual, past.took_s - waited_s, past.took_s * SHARE)

    def ended(self, id_: str, waited_s: float) -> None:
        """Record that a change has ended, at the latest after waited_s."""
        with self._lock:
            if id_ in self._creating:
                self._creations.ended(CREATION, waited_s, self._creating.pop(id_))
                return
            was_polled = id_ in self._polled
            self._polled.discard(id_)
            if id_ not in self._changing:
                return
            self._changing.discard(id_)
            past = self._past.pop(id_, None)
            took_s, at_once = waited_s, 0
            if past is not None and not was_polled:
                took_s *= 0.5 if past.at_once >= SURE_AFTER else 1 - SHARE
                at_once = past.at_once + 1
            self._past[id_] = _Past(took_s, at_once)
            if len(self._past) > MOST:
                del self._past[next(iter(self._past))]

    def forget(self, id_: str) -> None:
        """Drop what is known of a load balancer that is deleted, or failed."""
        with self._lock:
            self._past.pop(id_, None)
            self._creating.pop(id_, None)
            self._changing.discard(id_)
            self._polled.discard(id_)

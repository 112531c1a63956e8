"""Work queue of due keys, with backoff after failures.

Rules: a key is with one worker at most, from `take` to `done`. A topic added is
delivered by a claim taken after the add. Nothing here knows what a key names.

Source: the promises of client-go util/workqueue (de-duplication, delay, rate limit),
with a set of topics per key added.
"""

import dataclasses
import heapq
import random
import threading
import time
from collections.abc import Callable, Iterable

from lib.process import retry_after

STOP_POLL_S = 0.5
"""A set stop event is noticed this late at worst; `shut_down` immediately."""

_SPARE_ENTRIES = 64
_DOUBLINGS_MAX = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """One key to work on, and the topics that were due for it."""

    key: str
    topics: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failed key waits: base_s, doubled each time, at most max_s.

    jitter: share of the wait (0 to 1) that is subtracted at random; a pause that the
    server asked for only becomes longer by it.

    Source: client-go DefaultTypedControllerRateLimiter: 5 ms doubling to 1000 s.
    """

    base_s: float = 0.005
    max_s: float = 1000.0
    jitter: float = 0.2


class Queue:
    """Keys with topics, due now or later; safe to use from many threads.

    clock: monotonic seconds. chance: a number from 0 up to 1, for jitter.
    """

    def __init__(
        self,
        backoff: Backoff | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._chance = chance
        self._changed = threading.Condition()
        self._topics: dict[str, dict[str, float]] = {}  # key -> topic -> due
        self._entries: dict[str, tuple[float, int, str]] = {}  # the valid one of a key
        self._later: list[tuple[float, int, str]] = []  # heap; may hold stale entries
        self._ready: list[tuple[float, int, str]] = []  # heap; holds none
        self._urgent: dict[str, None] = {}  # due and in no heap; see `add_now`
        self._urgent_later: set[str] = set()  # claimed, urgent after `done`
        self._claimed: set[str] = set()
        self._failures: dict[str, int] = {}
        self._routine: dict[str, int] = {}  # waits that are no failures
        self._sequence = 0
        self._shut = False

    def add(self, key: str, topic: str, delay_s: float = 0.0) -> None:
        """Make `key` due for `topic` in delay_s seconds, unless it is due earlier.

        While the key is claimed the topic waits for `done`. After `shut_down` nothing
        is added any more.
        """
        self.add_all(key, (topic,), delay_s)

    def add_all(self, key: str, topics: Iterable[str], delay_s: float = 0.0) -> None:
        """Add topics that are due at one moment, so that one claim holds them all."""
        with self._changed:
            due = self._clock() + max(0.0, delay_s)
            for topic in () if self._shut else topics:
                self._put(key, topic, due)

    def add_now(self, key: str, topics: Iterable[str]) -> None:
        """Make a key due, and deliver it without waiting for others of its batch.

        For one that others wait for: it keeps a place until it is reconciled.
        """
        with self._changed:
            due = self._clock()
            for topic in () if self._shut else topics:
                waiting = self._topics.setdefault(key, {})
                waiting[topic] = min(due, waiting.get(topic, due))
            if self._shut or key not in self._topics:
                return
            if key in self._claimed:
                self._urgent_later.add(key)
                return
            self._promote()
            entry = self._entries.get(key)
            if entry is not None and entry[0] <= due:
                return  # it is in the next batch
            self._entries.pop(key, None)
            self._urgent[key] = None
            self._changed.notify_all()

    def add_many(self, keys: Iterable[str], topic: str) -> None:
        """Make many keys due at one moment, so that one batch can hold them all."""
        with self._changed:
            due = self._clock()
            for key in () if self._shut else keys:
                self._put(key, topic, due)

    def take(
        self,
        batch_max: int,
        batch_s: float,
        stop: threading.Event,
        timeout_s: float | None = None,
    ) -> tuple[Claim, ...]:
        """Wait until a key is due, then claim it and others due, oldest first.

        With batch_max above 1 the wait continues for up to batch_s seconds after the
        first key is due, until batch_max are, or until there is one of `add_now`. Empty
        when `stop` is set, the queue is shut down, or nothing was due within timeout_s
        (None: no limit).
        """
        patient_until = None if timeout_s is None else self._clock() + timeout_s
        with self._changed:
            while self._wait_for(1, patient_until, stop):
                if batch_max > 1 and batch_s > 0 and self._ready:
                    until = self._ready[0][0] + batch_s
                    self._wait_for(batch_max, until, stop)
                if stop.is_set():
                    return ()
                claims = self._claim_urgent(batch_max)
                left = batch_max - len(claims)
                if not claims or self._is_batch_due(left, batch_s):
                    claims += self._claim(left)
                if claims:  # else another thread was faster
                    return claims
        return ()

    def take_due(self, batch_max: int) -> tuple[Claim, ...]:
        """Claim what is due now, oldest first, without waiting."""
        with self._changed:
            claims = self._claim_urgent(batch_max)
            return claims + self._claim(batch_max - len(claims))

    def done(self, key: str) -> None:
        """Release the claim of `key`; what was added since then is now delivered."""
        with self._changed:
            self._claimed.discard(key)
            is_urgent = key in self._urgent_later
            self._urgent_later.discard(key)
            if self._shut or key not in self._topics:
                return
            if is_urgent:
                self._urgent[key] = None
            else:
                self._enter(key)
            self._changed.notify_all()

    def retry(
        self,
        key: str,
        topics: Iterable[str],
        retry_after_s: float | None = None,
        *,
        is_routine: bool = False,
    ) -> float:
        """Make `key` due for `topics` again after its backoff; return the wait, s.

        retry_after_s: a pause that the server asked for; it lengthens the backoff, up
        to `retry_after.LONGEST_S`, and never shortens it. is_routine: no failure, but
        an expected wait, which has a backoff of its own.
        """
        with self._changed:
            counts = self._routine if is_routine else self._failures
            count = counts.get(key, 0)
            counts[key] = count + 1
            delay_s = self._wait_s(count, retry_after_s)
            if not self._shut:
                due = self._clock() + delay_s
                for topic in topics:
                    self._put(key, topic, due)
            return delay_s

    def forget(self, key: str) -> None:
        """Reset the backoff of `key`."""
        with self._changed:
            self._failures.pop(key, None)
            self._routine.pop(key, None)

    def depth(self) -> int:
        """Count the keys that are due and not claimed."""
        with self._changed:
            self._promote()
            return len(self._ready) + len(self._urgent)

    def age_s(self) -> float:
        """Return how long the oldest key has been due, in seconds; 0 without any."""
        with self._changed:
            self._promote()
            return max(0.0, self._clock() - self._ready[0][0]) if self._ready else 0.0

    def shut_down(self) -> None:
        """Stop delivering and wake all waiters; what is left is dropped."""
        with self._changed:
            self._shut = True
            self._changed.notify_all()

    def _wait_s(self, failures: int, retry_after_s: float | None) -> float:
        part = self._backoff.jitter * self._chance()
        doubled = self._backoff.base_s * 2.0 ** min(failures, _DOUBLINGS_MAX)
        backoff_s = min(doubled, self._backoff.max_s) * (1 - part)
        return retry_after.pause_s(retry_after_s, backoff_s, part)

    def _put(self, key: str, topic: str, due: float) -> None:
        topics = self._topics.setdefault(key, {})
        if due >= topics.get(topic, float("inf")):
            return
        topics[topic] = due
        if key in self._claimed or key in self._urgent:
            return
        entry = self._entries.get(key)
        if entry is None or due < entry[0]:
            self._enter(key)
            self._changed.notify_all()

    def _enter(self, key: str) -> None:
        """Line `key` up by its earliest topic; an older entry becomes stale."""
        self._sequence += 1
        entry = (min(self._topics[key].values()), self._sequence, key)
        self._entries[key] = entry
        heapq.heappush(self._later, entry)
        if len(self._later) > 2 * len(self._entries) + _SPARE_ENTRIES:
            self._later = [e for e in self._later if self._entries.get(e[2]) == e]
            heapq.heapify(self._later)

    def _promote(self) -> None:
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            entry = heapq.heappop(self._later)
            if self._entries.get(entry[2]) == entry:
                heapq.heappush(self._ready, entry)

    def _claim(self, batch_max: int) -> tuple[Claim, ...]:
        if self._shut:
            return ()
        self._promote()
        keys: list[str] = []
        while self._ready and len(keys) < batch_max:
            key = heapq.heappop(self._ready)[2]
            del self._entries[key]
            keys.append(key)
        return self._claim_keys(keys)

    def _claim_urgent(self, batch_max: int) -> tuple[Claim, ...]:
        if self._shut:
            return ()
        keys = list(self._urgent)[:batch_max]
        for key in keys:
            del self._urgent[key]
        return self._claim_keys(keys)

    def _claim_keys(self, keys: Iterable[str]) -> tuple[Claim, ...]:
        now = self._clock()
        claims: list[Claim] = []
        for key in keys:
            waiting = self._topics.pop(key)
            due = frozenset(topic for topic, at in waiting.items() if at <= now)
            later = {topic: at for topic, at in waiting.items() if at > now}
            if later:
                self._topics[key] = later
            self._claimed.add(key)
            claims.append(Claim(key, due))
        return tuple(claims)

    def _is_batch_due(self, left: int, batch_s: float) -> bool:
        """Report whether keys have waited as long as they may for others."""
        self._promote()
        if not self._ready or left <= 0:
            return False
        return len(self._ready) >= left or self._clock() >= self._ready[0][0] + batch_s

    def _wait_for(self, count: int, until: float | None, stop: threading.Event) -> bool:
        """Wait until `count` keys are due; False when one of the limits came first."""
        while not self._shut and not stop.is_set():
            self._promote()
            if len(self._ready) >= count or self._urgent:
                return True
            now = self._clock()
            if until is not None and now >= until:
                return False
            ends = [now + STOP_POLL_S]
            ends += [] if until is None else [until]
            ends += [self._later[0][0]] if self._later else []
            self._changed.wait(max(0.0, min(ends) - now))
        return False

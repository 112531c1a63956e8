"""A table whose entries expire: what was read lately, and since when something holds.

With `shared_read` one of the two ways in which provider packages keep what they read.
"""

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Expiring(Generic[K, V]):
    """Values by key, each for a fixed time after it was put. Thread-safe."""

    def __init__(self, keep_s: float, clock: Callable[[], float]) -> None:
        """keep_s: how long an entry is kept. clock: monotonic seconds."""
        self._keep_s = keep_s
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key; None when there is none any more."""
        with self._lock:
            return self._get(key)

    def put(self, key: K, value: V) -> None:
        """Set a value, which is kept from now on; drop what has expired."""
        with self._lock:
            self._put(key, value)

    def first(self, key: K, value: V) -> V:
        """Return the value of a key; set it, and return it, when there is none."""
        with self._lock:
            kept = self._get(key)
            if kept is None:
                self._put(key, value)
            return value if kept is None else kept

    def drop(self, keys: Iterable[K]) -> None:
        """Drop the values of these keys."""
        with self._lock:
            for key in keys:
                self._entries.pop(key, None)

    def keep(self, keys: Iterable[K]) -> None:
        """Drop the values of all keys but these."""
        kept = set(keys)
        with self._lock:
            self._entries = {k: v for k, v in self._entries.items() if k in kept}

    def take(self, key: K) -> V | None:
        """Return the value of a key and drop it."""
        with self._lock:
            value = self._get(key)
            self._entries.pop(key, None)
            return value

    def values(self) -> tuple[V, ...]:
        """Return all values that have not expired."""
        now = self._clock()
        with self._lock:
            entries = tuple(self._entries.values())
        return tuple(value for at, value in entries if now - at < self._keep_s)

    def _get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[0] >= self._keep_s:
            return None
        return entry[1]

    def _put(self, key: K, value: V) -> None:
        now = self._clock()
        self._entries.pop(key, None)  # entries stay in the order of their times
        while self._entries:
            oldest = next(iter(self._entries))
            if now - self._entries[oldest][0] < self._keep_s:
                break
            del self._entries[oldest]
        self._entries[key] = (now, value)

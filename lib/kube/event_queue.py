"""Events that wait to be sent: no object and no namespace crowds out the others.

Rules: an object has a limit of its own, and the namespaces take turns. When the queue
is full, the newest Event of the namespace with most Events is dropped. Users of one
namespace cannot keep the Events of another from being sent.
"""

import collections
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

OBJECT_BURST = 25
"""Source: client-go tools/record, defaultSpamBurst."""
OBJECT_EVERY_S = 5.0
"""An object with no burst left may have another Event after this time.

client-go has 5 minutes, and counts repetitions of an Event elsewhere."""
OBJECTS_MAX = 4096
"""Objects whose limit is kept. Source: client-go tools/record, maxLruCacheEntries."""

T = TypeVar("T")


class EventQueue(Generic[T]):
    """Queue of at most `most` items. Safe for many threads. clock: seconds."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[str, collections.deque[T]] = {}
        self._unsent = 0  # waiting, or being sent
        self._count = 0
        self._tokens: collections.OrderedDict[str, tuple[float, float]] = (
            collections.OrderedDict()
        )

    def put(self, namespace: str, subject: str, item: T) -> bool:
        """Add an item; False when it, or another one in its place, is dropped.

        subject: the object that the item is about.
        """
        with self._changed:
            if not self._may_add(subject):
                return False
            self._waiting.setdefault(namespace, collections.deque()).append(item)
            self._count += 1
            self._unsent += 1
            is_full = self._count > self._most
            if is_full:
                self._drop()
            self._changed.notify_all()
            return not is_full

    def _may_add(self, subject: str) -> bool:
        """Take one of the tokens of an object."""
        now = self._clock()
        tokens, filled_at = self._tokens.pop(subject, (float(OBJECT_BURST), now))
        earned = max(now - filled_at, 0.0) / OBJECT_EVERY_S
        tokens = min(tokens + earned, float(OBJECT_BURST))
        may_add = tokens >= 1
        self._tokens[subject] = (tokens - 1 if may_add else tokens, now)
        if len(self._tokens) > OBJECTS_MAX:
            self._tokens.popitem(last=False)
        return may_add

    def _drop(self) -> None:
        longest = max(self._waiting, key=lambda name: len(self._waiting[name]))
        self._waiting[longest].pop()
        self._forget_empty(longest)
        self._count -= 1
        self._unsent -= 1

    def _forget_empty(self, namespace: str) -> None:
        if not self._waiting[namespace]:
            del self._waiting[namespace]

    def take(self, timeout_s: float) -> T | None:
        """Return the oldest item of the namespace whose turn it is; None: no item.

        `sent` has to be called afterwards.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._count > 0, timeout_s):
                return None
            namespace = next(iter(self._waiting))
            items = self._waiting.pop(namespace)
            item = items.popleft()
            if items:
                self._waiting[namespace] = items  # the last one now
            self._count -= 1
            return item

    def sent(self) -> None:
        """Note that an item was sent, or failed."""
        with self._changed:
            self._unsent -= 1
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until no item waits or is being sent; False when that took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unsent, timeout_s)

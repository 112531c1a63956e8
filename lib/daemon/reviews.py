"""Limit on the reviews that a daemon asks the API server for.

Any client of the port can make a daemon send TokenReviews in its own name, and
each of them keeps a connection busy. Beyond the limit a request is refused, so
that connections stay free for probes. Callers that were authorized before have places
of their own.
"""

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator

AT_ONCE = 8
"""Parallel reviews of callers that were not authorized before."""
KNOWN_AT_ONCE = 8
"""Further parallel reviews, of callers that were."""
PER_S = 10.0
"""Reviews per second of callers that were not authorized before, after BURST."""
BURST = 20
KNOWN_MAX = 1000


class Overloaded(Exception):
    """The limit is reached; nothing was asked."""


class ReviewLimit:
    """Limits reviews; safe for many threads. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._under_way = {True: 0, False: 0}
        self._tokens = float(BURST)
        self._filled_at = clock()

    def trust(self, caller: str) -> None:
        """Remember a caller whose review succeeded; the oldest one makes room."""
        with self._lock:
            self._known[caller] = None
            self._known.move_to_end(caller)
            while len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)

    @contextlib.contextmanager
    def admitted(self, caller: str) -> Iterator[None]:
        """Surround one review. caller: digest of a token, or a user name.

        Raises:
            Overloaded: too many reviews are under way, or were begun just now.
        """
        with self._lock:
            is_known = caller in self._known
            self._take(is_known)
            self._under_way[is_known] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way[is_known] -= 1

    def _take(self, is_known: bool) -> None:
        if self._under_way[is_known] >= (KNOWN_AT_ONCE if is_known else AT_ONCE):
            raise Overloaded
        if is_known:
            return
        now = self._clock()
        gained = (now - self._filled_at) * PER_S
        self._tokens, self._filled_at = min(BURST, self._tokens + gained), now
        if self._tokens < 1:
            raise Overloaded
        self._tokens -= 1

"""Requests that wait for an answer: of which server, since when, how long at most.

The tool shows its user what it waits for; daemons have metrics, and read nothing here.
"""

import contextlib
import dataclasses
import itertools
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator


@dataclasses.dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request. server: as https://HOST:PORT. limit_s: it ends after this time."""

    server: str
    began: float
    limit_s: float


_NUMBERS = itertools.count()
_WAITING: dict[int, OutgoingRequest] = {}
"""Each operation on it is one of the interpreter: copies need no lock."""


@contextlib.contextmanager
def to(url: str, limit_s: float) -> Iterator[None]:
    """Count a request to the server of a URL while the block runs."""
    parts = urllib.parse.urlsplit(url)
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    number = next(_NUMBERS)
    _WAITING[number] = OutgoingRequest(server, time.monotonic(), limit_s)
    try:
        yield
    finally:
        del _WAITING[number]


def waiting() -> tuple[OutgoingRequest, ...]:
    """Return the requests without an answer, the oldest one first."""
    return tuple(sorted(_WAITING.copy().values(), key=lambda request: request.began))


class Watcher:
    """Reports each server once that has not answered for a while.

    report: called with a line. after_s: time without an answer.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        after_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._after_s = after_s
        self._clock = clock
        self._reported: set[str] = set()

    def look(self) -> None:
        """Report servers that are waited for."""
        now = self._clock()
        for request in waiting():
            if now - request.began < self._after_s or request.server in self._reported:
                continue
            self._reported.add(request.server)
            self._report(
                f"waiting for {request.server} ({request.limit_s:.0f} s at most)"
            )

    def start(self, every_s: float = 0.25) -> None:
        """Look repeatedly, in a thread that ends with the process."""

        def run() -> None:
            while True:
                time.sleep(every_s)
                self.look()

        threading.Thread(target=run, name="waiting", daemon=True).start()

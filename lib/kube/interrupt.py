"""Ends a watch that waits for the server when its thread is to stop."""

import contextlib
import threading
from collections.abc import Iterator

from lib.kube import client


class Interrupt:
    """Knows which watch is open; see `interrupting`."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._open: client.WatchLines | None = None

    @contextlib.contextmanager
    def during(self, lines: client.WatchLines) -> Iterator[None]:
        """Abort `lines` once `stop` is set, as long as the block runs."""
        with self._lock:
            self._open = lines
        if self._stop.is_set():
            lines.abort()
        try:
            yield
        finally:
            with self._lock:
                self._open = None

    def abort(self) -> None:
        """Abort the watch that is open, if one is."""
        with self._lock:
            if self._open is not None:
                self._open.abort()


@contextlib.contextmanager
def interrupting(stop: threading.Event) -> Iterator[Interrupt]:
    """Yield an Interrupt that fires when `stop` is set."""
    interrupt = Interrupt(stop)
    ended = threading.Event()

    def listen() -> None:
        while not ended.is_set():
            if stop.wait(1.0):
                interrupt.abort()
                return

    threading.Thread(target=listen, daemon=True, name="interrupt").start()
    try:
        yield interrupt
    finally:
        ended.set()

"""How a daemon is stopped by signals, and its exit codes."""

import contextlib
import enum
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Exit(enum.IntEnum):
    """The exit codes of every component."""

    OK = 0
    FAILURE = 1
    """It could not continue: a lost lease, a second signal, an error at the start."""
    USAGE = 2
    """Flags or configuration are wrong."""


def end_now(code: int) -> None:
    """Exit immediately, whatever the threads do; what was printed is kept.

    The interpreter's own exit would wait for every worker thread.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


ECHO_S = 1.0
"""Signals this close to the first are one request: coreutils' timeout sends two."""


@contextlib.contextmanager
def on_signal(
    stop: threading.Event,
    end: Callable[[int], None] = end_now,
    *,
    echo_s: float = ECHO_S,
) -> Iterator[None]:
    """Set `stop` at the first SIGTERM or SIGINT; exit at the second.

    echo_s: seconds after the first in which another one says nothing new. To be
    entered by the main thread. The handlers that were there come back in the end.

    Source: sigs.k8s.io/controller-runtime SetupSignalHandler, exit code included.
    """
    # Setting an event inside a handler may deadlock with a main thread that waits for
    # it; the wake-up descriptor is written by the interpreter's C code instead.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watcher = threading.Thread(
        target=_watch, args=(reader, stop, end, echo_s), name="signals", daemon=True
    )
    watcher.start()
    before = {number: signal.signal(number, _ignore) for number in SIGNALS}
    descriptor = signal.set_wakeup_fd(writer)
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)  # ends the watcher
        watcher.join()


def _ignore(number: int, frame: FrameType | None) -> None:
    del number, frame


def _watch(
    reader: int, stop: threading.Event, end: Callable[[int], None], echo_s: float
) -> None:
    first_at: float | None = None
    with contextlib.closing(os.fdopen(reader, "rb", buffering=0)) as numbers:
        while number := numbers.read(1):
            if number[0] not in SIGNALS:
                continue
            if first_at is None:
                first_at = time.monotonic()
                stop.set()
            elif time.monotonic() - first_at >= echo_s:
                end(Exit.FAILURE)

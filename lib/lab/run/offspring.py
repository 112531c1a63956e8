"""The processes which this command has begun, and how they are ended in a hurry.

Rules: nothing is waited for with waitpid: that would take a child's exit status away
from the thread that runs it, and a killed build would pass for a good one.
"""

import contextlib
import time

import psutil

Known = frozenset[psutil.Process]


def seen() -> Known:
    """Return every running descendant of this process."""
    try:
        return frozenset(psutil.Process().children(recursive=True))
    except psutil.Error:
        return frozenset()


def alive(process: psutil.Process) -> bool:
    """Report whether it still runs; a zombie does not.

    One that has threads left is none yet: it still holds its ports.
    """
    try:
        if not process.is_running():
            return False
        return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
    except psutil.Error:
        return False


def end(but: Known, patience_s: float = 2, poll_s: float = 0.05) -> None:
    """End all descendants except `but`; what lives after `patience_s` is killed."""
    children = [process for process in seen() - but if alive(process)]
    for process in children:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    until = time.monotonic() + patience_s
    while time.monotonic() < until and any(alive(process) for process in children):
        time.sleep(poll_s)
    for process in children:
        if alive(process):
            with contextlib.suppress(psutil.Error):
                process.kill()

"""A lock that one process at a time holds, with a step while it is waited for."""

import contextlib
import fcntl
import pathlib
from collections.abc import Iterator

from lib.lab.run import progress


@contextlib.contextmanager
def held(file: pathlib.Path, shown: progress.Progress, waiting: str) -> Iterator[None]:
    """Hold the lock of a file while the block runs.

    waiting: title of the step that is shown while another process holds it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with shown.step(waiting):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield

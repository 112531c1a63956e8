"""Processes that a thread has started: an exec plug-in and what runs below it.

The kubernetes package starts exec plug-ins itself, without a timeout and without a way
to reach the process.
"""

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

_TASKS = pathlib.Path("/proc/self/task")


def kill_of_thread(native_id: int | None) -> None:
    """Kill the processes started by a thread of this process, and all below them.

    Source: proc_pid_task(5): task/TID/children lists the children of one thread. Where
    the kernel lacks that file, nothing is killed.
    """
    if native_id is None:
        return
    # Children first: a parent that is gone no longer leads to them.
    for pid in [*_below(_TASKS / str(native_id))]:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _below(task: pathlib.Path) -> Iterator[int]:
    """List the descendants of a task, those at the bottom first."""
    with contextlib.suppress(OSError):
        for pid in map(int, (task / "children").read_text().split()):
            with contextlib.suppress(OSError):
                for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    yield from _below(thread)
            yield pid

"""Stops one thread of a process, as a debugger does; the others continue."""

import contextlib
import ctypes
import os
import pathlib
from collections.abc import Callable, Iterator

from lib.lab import errors

# Source: linux/ptrace.h and linux/wait.h.
_SEIZE = 0x4206
_INTERRUPT = 0x4207
_DETACH = 17
_WALL = 0x40000000
_TRIES = 10

_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_ptrace.restype = ctypes.c_long


@contextlib.contextmanager
def stopped_thread(pid: int, name: str, answers: Callable[[], bool]) -> Iterator[None]:
    """Stop a thread until the block ends.

    name: as the kernel has it, see `thread`. answers: whether the rest of the process
    continues. A Python thread that holds the interpreter's lock stops all others: it is
    let go then, and stopped a moment later.

    Raises:
        LabError: there is no such thread, or it always holds the lock. OSError: it may
            not be traced.
    """
    number = thread(pid, name)
    for _ in range(_TRIES):
        _stop(number)
        try:
            if answers():
                yield
                return
        finally:
            _request(_DETACH, number)
    raise errors.LabError(f"process {pid} answers nothing without its thread {name}")


def thread(pid: int, name: str) -> int:
    """Return the id of the oldest thread with a name.

    The kernel gives a new thread the name of the one that starts it, so younger ones
    may have the same name.

    Raises:
        LabError: there is none.
    """
    tasks = pathlib.Path(f"/proc/{pid}/task")
    names = {
        task: (task / "comm").read_text().strip()
        for task in sorted(tasks.iterdir(), key=_age)
    }
    named = [int(task.name) for task, own in names.items() if own == name]
    if not named:
        raise errors.LabError(f"threads of process {pid} named {name}: {names}")
    return named[0]


def _age(task: pathlib.Path) -> tuple[int, int]:
    """Return when a thread was started, in ticks after the boot, and its id."""
    fields = (task / "stat").read_text().rpartition(")")[2].split()
    # Source: proc(5), field 22; the first two end with the name, in parentheses.
    return int(fields[22 - 3]), int(task.name)


def _stop(number: int) -> None:
    _request(_SEIZE, number)
    _request(_INTERRUPT, number)
    os.waitpid(number, _WALL)


def _request(request: int, number: int) -> None:
    """Raise an OSError when the kernel refuses it."""
    if _ptrace(request, number, None, None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

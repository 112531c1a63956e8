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
    """Return the id of the only thread with a name.

    Raises:
        LabError: there is none, or more than one.
    """
    names = {
        int(task.name): (task / "comm").read_text().strip()
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
    }
    numbers = [number for number, own in names.items() if own == name]
    if len(numbers) != 1:
        raise errors.LabError(f"threads of process {pid} named {name}: {names}")
    return numbers[0]


def _stop(number: int) -> None:
    _request(_SEIZE, number)
    _request(_INTERRUPT, number)
    os.waitpid(number, _WALL)


def _request(request: int, number: int) -> None:
    """Raise an OSError when the kernel refuses it."""
    if _ptrace(request, number, None, None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

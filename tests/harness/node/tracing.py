"""Kills a program at one of its writes, exactly: by ptrace, without another program.

Source: ptrace(2), wait(2).
"""

import ctypes
import os
import signal
from collections.abc import Mapping, Sequence

from lib.lab import errors

_TRACEME, _SYSCALL, _SETOPTIONS, _GETREGS_SET = 0, 24, 0x4200, 0x4204
_EXITKILL = 0x100000
_NT_PRSTATUS = 1
_SYSGOOD = 1
_STOPPED = signal.SIGTRAP | 0x80

_WRITES = {
    # pwrite64, write, pwritev, fallocate, fsync, ioctl (BLKDISCARD, BLKZEROOUT)
    "x86_64": (15, frozenset({18, 1, 296, 285, 74, 16})),
    "aarch64": (8, frozenset({68, 64, 70, 47, 82, 29})),
}
"""Index of the system call's number among the registers, and the calls that count.

Source: Linux arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h.
"""


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def supported() -> bool:
    """Report whether system calls of this architecture are known here."""
    return os.uname().machine in _WRITES


def run(words: Sequence[str], env: Mapping[str, str], kill_at: int) -> int:
    """Run a program; kill it before its write number `kill_at` (from 0).

    kill_at: negative for never. Returns the number of writes that it began; the one
    before which it was killed is not counted.

    Raises:
        LabError: it failed by itself.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (
        ctypes.c_long,
        ctypes.c_long,
        ctypes.c_void_p,
        ctypes.c_void_p,
    )
    pid = os.fork()
    if pid == 0:
        _begin(libc, words, env)
    os.waitpid(pid, 0)
    libc.ptrace(_SETOPTIONS, pid, None, _SYSGOOD | _EXITKILL)
    return _follow(libc, pid, kill_at, " ".join(words))


def _begin(libc: ctypes.CDLL, words: Sequence[str], env: Mapping[str, str]) -> None:
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        libc.ptrace(_TRACEME, 0, None, None)
        os.execvpe(words[0], list(words), dict(env))  # noqa: S606 -- no shell
    finally:
        os._exit(127)


def _follow(libc: ctypes.CDLL, pid: int, kill_at: int, shown: str) -> int:
    index, writes = _WRITES[os.uname().machine]
    count, is_entry, pending = 0, False, 0
    while True:
        libc.ptrace(_SYSCALL, pid, None, pending)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            if os.waitstatus_to_exitcode(status) != 0:
                raise errors.LabError(f"{shown}: failed under ptrace")
            return count
        stopped_by = os.WSTOPSIG(status)
        pending = 0 if stopped_by in (_STOPPED, signal.SIGTRAP) else stopped_by
        if stopped_by != _STOPPED:
            continue
        is_entry = not is_entry
        if not is_entry or _number(libc, pid, index) not in writes:
            continue
        if count == kill_at:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return count
        count += 1


def _number(libc: ctypes.CDLL, pid: int, index: int) -> int:
    registers = (ctypes.c_ulong * 64)()
    vector = _Vector(ctypes.addressof(registers), ctypes.sizeof(registers))
    libc.ptrace(_GETREGS_SET, pid, _NT_PRSTATUS, ctypes.addressof(vector))
    return int(registers[index])

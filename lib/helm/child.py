"""A child process in a group of its own, with limits on time and output.

Rules: nothing that it started outlives the run; when this process is killed the child
is killed, too.
"""

import contextlib
import ctypes
import dataclasses
import functools
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

KEPT_MAX = 64 * 1024
"""Bytes of error output that are kept: the first half and the last."""
POLL_S = 0.2
"""How late a cancellation is noticed."""
GRACE_S = 5.0
"""Between SIGTERM and SIGKILL."""
CHUNK = 64 * 1024

_PR_SET_PDEATHSIG = 1
"""Source: linux/prctl.h."""
_prctl = ctypes.CDLL(None, use_errno=True).prctl


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """limit_s: seconds for the run. output_max: bytes of standard output."""

    limit_s: float
    output_max: int = KEPT_MAX
    grace_s: float = GRACE_S


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. code: negative for a signal. cut: output_max was exceeded."""

    code: int
    output: bytes = dataclasses.field(repr=False)
    errors: str = dataclasses.field(repr=False)
    timed_out: bool = False
    canceled: bool = False
    cut: bool = False


def run(
    arguments: Sequence[str],
    env: Mapping[str, str],
    limits: Limits,
    cancel: threading.Event,
) -> Ended:
    """Run a program until it ends, its time is over, or `cancel` is set.

    The calling thread must live as long as the run: its end is the child's, too.

    Raises:
        OSError: the program cannot be started.
    """
    with subprocess.Popen(
        list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        process_group=0,
        # One system call; a child that outlives a killed parent would go on writing.
        preexec_fn=functools.partial(_end_with, os.getpid()),  # noqa: PLW1509
    ) as process:
        try:
            return _Watch(process, limits, cancel).until_end()
        finally:
            _signal(process, signal.SIGKILL)


def _end_with(parent: int) -> None:
    """Have the kernel kill this process, a child, when its parent ends.

    A parent that was killed before this call sends no signal any more: end then.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the whole group, which may have ended already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _Watch:
    """Reads the output of one process and ends it when it must."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        limits: Limits,
        cancel: threading.Event,
    ) -> None:
        self._process = process
        self._limits = limits
        self._cancel = cancel
        self._deadline = time.monotonic() + limits.limit_s
        self._kill_at: float | None = None
        self._timed_out = self._canceled = self._cut = False
        self._output = bytearray()
        self._first = bytearray()
        self._last = bytearray()

    def until_end(self) -> Ended:
        with selectors.DefaultSelector() as selector:
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(POLL_S):
                    chunk = os.read(key.fd, CHUNK)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._process.stdout:
                        self._take_output(chunk)
                    else:
                        self._take_error(chunk)
                self._check()
                if self._process.poll() is not None and not selector.select(0):
                    break  # a process of the group still holds the pipes
        return self._ended()

    def _ended(self) -> Ended:
        while True:
            try:
                code = self._process.wait(POLL_S)
                break
            except subprocess.TimeoutExpired:
                self._check()
        skipped = b"\n...\n" if self._last else b""
        text = bytes(self._first + skipped + self._last).decode(errors="replace")
        return Ended(
            code=code,
            output=bytes(self._output),
            errors=text,
            timed_out=self._timed_out,
            canceled=self._canceled,
            cut=self._cut,
        )

    def _take_output(self, chunk: bytes) -> None:
        room = self._limits.output_max - len(self._output)
        self._cut = self._cut or len(chunk) > room
        self._output += chunk[: max(room, 0)]

    def _take_error(self, chunk: bytes) -> None:
        room = KEPT_MAX // 2 - len(self._first)
        self._first += chunk[: max(room, 0)]
        self._last += chunk[max(room, 0) :]
        del self._last[: -KEPT_MAX // 2]

    def _check(self) -> None:
        """Ask the group to end when it has to, and kill it when it does not."""
        now = time.monotonic()
        if self._kill_at is None:
            self._timed_out = now >= self._deadline
            self._canceled = self._cancel.is_set()
            if self._timed_out or self._canceled:
                self._kill_at = now + self._limits.grace_s
                _signal(self._process, signal.SIGTERM)
        elif now >= self._kill_at:
            _signal(self._process, signal.SIGKILL)

"""Runs one command at a time for one object, to its end or its time-out.

Rules: no shell; a process group of its own, killed as a whole; output is bounded. A
command that is killed and does not exit, because the kernel waits for a disk, blocks
further commands for the same object only.
"""

import contextlib
import dataclasses
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from lib.kernel import errors

OUTPUT_BYTES = 4096
"""The end of what a command printed, for messages."""
EXIT_S = 5.0
"""A killed process exits within this time, unless the kernel holds it."""
_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Programs of file systems are in sbin, which is not on every PATH."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finished:
    """Exit code and the end of the output, standard error included."""

    code: int
    output: str

    @property
    def says_busy(self) -> bool:
        """Whether it reported EBUSY, for programs whose exit code does not show it."""
        return "busy" in self.output


class Commands:
    """Runs commands with one environment. Safe for many threads."""

    def __init__(self, env: Mapping[str, str], exit_s: float = EXIT_S) -> None:
        path = ":".join(part for part in (env.get("PATH", ""), _SEARCH) if part)
        self._env = {**env, "PATH": path, "LC_ALL": "C"}
        self._exit_s = exit_s
        self._lock = threading.Lock()
        self._stuck: dict[str, subprocess.Popen[bytes]] = {}
        self.started = 0

    def run(self, words: Sequence[str], key: str, timeout_s: float) -> Finished:
        """Run a command. key: the object that it changes or reads.

        Raises:
            Missing: the program is not installed.
            TimedOut: it was killed.
            Stuck: it, or an earlier one for this object, was killed and has not exited.
        """
        self._require_free(key)
        program = shutil.which(words[0], path=self._env["PATH"])
        if program is None:
            raise errors.Missing(f"program {words[0]!r}: not found on PATH")
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(
                [program, *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd="/",
                start_new_session=True,
            )
            with self._lock:
                self.started += 1
            try:
                code = _wait(child, timeout_s)
            except subprocess.TimeoutExpired:
                self._kill(child, key, " ".join(words), timeout_s)
            return Finished(code, _end(output))

    def _require_free(self, key: str) -> None:
        with self._lock:
            child = self._stuck.get(key)
            if child is not None and child.poll() is not None:
                del self._stuck[key]
                child = None
        if child is not None:
            text = f"{key}: process {child.pid} was killed and has not exited"
            raise errors.Stuck(f"{text}: the kernel waits for the disk")

    def _kill(
        self, child: subprocess.Popen[bytes], key: str, words: str, timeout_s: float
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        text = f"{words}: not finished after {timeout_s:.0f} s; killed"
        try:
            child.wait(self._exit_s)
        except subprocess.TimeoutExpired:
            with self._lock:
                self._stuck[key] = child
            raise errors.Stuck(f"{text}, but it has not exited") from None
        raise errors.TimedOut(text) from None


def _wait(child: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Return the exit code as soon as the child has exited.

    Popen.wait polls, which costs a call up to 50 ms for each command.

    Raises:
        TimeoutExpired: it has not exited.
    """
    try:
        descriptor = os.pidfd_open(child.pid)
    except OSError:  # Linux before 5.3, or a container that forbids it
        return child.wait(timeout_s)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        if not poller.poll(timeout_s * 1000):
            raise subprocess.TimeoutExpired(child.args, timeout_s)
    finally:
        os.close(descriptor)
    return child.wait()


def _end(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - OUTPUT_BYTES, 0))
    return output.read().decode(errors="replace").strip()

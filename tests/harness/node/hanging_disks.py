"""Disks that stop answering on request: loop devices on a FUSE file system.

A process that waits for them continues when they answer, and gets I/O errors when the
test process ends: its server of FUSE ends with it, so nothing hangs for good.
"""

import contextlib
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO

from lib.lab import errors
from lib.lab.run import waiting
from lib.lab.storage import loop_disks
from tests.harness.node import hanging_fuse

_MIB = 2**20
SIZE = 64 * _MIB


def unavailable() -> str | None:
    """Return in one sentence why this machine has no such disks; None when it has."""
    if not pathlib.Path("/dev/fuse").exists():
        return "this kernel has no FUSE (/dev/fuse is absent)"
    return loop_disks.unavailable()


class HangingDisks:
    """Some disks of one machine, by number."""

    def __init__(
        self, disks: Sequence[loop_disks.LoopDisk], process: "subprocess.Popen[str]"
    ) -> None:
        self.disks = disks
        self._process = process
        self._held: set[int] = set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in _stream(self._process.stdout):
            self._held.add(int(line))

    def hold(self, what: str) -> None:
        """Answer no more: "writes", or "all" for reads as well; "go" ends it."""
        self._held.clear()
        stdin = _stream(self._process.stdin)
        stdin.write(f"{what}\n")
        stdin.flush()

    def wait_until_held(self, number: int) -> None:
        """Wait until a request to one disk is held."""
        waiting.until(f"disk {number} hangs", lambda: number in self._held)


@contextlib.contextmanager
def plugged(
    machine: loop_disks.Machine, folder: pathlib.Path, serials: Sequence[str]
) -> Iterator[HangingDisks]:
    """Plug one disk for each serial. folder: of the file system, empty.

    Raises:
        LabError: FUSE cannot be served.
    """
    program = [sys.executable, str(pathlib.Path(hanging_fuse.__file__).resolve())]
    with subprocess.Popen(
        [*program, str(folder), str(len(serials)), str(SIZE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            if _stream(process.stdout).readline() != "serving\n":
                raise errors.LabError(f"FUSE cannot be served on {folder}")
            # The first close of a file shows the kernel that FLUSH is not served.
            (folder / "0").open("rb").close()
            disks = [
                machine.plug_file(folder / str(number), serial[:20])
                for number, serial in enumerate(serials)
            ]
            yield HangingDisks(disks, process)
        finally:
            process.kill()
            subprocess.run(["umount", "-l", folder], capture_output=True, check=False)


def _stream(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise errors.LabError("no pipe to the server of FUSE")
    return stream

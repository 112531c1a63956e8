"""The backend of a disk as a process of its own, which can be stopped.

A second QEMU without a machine serves a file by NBD. While it is stopped, the disk is
present, its requests wait, and the emulated machine runs on.
"""

import contextlib
import dataclasses
import pathlib
import signal
import subprocess
from collections.abc import Iterator

from lib.lab import places
from lib.lab.artifacts import debian
from lib.lab.run import waiting
from tests.harness.guest import guest_packages
from tests.harness.guest.qemu_socket import QemuSocket

EXPORT = "disk"


@dataclasses.dataclass(frozen=True, slots=True)
class DiskServer:
    """A server of one disk. socket: where it serves."""

    process: subprocess.Popen[bytes]
    socket: pathlib.Path

    def stop(self) -> None:
        """Answer no request any more, and close no connection."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer all requests, those that wait included."""
        self.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def serving(
    where: places.Places, file: pathlib.Path, folder: pathlib.Path
) -> Iterator[DiskServer]:
    """Serve a file for as long as the block lasts. folder: for sockets and the log.

    Raises:
        LabError: the server does not start.
    """
    tree = guest_packages.host_tree(where)
    monitor, socket = folder / "backend.qmp", folder / "backend.nbd"
    words = [
        *(str(tree / "usr/bin/qemu-system-x86_64"), "-machine", "none"),
        *("-nodefaults", "-display", "none", "-S"),
        *("-L", f"{tree}/usr/share/seabios", "-L", f"{tree}/usr/share/qemu"),
        *("-qmp", f"unix:{monitor},server=on,wait=off"),
    ]
    env = debian.environment(tree, {})
    with (folder / "backend.log").open("wb") as log:
        process = subprocess.Popen(words, env=env, stdout=log, stderr=log)
    try:
        waiting.until("the disk's server listens", monitor.exists)
        with contextlib.closing(QemuSocket(monitor)) as qmp:
            qmp.begin()
            source = {"driver": "file", "filename": str(file)}
            qmp.execute(
                "blockdev-add", driver="raw", file=source, **{"node-name": EXPORT}
            )
            address = {"type": "unix", "data": {"path": str(socket)}}
            qmp.execute("nbd-server-start", addr=address)
            options = {"node-name": EXPORT, "writable": True, "name": EXPORT}
            qmp.execute("block-export-add", type="nbd", id=EXPORT, **options)
            yield DiskServer(process, socket)
    finally:
        process.kill()
        process.wait()

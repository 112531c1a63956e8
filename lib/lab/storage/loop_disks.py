"""Disks for csi-node: loop devices below a /dev and a /sys of their own.

Rules: everything lives in a mount namespace of this process and in unlinked files, and
loop devices detach themselves, so that nothing remains when the process is killed.
"""

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import pathlib
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO

from lib.lab import errors

_CLONE_NEWNS = 0x20000
_CTL_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_CLEAR = 0x4C01
_SET_CAPACITY = 0x4C07
_FLUSH_BUFFERS = 0x1261
_AUTOCLEAR = 4
_INFO_BYTES = 232
_FLAGS_AT = 52
"""Source: Linux include/uapi/linux: loop.h (struct loop_config), fs.h (BLKFLSBUF)."""
_MAJOR = 7
_SEQUENCE = itertools.count(1)
_TRIES = 20


def unavailable() -> str | None:
    """Return in one sentence why this machine has no loop devices; None when it has."""
    if os.geteuid() != 0:
        return "loop devices and mounts need root"
    if not pathlib.Path("/dev/loop-control").exists():
        return "this kernel has no loop devices (/dev/loop-control is absent)"
    return None


def enter_private_mounts() -> None:
    """Move this thread, and what it starts, to a mount namespace of its own.

    Raises:
        LabError: the kernel refuses; CAP_SYS_ADMIN is required.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise errors.LabError(f"no private mount namespace: {reason}")
    _run("mount", "--make-rprivate", "/")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise errors.LabError(f"{' '.join(words)}: {done.stderr.strip()}")


class LoopDisk:
    """A loop device as a disk with a serial. file: what it is backed by, unlinked."""

    def __init__(self, number: int, file: IO[bytes], descriptor: int) -> None:
        self.name = f"loop{number}"
        self.number = number
        self.file = file
        self._descriptor = descriptor

    def grow(self, size_bytes: int) -> None:
        """Expand the disk; the kernel reports the new size immediately."""
        self.file.truncate(size_bytes)
        fcntl.ioctl(self._descriptor, _SET_CAPACITY)

    def follow(self) -> None:
        """Take over the size that the file has now."""
        fcntl.ioctl(self._descriptor, _SET_CAPACITY)

    def truncate(self, size_bytes: int) -> None:
        """Cut the file under the disk: reads and writes after that point fail."""
        self.file.truncate(size_bytes)

    def wipe(self, size_bytes: int) -> None:
        """Empty an unmounted disk, and what the kernel has cached of it."""
        self.file.truncate(0)
        self.grow(size_bytes)
        fcntl.ioctl(self._descriptor, _FLUSH_BUFFERS)

    def write(self, offset: int, data: bytes) -> None:
        """Write through the device."""
        os.pwrite(self._descriptor, data, offset)
        os.fsync(self._descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Read through the device."""
        return os.pread(self._descriptor, length, offset)

    def close(self) -> None:
        """Detach; a mounted one stays until it is unmounted."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._descriptor, _CLEAR)
        os.close(self._descriptor)
        self.file.close()


def _attach(file: IO[bytes], nodes: pathlib.Path) -> tuple[int, int]:
    """Attach a file to a free loop device; return its number and a descriptor.

    Another process may take the free device first: then the next one is tried.
    """
    with open("/dev/loop-control", "rb") as control:
        for _ in range(_TRIES):
            number = fcntl.ioctl(control, _CTL_GET_FREE)
            node = nodes / f"loop{number}"
            with contextlib.suppress(FileExistsError):
                os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(_MAJOR, number))
            descriptor = os.open(node, os.O_RDWR | os.O_CLOEXEC)
            info = bytearray(_INFO_BYTES)
            struct.pack_into("<I", info, _FLAGS_AT, _AUTOCLEAR)
            head = struct.pack("<II", file.fileno(), 0)
            config = head + bytes(info) + bytes(64)
            try:
                fcntl.ioctl(descriptor, _CONFIGURE, config)
            except OSError as error:
                os.close(descriptor)
                if error.errno != errno.EBUSY:
                    raise
                continue
            return number, descriptor
    raise errors.LabError("no free loop device")


class Machine:
    """Roots of /dev and /sys, and a folder for mounts, all in one private tmpfs."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.dev = folder / "dev"
        self.sys = folder / "sys"
        self.kubelet = folder / "kubelet"
        self._by_id = self.dev / "disk/by-id"
        self._disks: list[LoopDisk] = []
        for created in (self._by_id, self.sys / "block", self.kubelet):
            created.mkdir(parents=True)

    def plug(self, serial: str, size_bytes: int, *links: str) -> LoopDisk:
        """Add a disk; links: names in /dev/disk/by-id."""
        file = tempfile.TemporaryFile()
        file.truncate(size_bytes)
        return self._plug(file, serial, links)

    def plug_file(self, path: pathlib.Path, serial: str, *links: str) -> LoopDisk:
        """Add a disk with the data and the size of a file that stays."""
        return self._plug(path.open("r+b"), serial, links)

    def plug_again(self, disk: LoopDisk, serial: str, *links: str) -> LoopDisk:
        """Add a disk with the data of one that was unplugged, as another device."""
        return self._plug(os.fdopen(os.dup(disk.file.fileno()), "r+b"), serial, links)

    def _plug(self, file: IO[bytes], serial: str, links: tuple[str, ...]) -> LoopDisk:
        number, descriptor = _attach(file, self.dev)
        disk = LoopDisk(number, file, descriptor)
        self._disks.append(disk)
        self.show(disk, serial)
        for link in links:
            (self._by_id / link).symlink_to(f"../../{disk.name}")
        return disk

    def show(self, disk: LoopDisk, serial: str) -> None:
        """Write the disk's part of /sys: its real size and number, our serial."""
        folder = self.sys / "block" / disk.name
        folder.mkdir(exist_ok=True)
        (folder / "serial").unlink(missing_ok=True)
        (folder / "serial").write_text(f"{serial}\n")
        # A serial belongs to one disk for its life: this is another disk from now on.
        (folder / "diskseq").write_text(f"{next(_SEQUENCE)}\n")
        for name in ("size", "dev"):
            with contextlib.suppress(FileExistsError):
                (folder / name).symlink_to(f"/sys/block/{disk.name}/{name}")

    def silence(self, disk: LoopDisk) -> None:
        """Make a disk hang when it is asked for its serial; `show` ends that."""
        file = self.sys / "block" / disk.name / "serial"
        file.unlink()
        os.mkfifo(file)

    def unplug(self, disk: LoopDisk) -> None:
        """Remove the disk's links and its parts of /dev and /sys."""
        folder = self.sys / "block" / disk.name
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        (self.dev / disk.name).unlink()
        for link in list(self._by_id.iterdir()):
            if os.readlink(link).endswith(f"/{disk.name}"):
                link.unlink()

    def disk(self, serial: str) -> LoopDisk:
        """Return the disk with a serial; StopIteration when there is none."""
        shown = (
            file.parent.name
            for file in (self.sys / "block").glob("*/serial")
            if file.read_text().strip() == serial
        )
        name = next(shown)
        return next(disk for disk in self._disks if disk.name == name)

    def pull(self, disk: LoopDisk) -> None:
        """Remove a disk for good: the loop device is free once nothing is mounted."""
        self.unplug(disk)
        self._disks.remove(disk)
        disk.close()

    def close(self) -> None:
        """Detach every disk."""
        for disk in self._disks:
            disk.close()


@contextlib.contextmanager
def machine(folder: pathlib.Path) -> Iterator[Machine]:
    """Create a machine on a tmpfs over a folder; unmount everything in the end.

    To be used in a private mount namespace.
    """
    _run("mount", "-t", "tmpfs", "-o", "mode=755,dev", "tmpfs", str(folder))
    created = Machine(folder)
    try:
        yield created
    finally:
        for target in reversed(_mounts_below(str(folder))):
            subprocess.run(["umount", "-l", target], capture_output=True, check=False)
        created.close()


def _mounts_below(folder: str) -> list[str]:
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    targets = [line.split(" ")[4] for line in lines]
    return [t for t in targets if t == folder or t.startswith(f"{folder}/")]


def backed_by(folder: pathlib.Path) -> list[str]:
    """Return the names of all loop devices of this machine with a file in a folder."""
    names = []
    for shown in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if shown.read_text().startswith(f"{folder}/"):
                names.append(shown.parent.parent.name)
    return names


def attached(disks: list[LoopDisk]) -> list[str]:
    """Return the names of those disks that are still attached to their file."""
    return [
        disk.name
        for disk in disks
        if pathlib.Path(f"/sys/block/{disk.name}/loop/backing_file").exists()
    ]

"""The kernel of this machine.

Time-outs are those after which a command is taken for hanging, not those after which a
caller loses patience: fsck and mkfs of a large disk continue while callers retry.
"""

import contextlib
import dataclasses
import errno
import os
import pathlib
import stat
import time
from collections.abc import Iterator, Mapping, Sequence

from lib.kernel import errors, mountinfo, signatures
from lib.kernel.linux import commands, devices, probing, serials, watching
from lib.kernel.model import (
    EXT,
    Check,
    Content,
    Disk,
    Entry,
    EntryKind,
    Link,
    Mount,
    Usage,
)
from lib.kernel.protocol import Changes
from lib.process.shared_read import SharedRead

_BY_ID = "by-id"
_MOUNT_S = 600.0
_MKFS_S = 3600.0
_FSCK_S = 6 * 3600.0
_EXPAND_S = 3600.0
_DISK_ERRORS = (errno.EIO, errno.ESHUTDOWN, errno.ENXIO, errno.EUCLEAN)
_FOLDER_MODE = 0o750

MKFS: dict[str, tuple[str, ...]] = {
    "ext2": ("mkfs.ext2", "-F", "-m0"),
    "ext3": ("mkfs.ext3", "-F", "-m0"),
    "ext4": ("mkfs.ext4", "-F", "-m0"),
    "xfs": ("mkfs.xfs", "-f"),
    "btrfs": ("mkfs.btrfs", "-f"),
}
"""-m0: no blocks are reserved for root; the others suppress questions.

Source: k8s.io/mount-utils mount_linux.go (formatAndMountSensitive)."""

_EXPAND = {
    **{kind: ("resize2fs", "{device}") for kind in EXT},
    "xfs": ("xfs_growfs", "-d", "{target}"),
    "btrfs": ("btrfs", "filesystem", "resize", "max", "{target}"),
}
"""Source: k8s.io/mount-utils resizefs_linux.go."""


def _read_mounts() -> tuple[Mount, ...]:
    return mountinfo.parse(pathlib.Path("/proc/self/mountinfo").read_text())


class LinuxKernel:
    """Implements the protocol. dev, sys: the roots of /dev and /sys."""

    def __init__(
        self, runner: commands.Commands, dev: pathlib.Path, sys: pathlib.Path
    ) -> None:
        self._runner = runner
        self._dev = dev
        self._sys = sys
        # A hundred calls in parallel read a hundred disks each.
        self._disks = SharedRead(lambda: devices.disks(dev, sys))
        self._serials = serials.Serials()
        self._links = SharedRead(lambda: devices.links(dev / "disk" / _BY_ID))
        self._mounts = SharedRead(_read_mounts)

    def disks(self, has_serials: bool = True) -> tuple[Disk, ...]:
        """Return every whole disk, by a read that has begun since the call.

        Outside that read, disks are asked for serials that are not known yet.
        """
        listed = self._disks.get(time.monotonic())
        files = {item.key: item.serial_file for item in listed if item.serial_file}
        read = self._serials.of if has_serials else self._serials.known
        answers = read(files)
        return tuple(_with_serial(item, answers) for item in listed)

    def links(self, folder: str) -> tuple[Link, ...]:
        """Return the links of a folder of /dev/disk."""
        if folder == _BY_ID:
            return self._links.get(time.monotonic())
        return devices.links(self._dev / "disk" / folder)

    def watch(self) -> contextlib.AbstractContextManager[Changes]:
        """Watch device files and the links to them."""
        disk = self._dev / "disk"
        return watching.watch((self._dev, disk, disk / "by-id"))

    def rescan_hosts(self) -> None:
        """Make SCSI hosts search for new disks."""
        devices.rescan_hosts(self._sys)

    def rescan_disk(self, disk: Disk) -> None:
        """Make the kernel read the size of a SCSI disk again."""
        devices.rescan_disk(self._sys, disk.name)

    def mounts(self) -> tuple[Mount, ...]:
        """Return all mounts, in the order of their creation."""
        return self._mounts.get(time.monotonic())

    def entry(self, path: str) -> Entry:
        """Return what a path is."""
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return Entry(EntryKind.ABSENT)
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                return Entry(EntryKind.UNREADABLE)
            raise errors.Failed(f"stat {path}: {error.strerror}") from error
        for holds, kind in _KINDS:
            if holds(status.st_mode):
                is_block = kind is EntryKind.BLOCK
                number = devices.number_of(status.st_rdev) if is_block else None
                return Entry(kind, number)
        return Entry(EntryKind.OTHER)

    def resolve(self, path: str) -> str:
        """Return the path with the links of its folders resolved."""
        folder, name = os.path.split(os.path.normpath(path))
        return os.path.join(os.path.realpath(folder), name)

    def probe(self, device: str) -> Content:
        """Return the content of a disk that is not mounted."""
        return probing.probe(self._runner, device)

    def needs_recovery(self, device: str) -> bool:
        """Report whether a file system that is not mounted here is incomplete."""
        return probing.needs_recovery(self._runner, device)

    def file_system_size(self, mount: Mount, device: str) -> int:
        """Return the bytes that a mounted file system occupies of its disk.

        ext: from the superblock, which mounted file systems keep in the cache of the
        disk; the others report all but the log of XFS by statvfs.
        """
        if mount.fs_type in EXT:
            superblock = probing.superblock(device, 1024, 1024)
            return signatures.ext_size_bytes(superblock) or 0
        facts = self._statvfs(mount.target)
        size_bytes = facts.f_blocks * facts.f_frsize
        if mount.fs_type == "xfs":
            size_bytes += signatures.xfs_log_bytes(probing.superblock(device)) or 0
        return size_bytes

    def make_file_system(
        self, device: str, fs_type: str, options: Sequence[str]
    ) -> None:
        """Format a disk."""
        words = [*MKFS[fs_type], *options, device]
        self._must(words, device, _MKFS_S, f"format {device} as {fs_type}")

    def check_file_system(self, device: str) -> Check:
        """Check a file system of the ext family.

        Source: fsck(8); k8s.io/mount-utils mount_linux.go (checkAndRepairFilesystem).
        """
        try:
            finished = self._runner.run(["fsck", "-a", device], device, _FSCK_S)
        except errors.Missing:
            return Check.INCONCLUSIVE
        if finished.code == 0:
            return Check.CLEAN
        if finished.code & ~7:
            return Check.INCONCLUSIVE
        return Check.UNCORRECTED if finished.code & 4 else Check.CORRECTED

    def mount(
        self, device: str, target: str, fs_type: str, options: Sequence[str]
    ) -> None:
        """Mount a disk on an existing directory."""
        words = ["mount", "-t", fs_type, *_options(options), device, target]
        self._must(words, device, _MOUNT_S, f"mount {device} on {target}")

    def bind(self, source: str, target: str) -> None:
        """Mount a directory on a directory, or a device file on a file.

        Without options: with "bind,ro" mount(8) drops nosuid, nodev and noexec.
        """
        words = ["mount", *_options(("bind",)), source, target]
        self._must(words, target, _MOUNT_S, f"bind {source} to {target}")

    def remount_read_only(self, target: str) -> None:
        """Refuse writes through one mount."""
        words = ["mount", *_options(("remount", "bind", "ro")), target]
        self._must(words, target, _MOUNT_S, f"remount {target} read-only")

    def unmount(self, target: str) -> None:
        """Unmount what is visible at a mount point."""
        if not any(mount.target == target for mount in self.mounts()):
            raise errors.NotFound(f"unmount {target}: not a mount point")
        finished = self._runner.run(["umount", target], target, _MOUNT_S)
        if finished.code == 0:
            return
        text = f"unmount {target}"
        if finished.says_busy:
            raise errors.Busy(text, finished.output)
        raise errors.Failed(text, finished.output)

    def expand(self, fs_type: str, device: str, target: str) -> None:
        """Expand a mounted file system to the size of its disk."""
        pattern = _EXPAND.get(fs_type)
        if pattern is None:
            raise errors.Failed(f"expand {target}: {fs_type} cannot be expanded")
        words = [word.format(device=device, target=target) for word in pattern]
        self._must(words, device, _EXPAND_S, f"expand {fs_type} on {device}")

    def usage(self, path: str) -> Usage:
        """Return the usage of the file system at a path."""
        facts = self._statvfs(path)
        return Usage(
            total_bytes=facts.f_blocks * facts.f_frsize,
            used_bytes=(facts.f_blocks - facts.f_bfree) * facts.f_frsize,
            available_bytes=facts.f_bavail * facts.f_frsize,
            total_inodes=facts.f_files,
            used_inodes=facts.f_files - facts.f_ffree,
            free_inodes=facts.f_ffree,
        )

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        with _translated(f"create directory {path}"):
            os.makedirs(path, _FOLDER_MODE, exist_ok=True)

    def make_file(self, path: str) -> None:
        """Create an empty file in an existing folder."""
        with _translated(f"create file {path}"), open(path, "ab"):
            pass

    def remove(self, path: str) -> None:
        """Delete a file or an empty directory."""
        with _translated(f"remove {path}"), contextlib.suppress(FileNotFoundError):
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
            (os.rmdir if is_folder else os.unlink)(path)

    def _statvfs(self, path: str) -> os.statvfs_result:
        with _translated(f"statvfs {path}"):
            # XFS answers statvfs, but not lstat, after it has shut down.
            os.lstat(path)
            return os.statvfs(path)

    def _must(
        self, words: Sequence[str], key: str, timeout_s: float, operation: str
    ) -> None:
        finished = self._runner.run(words, key, timeout_s)
        if finished.code != 0:
            text = f"{operation}: {words[0]} exit {finished.code}"
            raise errors.Failed(text, finished.output)


_KINDS = (
    (stat.S_ISDIR, EntryKind.DIRECTORY),
    (stat.S_ISREG, EntryKind.FILE),
    (stat.S_ISBLK, EntryKind.BLOCK),
    (stat.S_ISLNK, EntryKind.SYMLINK),
)


def _with_serial(
    listed: devices.ListedDisk, answers: Mapping[serials.Key, serials.SerialAnswer]
) -> Disk:
    answer = answers.get(listed.key)
    if answer is None:
        return listed.disk
    return dataclasses.replace(
        listed.disk, serial=answer.serial, is_silent=answer.is_silent
    )


def _options(options: Sequence[str]) -> tuple[str, ...]:
    return ("-o", ",".join(options)) if options else ()


@contextlib.contextmanager
def _translated(operation: str) -> Iterator[None]:
    """Translate what the system calls of an operation raise."""
    try:
        yield
    except OSError as error:
        text = f"{operation}: {error.strerror}"
        if error.errno in _DISK_ERRORS:
            raise errors.BadDisk(text) from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise errors.NotFound(text) from error
        if error.errno == errno.EBUSY:
            raise errors.Busy(text) from error
        raise errors.Failed(text) from error

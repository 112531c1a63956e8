"""Disks, their content, and mounts, as the kernel shows them."""

import dataclasses
import enum
import posixpath
from typing import NamedTuple

EXT = ("ext2", "ext3", "ext4")
"""One family: one superblock, one fsck, one program that resizes."""


class DeviceNumber(NamedTuple):
    """Number of a block device."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}:{self.minor}"


@dataclasses.dataclass(frozen=True, slots=True)
class Disk:
    """A whole disk; partitions are not listed.

    name: the kernel's ("vdb"). path: of its device file. serial: as /sys has it, empty
    when it has none; virtio keeps its first 20 characters. is_silent: the disk did not
    answer when it was asked for its serial.
    """

    name: str
    path: str
    number: DeviceNumber
    serial: str
    size_bytes: int
    is_silent: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """A link that udev has created. number: of the device, None for a dangling link."""

    name: str
    number: DeviceNumber | None


@dataclasses.dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo.

    number: of the file system's device; of a file system with several devices (btrfs)
    a number that no disk has, and then `source` is the path of the device. root: what
    of the file system is mounted; not "/" for a bind mount. target: the mount point,
    without links. options: of this mount. super_options: of the file system.

    Source: proc_pid_mountinfo(5).
    """

    number: DeviceNumber
    root: str
    target: str
    options: frozenset[str]
    fs_type: str
    source: str
    super_options: frozenset[str] = frozenset()

    @property
    def is_read_only(self) -> bool:
        """Whether writes through this mount are refused."""
        return "ro" in self.options


class EntryKind(enum.Enum):
    """Kind of a directory entry, links not followed."""

    ABSENT = "absent"
    DIRECTORY = "directory"
    FILE = "file"
    BLOCK = "block device"
    SYMLINK = "symbolic link"
    OTHER = "other"
    UNREADABLE = "unreadable"
    """The file system answers with an I/O error."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A directory entry. number: of a block device, else None."""

    kind: EntryKind
    number: DeviceNumber | None = None


class ContentKind(enum.Enum):
    """Kind of a disk's content."""

    BLANK = "blank"
    """No signature of anything."""
    FILE_SYSTEM = "file system"
    INTERRUPTED = "interrupted mkfs"
    """mkfs began, and did not finish: there is nothing to lose."""
    OTHER = "other"
    """Partitions, LVM, LUKS, md, swap, or several signatures."""


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """Content of a disk.

    type: as blkid names it ("ext4", "LVM2_member", "gpt"), empty for BLANK.
    size_bytes: of the file system, None where it was not read.
    """

    kind: ContentKind
    type: str = ""
    size_bytes: int | None = None


BLANK = Content(ContentKind.BLANK)


class Check(enum.Enum):
    """Result of fsck. Source: fsck(8), "EXIT STATUS"."""

    CLEAN = "clean"
    CORRECTED = "corrected"
    UNCORRECTED = "uncorrected"
    """Errors are left; fsck without -a is required."""
    INCONCLUSIVE = "inconclusive"
    """fsck itself failed; Kubernetes mounts the file system all the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a file system, in bytes and inodes.

    A file system without a fixed number of inodes (btrfs) has 0 of them.
    """

    total_bytes: int
    used_bytes: int
    available_bytes: int
    total_inodes: int
    used_inodes: int
    free_inodes: int


def is_below(path: str, folder: str) -> bool:
    """Report whether a normalised path is `folder` or below it."""
    return path == folder or path.startswith(posixpath.join(folder, ""))


def top_mount(mounts: tuple[Mount, ...], target: str) -> Mount | None:
    """Return the mount at exactly this target that is visible: the latest."""
    return next((m for m in reversed(mounts) if m.target == target), None)

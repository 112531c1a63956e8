"""The protocol: reads of the kernel, and changes of which each is one command.

Rules: a change either took effect, or raises; after TimedOut and Stuck its outcome is
unknown. Paths are absolute and normalised. Nothing is cached.
"""

import contextlib
from collections.abc import Sequence
from typing import Protocol

from lib.kernel.model import Check, Content, Disk, Entry, Link, Mount, Usage


class Changes(Protocol):
    """Events of device files, from the moment in which the watch was opened."""

    def wait(self, timeout_s: float) -> bool:
        """Return at the next event, or after the time-out; True for an event."""
        ...


class Kernel(Protocol):
    """One machine. Every method may raise KernelError."""

    def disks(self, has_serials: bool = True) -> tuple[Disk, ...]:
        """Return every whole disk.

        has_serials: False for callers that need none: no disk is asked then.
        """
        ...

    def links(self, folder: str) -> tuple[Link, ...]:
        """Return the links of a folder of /dev/disk ("by-id"); none when absent."""
        ...

    def watch(self) -> contextlib.AbstractContextManager[Changes]:
        """Watch device files and the links to them."""
        ...

    def rescan_hosts(self) -> None:
        """Make SCSI hosts search for new disks."""
        ...

    def rescan_disk(self, disk: Disk) -> None:
        """Make the kernel read the size of a SCSI disk again; others report it."""
        ...

    def mounts(self) -> tuple[Mount, ...]:
        """Return all mounts, in the order of their creation."""
        ...

    def entry(self, path: str) -> Entry:
        """Return what a path is."""
        ...

    def resolve(self, path: str) -> str:
        """Return the path with the links of its folders resolved, not its own."""
        ...

    def probe(self, device: str) -> Content:
        """Return the content of a disk that is not mounted.

        Raises:
            Busy: a mount, mkfs, device mapper or md holds the disk.
        """
        ...

    def needs_recovery(self, device: str) -> bool:
        """Report whether a file system that is not mounted here is incomplete.

        True while another node has it mounted writable, and after a crash of such a
        node: only its journal makes it complete.
        """
        ...

    def file_system_size(self, mount: Mount, device: str) -> int:
        """Return the bytes that a mounted file system occupies of its disk."""
        ...

    def make_file_system(
        self, device: str, fs_type: str, options: Sequence[str]
    ) -> None:
        """Format a disk, whatever it contains: the caller has probed it."""
        ...

    def check_file_system(self, device: str) -> Check:
        """Check a file system of the ext family, and correct what is safe."""
        ...

    def mount(
        self, device: str, target: str, fs_type: str, options: Sequence[str]
    ) -> None:
        """Mount a disk on an existing directory."""
        ...

    def bind(self, source: str, target: str) -> None:
        """Mount a directory on a directory, or a device file on a file.

        The mount has the flags of the mount of its source: ro, nosuid, noatime.
        """
        ...

    def remount_read_only(self, target: str) -> None:
        """Refuse writes through one mount; its other flags stay.

        Other mounts of the disk are unaffected.
        """
        ...

    def unmount(self, target: str) -> None:
        """Unmount what is visible at a mount point.

        Raises:
            Busy: files are open.
            NotFound: it is no mount point.
        """
        ...

    def expand(self, fs_type: str, device: str, target: str) -> None:
        """Expand a mounted file system to the size of its disk."""
        ...

    def usage(self, path: str) -> Usage:
        """Return the usage of the file system at a path.

        Raises:
            BadDisk: the file system has shut down.
        """
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; an existing one is no error."""
        ...

    def make_file(self, path: str) -> None:
        """Create an empty file in an existing folder; an existing one is no error."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file or an empty directory; an absent one is no error.

        Raises:
            Failed: the directory is not empty.
        """
        ...

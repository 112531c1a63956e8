"""A machine in memory: it shows what commands have done to it.

Faults: `errors_next` makes a method fail once; a disk can be removed, break, or
return under another name; a file system can shut down or become read-only.
"""

import contextlib
import dataclasses
import posixpath
from collections.abc import Iterator, Sequence

from lib.kernel import errors
from lib.kernel.model import (
    BLANK,
    EXT,
    Check,
    Content,
    ContentKind,
    DeviceNumber,
    Disk,
    Entry,
    EntryKind,
    Link,
    Mount,
    Usage,
    is_below,
    top_mount,
)

_MKFS = (*EXT, "xfs", "btrfs")
_EXPANDABLE = _MKFS
_BLOCK_BYTES = 4096
_INODE_BYTES = 16384
_BTRFS_MAJOR = 0
_OF_DEVTMPFS = ("nosuid", "noexec")
_MOUNT_FLAGS = frozenset(
    {"nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime", "nosymfollow"}
)
"""Of one mount; all other options are of the file system. Source: mount(2)."""


@dataclasses.dataclass
class FakeDisk:
    """A disk. uuid: of its file system; clones share it. check: what fsck reports.

    is_dirty: its journal must be recovered, or a machine has it mounted writable. One
    disk may be plugged into several machines. writes: what has written to it.
    is_silent: it does not answer when it is asked for its serial.
    """

    disk: Disk
    content: Content = BLANK
    uuid: str = ""
    check: Check = Check.CLEAN
    is_dirty: bool = False
    is_silent: bool = False
    writes: list[str] = dataclasses.field(default_factory=list)
    is_present: bool = True
    is_broken: bool = False
    is_held: bool = False
    has_shut_down: bool = False
    links: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass
class _Mounted:
    mount: Mount
    disk: FakeDisk | None
    is_busy: bool = False


class FakeKernel:
    """Implements the protocol."""

    def __init__(self) -> None:
        self.machine_disks: list[FakeDisk] = []
        self.calls: list[str] = []
        self.errors_next: dict[str, errors.KernelError] = {}
        self.missing: set[str] = set()
        self.late: list[FakeDisk] = []
        """Appear at the next wait for a change, one at each."""
        self.hidden: list[FakeDisk] = []
        """Appear when SCSI hosts are rescanned."""
        self.sizes: dict[str, int] = {}
        """Sizes that the kernel shows once a disk, by name, is rescanned."""
        self._entries: dict[str, EntryKind] = {"/": EntryKind.DIRECTORY}
        self._mounted: list[_Mounted] = []
        self._numbers = 0

    # What a test arranges.

    def plug(
        self, name: str, serial: str, size_bytes: int, content: Content = BLANK
    ) -> FakeDisk:
        """Add a disk without links, with a device number of its own."""
        disk = self.new_disk(name, serial, size_bytes, content)
        self.machine_disks.append(disk)
        return disk

    def new_disk(
        self, name: str, serial: str, size_bytes: int, content: Content = BLANK
    ) -> FakeDisk:
        """Return a disk that is not plugged in yet."""
        self._numbers += 1
        number = DeviceNumber(254, 16 * self._numbers)
        disk = Disk(name, f"/dev/{name}", number, serial, size_bytes)
        has_uuid = content.kind is ContentKind.FILE_SYSTEM
        return FakeDisk(disk, content, f"uuid-{self._numbers}" if has_uuid else "")

    def unplug(self, disk: FakeDisk) -> None:
        """Remove a disk; its mounts stay, and answer with errors."""
        disk.is_present = False
        disk.has_shut_down = True

    def make_read_only(self, disk: FakeDisk) -> None:
        """Make the file system of a disk refuse writes, as after an error."""
        for mounted in self._mounted:
            if mounted.disk is disk:
                options = (mounted.mount.super_options - {"rw"}) | {"ro"}
                mounted.mount = dataclasses.replace(
                    mounted.mount, super_options=options
                )

    def set_busy(self, target: str, is_busy: bool = True) -> None:
        """Make processes hold files of a mount open."""
        for mounted in self._mounted:
            if mounted.mount.target == target:
                mounted.is_busy = is_busy

    def put(self, path: str, kind: EntryKind) -> None:
        """Create an entry, and the folders above it."""
        self.make_directory(posixpath.dirname(path))
        self._entries[path] = kind

    def entries(self) -> dict[str, EntryKind]:
        """Return every directory and file."""
        return dict(self._entries)

    # Reads.

    def disks(self, has_serials: bool = True) -> tuple[Disk, ...]:
        """Return every whole disk."""
        self._begin("disks" if has_serials else "disks without serials")
        return tuple(_shown(d) for d in self.machine_disks if d.is_present)

    def links(self, folder: str) -> tuple[Link, ...]:
        """Return the links of a folder of /dev/disk."""
        self._begin("links")
        return tuple(
            Link(name, disk.disk.number)
            for disk in self.machine_disks
            if disk.is_present
            for place, name in disk.links
            if place == folder
        )

    @contextlib.contextmanager
    def watch(self) -> Iterator["FakeKernel"]:
        """Watch device files and the links to them."""
        self._begin("watch")
        yield self

    def wait(self, timeout_s: float) -> bool:
        """Reveal the next late disk, if any."""
        del timeout_s
        if not self.late:
            return False
        self.machine_disks.append(self.late.pop(0))
        return True

    def rescan_hosts(self) -> None:
        """Reveal hidden disks."""
        self._begin("rescan_hosts")
        self.machine_disks += self.hidden
        self.hidden = []

    def rescan_disk(self, disk: Disk) -> None:
        """Read the size of a disk again, as the kernel does."""
        self._begin("rescan_disk")
        size_bytes = self.sizes.get(disk.name)
        for known in self.machine_disks:
            if known.disk == disk and size_bytes is not None:
                known.disk = dataclasses.replace(disk, size_bytes=size_bytes)

    def mounts(self) -> tuple[Mount, ...]:
        """Return all mounts, in the order of their creation."""
        self._begin("mounts")
        return tuple(mounted.mount for mounted in self._mounted)

    def entry(self, path: str) -> Entry:
        """Return what a path is."""
        self._begin("entry")
        mounted = self._at(path)
        if mounted is not None and mounted.disk is not None:
            if mounted.mount.fs_type == "devtmpfs":
                return Entry(EntryKind.BLOCK, mounted.disk.disk.number)
            if mounted.disk.has_shut_down:
                return Entry(EntryKind.UNREADABLE)
        for disk in self.machine_disks:
            if disk.is_present and disk.disk.path == path:
                return Entry(EntryKind.BLOCK, disk.disk.number)
        return Entry(self._entries.get(path, EntryKind.ABSENT))

    def resolve(self, path: str) -> str:
        """Return the path; there are no links between folders here."""
        return posixpath.normpath(path)

    def probe(self, device: str) -> Content:
        """Return the content of a disk that is not mounted."""
        self._begin("probe")
        disk = self._disk(device)
        if disk.is_held or any(m.disk is disk for m in self._mounted if _is_fs(m)):
            raise errors.Busy(f"open {device}: Device or resource busy")
        return disk.content

    def needs_recovery(self, device: str) -> bool:
        """Report whether a file system that is not mounted here is incomplete."""
        self._begin("needs_recovery")
        return self._disk(device).is_dirty

    def file_system_size(self, mount: Mount, device: str) -> int:
        """Return the bytes that a mounted file system occupies of its disk."""
        self._begin("file_system_size")
        del device
        disk = self._holder(mount.target).disk
        return 0 if disk is None else disk.content.size_bytes or 0

    # Changes.

    def make_file_system(
        self, device: str, fs_type: str, options: Sequence[str]
    ) -> None:
        """Format a disk."""
        del options
        self._begin("make_file_system")
        if f"mkfs.{fs_type}" in self.missing or fs_type not in _MKFS:
            raise errors.Missing(f"program 'mkfs.{fs_type}': not found on PATH")
        disk = self._disk(device)
        if disk.is_held or any(m.disk is disk for m in self._mounted if _is_fs(m)):
            raise errors.Failed(f"format {device} as {fs_type}: in use")
        size_bytes = disk.disk.size_bytes
        disk.content = Content(ContentKind.FILE_SYSTEM, fs_type, size_bytes)
        disk.is_dirty = False
        disk.writes.append("mkfs")
        self._numbers += 1
        disk.uuid = f"uuid-{self._numbers}"

    def check_file_system(self, device: str) -> Check:
        """Check a file system of the ext family."""
        self._begin("check_file_system")
        disk = self._disk(device)
        if disk.is_dirty:
            disk.writes.append("recovery")
            disk.is_dirty = False
        return disk.check

    def mount(
        self, device: str, target: str, fs_type: str, options: Sequence[str]
    ) -> None:
        """Mount a disk on an existing directory."""
        self._begin("mount")
        disk = self._disk(device)
        text = f"mount {device} on {target}"
        if self._kind(target) is not EntryKind.DIRECTORY:
            raise errors.Failed(text, "mount point does not exist")
        known = disk.content.type
        fits = known == fs_type or {known, fs_type} <= set(EXT)
        if disk.content.kind is not ContentKind.FILE_SYSTEM or not fits:
            raise errors.Failed(text, "wrong fs type, bad superblock")
        others = [m.disk for m in self._mounted if _is_fs(m) and m.disk is not disk]
        is_twice = any(o is not None and o.uuid == disk.uuid for o in others)
        if fs_type == "xfs" and is_twice and "nouuid" not in options:
            raise errors.Failed(text, "duplicate UUID")
        number = disk.disk.number
        if fs_type == "btrfs":
            number = DeviceNumber(_BTRFS_MAJOR, 100 + self.machine_disks.index(disk))
        access = "ro" if "ro" in options else "rw"
        of_mount = frozenset(options) & _MOUNT_FLAGS
        of_file_system = frozenset(options) - _MOUNT_FLAGS - {"ro", "rw"}
        mount = Mount(
            number,
            "/",
            target,
            of_mount | {access},
            fs_type,
            device,
            of_file_system | {access},
        )
        self._mounted.append(_Mounted(mount, disk))
        _written_by_mount(disk, fs_type, options)

    def bind(self, source: str, target: str) -> None:
        """Mount a directory on a directory, or a device file on a file."""
        self._begin("bind")
        text = f"bind {source} to {target}"
        device = next((d for d in self.machine_disks if d.disk.path == source), None)
        expected = EntryKind.DIRECTORY if device is None else EntryKind.FILE
        if self._kind(target) is not expected:
            raise errors.Failed(text, "mount point does not exist")
        if device is not None:
            name = posixpath.basename(source)
            mount = Mount(
                DeviceNumber(0, 6),
                f"/{name}",
                target,
                frozenset({"rw", *_OF_DEVTMPFS}),
                "devtmpfs",
                "devtmpfs",
            )
            self._mounted.append(_Mounted(mount, device))
            return
        if self._kind(source) is not EntryKind.DIRECTORY:
            raise errors.Failed(text, "no such directory")
        held = self._holder(source)
        below = posixpath.relpath(source, held.mount.target)
        mount = dataclasses.replace(
            held.mount,
            root=posixpath.normpath(posixpath.join(held.mount.root, below)),
            target=target,
        )
        self._mounted.append(_Mounted(mount, held.disk))

    def remount_read_only(self, target: str) -> None:
        """Refuse writes through one mount."""
        self._begin("remount_read_only")
        mounted = self._at(target)
        if mounted is None:
            raise errors.Failed(f"remount {target} read-only", "not mounted")
        options = (mounted.mount.options - {"rw"}) | {"ro"}
        mounted.mount = dataclasses.replace(mounted.mount, options=options)

    def unmount(self, target: str) -> None:
        """Unmount what is visible at a mount point."""
        self._begin("unmount")
        mounted = self._at(target)
        if mounted is None:
            raise errors.NotFound(f"unmount {target}: not a mount point")
        if mounted.is_busy:
            raise errors.Busy(f"unmount {target}", "target is busy")
        self._mounted.remove(mounted)
        disk = mounted.disk
        is_used = any(other.disk is disk for other in self._mounted)
        if disk is not None and not is_used and "rw" in mounted.mount.super_options:
            disk.is_dirty = False

    def expand(self, fs_type: str, device: str, target: str) -> None:
        """Expand a mounted file system to the size of its disk."""
        self._begin("expand")
        disk = self._disk(device)
        if fs_type not in _EXPANDABLE or self._at(target) is None:
            raise errors.Failed(f"expand {fs_type} on {device}")
        size_bytes = disk.disk.size_bytes
        disk.writes.append("expand")
        disk.content = dataclasses.replace(disk.content, size_bytes=size_bytes)

    def usage(self, path: str) -> Usage:
        """Return the usage of the file system at a path."""
        self._begin("usage")
        held = self._holder(path)
        if held.disk is None:
            raise errors.NotFound(f"statvfs {path}: no such file or directory")
        if held.disk.has_shut_down:
            raise errors.BadDisk(f"statvfs {path}: Input/output error")
        total = (held.disk.content.size_bytes or 0) // _BLOCK_BYTES * _BLOCK_BYTES
        inodes = 0 if held.mount.fs_type == "btrfs" else total // _INODE_BYTES
        return Usage(total, 0, total, inodes, 0, inodes)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        self._begin("make_directory")
        while path not in self._entries:
            self._entries[path] = EntryKind.DIRECTORY
            path = posixpath.dirname(path)
        if self._entries[path] is not EntryKind.DIRECTORY:
            raise errors.Failed(f"create directory {path}: File exists")

    def make_file(self, path: str) -> None:
        """Create an empty file in an existing folder."""
        self._begin("make_file")
        if self._kind(posixpath.dirname(path)) is not EntryKind.DIRECTORY:
            raise errors.NotFound(f"create file {path}: No such file or directory")
        if self._entries.setdefault(path, EntryKind.FILE) is EntryKind.DIRECTORY:
            raise errors.Failed(f"create file {path}: Is a directory")

    def remove(self, path: str) -> None:
        """Delete a file or an empty directory."""
        self._begin("remove")
        if self._at(path) is not None:
            raise errors.Busy(f"remove {path}: Device or resource busy")
        inside = [p for p in self._entries if p != path and is_below(p, path)]
        if inside:
            raise errors.Failed(f"remove {path}: Directory not empty")
        self._entries.pop(path, None)

    # Inside.

    def _begin(self, method: str) -> None:
        self.calls.append(method)
        error = self.errors_next.pop(method, None)
        if error is not None:
            raise error

    def _kind(self, path: str) -> EntryKind:
        return self._entries.get(path, EntryKind.ABSENT)

    def _disk(self, device: str) -> FakeDisk:
        for disk in self.machine_disks:
            if disk.is_present and disk.disk.path == device:
                if disk.is_broken:
                    raise errors.BadDisk(f"read {device}: Input/output error")
                return disk
        raise errors.NotFound(f"open {device}: No such file or directory")

    def _at(self, target: str) -> _Mounted | None:
        mount = top_mount(tuple(m.mount for m in self._mounted), target)
        matching = (m for m in reversed(self._mounted) if m.mount is mount)
        return None if mount is None else next(matching)

    def _holder(self, path: str) -> _Mounted:
        """Return the mount that a path is on; the root's where there is no other."""
        above = [m for m in self._mounted if is_below(path, m.mount.target)]
        if above:
            return max(
                above,
                key=lambda m: (len(m.mount.target), self._mounted.index(m)),
            )
        options = frozenset({"rw"})
        root = Mount(DeviceNumber(8, 1), "/", "/", options, "ext4", "/dev/root")
        return _Mounted(root, None)


def _shown(disk: FakeDisk) -> Disk:
    if not disk.is_silent:
        return disk.disk
    return dataclasses.replace(disk.disk, serial="", is_silent=True)


def _written_by_mount(disk: FakeDisk, fs_type: str, options: Sequence[str]) -> None:
    """Recover the journal, as a read-only mount does too, and begin to write."""
    skips = {"noload", "norecovery", "rescue=nologreplay"} & set(options)
    if disk.is_dirty and not skips and fs_type != "ext2":
        disk.writes.append("recovery")
        disk.is_dirty = False
    if "ro" not in options:
        disk.writes.append("mount")
        disk.is_dirty = True


def _is_fs(mounted: _Mounted) -> bool:
    return mounted.mount.fs_type != "devtmpfs"

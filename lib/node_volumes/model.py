"""Requests, snapshot, actions and outcome of one volume on one node."""

import dataclasses
import enum

from lib.kernel.model import Check, Content, DeviceNumber, Disk, Entry, Mount
from lib.node_volumes.call_failures import CallFailed
from lib.node_volumes.lookup import Lookup


@dataclasses.dataclass(frozen=True, slots=True)
class NodeVolume:
    """A volume as a node finds it. serial: of its disk, derived from id or context."""

    id: str
    serial: str


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """The volume's file system is mounted at the staging path; raw block: its disk is
    present.

    fs_type: empty for that which the disk has, else ext4. mount_flags: options of
    mount. mkfs_options: checked words, used when a blank disk is formatted.
    is_for_readers: other nodes have the disk, too; nothing may be written to it.
    """

    volume: NodeVolume
    staging_path: str
    fs_type: str = ""
    mount_flags: tuple[str, ...] = ()
    mkfs_options: tuple[str, ...] = ()
    is_block: bool = False
    is_for_readers: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class NodePublish:
    """The volume is visible at the target path.

    is_exclusive: no other target path may have it.
    """

    volume: NodeVolume
    staging_path: str
    target_path: str
    is_block: bool = False
    is_read_only: bool = False
    is_exclusive: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class NodeUnpublish:
    """Nothing is mounted at the target path, and the path is absent."""

    volume: NodeVolume
    target_path: str


@dataclasses.dataclass(frozen=True, slots=True)
class Unstage:
    """Nothing is mounted at the staging path, and the path is absent."""

    volume: NodeVolume
    staging_path: str


@dataclasses.dataclass(frozen=True, slots=True)
class NodeExpand:
    """Disk and file system have at least this size. path: staged or published.

    required_bytes: 0 for the size that the disk has. is_for_readers: as of Stage.
    """

    volume: NodeVolume
    path: str
    required_bytes: int = 0
    is_for_readers: bool = False


Request = Stage | NodePublish | NodeUnpublish | Unstage | NodeExpand


class CostlyRead(enum.Enum):
    """Reads that cost more than a read of /proc and /sys."""

    CONTENT = "content"
    """Of a disk that is not mounted: one child process."""
    RECOVERY = "whether a journal must be recovered"
    """Of a disk that is not mounted: one child process for XFS."""
    SIZE = "size of the mounted file system"


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """Facts of one moment.

    mounts: those of btrfs carry the number of their disk. lookup: the volume's disk.
    disks: all. entry: of the request's own path. has_folder: the folder of that path
    exists. content, size_bytes, needs_recovery: None unless read; of the volume's disk.
    block_targets: where its device file is mounted, read for a raw block volume with
    one writer.
    """

    mounts: tuple[Mount, ...]
    disks: tuple[Disk, ...]
    lookup: Lookup
    entry: Entry
    has_folder: bool
    content: Content | None = None
    size_bytes: int | None = None
    needs_recovery: bool | None = None
    block_targets: tuple[str, ...] = ()

    def disk(self, number: DeviceNumber | None) -> Disk | None:
        """Return the disk with a number; None when it is absent."""
        return next((disk for disk in self.disks if disk.number == number), None)


@dataclasses.dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Create a directory."""

    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class MakeFile:
    """Create an empty file to mount a device file on."""

    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class MakeFileSystem:
    """Format the disk; the only action that destroys what is on it."""

    disk: Disk
    fs_type: str
    options: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CheckFileSystem:
    """Run fsck."""

    disk: Disk


@dataclasses.dataclass(frozen=True, slots=True)
class MountDisk:
    """Mount the disk."""

    disk: Disk
    target: str
    fs_type: str
    options: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Bind:
    """Mount a directory or a device file a second time, with the same flags."""

    source: str
    target: str


@dataclasses.dataclass(frozen=True, slots=True)
class RemountReadOnly:
    """Refuse writes through a mount."""

    target: str


@dataclasses.dataclass(frozen=True, slots=True)
class Unmount:
    """Unmount."""

    target: str


@dataclasses.dataclass(frozen=True, slots=True)
class Remove:
    """Delete a file or an empty directory."""

    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class RescanDisk:
    """Action: the kernel reads the size of the disk again."""

    disk: Disk


@dataclasses.dataclass(frozen=True, slots=True)
class ExpandFileSystem:
    """Expand the file system to the size of the disk."""

    disk: Disk
    target: str
    fs_type: str


OnDisk = MakeFileSystem | CheckFileSystem | MountDisk | RescanDisk | ExpandFileSystem
OnPath = MakeDirectory | MakeFile | Bind | RemountReadOnly | Unmount | Remove
Action = OnDisk | OnPath


@dataclasses.dataclass(frozen=True, slots=True)
class NodeCallHistory:
    """Actions of this call; it ends with the call.

    check: result of fsck. content, needs_recovery: as read in this call, unless
    formatted since.
    """

    actions: tuple[Action, ...] = ()
    check: Check | None = None
    content: Content | None = None
    needs_recovery: bool | None = None

    def has(self, kind: type[Action]) -> bool:
        """Report whether an action of a kind was carried out."""
        return any(isinstance(action, kind) for action in self.actions)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeOutcome:
    """What to do next; exactly one of the fields is set, or none: fulfilled.

    read: needed before anything can be decided. waiting_for: a disk, or its new size;
    the text for the caller whose time is over.
    """

    action: Action | None = None
    read: CostlyRead | None = None
    failure: CallFailed | None = None
    waiting_for: str = ""

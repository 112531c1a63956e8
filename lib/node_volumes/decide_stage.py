"""Staging of a volume: next step from the disk's content and the mounts. Pure."""

from lib.kernel.model import (
    EXT,
    Check,
    Content,
    ContentKind,
    Disk,
    EntryKind,
    Mount,
    top_mount,
)
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.model import (
    CheckFileSystem,
    CostlyRead,
    ExpandFileSystem,
    MakeDirectory,
    MakeFileSystem,
    MountDisk,
    NodeCallHistory,
    NodeOutcome,
    Snapshot,
    Stage,
    Unmount,
)
from lib.node_volumes.paths import failed, wrong_kind

FS_TYPES = ("ext4", "ext3", "ext2", "xfs", "btrfs")
"""File systems that can be requested, the default first."""
WITHOUT_RECOVERY = {
    "ext3": "noload",
    "ext4": "noload",
    "xfs": "norecovery",
    "btrfs": "rescue=nologreplay",
}
"""With these a read-only mount writes nothing; without, it recovers the journal.

Source: ext4(5); xfs(5); btrfs(5). ext2 has no journal.
"""
_ONE_WRITER = "stage it once with access mode SINGLE_NODE_WRITER (ReadWriteOnce)"
UNUSABLE_BYTES = 8 * 2**20
"""The end of a disk that a file system may be unable to use.

Of ext4 the last group when it is smaller than its own inode table, of XFS the last
allocation group below 64 blocks. Source: e2fsprogs lib/ext2fs/initialize.c; xfsprogs
mkfs/xfs_mkfs.c (align_ag_geometry).
"""


def missing_disk(snapshot: Snapshot, volume_id: str) -> NodeOutcome | None:
    """Return what follows when the disk is absent or not the only one, else None."""
    lookup = snapshot.lookup
    if len(lookup.matches) > 1:
        names = ", ".join(lookup.matches)
        text = f'disk of volume "{volume_id}": several match: {names}; must be one'
        return failed(FailureReason.FAILED, text)
    if lookup.disk is None:
        return NodeOutcome(
            waiting_for=f'disk of volume "{volume_id}": not found: {lookup}'
        )
    return None


def stage(request: Stage, snapshot: Snapshot, past: NodeCallHistory) -> NodeOutcome:
    """Return the next step."""
    staged = top_mount(snapshot.mounts, request.staging_path)
    absent = missing_disk(snapshot, request.volume.id)
    disk = snapshot.lookup.disk
    if absent is not None or disk is None:
        return absent or NodeOutcome()
    if request.is_block:
        return NodeOutcome()
    if staged is None:
        return _mount(request, snapshot, past, disk)
    has_shut_down = snapshot.entry.kind is EntryKind.UNREADABLE
    if staged.number != disk.number or has_shut_down:
        return _stale(request, snapshot, past, staged)
    if problem := _unlike(request, staged):
        text = f'volume "{request.volume.id}": {problem}'
        return failed(FailureReason.INCOMPATIBLE, text)
    return _expand(request, snapshot, past, staged)


def _unlike(request: Stage, staged: Mount) -> str:
    """Return how a staging mount differs from the request; empty: it does not."""
    if not _fits(request.fs_type, staged.fs_type):
        return f"staged with {staged.fs_type}, requested {request.fs_type}"
    if request.is_for_readers and not staged.is_read_only:
        return (
            "staged writable, requested for readers of several nodes: must be unstaged"
            " first"
        )
    return ""


def _stale(
    request: Stage, snapshot: Snapshot, past: NodeCallHistory, staged: Mount
) -> NodeOutcome:
    """Repair a mount of a disk that disappeared and returned, or that has shut down.

    Only while nothing else uses the old mount: processes that hold files of it continue
    with errors, and their volume would change under them.
    """
    path, disk = request.staging_path, snapshot.lookup.disk
    returned = "" if disk is None else disk.path
    if disk is not None and staged.number == disk.number:
        what = f"{path}: the file system of {returned} has shut down"
    elif snapshot.disk(staged.number) is None:
        what = f"{path}: its disk disappeared and returned as {returned}"
    else:
        text = f"{path}: another disk ({staged.source}) is mounted, not {returned}"
        return failed(FailureReason.FAILED, text)
    if past.has(MountDisk):
        return failed(FailureReason.UNCERTAIN, f"{what} again, after it was mounted")
    users = [m for m in snapshot.mounts if m.number == staged.number and m != staged]
    if not users:
        return NodeOutcome(action=Unmount(path))
    targets = ", ".join(sorted({mount.target for mount in users}))
    text = f"{what}; in use at {targets}; repaired when no pod uses it any more"
    return failed(FailureReason.UNCERTAIN, text)


def _fits(requested: str, present: str) -> bool:
    """Report whether a file system serves a request; ext4 mounts ext2 and ext3."""
    if requested in EXT and present in EXT:
        return EXT.index(present) <= EXT.index(requested)
    return requested in ("", present)


def _mount(
    request: Stage, snapshot: Snapshot, past: NodeCallHistory, disk: Disk
) -> NodeOutcome:
    entry = snapshot.entry
    if entry.kind is EntryKind.ABSENT:
        return NodeOutcome(action=MakeDirectory(request.staging_path))
    if entry.kind is not EntryKind.DIRECTORY:
        field, path = "staging_target_path", request.staging_path
        return wrong_kind(field, path, entry, "a directory")
    elsewhere = next((m for m in snapshot.mounts if m.number == disk.number), None)
    if elsewhere is not None:
        if request.is_for_readers and not elsewhere.is_read_only:
            text = f"mounted writable at {elsewhere.target}"
            return _unfit(request, disk, f"{text}: must be unmounted there first")
        content = Content(ContentKind.FILE_SYSTEM, elsewhere.fs_type)
        return _mount_content(request, disk, content)
    if past.content is None:
        return NodeOutcome(read=CostlyRead.CONTENT)
    return _prepared(request, past, disk, past.content)


def _prepared(
    request: Stage, past: NodeCallHistory, disk: Disk, content: Content
) -> NodeOutcome:
    """Format a disk without content, check a file system, mount it."""
    if request.is_for_readers:
        return _prepared_for_readers(request, past, disk, content)
    if content.kind in (ContentKind.BLANK, ContentKind.INTERRUPTED):
        if past.has(MakeFileSystem):
            text = f"{disk.path}: no file system after mkfs succeeded"
            return failed(FailureReason.FAILED, text)
        fs_type = request.fs_type or FS_TYPES[0]
        return NodeOutcome(action=MakeFileSystem(disk, fs_type, request.mkfs_options))
    if other := _other_content(request, disk, content):
        return other
    needs_check = content.type in EXT and not past.has(MakeFileSystem)
    if needs_check and past.check is None:
        return NodeOutcome(action=CheckFileSystem(disk))
    return _checked(request, past, disk, content)


def _checked(
    request: Stage, past: NodeCallHistory, disk: Disk, content: Content
) -> NodeOutcome:
    if past.check is Check.UNCORRECTED:
        text = "fsck found errors that it does not correct by itself"
        return _unfit(request, disk, f"{text}; run fsck by hand")
    return _mount_content(request, disk, content)


def _prepared_for_readers(
    request: Stage, past: NodeCallHistory, disk: Disk, content: Content
) -> NodeOutcome:
    """Mount a file system that is complete without its journal, as it is.

    Another node may have it mounted at this moment: what mkfs, fsck or a recovered
    journal writes would destroy it.
    """
    if content.kind in (ContentKind.BLANK, ContentKind.INTERRUPTED):
        text = "contains no file system, and is not formatted for readers of several"
        text = f"{text} nodes: {_ONE_WRITER}, or create it as a clone"
        return _unfit(request, disk, text)
    if other := _other_content(request, disk, content):
        return other
    if past.needs_recovery is None:
        return NodeOutcome(read=CostlyRead.RECOVERY)
    if past.needs_recovery:
        text = "another node writes to it, or its journal must be recovered, which a"
        text = f"{text} mount for readers of several nodes does not do: {_ONE_WRITER}"
        return _unfit(request, disk, f"{text}, and unstage it")
    return _mount_content(request, disk, content)


def _other_content(request: Stage, disk: Disk, content: Content) -> NodeOutcome | None:
    """Return the failure of a disk with other content than requested, else None."""
    is_file_system = content.kind is ContentKind.FILE_SYSTEM
    if is_file_system and _fits(request.fs_type, content.type):
        return None
    named = f'fs_type "{request.fs_type}"' if request.fs_type else "a file system"
    text = f"contains {content.type}, requested {named}: must be blank or match"
    return _unfit(request, disk, f"{text}; not changed")


def _unfit(request: Stage, disk: Disk, text: str) -> NodeOutcome:
    """Return the failure of a volume because of the content of its disk."""
    about = f'volume "{request.volume.id}": {disk.path}'
    return failed(FailureReason.CONTENT, f"{about}: {text}")


def _mount_content(request: Stage, disk: Disk, content: Content) -> NodeOutcome:
    """Mount with the requested flags; clones of XFS have the UUID of their source."""
    if not _fits(request.fs_type, content.type):
        text = f'mounted as {content.type}, requested fs_type "{request.fs_type}"'
        return _unfit(request, disk, f"{text}: must match")
    fs_type = request.fs_type or content.type
    options = request.mount_flags
    if fs_type == "xfs" and "nouuid" not in options:
        options = (*options, "nouuid")
    if request.is_for_readers:
        options = _for_readers(options, content.type)
    return NodeOutcome(action=MountDisk(disk, request.staging_path, fs_type, options))


def _for_readers(options: tuple[str, ...], fs_type: str) -> tuple[str, ...]:
    """Return options with which a mount writes nothing to its disk."""
    required = ("ro", *filter(None, (WITHOUT_RECOVERY.get(fs_type),)))
    kept = (o for o in options if o != "rw" and o not in required)
    return (*kept, *required)


def _expand(
    request: Stage, snapshot: Snapshot, past: NodeCallHistory, staged: Mount
) -> NodeOutcome:
    """Expand a file system that is smaller than its disk: clones, offline expansion."""
    disk = snapshot.disk(staged.number)
    is_fixed = staged.is_read_only or request.is_for_readers
    if disk is None or past.has(ExpandFileSystem) or is_fixed:
        return NodeOutcome()
    if snapshot.size_bytes is None:
        return NodeOutcome(read=CostlyRead.SIZE)
    if is_full_size(snapshot.size_bytes, disk):
        return NodeOutcome()
    action = ExpandFileSystem(disk, request.staging_path, staged.fs_type)
    return NodeOutcome(action=action)


def is_full_size(size_bytes: int, disk: Disk) -> bool:
    """Report whether a file system occupies what it can use of its disk."""
    return size_bytes + UNUSABLE_BYTES >= disk.size_bytes


def unsupported(fs_type: str) -> CallFailed | None:
    """Return the failure of a request for an unknown file system, else None."""
    if fs_type in ("", *FS_TYPES):
        return None
    known = ", ".join(FS_TYPES)
    text = f'fs_type: unsupported value "{fs_type}": must be one of {known}'
    return CallFailed(FailureReason.INVALID, text)

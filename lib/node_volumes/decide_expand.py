"""Expand: from the size of disk and file system to the next step. Pure."""

from lib.kernel.model import Disk, EntryKind, Mount, top_mount
from lib.node_volumes.call_failures import FailureReason
from lib.node_volumes.decide_stage import is_full_size
from lib.node_volumes.model import (
    CostlyRead,
    ExpandFileSystem,
    NodeCallHistory,
    NodeExpand,
    NodeOutcome,
    RescanDisk,
    Snapshot,
)
from lib.node_volumes.paths import failed


def expand(
    request: NodeExpand, snapshot: Snapshot, past: NodeCallHistory
) -> NodeOutcome:
    """Return the next step.

    A raw block volume has the path of a device file, and no file system.
    """
    mount = top_mount(snapshot.mounts, request.path)
    is_block = snapshot.entry.kind is EntryKind.BLOCK
    if mount is None and not is_block:
        text = f'volume_path: invalid value "{request.path}": volume is not there'
        return failed(FailureReason.NOT_FOUND, text)
    number = snapshot.entry.number if is_block or mount is None else mount.number
    disk = snapshot.disk(number)
    if disk is None:
        text = f'volume "{request.volume.id}": the disk of {request.path} disappeared'
        return failed(FailureReason.UNCERTAIN, text)
    if disk.size_bytes < request.required_bytes:
        return _wait_for_size(request, past, disk)
    if is_block or mount is None:
        return NodeOutcome()
    return _expand_file_system(request, snapshot, past, disk, mount)


def _wait_for_size(
    request: NodeExpand, past: NodeCallHistory, disk: Disk
) -> NodeOutcome:
    if not past.has(RescanDisk):
        return NodeOutcome(action=RescanDisk(disk))
    field = "capacity_range.required_bytes"
    text = f"{field}: invalid value {request.required_bytes}: must be at most"
    text = f"{text} the {disk.size_bytes} bytes of {disk.path}, once it has grown"
    return NodeOutcome(waiting_for=text)


def _expand_file_system(
    request: NodeExpand,
    snapshot: Snapshot,
    past: NodeCallHistory,
    disk: Disk,
    mount: Mount,
) -> NodeOutcome:
    if past.has(ExpandFileSystem):
        return NodeOutcome()
    if snapshot.size_bytes is None:
        return NodeOutcome(read=CostlyRead.SIZE)
    if is_full_size(snapshot.size_bytes, disk):
        return NodeOutcome()
    target = None if request.is_for_readers else writable(snapshot, mount)
    if target is None:
        text = f"{mount.target}: read-only; a file system is expanded while writable"
        return failed(FailureReason.CONTENT, text)
    return NodeOutcome(action=ExpandFileSystem(disk, target.target, mount.fs_type))


def writable(snapshot: Snapshot, mount: Mount) -> Mount | None:
    """Return a writable mount of the same file system; the mount itself if it is."""
    same = [m for m in snapshot.mounts if m.number == mount.number]
    return next((m for m in (mount, *same) if not m.is_read_only), None)

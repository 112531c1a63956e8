"""Publish: from mounts and the target to the next step. Pure."""

import posixpath

from lib.kernel.model import DeviceNumber, EntryKind, Mount, top_mount
from lib.node_volumes.call_failures import FailureReason
from lib.node_volumes.decide_stage import missing_disk
from lib.node_volumes.lookup import fits
from lib.node_volumes.model import (
    Bind,
    MakeDirectory,
    MakeFile,
    NodeOutcome,
    NodePublish,
    RemountReadOnly,
    Snapshot,
    Unmount,
)
from lib.node_volumes.paths import failed, wrong_kind


def publish(request: NodePublish, snapshot: Snapshot) -> NodeOutcome:
    """Return the next step."""
    if request.is_block:
        return _publish_disk(request, snapshot)
    staged = top_mount(snapshot.mounts, request.staging_path)
    unusable = _unusable(request, snapshot, staged)
    if unusable is not None or staged is None:
        return unusable or NodeOutcome()
    published = top_mount(snapshot.mounts, request.target_path)
    if published is not None:
        return _published(
            request, snapshot, published, staged.number, staged.is_read_only
        )
    others = _targets(snapshot, staged) if request.is_exclusive else ()
    if refused := _second_target(request, others):
        return refused
    return _create(request, snapshot, EntryKind.DIRECTORY, request.staging_path)


def _unusable(
    request: NodePublish, snapshot: Snapshot, staged: Mount | None
) -> NodeOutcome | None:
    """Return the failure of a staging path that does not serve, else None."""
    volume, path = request.volume, request.staging_path
    if staged is None:
        text = f'volume "{volume.id}": not staged: nothing is mounted at {path}'
        return failed(FailureReason.NOT_STAGED, text)
    disk = snapshot.disk(staged.number)
    if disk is None:
        text = f'volume "{volume.id}": the disk of {path} ({staged.source}) disappeared'
        return failed(FailureReason.NOT_STAGED, f"{text}; stage the volume again")
    if disk.is_silent:
        text = f'volume "{volume.id}": {disk.path} does not answer'
        return failed(FailureReason.UNCERTAIN, text)
    if not fits(disk, volume.serial):
        text = f"{path} is a mount of {disk.path} with serial {disk.serial}"
        return failed(
            FailureReason.NOT_STAGED, f'volume "{volume.id}": not staged: {text}'
        )
    return None


def _targets(snapshot: Snapshot, staged: Mount) -> tuple[str, ...]:
    """Return the targets of all mounts of what is staged."""
    return tuple(
        mount.target
        for mount in snapshot.mounts
        if (mount.number, mount.root) == (staged.number, staged.root)
    )


def _second_target(
    request: NodePublish, targets: tuple[str, ...]
) -> NodeOutcome | None:
    """Return the failure of a volume with one writer that has another target."""
    own = (request.staging_path, request.target_path)
    other = next((target for target in targets if target not in own), None)
    if other is None:
        return None
    text = f'volume "{request.volume.id}": published at {other} already'
    return failed(
        FailureReason.NOT_STAGED, f"{text}; its access mode allows one target"
    )


def _published(
    request: NodePublish,
    snapshot: Snapshot,
    published: Mount,
    number: DeviceNumber | None,
    is_staged_read_only: bool = False,
) -> NodeOutcome:
    """Keep a mount of this disk, in the requested way; replace one of a lost disk.

    number: of the mount's disk. A bind mount has the flags of its source: it allows
    writes until it is remounted, and never does below a staging mount that is read-only
    (a mount option of the volume).
    """
    path = request.target_path
    shown = published.number if not request.is_block else snapshot.entry.number
    if shown != number:
        if snapshot.disk(shown) is None:
            return NodeOutcome(action=Unmount(path))
        text = f"{path}: {published.source} is mounted there, another disk"
        return failed(FailureReason.INCOMPATIBLE, text)
    if request.is_read_only and not published.is_read_only:
        return NodeOutcome(action=RemountReadOnly(path))
    is_read_only = request.is_read_only or is_staged_read_only
    if published.is_read_only and not is_read_only:
        text = f"{path}: published read-only, requested read-write"
        return failed(FailureReason.INCOMPATIBLE, text)
    return NodeOutcome()


def _publish_disk(request: NodePublish, snapshot: Snapshot) -> NodeOutcome:
    absent = missing_disk(snapshot, request.volume.id)
    disk = snapshot.lookup.disk
    if absent is not None or disk is None:
        return absent or NodeOutcome()
    published = top_mount(snapshot.mounts, request.target_path)
    if published is not None:
        return _published(request, snapshot, published, disk.number)
    if refused := _second_target(request, snapshot.block_targets):
        return refused
    return _create(request, snapshot, EntryKind.FILE, disk.path)


def _create(
    request: NodePublish, snapshot: Snapshot, kind: EntryKind, source: str
) -> NodeOutcome:
    """Create what the source is bound to, then bind it."""
    path = request.target_path
    if snapshot.entry.kind is kind:
        return NodeOutcome(action=Bind(source, path))
    if snapshot.entry.kind is not EntryKind.ABSENT:
        return wrong_kind("target_path", path, snapshot.entry, f"a {kind.value}")
    if kind is EntryKind.DIRECTORY:
        return NodeOutcome(action=MakeDirectory(path))
    if snapshot.has_folder:
        return NodeOutcome(action=MakeFile(path))
    return NodeOutcome(action=MakeDirectory(posixpath.dirname(path)))

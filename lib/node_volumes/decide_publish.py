"""Publish: from mounts and the target to the next step. Pure."""

import posixpath

from lib.kernel.model import DeviceNumber, EntryKind, Mount, top_mount
from lib.node_volumes.decide_stage import missing_disk
from lib.node_volumes.failures import Reason
from lib.node_volumes.lookup import fits
from lib.node_volumes.model import (
    Bind,
    MakeDirectory,
    MakeFile,
    Outcome,
    Publish,
    RemountReadOnly,
    Snapshot,
    Unmount,
)
from lib.node_volumes.paths import failed, wrong_kind


def publish(request: Publish, snapshot: Snapshot) -> Outcome:
    """Return the next step."""
    if request.is_block:
        return _publish_disk(request, snapshot)
    staged = top_mount(snapshot.mounts, request.staging_path)
    unusable = _unusable(request, snapshot, staged)
    if unusable is not None or staged is None:
        return unusable or Outcome()
    published = top_mount(snapshot.mounts, request.target_path)
    if published is not None:
        return _published(request, snapshot, published, staged.number)
    if request.is_exclusive and (other := _other_target(request, snapshot, staged)):
        text = f'volume "{request.volume.id}": published at {other} already'
        return failed(Reason.NOT_STAGED, f"{text}; its access mode allows one target")
    return _create(request, snapshot, EntryKind.DIRECTORY, request.staging_path)


def _unusable(
    request: Publish, snapshot: Snapshot, staged: Mount | None
) -> Outcome | None:
    """Return the failure of a staging path that does not serve, else None."""
    volume, path = request.volume, request.staging_path
    if staged is None:
        text = f'volume "{volume.id}": not staged: nothing is mounted at {path}'
        return failed(Reason.NOT_STAGED, text)
    disk = snapshot.disk(staged.number)
    if disk is None:
        text = f'volume "{volume.id}": the disk of {path} ({staged.source}) disappeared'
        return failed(Reason.NOT_STAGED, f"{text}; stage the volume again")
    if not fits(disk, volume.serial):
        text = f"{path} is a mount of {disk.path} with serial {disk.serial}"
        return failed(Reason.NOT_STAGED, f'volume "{volume.id}": not staged: {text}')
    return None


def _other_target(request: Publish, snapshot: Snapshot, staged: Mount) -> str:
    """Return another target path of the volume, empty for none."""
    own = (request.staging_path, request.target_path)
    return next(
        (
            mount.target
            for mount in snapshot.mounts
            if (mount.number, mount.root) == (staged.number, staged.root)
            and mount.target not in own
        ),
        "",
    )


def _published(
    request: Publish, snapshot: Snapshot, published: Mount, number: DeviceNumber | None
) -> Outcome:
    """Keep a mount of this disk, in the requested way; replace one of a lost disk.

    number: of the mount's disk. Binding read-only takes two system calls: a process
    that was killed between them leaves a mount that still allows writes.
    """
    path = request.target_path
    shown = published.number if not request.is_block else snapshot.entry.number
    if shown != number:
        if snapshot.disk(shown) is None:
            return Outcome(action=Unmount(path))
        text = f"{path}: {published.source} is mounted there, another disk"
        return failed(Reason.INCOMPATIBLE, text)
    if request.is_read_only and not published.is_read_only:
        return Outcome(action=RemountReadOnly(path))
    if published.is_read_only and not request.is_read_only:
        text = f"{path}: published read-only, requested read-write"
        return failed(Reason.INCOMPATIBLE, text)
    return Outcome()


def _publish_disk(request: Publish, snapshot: Snapshot) -> Outcome:
    absent = missing_disk(snapshot, request.volume.id)
    disk = snapshot.lookup.disk
    if absent is not None or disk is None:
        return absent or Outcome()
    published = top_mount(snapshot.mounts, request.target_path)
    if published is not None:
        return _published(request, snapshot, published, disk.number)
    return _create(request, snapshot, EntryKind.FILE, disk.path)


def _create(
    request: Publish, snapshot: Snapshot, kind: EntryKind, source: str
) -> Outcome:
    """Create what the source is bound to, then bind it."""
    path = request.target_path
    options = ("ro",) if request.is_read_only else ()
    if snapshot.entry.kind is kind:
        return Outcome(action=Bind(source, path, options))
    if snapshot.entry.kind is not EntryKind.ABSENT:
        return wrong_kind("target_path", path, snapshot.entry, f"a {kind.value}")
    if kind is EntryKind.DIRECTORY:
        return Outcome(action=MakeDirectory(path))
    if snapshot.has_folder:
        return Outcome(action=MakeFile(path))
    return Outcome(action=MakeDirectory(posixpath.dirname(path)))

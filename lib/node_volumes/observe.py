"""Reads what a request needs."""

import dataclasses
import posixpath
from collections.abc import Callable, Sequence

from lib.kernel.model import Disk, EntryKind, Link, Mount, top_mount
from lib.kernel.protocol import Kernel
from lib.node_volumes import lookup
from lib.node_volumes.model import (
    CostlyRead,
    NodeExpand,
    NodePublish,
    NodeUnpublish,
    Request,
    Snapshot,
    Stage,
    Unstage,
)

Hints = Callable[[str], Sequence[Link]]
"""Further links for a serial, of by-path, as the cloud's metadata names them."""


def no_hints(serial: str) -> Sequence[Link]:
    """Return none."""
    del serial
    return ()


def observe(
    kernel: Kernel, request: Request, read: CostlyRead | None, hints: Hints = no_hints
) -> Snapshot:
    """Return the facts, with the one dear read that was asked for.

    Raises:
        KernelError: something could not be read.
    """
    disks, matching = _disks(kernel, request, hints)
    mounts = tuple(with_disk(kernel, mount) for mount in kernel.mounts())
    path = own_path(request)
    folder = kernel.entry(posixpath.dirname(path)).kind is EntryKind.DIRECTORY
    snapshot = Snapshot(
        mounts,
        disks,
        matching,
        kernel.entry(path),
        folder,
        block_targets=_block_targets(kernel, request, mounts, matching.disk),
    )
    return _with(kernel, snapshot, request, read)


def _disks(
    kernel: Kernel, request: Request, hints: Hints
) -> tuple[tuple[Disk, ...], lookup.Lookup]:
    """Return all disks, and the volume's; none for what needs mounts alone.

    So that a disk that hangs, of whatever volume, keeps none from being unmounted.
    """
    if isinstance(request, NodeUnpublish | Unstage):
        return (), lookup.NOT_SEARCHED
    disks, serial = kernel.disks(), request.volume.serial
    matching = lookup.find(serial, kernel.links("by-id"), disks)
    if matching.disk is None and not matching.matches:
        matching = lookup.find(serial, kernel.links("by-id"), disks, hints(serial))
    return disks, matching


def _block_targets(
    kernel: Kernel, request: Request, mounts: Sequence[Mount], disk: Disk | None
) -> tuple[str, ...]:
    """Return where a disk's device file is mounted: that of each mount is read."""
    is_exclusive = isinstance(request, NodePublish) and request.is_exclusive
    if disk is None or not is_exclusive:
        return ()
    return tuple(
        mount.target
        for mount in mounts
        if posixpath.basename(mount.root) == disk.name
        and kernel.entry(mount.target).number == disk.number
    )


def _with(
    kernel: Kernel, snapshot: Snapshot, request: Request, read: CostlyRead | None
) -> Snapshot:
    disk = snapshot.lookup.disk
    if read is CostlyRead.CONTENT and disk is not None:
        return dataclasses.replace(snapshot, content=kernel.probe(disk.path))
    if read is CostlyRead.RECOVERY and disk is not None:
        needs_recovery = kernel.needs_recovery(disk.path)
        return dataclasses.replace(snapshot, needs_recovery=needs_recovery)
    if read is CostlyRead.SIZE:
        mount = mount_of(snapshot, request)
        mounted = snapshot.disk(mount.number) if mount is not None else None
        if mount is not None and mounted is not None:
            size_bytes = kernel.file_system_size(mount, mounted.path)
            return dataclasses.replace(snapshot, size_bytes=size_bytes)
    return snapshot


def with_disk(kernel: Kernel, mount: Mount) -> Mount:
    """Return a mount with the number of its disk, which btrfs does not show."""
    if mount.number.major != 0 or not mount.source.startswith("/"):
        return mount
    number = kernel.entry(mount.source).number
    return mount if number is None else dataclasses.replace(mount, number=number)


def resolved(kernel: Kernel, request: Request) -> Request:
    """Return the request with paths as mountinfo shows them."""
    match request:
        case Stage() | Unstage():
            staging_path = kernel.resolve(request.staging_path)
            return dataclasses.replace(request, staging_path=staging_path)
        case NodePublish():
            staging_path = kernel.resolve(request.staging_path)
            target_path = kernel.resolve(request.target_path)
            return dataclasses.replace(
                request, staging_path=staging_path, target_path=target_path
            )
        case NodeUnpublish():
            target_path = kernel.resolve(request.target_path)
            return dataclasses.replace(request, target_path=target_path)
        case NodeExpand():
            return dataclasses.replace(request, path=kernel.resolve(request.path))


def own_path(request: Request) -> str:
    """Return the path that a request is about."""
    match request:
        case Stage() | Unstage():
            return request.staging_path
        case NodePublish() | NodeUnpublish():
            return request.target_path
        case NodeExpand():
            return request.path


def mount_of(snapshot: Snapshot, request: Request) -> Mount | None:
    """Return the mount that is visible at the request's own path."""
    return top_mount(snapshot.mounts, own_path(request))

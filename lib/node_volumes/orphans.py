"""Mounts of disks that disappeared. Pure; they are reported and never removed."""

import dataclasses
from collections.abc import Sequence

from lib.kernel.model import Disk, Mount, is_below

_PUBLISHED = "/volumes/kubernetes.io~csi/"
"""Part of a target path. Source: kubernetes pkg/volume/csi (GetPath)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Orphan:
    """A mount, and why it is orphaned."""

    target: str
    problem: str


def find(
    mounts: Sequence[Mount], disks: Sequence[Disk], kubelet: str, driver: str
) -> tuple[Orphan, ...]:
    """Return the orphaned mounts of a driver, by target.

    mounts: as the snapshot has them, those of btrfs with the number of their disk.
    kubelet: its folder. A staging path names its driver; a published mount, of which
    the path does not, counts for all drivers of disks.
    """
    staged = f"{kubelet}/plugins/kubernetes.io/csi/{driver}"
    numbers = {disk.number for disk in disks}
    orphans = [
        Orphan(mount.target, f"its disk ({mount.source}) disappeared")
        for mount in mounts
        if is_below(mount.target, staged) or _is_published(mount.target, kubelet)
        if mount.source.startswith("/") and mount.number not in numbers
    ]
    return tuple(sorted(orphans, key=lambda orphan: orphan.target))


def _is_published(target: str, kubelet: str) -> bool:
    return is_below(target, f"{kubelet}/pods") and _PUBLISHED in target

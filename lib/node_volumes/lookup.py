"""Finds the disk of a volume by the names that udev gives it, and by its serial. Pure.

The device name that the cloud reports is never used: it may be wrong.
"""

import dataclasses
from collections.abc import Sequence

from lib.kernel.model import Disk, Link

VIRTIO_LENGTH = 20
"""Characters of a serial that virtio-blk keeps. Source: VIRTIO 1.2, 5.2.6.1
(VIRTIO_BLK_T_GET_ID)."""
_PREFIXES = ("virtio-", "scsi-0QEMU_QEMU_HARDDISK_", "scsi-SQEMU_QEMU_HARDDISK_")
_SHOWN = 20
_LEAST = 8
"""A shorter serial would match disks by chance."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lookup:
    """Result of a search. disk: None unless exactly one matches.

    matches: names of all disks that match. searched, present: for messages; present is
    empty when the disk was found.
    """

    disk: Disk | None
    matches: tuple[str, ...]
    searched: tuple[str, ...]
    present: tuple[str, ...]

    def __str__(self) -> str:
        searched = ", ".join(self.searched)
        present = ", ".join(self.present[:_SHOWN]) or "none"
        more = len(self.present) - _SHOWN
        tail = f" and {more} more" if more > 0 else ""
        return f"searched for {searched} and its serial; present: {present}{tail}"


NOT_SEARCHED = Lookup(None, (), (), ())


def names(serial: str) -> tuple[str, ...]:
    """Return the names below /dev/disk/by-id that a disk with this serial may have.

    Source: kubernetes/cloud-provider-openstack pkg/util/mount (GetDevicePath); systemd
    rules.d/60-persistent-storage.rules; scsi-SQEMU is that of older udev.
    """
    short = serial[:VIRTIO_LENGTH]
    both = tuple(dict.fromkeys((short, serial)))
    linked = tuple(f"{prefix}{name}" for prefix in _PREFIXES for name in both)
    return (*linked, f"wwn-0x{serial.replace('-', '')}")


def find(
    serial: str,
    links: Sequence[Link],
    disks: Sequence[Disk],
    further: Sequence[Link] = (),
) -> Lookup:
    """Return the disk of a volume.

    links: of by-id. further: links that the cloud's metadata names for this serial. A
    link counts only while the disk that it points to has no other serial: udev may be
    late. A disk that does not say its serial is none: it may be that of another volume.
    """
    searched = names(serial)
    named = {link.number for link in links if link.name in searched}
    named |= {link.number for link in further}
    matching = [
        disk
        for disk in disks
        if not disk.is_silent
        if has_serial(disk, serial) or (disk.number in named and fits(disk, serial))
    ]
    only = matching[0] if len(matching) == 1 else None
    present = () if only is not None else _present(links, disks)
    return Lookup(only, tuple(disk.name for disk in matching), searched, present)


def _present(links: Sequence[Link], disks: Sequence[Disk]) -> tuple[str, ...]:
    return (
        *(f"{disk.name} ({_serial(disk)})" for disk in disks),
        *(link.name for link in links),
    )


def _serial(disk: Disk) -> str:
    return "does not answer" if disk.is_silent else f"serial {disk.serial or 'none'}"


def has_serial(disk: Disk, serial: str) -> bool:
    """Report whether the kernel shows this serial, whole or cut by virtio."""
    if len(disk.serial) < _LEAST:
        return False
    return disk.serial in (serial, serial[:VIRTIO_LENGTH])


def fits(disk: Disk, serial: str) -> bool:
    """Report whether a disk can be the volume's: its serial is this one, or unknown.

    wwn: a disk may show its serial with or without dashes, or only its WWN.
    """
    known = disk.serial.replace("-", "").lower()
    return not known or known in serial.replace("-", "").lower()

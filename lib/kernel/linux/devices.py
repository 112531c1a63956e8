"""Disks and their links, from the trees /sys and /dev."""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator

from lib.kernel import errors
from lib.kernel.linux import serials
from lib.kernel.model import DeviceNumber, Disk, Link

SECTOR_BYTES = 512
"""Unit of the file "size". Source: Linux Documentation/ABI/stable/sysfs-block."""
_PAGE_HEADER = 4
"""Source: SPC-4, 7.8.15 unit serial number VPD page (80h)."""


@dataclasses.dataclass(frozen=True, slots=True)
class ListedDisk:
    """A disk as /sys lists it. serial_file: which asks the disk; None: it has none.

    sequence: of this disk; the next disk with its name and number has another.
    """

    disk: Disk
    sequence: int
    serial_file: pathlib.Path | None

    @property
    def key(self) -> serials.Key:
        """What no other disk ever has."""
        return (self.disk.name, self.disk.number, self.sequence)


def disks(dev: pathlib.Path, sys: pathlib.Path) -> tuple[ListedDisk, ...]:
    """Return every whole disk by name; one removed in the meantime is omitted.

    No disk is asked for anything.
    """
    return tuple(_disks(dev, sys))


def _disks(dev: pathlib.Path, sys: pathlib.Path) -> Iterator[ListedDisk]:
    for folder in sorted(_folders(sys / "block")):
        with contextlib.suppress(OSError, ValueError):
            serial_file = folder / "serial"
            asks = serial_file.exists()
            disk = Disk(
                name=folder.name,
                path=str(dev / folder.name.replace("!", "/")),
                number=number((folder / "dev").read_text()),
                serial="" if asks else _serial(folder),
                size_bytes=int((folder / "size").read_text()) * SECTOR_BYTES,
            )
            yield ListedDisk(disk, _sequence(folder), serial_file if asks else None)


def _sequence(folder: pathlib.Path) -> int:
    """Return the number of a disk's appearance; before Linux 5.15 that of its folder.

    Source: Linux Documentation/ABI/stable/sysfs-block, diskseq.
    """
    with contextlib.suppress(FileNotFoundError):
        return int((folder / "diskseq").read_text())
    return folder.stat().st_ino


def _folders(block: pathlib.Path) -> list[pathlib.Path]:
    with contextlib.suppress(FileNotFoundError):
        return list(block.iterdir())
    return []


def number(text: str) -> DeviceNumber:
    """Parse "254:16"."""
    major, _, minor = text.strip().partition(":")
    return DeviceNumber(int(major), int(minor))


def number_of(device: int) -> DeviceNumber:
    """Convert st_rdev or st_dev."""
    return DeviceNumber(os.major(device), os.minor(device))


def _serial(folder: pathlib.Path) -> str:
    """Read a serial that the kernel keeps in memory: of NVMe, else SCSI's page 80."""
    with contextlib.suppress(OSError):
        text = (folder / "device/serial").read_text(errors="replace")
        return text.strip(serials.STRIPPED)
    with contextlib.suppress(OSError):
        page = (folder / "device/vpd_pg80").read_bytes()[_PAGE_HEADER:]
        return page.decode(errors="replace").strip(serials.STRIPPED)
    return ""


def links(folder: pathlib.Path) -> tuple[Link, ...]:
    """Return the links in a folder, by name."""
    disks_ = []
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder.iterdir()):
            target: DeviceNumber | None = None
            with contextlib.suppress(OSError):
                target = number_of(path.stat().st_rdev)
            disks_.append(Link(path.name, target))
    return tuple(disks_)


def rescan_hosts(sys: pathlib.Path) -> None:
    """Write "- - -" (any channel, target, LUN) to each SCSI host.

    Source: Linux Documentation/ABI/testing/sysfs-class-scsi_host.
    """
    for scan in sorted((sys / "class/scsi_host").glob("host*/scan")):
        _write(scan, "- - -")


def rescan_disk(sys: pathlib.Path, name: str) -> None:
    """Read a SCSI disk's size again; virtio's has no such file and reports it."""
    file = sys / "block" / name / "device/rescan"
    if file.exists():
        _write(file, "1")


def _write(file: pathlib.Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise errors.Failed(f"write {file}: {error.strerror}") from error

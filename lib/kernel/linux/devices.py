"""Disks and their links, from the trees /sys and /dev."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from lib.kernel import errors
from lib.kernel.model import DeviceNumber, Disk, Link

SECTOR_BYTES = 512
"""Unit of the file "size". Source: Linux Documentation/ABI/stable/sysfs-block."""
_PAGE_HEADER = 4
"""Source: SPC-4, 7.8.15 unit serial number VPD page (80h)."""


def disks(dev: pathlib.Path, sys: pathlib.Path) -> tuple[Disk, ...]:
    """Return every whole disk by name; one removed in the meantime is omitted."""
    return tuple(_disks(dev, sys))


def _disks(dev: pathlib.Path, sys: pathlib.Path) -> Iterator[Disk]:
    for folder in sorted(_folders(sys / "block")):
        with contextlib.suppress(OSError, ValueError):
            yield Disk(
                name=folder.name,
                path=str(dev / folder.name.replace("!", "/")),
                number=number((folder / "dev").read_text()),
                serial=_serial(folder),
                size_bytes=int((folder / "size").read_text()) * SECTOR_BYTES,
            )


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
    """Read the serial: of virtio (20 characters), of NVMe, else SCSI's page 80."""
    for name in ("serial", "device/serial"):
        with contextlib.suppress(OSError):
            return (folder / name).read_text(errors="replace").strip(" \0\n")
    with contextlib.suppress(OSError):
        page = (folder / "device/vpd_pg80").read_bytes()[_PAGE_HEADER:]
        return page.decode(errors="replace").strip(" \0\n")
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

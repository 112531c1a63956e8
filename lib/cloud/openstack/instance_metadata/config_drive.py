"""Reads the config drive: ISO 9660 or FAT with the label config-2, not mounted.

A kernel may lack these file systems, and a container the privilege to mount them. Users
can write to disks that are attached later: damaged structures must end in an answer.
"""

import os
from collections.abc import Iterable

from lib.cloud.openstack.instance_metadata import document, fat, iso

LABEL = "config-2"
"""Source: OpenStack Nova, "Config drives"; compared without case."""


def find(devices: Iterable[str]) -> bytes | None:
    """Return meta_data.json of the first disk that is a config drive; None: no such.

    devices: paths of device files; those that cannot be read are skipped.

    Raises:
        ValueError: a config drive without this file.
    """
    for device in devices:
        try:
            descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            is_drive, body = _examine(descriptor)
        finally:
            os.close(descriptor)
        if is_drive and body is None:
            name = "/".join(document.PATH)
            raise ValueError(f"config drive {device}: {name}: not found")
        if body is not None:
            return body
    return None


def _examine(descriptor: int) -> tuple[bool, bytes | None]:
    """Return whether a disk is a config drive, and its document."""

    def read(offset: int, length: int) -> bytes:
        try:
            return os.pread(descriptor, length, offset)
        except OSError:
            return b""

    try:
        image = iso.IsoDisk(read)
        is_drive = image.label.lower() == LABEL
        return is_drive, image.file(document.PATH) if is_drive else None
    except iso.NotIso:
        pass
    try:
        disk = fat.FatDisk(read)
        is_drive = disk.label().lower() == LABEL
        return is_drive, disk.file(document.PATH) if is_drive else None
    except fat.NotFat:
        return False, None

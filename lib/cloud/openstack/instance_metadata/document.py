"""meta_data.json, as both sources deliver it."""

import dataclasses

import msgspec

from lib.process import decoding

PATH = ("openstack", "latest", "meta_data.json")
"""Source: OpenStack Nova, user documentation, "Metadata"."""


class _Device(msgspec.Struct):
    type: str = ""
    bus: str = ""
    serial: str = ""
    address: str = ""


class _Document(msgspec.Struct):
    uuid: str = ""
    name: str = ""
    availability_zone: str | None = None
    devices: list[_Device] = []


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A disk by its place. bus: "virtio", "scsi", ...; address: of PCI or SCSI."""

    bus: str
    address: str
    serial: str


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceMetadata:
    """A server. zone: as Nova names it; empty when it is not reported.

    is_complete: a document described it; otherwise only the id is known.
    """

    id: str
    name: str
    zone: str
    disks: tuple[Device, ...] = ()
    is_complete: bool = True


def parse(body: bytes) -> InstanceMetadata:
    """Return the server that a document describes.

    Raises:
        ValueError: no such document, or it names no server.
    """
    try:
        document = decoding.decode(body, _Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"meta_data.json: malformed ({error})") from error
    if not document.uuid:
        raise ValueError("meta_data.json: uuid: not set")
    return InstanceMetadata(
        id=document.uuid,
        name=document.name,
        zone=document.availability_zone or "",
        disks=tuple(
            Device(device.bus, device.address, device.serial)
            for device in document.devices
            if device.type == "disk"
        ),
    )

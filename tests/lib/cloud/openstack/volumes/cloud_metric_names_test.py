"""Each call for volumes has a row in the table of the reference's names.

Volumes are driven over the stand-in from their creation to their end, and so is what
failed attachments leave; the calls of Cinder and Nova are those that the client made.
"""

from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.openstack.volumes import cloud
from lib.cloud.volumes import (
    ById,
    ByName,
    Volume,
    VolumeChange,
    VolumeId,
    VolumeRequest,
    VolumeSpec,
)
from tests.lib.cloud.openstack import reference_calls

GIB = 2**30
SERVER = InstanceId("5e000000-0000-0000-0000-000000000001")
Json = dict[str, object]
OF_THE_REFERENCE = reference_calls.of_the_reference("volume")


class Cinder(Protocol):
    reservations: list[Json]
    specs: dict[str, Json]
    volumes: dict[str, Json]

    def put(self, number: int, **parts: object) -> str: ...


class StandIn(Protocol):
    def fail(self, name: str, status: int, body: bytes = b"{}") -> None: ...


Read = Callable[[str], Volume]


@pytest.fixture()
def volumes(
    make_volumes: Callable[[], cloud.OpenStackVolumes],
) -> cloud.OpenStackVolumes:
    return make_volumes()


@pytest.fixture()
def read(volumes: cloud.OpenStackVolumes) -> Read:
    """Return a way to read one volume in full."""

    def by_id(volume_id: str) -> Volume:
        ref = ById(VolumeId(volume_id), in_full=True)
        volumes_of_id = volumes.observe([ref]).by_ref[ref]
        assert not isinstance(volumes_of_id, Unknown)
        (volume,) = volumes_of_id
        return volume

    return by_id


def live(volumes: cloud.OpenStackVolumes, cinder: Cinder, read: Read) -> None:
    """Create, attach, extend, retype, detach and delete volumes, one of them shared."""
    cinder.specs["fast"] = {"multiattach": "<is> True"}
    volumes.observe([ByName("pvc-9")])
    request = VolumeRequest("pvc-9", GIB, "kube", is_shared=True)
    spec = volumes.parse(request)
    assert isinstance(spec, VolumeSpec)
    created = volumes.create(spec)
    cinder.volumes[created.id]["status"] = "available"
    volume = read(created.id)
    volumes.attach(volume, SERVER)
    attachment = {"server_id": SERVER, "attachment_id": "at-1", "device": "/dev/vdb"}
    cinder.volumes[created.id] |= {"status": "in-use", "attachments": [attachment]}
    volume = read(created.id)
    volumes.resize(volume, 2 * GIB)
    volumes.retype(volume, VolumeChange("slow"))
    volumes.detach(volume, SERVER)
    volumes.capacity("fast", ())
    volumes.listing()
    cinder.volumes[created.id] |= {"status": "available", "attachments": []}
    volumes.delete(created.id)


def fail(
    volumes: cloud.OpenStackVolumes, cinder: Cinder, stand_in: StandIn, read: Read
) -> None:
    """Fail to create, attach and detach; read what is in ERROR, or can't be decoded."""
    request = VolumeRequest("pvc-8", GIB, "kube", {"type": "fast", "availability": "x"})
    spec = volumes.parse(request)
    assert isinstance(spec, VolumeSpec)
    with pytest.raises(errors.InvalidRequest):
        volumes.create(spec)
    read(cinder.put(11, status="error"))
    refusal = b'{"badRequest": {"message": "status must be available"}}'
    for number, status in ((12, "attaching"), (13, "reserved")):
        volume_id = cinder.put(number, status=status)
        if status == "reserved":
            holder: Json = {"id": "at-2", "status": status, "instance": SERVER}
            cinder.reservations = [holder | {"volume_id": volume_id}]
        stand_in.fail(f"servers/{SERVER}/os-volume_attachments", 400, refusal)
        with pytest.raises(errors.Busy):
            volumes.attach(read(volume_id), SERVER)
    attachment = {"server_id": SERVER, "attachment_id": "at-3", "device": "/dev/vdb"}
    volume_id = cinder.put(14, status="detaching", attachments=[attachment])
    volumes.detach(read(volume_id), SERVER)
    cinder.put(15, size="unreadable")
    volumes.listing()


def test_every_call_has_a_row(
    volumes: cloud.OpenStackVolumes,
    cinder: Cinder,
    stand_in: StandIn,
    read: Read,
    observed: list[tuple[str, str]],
) -> None:
    """Prints calls and labels; a call without its row, or a row not called, fails."""
    live(volumes, cinder, read)
    fail(volumes, cinder, stand_in, read)
    operations = {operation for operation, _ in observed}
    print("\n".join(reference_calls.table(operations)))
    assert reference_calls.missing(operations) == set()
    assert OF_THE_REFERENCE - operations == set()
    assert len(OF_THE_REFERENCE) == 8

"""An attachment belongs to one server: what a detach may release, and what never."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.openstack.volumes import cloud
from lib.cloud.volumes import AttachmentPhase, ById, Volume, VolumeId

ASKED = InstanceId("5e000000-0000-0000-0000-000000000001")
OTHER = InstanceId("5e000000-0000-0000-0000-000000000002")
Json = dict[str, object]


class Call(Protocol):
    method: str
    path: str


class StandIn(Protocol):
    calls: list[Call]
    volume_versions: tuple[str, str]

    def fail(self, name: str, status: int, body: bytes = b"{}") -> None: ...

    def paths(self) -> list[str]: ...


class Cinder(Protocol):
    volumes: dict[str, Json]
    reservations: list[Json]
    servers: set[str]

    def put(self, number: int, **parts: object) -> str: ...


class Clock(Protocol):
    def sleep(self, seconds: float) -> None: ...


MakeVolumes = Callable[..., cloud.OpenStackVolumes]


def look(
    volumes: cloud.OpenStackVolumes, volume_id: str, *, shows_reserved: bool = False
) -> Volume:
    ref = ById(VolumeId(volume_id), shows_reserved=shows_reserved)
    observation = volumes.observe([ref]).by_ref[ref]
    assert not isinstance(observation, Unknown), observation.error
    return observation[0]


@dataclasses.dataclass(frozen=True)
class Case:
    """One volume with one attachment, and two detaches of the server ASKED.

    status: of the volume. holder: whom the attachment is for. attachment: its status.
    absent: servers that Nova does not know. released: after which of the detaches, the
    second of which comes 15 s after the first, the attachment is released; 0: never.
    age_minutes: since Cinder changed the volume.
    """

    status: str
    holder: str | None
    attachment: str
    released: int
    absent: tuple[str, ...] = ()
    age_minutes: int = 30


CASES = {
    "reserved for the server asked about": Case("reserved", ASKED, "reserved", 1),
    "attaching to the server asked about": Case("attaching", ASKED, "attaching", 1),
    "attached to the server asked about, which Nova does not know": Case(
        "in-use", ASKED, "attached", 2, (ASKED,)
    ),
    "attached to the server asked about, to which Nova has no attachment": Case(
        "reserved", ASKED, "attached", 2
    ),
    "being detached from the server asked about, which Nova does not know": Case(
        "in-use", ASKED, "detaching", 2, (ASKED,)
    ),
    "a failed detach from the server asked about, which Nova does not know": Case(
        "in-use", ASKED, "error_detaching", 2, (ASKED,)
    ),
    "reserved for the server asked about, which Nova does not know": Case(
        "reserved", ASKED, "reserved", 1, (ASKED,)
    ),
    "reserved for another server": Case("reserved", OTHER, "reserved", 0),
    "attaching to another server": Case("attaching", OTHER, "attaching", 0),
    "an attach to another server that failed": Case(
        "attaching", OTHER, "error_attaching", 0
    ),
    "attached to another server": Case("reserved", OTHER, "attached", 0),
    "attached to another server, which Nova does not know": Case(
        "reserved", OTHER, "attached", 0, (OTHER,)
    ),
    "reserved for another server, which Nova does not know": Case(
        "reserved", OTHER, "reserved", 2, (OTHER,)
    ),
    "attaching to another server, which Nova does not know": Case(
        "attaching", OTHER, "attaching", 2, (OTHER,)
    ),
    "reserved just now for another server, which Nova does not know": Case(
        "reserved", OTHER, "reserved", 0, (OTHER,), age_minutes=1
    ),
    "reserved for no server that Cinder names": Case("reserved", None, "reserved", 0),
    "reserved for another server while the asked one is unknown to Nova": Case(
        "reserved", OTHER, "reserved", 0, (ASKED,)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_the_attachment_of_an_absent_or_asked_server_is_released(
    name: str,
    stand_in: StandIn,
    cinder: Cinder,
    make_volumes: MakeVolumes,
    clock: Clock,
) -> None:
    case = CASES[name]
    volumes = make_volumes()
    own = _arranged(cinder, case)
    volume = look(volumes, own)
    released_after = 0
    for number in (1, 2):
        with contextlib.suppress(errors.Busy):
            volumes.detach(volume, ASKED)
        if not cinder.reservations and not released_after:
            released_after = number
        clock.sleep(15)
    assert released_after == case.released
    assert not [call for call in stand_in.paths() if call.endswith("/action")]


def _arranged(cinder: Cinder, case: Case) -> str:
    cinder.servers |= {ASKED, OTHER}
    cinder.servers -= set(case.absent)
    link = {"server_id": case.holder, "attachment_id": "at-1", "device": "/dev/vdb"}
    minute = 60 - case.age_minutes
    own = cinder.put(
        1,
        status=case.status,
        attachments=[link] if case.status == "in-use" else [],
        updated_at=f"2026-01-01T11:{minute:02}:00.000000",
    )
    cinder.reservations = [
        {
            "id": "at-1",
            "status": case.attachment,
            "instance": case.holder,
            "volume_id": own,
        }
    ]
    return own


def test_a_server_that_returns_between_two_reads_is_not_absent(
    cinder: Cinder, make_volumes: MakeVolumes, clock: Clock
) -> None:
    """The two answers "not found" must follow each other."""
    case = CASES["reserved for another server, which Nova does not know"]
    volumes = make_volumes()
    volume = look(volumes, _arranged(cinder, case))
    for is_known in (False, True, False):
        cinder.servers.discard(OTHER)
        if is_known:
            cinder.servers.add(OTHER)
        volumes.detach(volume, ASKED)
        clock.sleep(15)
    assert cinder.reservations


@pytest.mark.parametrize("left", ["nothing", "no server", "no volume"])
def test_a_detach_with_nothing_left_is_one_call_and_no_error(
    left: str, stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    volumes = make_volumes()
    volume = look(volumes, cinder.put(1))
    volumes.detach(volume, ASKED)  # logs in to Nova, and learns its version
    cinder.servers = set() if left == "no server" else {ASKED}
    if left == "no volume":
        cinder.volumes.clear()
    before = len(stand_in.calls)
    volumes.detach(volume, ASKED)
    methods = [call.method for call in stand_in.calls[before:]]
    assert methods == ["DELETE"] if left == "no volume" else ["DELETE", "GET"]


@pytest.mark.parametrize("status", ["reserved", "attaching"])
@pytest.mark.parametrize("has_attachments", [False, True])
def test_nothing_is_released_where_it_is_not_known_for_whom_it_is_reserved(
    status: str,
    has_attachments: bool,
    stand_in: StandIn,
    cinder: Cinder,
    make_volumes: MakeVolumes,
    clock: Clock,
) -> None:
    """Cinder before 3.27 does not show it, and an empty list does not either."""
    volumes = make_volumes(ignore_volume_microversion=not has_attachments)
    volume = look(volumes, cinder.put(1, status=status))
    for _ in range(2):
        volumes.detach(volume, ASKED)
        clock.sleep(15)
    assert cinder.volumes[volume.id]["status"] == status
    assert not [call for call in stand_in.paths() if call.endswith("/action")]


def test_a_refused_attach_releases_nothing(
    stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    volumes = make_volumes()
    case = CASES["reserved for another server, which Nova does not know"]
    volume = look(volumes, _arranged(cinder, case))
    content = b'{"badRequest": {"message": "status must be available"}}'
    stand_in.fail(f"servers/{ASKED}/os-volume_attachments", 400, content)
    with pytest.raises(errors.Busy):
        volumes.attach(volume, ASKED)
    assert cinder.reservations


def test_an_attach_that_nova_still_tries_is_not_cancelled(
    stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """Nova may connect the disk while Cinder gives the volume to another server."""
    volumes = make_volumes()
    case = dataclasses.replace(
        CASES["attaching to the server asked about"], age_minutes=2
    )
    volume = look(volumes, _arranged(cinder, case))
    content = b'{"badRequest": {"message": "Unable to detach volume: status"}}'
    path = f"servers/{ASKED}/os-volume_attachments/{volume.id}"
    stand_in.fail(path, 400, content)
    with pytest.raises(errors.Busy):
        volumes.detach(volume, ASKED)
    assert cinder.reservations


@pytest.mark.parametrize("holder", [ASKED, OTHER])
def test_a_detach_from_another_server_is_not_rolled_back(
    holder: str, stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """Only a detach from the server asked about is begun again."""
    volumes = make_volumes()
    cinder.servers |= {ASKED, OTHER}
    link = {"server_id": holder, "attachment_id": "at-1", "device": "/dev/vdb"}
    volume = look(volumes, cinder.put(1, status="detaching", attachments=[link]))
    with contextlib.suppress(errors.Busy):
        volumes.detach(volume, ASKED)
    actions = [call for call in stand_in.paths() if call.endswith("/action")]
    assert bool(actions) == (holder == ASKED)


@pytest.mark.parametrize("holder", [ASKED, OTHER])
def test_a_volume_on_its_way_shows_for_whom_it_is_reserved(
    holder: str, stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """Where it is asked for: that takes another call."""
    volumes = make_volumes()
    case = dataclasses.replace(CASES["reserved for another server"], holder=holder)
    own = _arranged(cinder, case)
    assert look(volumes, own).attachments == ()
    before = len(stand_in.calls)
    volume = look(volumes, own, shows_reserved=True)
    (attachment,) = volume.attachments
    assert attachment.instance_id == holder
    assert attachment.phase is AttachmentPhase.ATTACHING
    assert len(stand_in.calls) - before == 2

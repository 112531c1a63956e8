"""Each operation makes the calls it must, and no more, and says what came of it."""

import dataclasses
import datetime
import itertools
import time
from collections.abc import Callable
from typing import Protocol

import pytest
import structlog.testing

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.volumes import cloud
from lib.cloud.support import absence_scope
from lib.cloud.volumes import (
    UNLIMITED_BYTES,
    AttachmentPhase,
    ById,
    ByName,
    Found,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    VolumeSpec,
    VolumesReading,
)
from lib.volumes import csi_codes

GIB = 2**30
SERVER = InstanceId("5e000000-0000-0000-0000-000000000001")
OTHER = InstanceId("5e000000-0000-0000-0000-000000000002")
NOBODY = VolumeId("c0000000-0000-0000-0000-999999999999")
Json = dict[str, object]


class Call(Protocol):
    method: str
    path: str
    headers: dict[str, str]
    body: Json


class StandIn(Protocol):
    calls: list[Call]
    volume_versions: tuple[str, str]
    volume_service: tuple[str, str]
    project: str
    silent: set[str]

    def fail(self, name: str, status: int, body: bytes = b"{}") -> None: ...

    def paths(self) -> list[str]: ...


class Cinder(Protocol):
    volumes: dict[str, Json]
    reservations: list[Json]
    messages: list[Json]
    types: list[str]
    specs: dict[str, Json]
    quota: dict[str, Json | str]
    page: int
    lacking: set[str]
    actions: list[str]
    has_snapshots: set[str]
    type_ids: dict[str, str]
    types_per_page: int
    servers: set[str]
    zones: list[str]

    def put(self, number: int, **parts: object) -> str: ...


class Clock(Protocol):
    def sleep(self, seconds: float) -> None: ...


MakeVolumes = Callable[..., cloud.OpenStackVolumes]


@pytest.fixture()
def volumes(make_volumes: MakeVolumes) -> cloud.OpenStackVolumes:
    """Return volumes that have logged in already, and know both services."""
    open_stack_volumes = make_volumes()
    open_stack_volumes.listing()
    nothing = Volume(NOBODY, "", 0, VolumePhase.AVAILABLE)
    open_stack_volumes.detach(nothing, SERVER)
    return open_stack_volumes


def calls(stand_in: StandIn, since: int) -> list[str]:
    """Return methods and paths of the calls that came later."""
    shown = zip(stand_in.calls, stand_in.paths(), strict=True)
    return [f"{call.method} {path}" for call, path in shown][since:]


def only(reading: VolumesReading, ref: ById | ByName) -> Volume:
    observation = reading.by_ref[ref]
    assert not isinstance(observation, Unknown)
    assert len(observation) == 1
    return observation[0]


def look(volumes: cloud.OpenStackVolumes, volume_id: str) -> Volume:
    ref = ById(VolumeId(volume_id))
    return only(volumes.observe([ref]), ref)


def attached(server: str, device: str = "/dev/vdb") -> list[Json]:
    return [{"server_id": server, "attachment_id": "at-1", "device": device}]


def spec(volumes: cloud.OpenStackVolumes, **parts: object) -> VolumeSpec:
    body: Json = {"name": "pvc-9", "size_bytes": GIB, "cluster": "kube"} | parts
    parsed = volumes.parse(VolumeRequest(**body))  # type: ignore[arg-type]  # any part
    assert isinstance(parsed, VolumeSpec), parsed
    return parsed


def test_one_volume_costs_one_call_and_names_cost_one_each(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = ById(VolumeId(cinder.put(1)))
    before = len(stand_in.calls)
    assert only(volumes.observe([own]), own).name == "pvc-1"
    assert calls(stand_in, before) == [f"GET volumes/{own.id}"]
    reading = volumes.observe([own, ByName("pvc-1"), ByName("nobody")])
    assert only(reading, ByName("pvc-1")).id == own.id
    assert reading.by_ref[ByName("nobody")] == ()
    assert len(stand_in.calls) == before + 4
    assert reading.listing is None


def test_many_are_read_by_one_list_which_is_handed_on(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    refs = [ById(VolumeId(cinder.put(number))) for number in range(1, 101)]
    before = len(stand_in.calls)
    reading = volumes.observe(refs)
    assert calls(stand_in, before) == ["GET volumes/detail"]
    assert all(len(known(reading.by_ref[ref])) == 1 for ref in refs)
    assert reading.listing is not None
    assert len(reading.listing) == 100


def known(volumes_found: Found) -> tuple[Volume, ...]:
    assert not isinstance(volumes_found, Unknown)
    return volumes_found


def test_what_a_list_lacks_is_looked_for_by_its_id(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """A volume that is there is never taken for absent because a list was odd."""
    refs = [ById(VolumeId(cinder.put(number))) for number in range(1, 6)]
    cinder.lacking.add(refs[0].id)
    before = len(stand_in.calls)
    reading = volumes.observe([*refs, ById(NOBODY)])
    assert len(known(reading.by_ref[refs[0]])) == 1
    assert reading.by_ref[ById(NOBODY)] == ()
    assert sorted(calls(stand_in, before)[1:]) == sorted(
        [f"GET volumes/{refs[0].id}", f"GET volumes/{NOBODY}"]
    )


@pytest.mark.parametrize("text", ["fake-vol-id-1234567890", "", "x" * 200, "../types"])
def test_what_is_no_id_of_the_clouds_is_absent_without_a_call(
    stand_in: StandIn, volumes: cloud.OpenStackVolumes, text: str
) -> None:
    before = len(stand_in.calls)
    assert volumes.observe([ById(VolumeId(text))]).by_ref == {ById(VolumeId(text)): ()}
    volumes.delete(VolumeId(text))
    assert len(stand_in.calls) == before


def test_a_read_that_fails_makes_its_refs_unknown_and_no_others(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    good, bad = VolumeId(cinder.put(1)), VolumeId(cinder.put(2))
    stand_in.fail(f"volumes/{bad}", 500)
    observations = volumes.observe([ById(good), ById(bad)]).by_ref
    assert len(known(observations[ById(good)])) == 1
    unknown = observations[ById(bad)]
    assert isinstance(unknown, Unknown)
    assert isinstance(unknown.error, errors.Unavailable)


def test_a_list_that_fails_makes_all_unknown_but_the_impossible(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    refs = [ById(VolumeId(cinder.put(number))) for number in range(1, 6)]
    stand_in.fail("volumes/detail", 500)
    observations = volumes.observe([*refs, ById(VolumeId("no-id"))]).by_ref
    assert all(isinstance(observations[ref], Unknown) for ref in refs)
    assert observations[ById(VolumeId("no-id"))] == ()


def test_names_are_exact_and_the_oldest_comes_first(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Cinder's own filter ignores case."""
    cinder.put(1, name="Twin", created_at="2026-01-01T09:00:00.000000")
    late = cinder.put(2, name="twin", created_at="2026-01-01T11:00:00.000000")
    early = cinder.put(3, name="twin", created_at="2026-01-01T10:00:00.000000")
    observation = volumes.observe([ByName("twin")]).by_ref[ByName("twin")]
    assert [volume.id for volume in known(observation)] == [early, late]


def test_a_list_of_many_pages_is_one_call_each(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    for number in range(1, 2501):
        cinder.put(number)
    before = len(stand_in.calls)
    assert len(volumes.listing()) == 2500
    assert calls(stand_in, before) == ["GET volumes/detail"] * 3


def test_in_a_crowd_few_are_read_one_by_one(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Three pages of list cost the cloud more than nine small reads."""
    refs = [ById(VolumeId(cinder.put(number))) for number in range(1, 2501)]
    volumes.listing()
    before = len(stand_in.calls)
    assert volumes.observe(refs[:9]).listing is None
    assert len(stand_in.calls) == before + 9
    assert volumes.observe(refs[:10]).listing is not None


def test_create_is_one_call_with_the_references_metadata(
    stand_in: StandIn, volumes: cloud.OpenStackVolumes
) -> None:
    desired = spec(
        volumes,
        size_bytes=3 * GIB,
        parameters={"type": "slow", "availability": "nova"},
        metadata={"csi.storage.k8s.io/pvc/name": "claim", "other": "no"},
    )
    before = len(stand_in.calls)
    volume = volumes.create(desired)
    assert calls(stand_in, before) == ["POST volumes"]
    assert stand_in.calls[-1].body == {
        "volume": {
            "name": "pvc-9",
            "size": 3,
            "description": "Created by OpenStack Cinder CSI driver",
            "metadata": {
                "cinder.csi.openstack.org/cluster": "kube",
                "csi.storage.k8s.io/pvc/name": "claim",
            },
            "volume_type": "slow",
            "availability_zone": "nova",
        }
    }
    assert (volume.phase, volume.size_bytes) == (VolumePhase.CREATING, 3 * GIB)
    assert (volume.cluster, volume.type, volume.zones) == ("kube", "slow", ("nova",))


def test_a_clone_and_its_neighbours_are_told_to_the_scheduler(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    source = VolumeId(cinder.put(1))
    desired = VolumeSpec(
        "pvc-9", GIB, "kube", source=source, near=("a", "b"), apart=("c",)
    )
    assert volumes.create(desired).source == source
    body = stand_in.calls[-1].body
    hints = {"same_host": ["a", "b"], "different_host": ["c"]}
    assert body["OS-SCH-HNT:scheduler_hints"] == hints


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        (
            {"parameters": {"type": "gold"}},
            errors.InvalidRequest,
            'parameter type: unsupported value "gold": must be one of fast, slow',
        ),
        (
            {"parameters": {"availability": "moon"}},
            errors.InvalidRequest,
            'zone: unsupported value "moon": must be one of nova',
        ),
        ({"source": NOBODY}, errors.NotFound, f"{NOBODY}: the source volume is absent"),
    ],
)
def test_a_refused_create_names_what_is_wrong_and_what_would_be_right(
    volumes: cloud.OpenStackVolumes,
    parts: Json,
    kind: type[errors.CloudError],
    words: str,
) -> None:
    with pytest.raises(kind, match=words):
        volumes.create(spec(volumes, **parts))


def test_a_delete_is_one_call_also_of_what_is_gone(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = VolumeId(cinder.put(1))
    before = len(stand_in.calls)
    volumes.delete(own)
    volumes.delete(NOBODY)
    desired = [f"DELETE volumes/{own}", f"DELETE volumes/{NOBODY}"]
    assert calls(stand_in, before) == desired
    volumes.delete(own)  # it is going already


def test_a_delete_that_is_refused_says_why(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Cinder's own sentence is the same for every cause."""
    used = VolumeId(cinder.put(1, status="in-use", attachments=attached(SERVER)))
    busy = VolumeId(cinder.put(2, status="creating"))
    with pytest.raises(errors.AttachedElsewhere, match=f"attached to {SERVER}"):
        volumes.delete(used)
    with pytest.raises(errors.Busy, match="its status is 'creating'"):
        volumes.delete(busy)


def test_attach_and_detach_are_one_call_each(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    volume = look(volumes, cinder.put(1))
    before = len(stand_in.calls)
    volumes.attach(volume, SERVER)
    path = f"servers/{SERVER}/os-volume_attachments"
    assert calls(stand_in, before) == [f"POST {path}"]
    assert stand_in.calls[-1].body == {"volumeAttachment": {"volumeId": volume.id}}
    cinder.put(1, status="in-use", attachments=attached(SERVER, "/dev/vdc"))
    volume = look(volumes, volume.id)
    assert volume.attachments[0].publish_context == (("DevicePath", "/dev/vdc"),)
    before = len(stand_in.calls)
    volumes.detach(volume, SERVER)
    assert calls(stand_in, before) == [f"DELETE {path}/{volume.id}"]


@pytest.mark.parametrize("server", [OTHER, "no-id-at-all"])
def test_attach_names_the_absent_server(
    cinder: Cinder, volumes: cloud.OpenStackVolumes, server: InstanceId
) -> None:
    volume = look(volumes, cinder.put(1))
    with pytest.raises(errors.NotFound) as raised:
        volumes.attach(volume, server)
    assert raised.value.resource == server


def test_attach_names_the_absent_volume(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    volume = look(volumes, cinder.put(1))
    cinder.volumes.clear()
    with pytest.raises(errors.NotFound) as raised:
        volumes.attach(volume, SERVER)
    assert raised.value.resource == volume.id


def test_a_detach_under_way_is_left_alone_and_a_stuck_one_is_begun_again(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Three minutes are longer than Nova itself tries."""
    fresh = cinder.put(
        1,
        status="detaching",
        attachments=attached(SERVER),
        updated_at="2026-01-01T11:59:00.000000",
    )
    with pytest.raises(errors.Busy, match="being detached"):
        volumes.detach(look(volumes, fresh), SERVER)
    stuck = cinder.put(2, status="detaching", attachments=attached(SERVER))
    volumes.detach(look(volumes, stuck), SERVER)
    assert cinder.actions == ["os-roll_detaching"]
    assert cinder.volumes[stuck]["status"] == "detaching"


def test_resize_is_one_call_also_while_attached(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = cinder.put(1, status="in-use", attachments=attached(SERVER))
    volume = look(volumes, own)
    before = len(stand_in.calls)
    volumes.resize(volume, 5 * GIB)
    assert calls(stand_in, before) == [f"POST volumes/{own}/action"]
    assert stand_in.calls[-1].headers["openstack-api-version"] == "volume 3.50"
    assert cinder.volumes[own]["size"] == 5


def test_an_old_cinder_is_not_asked_to_grow_what_is_attached(
    stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    stand_in.volume_versions = ("3.0", "3.41")
    volumes = make_volumes()
    used = cinder.put(1, status="in-use", attachments=attached(SERVER))
    volume = look(volumes, used)
    with pytest.raises(errors.InUse, match=r"3\.42"):
        volumes.resize(volume, 5 * GIB)
    volumes.resize(look(volumes, cinder.put(2)), 5 * GIB)
    assert stand_in.calls[-1].headers["openstack-api-version"] == "volume 3.41"


@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("block-storage", "/volume/v3"),
        ("volumev3", "/volume/v3"),
        ("volumev3", "/volume/v3/project-1"),
    ],
)
def test_cinder_is_found_by_any_of_its_names(
    stand_in: StandIn,
    cinder: Cinder,
    make_volumes: MakeVolumes,
    service: str,
    path: str,
) -> None:
    """Old catalogues call it volumev3, and name the project in its URL."""
    stand_in.volume_service = (service, path)
    assert look(make_volumes(), cinder.put(1)).name == "pvc-1"


def test_without_microversions_the_oldest_is_asked_for(
    stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """[BlockStorage] ignore-volume-microversion."""
    volumes = make_volumes(ignore_volume_microversion=True)
    look(volumes, cinder.put(1))
    assert stand_in.calls[-1].headers["openstack-api-version"] == "volume 3.0"


def test_retype_is_one_call_and_none_when_it_is_so_already(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    volume = look(volumes, cinder.put(1))
    before = len(stand_in.calls)
    volumes.retype(volume, VolumeChange("fast"))
    volumes.retype(volume, VolumeChange())
    assert len(stand_in.calls) == before
    volumes.retype(volume, VolumeChange("slow"))
    assert calls(stand_in, before) == [f"POST volumes/{volume.id}/action"]
    with pytest.raises(
        errors.InvalidRequest, match='value "gold": must be one of fast, sl'
    ):
        volumes.retype(volume, VolumeChange("gold"))


def test_a_volume_to_be_shared_needs_a_type_that_allows_it(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """A volume that can't be shared is never left behind."""
    cinder.specs["slow"] = {"multiattach": "<is> True"}
    for chosen in ({"type": "fast"}, {"type": "id-of-fast"}, {}):
        desired = spec(volumes, is_shared=True, parameters=chosen)
        with pytest.raises(
            errors.InvalidRequest, match='value "fast": must be a type that'
        ):
            volumes.create(desired)
    assert "POST volumes" not in calls(stand_in, 0)
    volume = volumes.create(spec(volumes, is_shared=True, parameters={"type": "slow"}))
    assert volume.is_shareable


@pytest.mark.parametrize(
    ("quota", "type_name", "available", "largest"),
    [
        ({}, "", UNLIMITED_BYTES, None),
        ({"gigabytes": (100, 30, 10)}, "", 60 * GIB, None),
        (
            {"gigabytes": (100, 0, 0), "gigabytes_fast": (9, 2, 0)},
            "fast",
            7 * GIB,
            None,
        ),
        ({"gigabytes": (10, 20, 0), "gigabytes_fast": (-1, 0, 0)}, "fast", 0, None),
        ({"volumes": (3, 3, 0)}, "", 0, None),
        ({"per_volume_gigabytes": (5, 0, 0)}, "", UNLIMITED_BYTES, 5 * GIB),
    ],
)
def test_capacity_is_what_the_quotas_leave(  # - a table's columns
    cinder: Cinder,
    volumes: cloud.OpenStackVolumes,
    quota: dict[str, tuple[int, int, int]],
    type_name: str,
    available: int,
    largest: int | None,
) -> None:
    for name, (limit, in_use, reserved) in quota.items():
        cinder.quota[name] = {"limit": limit, "in_use": in_use, "reserved": reserved}
    capacity = volumes.capacity(type_name, ())
    assert (capacity.available_bytes, capacity.largest_bytes) == (available, largest)


def test_capacity_of_an_unknown_type_is_refused(
    volumes: cloud.OpenStackVolumes,
) -> None:
    with pytest.raises(
        errors.InvalidRequest, match='value "gold": must be one of fast'
    ):
        volumes.capacity("gold", ())


EARLY = "2026-01-01T11:00:30.000000"
LATE = "2026-01-01T11:30:00.000000"
FAILURES = [
    # Status, last change, event that Cinder told of, is anything attached, was ready?
    ("error", EARLY, "", False, False),
    ("error", LATE, "", False, True),
    ("error", LATE, "VOLUME_VOLUME_001_002", False, False),
    ("error", LATE, "VOLUME_VOLUME_008_022", False, False),
    ("error", LATE, "VOLUME_VOLUME_007_002", False, True),
    ("error", EARLY, "VOLUME_VOLUME_001_002", True, True),
    ("error_extending", EARLY, "", False, True),
    ("error_deleting", EARLY, "", False, True),
]


@pytest.mark.parametrize(("status", "changed", "event", "held", "ready"), FAILURES)
def test_only_what_never_was_fit_for_use_is_said_to_be_so(  # - a table's columns
    cinder: Cinder,
    volumes: cloud.OpenStackVolumes,
    status: str,
    changed: str,
    event: str,
    held: bool,
    ready: bool,
) -> None:
    """It may be deleted and made again: a doubt counts for the data."""
    own = cinder.put(
        1,
        status=status,
        updated_at=changed,
        attachments=attached(SERVER) if held else [],
    )
    if event:
        cinder.messages = [{"of": own, "event_id": event, "user_message": "no host"}]
    volume = look(volumes, own)
    assert (volume.phase, volume.was_ready) == (VolumePhase.FAILED, ready)
    assert volume.message == ("no host" if event else "")


def test_a_cinder_whose_messages_fail_hides_no_volume(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = cinder.put(1, status="error")
    stand_in.fail("messages", 500)
    assert look(volumes, own).phase is VolumePhase.FAILED


def test_every_operation_of_the_client_is_one_of_a_closed_set(
    cinder: Cinder, volumes: cloud.OpenStackVolumes, observed: list[tuple[str, str]]
) -> None:
    """Metrics are labelled by it: no id may get in."""
    volume = look(volumes, cinder.put(1))
    volumes.create(spec(volumes))
    volumes.attach(volume, SERVER)
    volumes.resize(volume, 2 * GIB)
    volumes.retype(volume, VolumeChange("slow"))
    volumes.delete(NOBODY)
    volumes.capacity("", ())
    volumes.detach(volume, OTHER)
    names = {name for name, _ in itertools.chain(observed)}
    assert names == {
        "list volumes",
        "get volume",
        "create volume",
        "attach volume",
        "extend volume",
        "retype volume",
        "delete volume",
        "get quotas",
        "detach volume",
        "list attachments",
    }


@pytest.fixture()
def moved(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> tuple[cloud.OpenStackVolumes, Volume]:
    """Return volumes whose credentials have become those of another project."""
    volume = look(volumes, cinder.put(1))
    cinder.volumes.clear()
    stand_in.project = "project-2"
    volumes._guard.memory.home = absence_scope.Scope(
        "project-1", ""
    )  # as observed before
    volumes._api._session.auth.invalidate()  # type: ignore[union-attr]  # a new token
    return volumes, volume


def test_absence_in_another_project_is_unknown(
    moved: tuple[cloud.OpenStackVolumes, Volume],
) -> None:
    """Otherwise the volumes of a whole cluster would count as deleted."""
    volumes, volume = moved
    refs: list[ById | ByName] = [ById(volume.id), ByName("pvc-1")]
    refs.append(ById(VolumeId("no-id")))
    observations = volumes.observe(refs).by_ref
    for ref in refs[:2]:
        unknown = observations[ref]
        assert isinstance(unknown, Unknown)
        assert "observed in project 'project-1'" in str(unknown.error)
    assert observations[refs[2]] == ()


def test_a_deletion_and_an_attach_in_another_project_fail(
    moved: tuple[cloud.OpenStackVolumes, Volume],
) -> None:
    volumes, volume = moved
    with pytest.raises(errors.Unavailable, match="project-1"):
        volumes.delete(volume.id)
    with pytest.raises(errors.Unavailable, match="project-1"):
        volumes.attach(volume, SERVER)


OWN: Json = {"cinder.csi.openstack.org/cluster": "blue"}
THEIRS: Json = {"cinder.csi.openstack.org/cluster": "green"}


@dataclasses.dataclass(frozen=True)
class Start:
    """What a process that has just started finds where its credentials lead.

    metadata: of the one volume there. has_server: the Node's server is there.
    counts: whether the absence of another volume counts, at an unpublish and a delete.
    """

    metadata: Json | None = None
    has_server: bool = False
    counts: tuple[bool, bool] = (False, False)


STARTS = {
    "nothing is there": Start(),
    "a volume of another cluster": Start(THEIRS),
    "a volume without ownership metadata": Start({}),
    "a volume with the ownership metadata": Start(OWN, counts=(True, True)),
    "the server of the Node": Start(has_server=True, counts=(True, False)),
}


def absence(
    volumes: cloud.OpenStackVolumes, witness: InstanceId | None = None
) -> Found:
    ref = ById(NOBODY, witness=witness)
    return volumes.observe([ref]).by_ref[ref]


@pytest.mark.parametrize("name", STARTS)
def test_an_absence_counts_once_an_object_of_the_cluster_was_observed(
    name: str, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """In another project each ID is absent: a start there must lose no volume."""
    start = STARTS[name]
    if start.metadata is not None:
        cinder.put(1, metadata=start.metadata)
    cinder.servers = {SERVER} if start.has_server else set()
    for witness, counts in zip((SERVER, None), start.counts, strict=True):
        volumes = make_volumes("blue")
        answer = absence(volumes, witness)
        assert (answer == ()) == counts
        if not counts:
            assert isinstance(answer, Unknown)
            assert isinstance(answer.error, errors.Unavailable)
            assert "nothing of this cluster was observed in" in str(answer.error)
            with pytest.raises(errors.Unavailable):
                volumes.delete(NOBODY)


NODES = tuple(f"{number:08d}-aaaa-4bbb-8ccc-dddddddddddd" for number in range(7))
NODE_STARTS: dict[str, tuple[Json | None, int | None, tuple[bool, ...]]] = {
    # Metadata of the one volume, which Node's server is there, what the searches find.
    "the server of a Node": (None, 0, (True,)),
    "the server of a later Node": (None, 6, (False, False, True)),
    "no server of a Node, but a volume of a cluster with the same ID": (
        OWN,
        None,
        (False, False, False, False),
    ),
}


@pytest.mark.parametrize("name", NODE_STARTS)
def test_nodes_of_the_cluster_are_better_witnesses_than_its_volumes(
    name: str, cinder: Cinder, make_volumes: MakeVolumes, clock: Clock
) -> None:
    """Also when the last volume was deleted by hand; three reads a minute at most."""
    metadata, present, results = NODE_STARTS[name]
    if metadata is not None:
        cinder.put(1, metadata=metadata)
    cinder.servers = set() if present is None else {InstanceId(NODES[present])}
    volumes = make_volumes("blue", lambda: NODES)
    for counts in results:
        assert (absence(volumes) == ()) == counts
        clock.sleep(61)


@pytest.mark.parametrize("node_ids", [None, (), ("node-1",)])
def test_a_cluster_whose_nodes_are_not_known_is_found_by_its_volumes(
    node_ids: tuple[str, ...] | None, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    cinder.put(1, metadata=OWN)
    assert absence(make_volumes("blue", lambda: node_ids)) == ()


def test_nodes_that_cannot_be_read_are_not_absent(
    cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    def away() -> None:
        raise errors.Unavailable("away", operation="list csinodes")

    cinder.put(1, metadata=OWN)
    answer = absence(make_volumes("blue", away))
    assert isinstance(answer, Unknown)
    assert "away" in str(answer.error)


def test_what_was_created_here_is_no_object_of_the_cluster(
    cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """It is wherever the credentials lead; a server that takes it is one."""
    volumes = make_volumes("blue")
    created = volumes.create(spec(volumes, cluster="blue"))
    assert look(volumes, created.id).id == created.id
    assert isinstance(absence(volumes), Unknown)
    cinder.servers = {SERVER}
    volumes.attach(created, SERVER)
    assert absence(volumes) == ()


def test_the_first_volume_of_a_cluster_can_be_deleted(
    stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """It was never attached: what was created here and is absent here is deleted."""
    volumes = make_volumes("blue")
    created = volumes.create(spec(volumes, cluster="blue"))
    cinder.volumes.clear()
    ref = ById(created.id)
    assert volumes.observe([ref]).by_ref[ref] == ()
    volumes.delete(created.id)
    stand_in.project = "project-2"
    volumes._api._session.auth.invalidate()  # type: ignore[union-attr]  # a new token
    assert isinstance(volumes.observe([ref]).by_ref[ref], Unknown)
    with pytest.raises(errors.Unavailable):
        volumes.delete(created.id)


def test_an_observed_volume_is_an_object_of_the_cluster(
    cinder: Cinder, make_volumes: MakeVolumes
) -> None:
    """By its ID: the cluster itself names it. It costs no further call."""
    volumes = make_volumes("blue")
    look(volumes, cinder.put(1))
    assert absence(volumes) == ()


def test_volumes_are_searched_for_once_a_minute(
    stand_in: StandIn, cinder: Cinder, make_volumes: MakeVolumes, clock: Clock
) -> None:
    volumes = make_volumes("blue")
    lists = []
    for seconds in (0, 30, 31):
        clock.sleep(seconds)
        before = len(stand_in.calls)
        assert isinstance(absence(volumes), Unknown)
        lists.append(any("detail" in call for call in calls(stand_in, before)))
    assert lists == [True, False, True]


def test_a_name_needs_no_witness(make_volumes: MakeVolumes) -> None:
    """The first volume of a cluster can be created."""
    volumes = make_volumes("blue")
    ref = ByName("pvc-1")
    assert volumes.observe([ref]).by_ref[ref] == ()


def test_what_is_no_id_of_the_cloud_needs_no_witness(make_volumes: MakeVolumes) -> None:
    volumes = make_volumes("blue")
    ref = ById(VolumeId("no-id"))
    assert volumes.observe([ref]).by_ref[ref] == ()
    volumes.delete(ref.id)


HOSTED = [{"server_id": None, "attachment_id": "at-9", "host_name": "metal-1"}]


def test_a_volume_attached_to_a_host_breaks_no_list(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Cinder shows server_id null for it (os-attach with host_name)."""
    hosted = cinder.put(1, status="in-use", attachments=HOSTED, multiattach=None)
    refs = [ById(VolumeId(cinder.put(number))) for number in range(2, 10)]
    assert all(len(known(volumes.observe(refs).by_ref[ref])) == 1 for ref in refs)
    assert len(volumes.listing()) == 9
    (attachment,) = look(volumes, hosted).attachments
    assert (attachment.instance_id, attachment.holder) == ("", "host metal-1")


def test_what_cannot_be_decoded_affects_no_other_volume(
    stand_in: StandIn,
    cinder: Cinder,
    make_volumes: MakeVolumes,
    observed: list[tuple[str, str]],
) -> None:
    """It is skipped, counted, and logged once, with its ID."""
    volumes = make_volumes()
    bad = VolumeId(cinder.put(1, size="huge"))
    refs = [ById(VolumeId(cinder.put(number))) for number in range(2, 10)]
    with structlog.testing.capture_logs() as logs:
        observations = volumes.observe([*refs, ById(bad), ByName("pvc-1")]).by_ref
        assert len(volumes.listing()) == 8
    assert all(len(known(observations[ref])) == 1 for ref in refs)
    assert isinstance(observations[ById(bad)], Unknown)
    # The name's absence would lead to a second volume of that name.
    assert isinstance(observations[ByName("pvc-1")], Unknown)
    assert observed.count(("decode volume", "skipped")) == 3
    assert [log["volume_id"] for log in logs] == [bad]


def test_a_volume_with_snapshots_is_refused_at_once(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = VolumeId(cinder.put(1))
    cinder.has_snapshots.add(own)
    before = len(stand_in.calls)
    with pytest.raises(errors.InUse, match="it has snapshots"):
        volumes.delete(own)
    assert len(stand_in.calls) == before + 3


def test_types_are_read_to_the_last_page(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    cinder.types_per_page = 1
    cinder.specs["slow"] = {"multiattach": "<is> True"}
    desired = spec(volumes, is_shared=True, parameters={"type": "slow"})
    assert volumes.create(desired).is_shareable


@pytest.mark.parametrize(("age_s", "is_stuck"), [(60, False), (200, True)])
def test_the_age_of_a_detach_is_by_cinders_clock(
    cinder: Cinder, make_client: Callable[[], client.Client], age_s: int, is_stuck: bool
) -> None:
    """The clock of this process shows 1970 here; Cinder's answers carry the date."""
    volumes = cloud.OpenStackVolumes(make_client(), settings.BlockStorage())
    since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age_s)
    own = cinder.put(
        1,
        status="detaching",
        attachments=attached(SERVER),
        updated_at=since.replace(tzinfo=None).isoformat(),
    )
    volume = look(volumes, own)
    if is_stuck:
        volumes.detach(volume, SERVER)
        assert "os-roll_detaching" in cinder.actions
    else:
        with pytest.raises(errors.Busy):
            volumes.detach(volume, SERVER)


@pytest.mark.parametrize(
    ("status", "was_rejected"), [(429, True), (409, True), (500, False), (503, False)]
)
def test_only_an_outcome_that_is_unknown_counts_as_such(
    stand_in: StandIn, volumes: cloud.OpenStackVolumes, status: int, was_rejected: bool
) -> None:
    stand_in.fail("volumes", status)
    with pytest.raises(errors.CloudError) as raised:
        volumes.create(spec(volumes))
    assert raised.value.was_rejected is was_rejected


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"preferred": ("moon",)}, errors.Unplaceable),
        ({"requisite": ("moon",)}, errors.Unplaceable),
        ({"parameters": {"availability": "moon"}}, errors.InvalidRequest),
    ],
)
def test_a_zone_of_the_topology_is_never_an_invalid_argument(
    volumes: cloud.OpenStackVolumes, parts: Json, kind: type[errors.CloudError]
) -> None:
    """The scheduler can choose another; the author of a StorageClass can't wait."""
    with pytest.raises(
        kind, match='zone: unsupported value "moon": must be one of nova'
    ):
        volumes.create(spec(volumes, **parts))


def test_a_type_without_the_zone_is_a_matter_of_the_zone(
    stand_in: StandIn, volumes: cloud.OpenStackVolumes
) -> None:
    content = (
        b'{"badRequest": {"code": 400, "message": "Volume type is only supported in'
    )
    content += b' these availability zones: z9"}}'
    for parts, kind in (
        ({"preferred": ("nova",)}, errors.Unplaceable),
        ({"parameters": {"availability": "nova"}}, errors.InvalidRequest),
    ):
        stand_in.fail("volumes", 400, content)
        with pytest.raises(kind):
            volumes.create(spec(volumes, **parts))


def test_zones_follow_in_the_order_of_the_topology(
    volumes: cloud.OpenStackVolumes,
) -> None:
    parsed = spec(volumes, preferred=("b", "a"), requisite=("a", "b", "c"))
    assert [volume_spec.zones for volume_spec in parsed.candidates()] == [
        ("b",),
        ("a",),
        ("c",),
    ]


def test_unfinished_attachments_of_a_shared_volume_cost_one_more_call(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = VolumeId(
        cinder.put(1, status="in-use", attachments=attached(OTHER), multiattach=True)
    )
    for number, (server, status) in enumerate(
        [(OTHER, "attached"), (SERVER, "reserved")]
    ):
        reservation: Json = {"id": f"at-{number}", "volume_id": own, "instance": server}
        cinder.reservations.append(reservation | {"status": status})
    before = len(stand_in.calls)
    ref = ById(own, in_full=True)
    volume = only(volumes.observe([ref]), ref)
    assert calls(stand_in, before) == [f"GET volumes/{own}", "GET attachments"]
    assert [(a.instance_id, a.phase) for a in volume.attachments] == [
        (OTHER, AttachmentPhase.ATTACHED),
        (SERVER, AttachmentPhase.ATTACHING),
    ]
    alone = ById(VolumeId(cinder.put(2)), in_full=True)
    before = len(stand_in.calls)
    only(volumes.observe([alone]), alone)
    assert len(stand_in.calls) == before + 1


def test_a_type_is_resolved_by_its_id(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = "70000000-0000-0000-0000-000000000001"
    cinder.type_ids["slow"] = own
    assert volumes.type_name(own) == "slow"
    before = len(stand_in.calls)
    assert volumes.type_name("fast") == "fast"
    assert len(stand_in.calls) == before
    assert volumes.type_name(NOBODY) == NOBODY


def test_a_volume_that_no_back_end_took_says_so(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Source: cinder/message/message_field.py: action 001, detail 003."""
    own = cinder.put(1, status="error")
    body: Json = {"of": own, "event_id": "VOLUME_VOLUME_001_003"}
    cinder.messages.append(body | {"user_message": "full"})
    volume = look(volumes, own)
    assert (volume.is_unplaceable, volume.was_ready) == (True, False)


def test_a_read_ends_when_its_callers_time_does(
    stand_in: StandIn, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    own = cinder.put(1)
    stand_in.silent.add(f"volumes/{own}")
    ref = ById(VolumeId(own))
    began = time.monotonic()
    observation = volumes.observe([ref], 0.5).by_ref[ref]
    assert isinstance(observation, Unknown)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "status", ["error_deleting", "error_backing-up", "error_managing_deleting"]
)
def test_a_failed_volume_that_cinder_does_not_delete_ends_the_call(
    status: str, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Neither the deadline of the caller nor a retry changes its status."""
    own = VolumeId(cinder.put(1, status=status))
    with pytest.raises(errors.CloudError, match="administrator must repair") as caught:
        volumes.delete(own)
    assert csi_codes.from_cloud(caught.value).code is csi_codes.Code.INTERNAL
    assert status in str(caught.value)


@pytest.mark.parametrize("name", ["fast", "id-of-fast", "FAST", "Fast "])
def test_capacity_is_that_of_a_type_by_any_of_its_names(
    name: str, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    cinder.quota |= {
        "gigabytes": {"limit": 1000, "in_use": 0, "reserved": 0},
        "gigabytes_fast": {"limit": 10, "in_use": 10, "reserved": 0},
    }
    assert volumes.capacity(name, ()).available_bytes == 0


ZONES = {
    "the zone itself": (["Default-Group"], "Default-Group"),
    "a zone whose label is that": (["nova", "Default Group"], "Default Group"),
    "two zones whose label is that": (["Default Group", "Default(Group"], None),
    "no such zone": (["nova"], None),
}


@pytest.mark.parametrize("name", ZONES)
def test_a_zone_of_the_topology_is_that_of_its_label(
    name: str, cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    """Labels of Nodes have no blanks: the label is looked for among Cinder's zones."""
    cinder.zones, expected = ZONES[name]
    desired = spec(volumes, preferred=("Default-Group",))
    if expected is None:
        with pytest.raises(errors.Unplaceable):
            volumes.create(desired)
        return
    created = volumes.create(desired)
    assert created.name == desired.name


def test_a_zone_of_a_storage_class_is_not_looked_for_by_its_label(
    cinder: Cinder, volumes: cloud.OpenStackVolumes
) -> None:
    cinder.zones = ["Default Group"]
    desired = spec(volumes, parameters={"availability": "Default-Group"})
    with pytest.raises(errors.InvalidRequest, match="Default Group"):
        volumes.create(desired)

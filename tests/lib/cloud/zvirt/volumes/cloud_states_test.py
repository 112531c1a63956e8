"""Bad input, disks of the reference, and each state of VM, disk and attachment."""

import contextlib
import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.cloud.model import InstanceId, Unknown
from lib.cloud.volumes import ById, ByName, VolumeId, VolumeRequest
from lib.cloud.zvirt import disk_tags
from lib.cloud.zvirt.volumes import class_parameters
from lib.lab.zvirt import control, seed
from lib.volumes import model
from lib.volumes.csi_codes import Code, RefusedCall
from tests.lib.cloud.zvirt.volumes.engine_disks import (
    CLUSTER,
    GIB,
    NAME,
    PARAMETERS,
    World,
    made,
    spec,
)

DOMAIN, THIN = class_parameters.DOMAIN, class_parameters.THIN
ABSENT = VolumeId("00000000-0000-4000-9000-000000000000")

PROBLEMS = {
    "no domain": ({}, "parameter storageDomainName: not set", DOMAIN),
    "an empty domain": ({DOMAIN: ""}, "", DOMAIN),
    "thin as yes": ({**PARAMETERS, THIN: "yes"}, '"true" or "false"', THIN),
    "thin empty": ({**PARAMETERS, THIN: ""}, '"true" or "false"', THIN),
    "an unknown parameter": ({**PARAMETERS, "type": "x"}, "one of", "type"),
}


@pytest.mark.parametrize("title", PROBLEMS)
def test_a_wrong_parameter_is_named_with_what_is_valid(title: str) -> None:
    parameters, allowed, key = PROBLEMS[title]
    problems = World().open().parse(VolumeRequest("pvc-1", GIB, CLUSTER, parameters))
    assert isinstance(problems, tuple)
    (problem,) = problems
    assert problem.field == f"parameter {key}"
    assert title == "no domain" or allowed in problem.allowed


@pytest.mark.parametrize(
    ("text", "is_thin"), [("true", True), ("false", False), (None, True)]
)
@pytest.mark.parametrize(
    ("domain", "thin"), [(seed.NFS, "raw"), (seed.ISCSI, "cow")], ids=["file", "block"]
)
def test_the_format_of_a_disk_follows_from_its_domain(
    text: str | None, is_thin: bool, domain: str, thin: str
) -> None:
    world = World()
    more = {} if text is None else {THIN: text}
    name = world.open().type_name(seed.identifier(domain))
    made(world, parameters={DOMAIN: name, **more})
    (disk,) = world.disks()
    assert disk.sparse is is_thin
    assert disk.format.value == (thin if is_thin else "raw")


def _domain(
    world: World, name: str, kind: str = "data", center: str = "Second"
) -> None:
    engine = world.stage.engine
    with engine.lock:
        seed.add_domain(engine, name, kind, center)
        engine.records.commit()


def _maintenance(world: World) -> None:
    request = {"do": "set", "kind": "storage_domain", "name": seed.NFS}
    control.carry_out(world.stage.service, {**request, "status": "maintenance"})


@dataclasses.dataclass(frozen=True)
class Misfit:
    """A request that a domain is not fit for, and its refusal."""

    code: Code
    texts: tuple[str, ...]
    domain: str = seed.NFS
    size: int = GIB
    center: str = ""
    before: Callable[[World], None] = lambda world: None


def _ambiguous(world: World) -> None:
    _domain(world, "twice")
    _domain(world, "twice-2", "data", seed.DATA_CENTER)
    for row in world.stage.engine.records.all("storage_domain"):
        if row.entity.name == "twice-2":
            row.entity.name = "twice"


INVALID, FULL = Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED
MISFITS = {
    "unknown": Misfit(INVALID, ('value "gold"', "iscsi-1, nfs-1"), "gold"),
    "not for data": Misfit(
        INVALID,
        ('"iso-1" is of kind iso', "nfs-1"),
        "iso-1",
        before=lambda world: _domain(world, "iso-1", "iso", seed.DATA_CENTER),
    ),
    "of another data center": Misfit(
        INVALID,
        ("in data center Second, not in Default",),
        "far-1",
        center=seed.DATA_CENTER,
        before=lambda world: _domain(world, "far-1"),
    ),
    "ambiguous": Misfit(
        INVALID, ("several storage domains", "the ID"), "twice", before=_ambiguous
    ),
    "in maintenance": Misfit(
        Code.FAILED_PRECONDITION,
        ("in status maintenance", "active"),
        before=_maintenance,
    ),
    "too large": Misfit(
        Code.OUT_OF_RANGE, ("at most", 'storage domain "nfs-1"'), size=20_000 * GIB
    ),
    "without space": Misfit(FULL, ("Low disk space",), size=9_999 * GIB),
    "without quota": Misfit(
        FULL, ("Quota",), before=lambda world: world.vms.rules(f"quota {seed.NFS} 0")
    ),
    "without permit": Misfit(
        Code.PERMISSION_DENIED,
        ("not authorized",),
        before=lambda world: world.vms.rules("forbid POST api/disks"),
    ),
}


@pytest.mark.parametrize("title", MISFITS)
def test_a_domain_that_does_not_fit_is_refused(title: str) -> None:
    world, misfit = World(), MISFITS[title]
    misfit.before(world)
    volumes = world.open(data_center=misfit.center)
    parameters = {DOMAIN: misfit.domain, THIN: "false"}
    desired = spec(volumes, parameters=parameters, size_bytes=misfit.size)
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.Make(desired), volumes, patience_s=20)
    print(f"{title:24} {raised.value}")
    assert raised.value.code is misfit.code
    assert all(text in raised.value.message for text in misfit.texts)
    assert world.disks() == []


def test_another_size_under_the_name_is_refused() -> None:
    world = World()
    made(world)
    volumes = world.open()
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.Make(spec(volumes, size_bytes=2 * GIB)), volumes)
    assert raised.value.code is Code.ALREADY_EXISTS


def test_an_unknown_vm_or_disk_is_named() -> None:
    world = World()
    disk = made(world)
    for request, name in (
        (model.PublishVolume(disk, InstanceId(ABSENT)), ABSENT),
        (model.PublishVolume(disk, InstanceId("worker-1")), "worker-1"),
        (model.PublishVolume(ABSENT, world.node), ABSENT),
        (model.Expand(ABSENT, GIB), ABSENT),
    ):
        with pytest.raises(RefusedCall) as raised:
            world.settle(request)
        assert raised.value.code is Code.NOT_FOUND
        assert name in raised.value.message


def test_a_disk_of_another_cluster_is_neither_used_nor_deleted() -> None:
    world = World()
    disk = made(world)
    volumes = world.open(cluster="cluster-b")
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.Make(spec(volumes, cluster="cluster-b")), volumes)
    assert raised.value.code is Code.ALREADY_EXISTS
    assert CLUSTER in raised.value.message
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.RemoveVolume(disk, "cluster-b"), volumes)
    assert raised.value.code is Code.FAILED_PRECONDITION
    assert [d.id for d in world.disks()] == [disk]
    assert volumes.listing() == ()


def test_a_disk_of_a_stopped_vm_or_an_unplugged_one_is_not_deleted() -> None:
    """The engine itself would delete both."""
    for is_active in (True, False):
        world = World()
        disk = made(world)
        world.add_attachment(disk, world.node, is_active)
        world.vms.stop(world.node)
        with pytest.raises(RefusedCall) as raised:
            world.settle(model.RemoveVolume(disk, CLUSTER))
        assert raised.value.code is Code.FAILED_PRECONDITION
        assert world.node in raised.value.message
        assert len(world.disks()) == 1


def test_a_disk_of_another_vm_is_refused_with_its_id() -> None:
    world = World()
    disk = made(world)
    world.add_attachment(disk, world.other)
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.PublishVolume(disk, world.node))
    assert raised.value.code is Code.FAILED_PRECONDITION
    assert world.other in raised.value.message


def test_a_volume_of_a_deleted_vm_is_unpublished() -> None:
    world = World()
    disk = made(world)
    world.add_attachment(disk, world.other)
    world.vms.stop(world.other)
    world.vms.request("DELETE", f"vms/{world.other}/diskattachments/{disk}")
    world.vms.delete(world.other)
    world.settle(model.UnpublishVolume(disk, world.other))


def test_a_detach_waits_while_the_vm_powers_down() -> None:
    world = World("delay vm-stopped 20")
    disk = made(world)
    world.add_attachment(disk, world.node)
    world.vms.request("POST", f"vms/{world.node}/shutdown", "<action/>")
    began = world.now_s
    world.settle(model.UnpublishVolume(disk, world.node))
    assert world.attachments() == []
    assert world.now_s - began >= 15


def test_a_hidden_vm_does_not_make_its_disk_free() -> None:
    world = World()
    disk = made(world)
    world.add_attachment(disk, world.node)
    world.vms.rules("hide node-1")
    with pytest.raises(RefusedCall) as raised:
        world.settle(model.UnpublishVolume(disk, world.node), patience_s=20)
    assert raised.value.code in (Code.PERMISSION_DENIED, Code.UNAVAILABLE)
    world.vms.rules()
    assert len(world.attachments()) == 1


def test_thirty_disks_of_the_reference_are_adopted() -> None:
    """In each phase; nothing changes but the tag, with a write of the disk."""
    world = World()
    names = [f"pvc-{number:08}-0000-4000-8000-000000000000" for number in range(30)]
    disks = {name: world.add_disk(name) for name in names}
    for number, disk in enumerate(disks.values()):
        if number % 3 == 1:
            world.add_attachment(disk, world.node)
        if number % 3 == 2:
            world.add_attachment(disk, world.node, is_active=False)
    volumes = world.open()
    before = world.attachments()
    listed = {volume.id: volume for volume in volumes.listing()}
    assert set(listed) == set(disks.values())
    for number, (name, disk) in enumerate(disks.items()):
        again = world.settle(model.Make(spec(volumes, name)), volumes)
        assert (again.id, again.cluster) == (disk, CLUSTER)
        published = [a for a in listed[disk].attachments if a.is_published]
        assert bool(published) == (number % 3 == 1)
    assert world.attachments() == before
    assert all(not d.description for d in world.disks())
    for disk in disks.values():
        world.settle(model.PublishVolume(disk, world.node), volumes)
    assert sorted(world.attachments()) == sorted(
        (disk, world.node, True) for disk in disks.values()
    )
    first, second = list(disks.values())[:2]
    world.settle(model.Expand(first, 2 * GIB), volumes)
    tagged = [d for d in world.disks() if d.description]
    assert [d.id for d in tagged] == [first]
    assert disk_tags.cluster_of(tagged[0].description) == CLUSTER
    # The reference's own requests still succeed: it detaches and deletes.
    for disk in (first, second):
        path = f"vms/{world.node}/diskattachments/{disk}"
        world.vms.request("DELETE", path)
        world.vms.request("DELETE", f"disks/{disk}")
    assert len(world.disks()) == 28
    world.settle(model.RemoveVolume(first, CLUSTER), volumes)


def test_an_alias_that_only_resembles_the_name_is_none() -> None:
    world = World()
    world.add_disk(NAME.upper())
    world.add_disk(f"{NAME}-old")
    assert world.open().observe([ByName(NAME)]).by_ref == {ByName(NAME): ()}


def test_an_answer_of_a_gateway_is_no_absence() -> None:
    world = World()
    disk = made(world)
    volumes = world.open()
    world.vms.rules("html GET api/* 404 -")
    reading = volumes.observe([ById(disk), ByName(NAME)])
    assert all(isinstance(answer, Unknown) for answer in reading.by_ref.values())


VM_RULES = ("up", "down", "powering_down")
DISK_STATES = ("ok", "locked", "illegal")
ATTACHED = ("nowhere", "here", "here inactive", "elsewhere")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    vm=st.sampled_from(VM_RULES),
    disk_state=st.sampled_from(DISK_STATES),
    attached=st.sampled_from(ATTACHED),
    calls=st.lists(
        st.sampled_from(("create", "publish", "unpublish", "expand", "delete")),
        max_size=4,
    ),
)
def test_no_call_loses_a_disk_or_leaves_two(
    vm: str, disk_state: str, attached: str, calls: list[str]
) -> None:
    """A call ends well, or with a code; an attached disk is never deleted."""
    world = World()
    disk = made(world)
    if attached != "nowhere":
        to = world.other if attached == "elsewhere" else world.node
        world.add_attachment(disk, to, is_active=attached != "here inactive")
    if vm != "up":
        world.vms.request("POST", f"vms/{world.node}/stop", "<action/>")
        world.vms.advance(5 if vm == "down" else 0)
    request = {"do": "set", "kind": "disk", "name": NAME, "status": disk_state}
    control.carry_out(world.stage.service, request)
    volumes = world.open()
    for name in calls:
        held = bool(world.attachments())
        existed = bool(world.disks())
        with contextlib.suppress(RefusedCall):
            world.settle(_request(world, disk, name), volumes, patience_s=30)
        assert len(world.disks()) <= 1
        if held and existed:
            assert world.disks(), (name, "an attached disk was deleted")


def _request(world: World, disk: VolumeId, name: str) -> model.Request:
    requests: dict[str, model.Request] = {
        "create": model.Make(spec(world.open())),
        "publish": model.PublishVolume(disk, world.node),
        "unpublish": model.UnpublishVolume(disk, world.node),
        "expand": model.Expand(disk, 2 * GIB),
        "delete": model.RemoveVolume(disk, CLUSTER),
    }
    return requests[name]

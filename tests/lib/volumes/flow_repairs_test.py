"""Failed, lost and shared volumes: nothing is left behind, and nothing is lost."""

import dataclasses
import math

import pytest

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumePlace,
    VolumeSpec,
)
from lib.volumes import callers, csi_codes, flow, model, outcomes
from lib.volumes.csi_codes import Code, RefusedCall

NODE, OTHER = InstanceId("node-1"), InstanceId("node-2")
ID = VolumeId("aaaaaaaa-0000-4000-8000-000000000000")
SIZE = 10 * volume_rules.GIB
SPEC = VolumeSpec("pvc-1", SIZE, "blue", type="slow")
VOLUME = Volume(ID, "pvc-1", SIZE, VolumePhase.AVAILABLE, type="slow", cluster="blue")
SHARED = dataclasses.replace(
    VOLUME,
    is_shareable=True,
    phase=VolumePhase.IN_USE,
    attachments=(Attachment(OTHER),),
)


class World:
    """One process that has run for long, in front of one cloud."""

    def __init__(self, *volumes: Volume) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.instances = {NODE, OTHER}
        self.cloud.put(*volumes)
        effects = callers.CallEffects(self.clock, self.clock.wait)
        self.process = flow.VolumesFlow(lambda: self.cloud, effects, -math.inf)

    def ends(self, request: model.Request, patience_s: float = 600.0) -> Code | None:
        """Return the code with which a call ends; None: OK."""
        try:
            self.process.settle(request, callers.Caller(self.clock() + patience_s))
        except RefusedCall as refused:
            return refused.code
        return None

    def held(self) -> list[str]:
        """Return the instances that hold the volume, once all has ended."""
        self.clock.move(1000)
        (volume,) = (volume for volume in self.cloud.volumes() if volume.id == ID)
        return [attachment.instance_id for attachment in volume.attachments]


def test_a_creation_that_fails_leaves_nothing_and_says_why() -> None:
    """Five claims that are deleted after it leave no volume (before: five)."""
    world = World()
    for number in range(5):
        world.cloud.faults.failing.append("create")
        spec = dataclasses.replace(SPEC, name=f"pvc-{number}")
        assert world.ends(model.Make(spec)) is Code.RESOURCE_EXHAUSTED
    assert not world.cloud.volumes()


def test_a_creation_that_fails_without_time_left_is_not_final() -> None:
    """The next call finishes: it finds what failed, deletes it and creates another."""
    world = World()
    world.cloud.faults.failing.append("create")
    world.cloud.faults.stuck.add("delete")
    code = world.ends(model.Make(SPEC), 20)
    assert code in csi_codes.NOT_FINAL


def test_zones_are_tried_in_order() -> None:
    """The preferred zone fails at once, the next one later, the third holds it."""
    world = World()
    world.cloud.rules.zones = ("z1", "z2", "z3")
    world.cloud.rules.full = ("z2",)
    world.cloud.faults.failing.append("create")
    places = (VolumePlace(("z3",)), VolumePlace(("z1",)))
    spec = dataclasses.replace(SPEC, zones=("z2",), places=places)
    assert world.ends(model.Make(spec)) is None
    (volume,) = world.cloud.volumes()
    assert volume.zones == ("z1",)


@pytest.mark.parametrize(
    "error", [errors.Unauthenticated, errors.Forbidden, errors.InvalidRequest]
)
@pytest.mark.parametrize("looks", [0, 2, 3])
def test_no_code_is_final_while_a_volume_may_exist(
    error: type[errors.CloudError], looks: int
) -> None:
    """looks: calls that succeed before; after 0 an earlier call may have created it."""
    world = World()
    refused = error("refused", operation="any")
    world.cloud.faults.refusals[:] = [*[None] * looks, *[refused] * 9]
    assert world.ends(model.Make(SPEC)) in csi_codes.NOT_FINAL


def test_a_creation_that_is_refused_with_nothing_there_is_final() -> None:
    world = World()
    refused = errors.Forbidden("refused", operation="create volume")
    world.cloud.faults.refusals[:] = [None, refused]
    assert world.ends(model.Make(SPEC)) is Code.PERMISSION_DENIED


def test_an_affinity_volume_that_is_gone_does_not_hide_the_volume() -> None:
    world = World(VOLUME)
    spec = dataclasses.replace(SPEC, near=("deleted-meanwhile",))
    call = callers.Caller(world.clock() + 60)
    placed = world.process.place(spec, call)
    assert placed.near == ()
    other = dataclasses.replace(spec, name="pvc-2")
    with pytest.raises(RefusedCall, match="INVALID_ARGUMENT"):
        world.process.place(other, call)


def test_unpublish_of_a_shared_volume_waits_for_an_attach_under_way() -> None:
    """Cinder does not show it in the volume: another node holds it as well."""
    world = World(SHARED)
    publish = model.PublishVolume(ID, NODE, is_shared=True)
    world.cloud.operation_s = 20
    assert world.ends(publish, 5) is Code.DEADLINE_EXCEEDED
    assert world.ends(model.UnpublishVolume(ID, NODE)) is None
    assert world.held() == [OTHER]


def test_one_writer_is_refused_beside_readers_on_other_nodes() -> None:
    """Also on a node that has the volume already: two PersistentVolumes name it."""
    both = (Attachment(NODE), Attachment(OTHER))
    world = World(dataclasses.replace(SHARED, attachments=both))
    assert world.ends(model.PublishVolume(ID, NODE, is_shared=True)) is None
    assert world.ends(model.PublishVolume(ID, NODE)) is Code.FAILED_PRECONDITION
    assert world.ends(model.UnpublishVolume(ID, OTHER)) is None
    assert world.ends(model.PublishVolume(ID, NODE)) is None


def test_publish_of_a_shared_volume_waits_for_a_detach_under_way() -> None:
    both = (Attachment(OTHER), Attachment(NODE))
    world = World(dataclasses.replace(SHARED, attachments=both))
    world.cloud.operation_s = 20
    assert world.ends(model.UnpublishVolume(ID, NODE), 5) is Code.DEADLINE_EXCEEDED
    assert world.ends(model.PublishVolume(ID, NODE, is_shared=True)) is None
    assert sorted(world.held()) == [NODE, OTHER]


def test_the_other_nodes_of_a_shared_volume_are_not_waited_for() -> None:
    """An attach to another node under way does not delay an Unpublish here."""
    world = World(SHARED)
    world.cloud.operation_s = 100
    world.ends(model.PublishVolume(ID, NODE, is_shared=True), 5)
    third = InstanceId("node-3")
    began = world.clock()
    assert world.ends(model.UnpublishVolume(ID, third)) is None
    assert world.clock() - began < 2


def test_a_volume_held_by_a_host_is_attached_to_nothing_else() -> None:
    links = (Attachment(InstanceId(""), host="metal-1"),)
    held = dataclasses.replace(VOLUME, phase=VolumePhase.IN_USE, attachments=links)
    world = World(held)
    assert world.ends(model.PublishVolume(ID, NODE)) is Code.FAILED_PRECONDITION
    assert world.ends(model.UnpublishVolume(ID, None)) is None
    assert world.ends(model.RemoveVolume(ID, "blue")) is Code.FAILED_PRECONDITION
    assert world.held() == [""]


@pytest.mark.parametrize(
    ("cluster", "code"),
    [("blue", None), (None, None), ("red", Code.FAILED_PRECONDITION)],
)
def test_only_volumes_of_another_cluster_are_not_deleted(
    cluster: str | None, code: Code | None
) -> None:
    world = World(dataclasses.replace(VOLUME, cluster=cluster))
    assert world.ends(model.RemoveVolume(ID, "blue")) is code
    assert bool(world.cloud.volumes()) == (code is not None)


@pytest.mark.parametrize(
    "requested", [model.UnpublishVolume(ID, NODE), model.RemoveVolume(ID, "blue")]
)
def test_one_false_absence_is_no_success(requested: model.Request) -> None:
    """A 404 that is not repeated, from a cloud that reloads its routes."""
    held = (Attachment(NODE),) if isinstance(requested, model.UnpublishVolume) else ()
    phase = VolumePhase.IN_USE if held else VolumePhase.AVAILABLE
    world = World(dataclasses.replace(VOLUME, phase=phase, attachments=held))
    (volume,) = world.cloud.volumes()
    world.cloud._records.clear()
    calls_made = 0

    def come_back(operation: str) -> None:
        nonlocal calls_made
        calls_made += 1
        if calls_made == 2:
            world.cloud.put(volume)

    world.cloud.before_call = come_back
    assert world.ends(requested) is None
    observed = world.cloud.volumes()
    assert not observed or not observed[0].attachments
    assert bool(observed) == isinstance(requested, model.UnpublishVolume)


def test_a_throttled_creation_is_tried_again_at_once() -> None:
    """A 429 is certainly not carried out; only an unknown outcome bars the name."""
    world = World()
    for was_rejected, least_s, most_s in ((True, 0, 10), (False, outcomes.LOST_S, 70)):
        error = errors.Unavailable(
            "throttled", operation="create volume", was_rejected=was_rejected
        )
        world.cloud.faults.refusals[:] = [None, error]
        spec = dataclasses.replace(SPEC, name=f"pvc-{was_rejected}")
        assert world.ends(model.Make(spec)) is Code.UNAVAILABLE
        began = world.clock()
        assert world.ends(model.Make(spec)) is None
        assert least_s <= world.clock() - began <= most_s


def test_a_new_process_creates_nothing_for_ten_seconds() -> None:
    """A request of the one before it may still be carried out."""
    world = World()
    effects = callers.CallEffects(world.clock, world.clock.wait)
    began = world.clock()
    fresh = flow.VolumesFlow(lambda: world.cloud, effects)
    fresh.settle(model.Make(SPEC), callers.Caller(world.clock() + 60))
    assert 10 <= world.clock() - began < 15


def test_a_type_can_be_given_by_its_id() -> None:
    world = World(VOLUME)
    assert world.ends(model.Modify(ID, VolumeChange("id-of-fast"))) is None
    assert world.ends(model.Modify(ID, VolumeChange("id-of-fast"))) is None
    assert world.cloud.calls.count("retype volume") == 1


def test_what_never_was_ready_is_replaced_whatever_its_type() -> None:
    """As when the type of a StorageClass was corrected after the first try."""
    failed = dataclasses.replace(
        VOLUME, phase=VolumePhase.FAILED, was_ready=False, type="broken"
    )
    world = World(failed)
    assert world.ends(model.Make(SPEC)) is None
    (volume,) = world.cloud.volumes()
    assert (volume.id != ID, volume.type) == (True, "slow")


def test_a_volume_that_the_cloud_puts_elsewhere_is_deleted_again() -> None:
    """Cinder may ignore a zone (allow_availability_zone_fallback)."""
    world = World()
    world.cloud.rules.fallback = "z1"
    spec = dataclasses.replace(SPEC, zones=("moon",), requisite=("moon",))
    assert world.ends(model.Make(spec)) is Code.RESOURCE_EXHAUSTED
    world.clock.move(10)
    assert not world.cloud.volumes()
    places = (VolumePlace(("z1",)),)
    both = dataclasses.replace(spec, requisite=("moon", "z1"), places=places)
    assert world.ends(model.Make(both)) is None


@pytest.mark.parametrize("name", ["SLOW", "Slow", "slow "])
@pytest.mark.parametrize("requested", ["creation", "change"])
def test_a_type_in_another_letter_case_is_the_same_type(
    name: str, requested: str
) -> None:
    """MySQL finds it; what the cloud made of it is neither deleted nor changed."""
    world = World(VOLUME)
    if requested == "creation":
        assert world.ends(model.Make(dataclasses.replace(SPEC, type=name))) is None
    else:
        assert world.ends(model.Modify(ID, VolumeChange(name))) is None
    assert [volume.id for volume in world.cloud.volumes()] == [ID]
    assert not {"delete volume", "retype volume"} & set(world.cloud.calls)

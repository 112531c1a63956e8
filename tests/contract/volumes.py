"""What every implementation of `Volumes` does, row by row."""

import dataclasses
import time
import uuid
from collections.abc import Mapping
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.volumes import (
    ById,
    ByName,
    Feature,
    Ref,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    Volumes,
    VolumeSpec,
)
from lib.lab.run import waiting

GIB = 2**30
CLUSTER = "contract"
NOBODY = VolumeId("00000000-0000-0000-0000-000000000000")
NOWHERE = InstanceId("00000000-0000-0000-0000-000000000000")
SHARED = "contract-shared"
PATIENCE_S = waiting.LIMIT_S


@dataclasses.dataclass(frozen=True)
class Traits:
    """What differs between clouds on purpose.

    type_key: the parameter with the storage type. parameters: those of every volume.
    has_zones: volumes show them. has_unique_names: a second volume of a name cannot be
    created. is_watched: no read lists all volumes. is_judged_late: a quota shows in the
    volume, after its creation. unknown_type: what the cloud says of "gold".
    has_devices: the publish context names the device. shows_quota: the capacity
    contains the quota.
    """

    features: frozenset[Feature] = frozenset(Feature)
    type_key: str = "type"
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_zones: bool = True
    has_unique_names: bool = False
    is_watched: bool = False
    is_judged_late: bool = False
    unknown_type: tuple[str, ...] = ('type: unsupported value "gold"', "fast")
    is_shareable: bool = True
    has_devices: bool = True
    shows_quota: bool = True


class Ground(Protocol):
    """A cloud, and the means to change it.

    two: instances that stay all the time. device_key: of the publish context, the path
    of the device. The storage type SHARED is one that several instances may share.
    """

    @property
    def volumes(self) -> Volumes: ...

    @property
    def traits(self) -> Traits: ...

    @property
    def two(self) -> tuple[InstanceId, InstanceId]: ...

    @property
    def device_key(self) -> str: ...

    def types(self) -> tuple[str, str]:
        """Name two types of which a volume can change from one to the other."""
        ...

    def boot(self) -> InstanceId:
        """Make one more instance."""
        ...

    def kill(self, instance_id: InstanceId) -> None:
        """Delete an instance; it is gone when this returns."""
        ...

    def break_next(self) -> str:
        """Make the creation of the next volume fail; return the type to request."""
        ...

    def quota(self, size_bytes: int | None) -> None:
        """Leave so much for further volumes; None: no limit."""
        ...

    def let_pass(self) -> None:
        """Advance the time."""
        ...


def spec(ground: Ground, **parts: object) -> VolumeSpec:
    values: dict[str, object] = {"size_bytes": GIB, "cluster": CLUSTER} | parts
    values.setdefault("name", f"pvc-{uuid.uuid4()}")
    values.setdefault("parameters", ground.traits.parameters)
    parsed = ground.volumes.parse(VolumeRequest(**values))  # type: ignore[arg-type]  # any part
    assert isinstance(parsed, VolumeSpec), parsed
    return parsed


def read_volume(ground: Ground, volume_id: VolumeId) -> Volume | None:
    ref = ById(volume_id)
    observation = ground.volumes.observe([ref]).by_ref[ref]
    assert not isinstance(observation, Unknown), observation.error
    return observation[0] if observation else None


def settled(ground: Ground, volume_id: VolumeId, *phases: VolumePhase) -> Volume:
    """Wait until a volume is in one of these phases."""
    end = time.monotonic() + PATIENCE_S
    while True:
        volume = read_volume(ground, volume_id)
        if volume is not None and volume.phase in phases:
            return volume
        assert time.monotonic() < end, volume
        ground.let_pass()


def gone(ground: Ground, volume_id: VolumeId) -> None:
    end = time.monotonic() + PATIENCE_S
    while read_volume(ground, volume_id) is not None:
        assert time.monotonic() < end
        ground.let_pass()


def create_volume(ground: Ground, **parts: object) -> Volume:
    volume = ground.volumes.create(spec(ground, **parts))
    return settled(ground, volume.id, VolumePhase.AVAILABLE)


def attached(ground: Ground, volume: Volume, instance_id: InstanceId) -> Volume:
    ground.volumes.attach(volume, instance_id)
    return settled(ground, volume.id, VolumePhase.IN_USE)


class Contract:
    """The rows. A subclass, or its module, has the fixture `ground`."""

    def test_a_volume_begins_small_and_is_found_by_id_and_by_name(
        self, ground: Ground
    ) -> None:
        desired = spec(ground, size_bytes=2 * GIB)
        answer = ground.volumes.create(desired)
        assert answer.phase in (VolumePhase.CREATING, VolumePhase.AVAILABLE)
        volume = settled(ground, answer.id, VolumePhase.AVAILABLE)
        assert (volume.name, volume.size_bytes) == (desired.name, 2 * GIB)
        assert (volume.cluster, volume.attachments) == (CLUSTER, ())
        assert volume.type
        assert bool(volume.zones) == ground.traits.has_zones
        assert volume.was_ready or volume.native_phase == "WaitForFirstConsumer"
        reading = ground.volumes.observe([ById(volume.id), ByName(desired.name)])
        assert reading.by_ref == {
            ById(volume.id): (volume,),
            ByName(desired.name): (volume,),
        }

    def test_of_those_with_one_name_the_older_comes_first(self, ground: Ground) -> None:
        """Cinder counts whole seconds; of the same second the lesser id comes first."""
        name = create_volume(ground).name
        if ground.traits.has_unique_names:
            before = ground.volumes.observe([ByName(name)]).by_ref[ByName(name)]
            # Never returned as created: what a call creates, it may delete again.
            with pytest.raises(errors.Busy, match="another call"):
                ground.volumes.create(spec(ground, name=name))
            after = ground.volumes.observe([ByName(name)]).by_ref[ByName(name)]
            assert ids(after) == ids(before)
            return
        rest = [create_volume(ground, name=name) for _ in range(2)]
        observation = ground.volumes.observe([ByName(name)]).by_ref[ByName(name)]
        assert not isinstance(observation, Unknown)
        assert {volume.id for volume in observation} > {volume.id for volume in rest}
        ages = [
            (volume.created_at.isoformat(), volume.id)
            for volume in observation
            if volume.created_at
        ]
        assert len(ages) == len(observation)
        assert ages == sorted(ages)

    def test_what_never_was_is_absent(self, ground: Ground) -> None:
        """Also what could not be an id, and a name in another case."""
        volume = create_volume(ground)
        refs: list[Ref] = [
            ById(NOBODY),
            ById(VolumeId("fake-vol-id-1234567890")),
            ByName("nobody"),
            ByName(volume.name.upper()),
        ]
        assert ground.volumes.observe(refs).by_ref == dict.fromkeys(refs, ())

    def test_many_are_answered_for_each_and_the_list_is_handed_on(
        self, ground: Ground
    ) -> None:
        volume = create_volume(ground)
        absent = [ById(VolumeId(str(uuid.UUID(int=n)))) for n in range(1, 8)]
        reading = ground.volumes.observe([ById(volume.id), *absent])
        assert reading.by_ref[ById(volume.id)] == (volume,)
        assert all(reading.by_ref[ref] == () for ref in absent)
        if not ground.traits.is_watched:
            assert reading.listing is not None
            assert volume in reading.listing
        assert volume in ground.volumes.listing()

    def test_an_attachment_is_begun_once_and_held_against_others(
        self, ground: Ground
    ) -> None:
        here, instance_id = ground.two
        volume = create_volume(ground)
        ground.volumes.attach(volume, here)
        ground.volumes.attach(volume, here)
        volume = settled(ground, volume.id, VolumePhase.IN_USE)
        (attachment,) = volume.attachments
        assert attachment.instance_id == here
        if ground.traits.has_devices:
            device = dict(attachment.publish_context)[ground.device_key]
            assert device.startswith("/dev/") or ground.traits.is_watched
            assert device
        ground.volumes.attach(volume, here)
        with pytest.raises(errors.AttachedElsewhere):
            ground.volumes.attach(volume, instance_id)
        assert read_volume(ground, volume.id) == volume

    def test_a_detachment_may_be_repeated(self, ground: Ground) -> None:
        """Nothing is attached, or to somebody else: nothing happens."""
        here, instance_id = ground.two
        volume = attached(ground, create_volume(ground), here)
        ground.volumes.detach(volume, instance_id)
        assert read_volume(ground, volume.id) == volume
        ground.volumes.detach(volume, here)
        volume = settled(ground, volume.id, VolumePhase.AVAILABLE)
        assert volume.attachments == ()
        ground.volumes.detach(volume, here)
        ground.volumes.detach(volume, NOWHERE)
        assert read_volume(ground, volume.id) == volume

    def test_attach_says_which_of_the_two_is_absent(self, ground: Ground) -> None:
        volume = create_volume(ground)
        with pytest.raises(errors.NotFound) as raised:
            ground.volumes.attach(volume, NOWHERE)
        assert raised.value.resource == NOWHERE
        ground.volumes.delete(volume.id)
        gone(ground, volume.id)
        with pytest.raises(errors.NotFound) as raised:
            ground.volumes.attach(volume, ground.two[0])
        assert raised.value.resource == volume.id
        ground.volumes.detach(volume, ground.two[0])

    def test_a_deleted_instance_holds_nothing(self, ground: Ground) -> None:
        instance = ground.boot()
        volume = attached(ground, create_volume(ground), instance)
        ground.kill(instance)
        ground.volumes.detach(volume, instance)
        settled(ground, volume.id, VolumePhase.AVAILABLE)

    def test_a_deletion_may_be_repeated(self, ground: Ground) -> None:
        volume = create_volume(ground)
        ground.volumes.delete(volume.id)
        ground.volumes.delete(volume.id)
        gone(ground, volume.id)
        ground.volumes.delete(volume.id)
        ground.volumes.delete(VolumeId("fake-vol-id"))

    def test_what_is_attached_is_not_deleted(self, ground: Ground) -> None:
        volume = attached(ground, create_volume(ground), ground.two[0])
        with pytest.raises(errors.AttachedElsewhere):
            ground.volumes.delete(volume.id)
        assert read_volume(ground, volume.id) == volume

    @pytest.mark.parametrize("in_use", [False, True], ids=["available", "in use"])
    def test_a_volume_grows_attached_or_not(self, ground: Ground, in_use: bool) -> None:
        volume = create_volume(ground)
        if in_use:
            volume = attached(ground, volume, ground.two[0])
        ground.volumes.resize(volume, 3 * GIB)
        before = volume.phase
        end = time.monotonic() + PATIENCE_S
        while True:
            grown = read_volume(ground, volume.id)
            assert grown is not None
            if grown.phase is before and grown.size_bytes == 3 * GIB:
                break
            assert time.monotonic() < end, grown
            ground.let_pass()

    def test_a_volume_changes_its_type(self, ground: Ground) -> None:
        old, new = ground.types()
        volume = create_volume(ground, parameters={ground.traits.type_key: old})
        assert volume.type == old
        if Feature.CHANGE_TYPE not in ground.traits.features:
            with pytest.raises(errors.Unsupported):
                ground.volumes.retype(volume, VolumeChange(new))
            return
        ground.volumes.retype(volume, VolumeChange(new))
        end = time.monotonic() + PATIENCE_S
        while read_volume(ground, volume.id) != volume:
            changed = read_volume(ground, volume.id)
            assert changed is not None
            if changed.type == new and changed.phase is VolumePhase.AVAILABLE:
                return
            assert time.monotonic() < end, changed
            ground.let_pass()

    def test_an_unknown_type_is_refused_with_those_there_are(
        self, ground: Ground
    ) -> None:
        """By reading the request, or by the cloud."""
        request = VolumeRequest(
            f"pvc-{uuid.uuid4()}",
            GIB,
            CLUSTER,
            parameters={ground.traits.type_key: "gold"},
        )
        parsed = ground.volumes.parse(request)
        if isinstance(parsed, VolumeSpec):
            with pytest.raises(errors.InvalidRequest) as raised:
                ground.volumes.create(parsed)
            offered = str(raised.value)
            assert all(text in offered for text in ground.traits.unknown_type)
        else:
            problem = parsed[0]
            assert problem.field.endswith("type")
            assert problem.value == "gold"
            offered = problem.allowed
            assert "fast" in offered
        assert ground.volumes.observe([ByName(request.name)]).by_ref == {
            ByName(request.name): ()
        }

    def test_a_clone_knows_its_source(self, ground: Ground) -> None:
        if Feature.CLONE not in ground.traits.features:
            parameters = ground.traits.parameters
            request = VolumeRequest(
                "clone", GIB, CLUSTER, parameters=parameters, source=NOBODY
            )
            problems = ground.volumes.parse(request)
            assert isinstance(problems, tuple)
            assert [problem.field for problem in problems] == ["volume_content_source"]
            return
        source = create_volume(ground)
        clone = create_volume(ground, source=source.id)
        assert clone.source == source.id
        with pytest.raises(errors.NotFound) as raised:
            ground.volumes.create(spec(ground, source=NOBODY))
        assert raised.value.resource == NOBODY

    def test_a_shared_volume_is_attached_twice(self, ground: Ground) -> None:
        if not ground.traits.is_shareable:
            parameters = ground.traits.parameters
            request = VolumeRequest(
                "shared", GIB, CLUSTER, parameters=parameters, is_shared=True
            )
            problems = ground.volumes.parse(request)
            assert isinstance(problems, tuple)
            assert "access_mode" in problems[0].field
            return
        with pytest.raises(errors.InvalidRequest, match="type: invalid value"):
            ground.volumes.create(
                spec(ground, is_shared=True, parameters={"type": ground.types()[0]})
            )
        volume = create_volume(ground, is_shared=True, parameters={"type": SHARED})
        assert volume.is_shareable
        for instance in ground.two:
            volume = attached(ground, volume, instance)
        assert {attachment.instance_id for attachment in volume.attachments} == set(
            ground.two
        )
        ground.volumes.detach(volume, ground.two[0])
        end = time.monotonic() + PATIENCE_S
        while volume.phase is not VolumePhase.IN_USE or len(volume.attachments) > 1:
            assert time.monotonic() < end
            ground.let_pass()
            volume = read_volume(ground, volume.id) or volume
        assert volume.attachments[0].instance_id == ground.two[1]

    def test_what_failed_while_it_was_made_says_so(self, ground: Ground) -> None:
        chosen = ground.break_next()
        named = {ground.traits.type_key: chosen} if chosen else {}
        parameters = {**ground.traits.parameters, **named}
        desired = ground.volumes.create(spec(ground, parameters=parameters))
        volume = settled(ground, desired.id, VolumePhase.FAILED)
        assert not volume.was_ready
        assert volume.message
        ground.volumes.delete(volume.id)
        gone(ground, volume.id)

    def test_a_quota_bounds_what_is_made_and_what_is_grown(
        self, ground: Ground
    ) -> None:
        volume = create_volume(ground)
        ground.quota(GIB)
        if ground.traits.is_judged_late:
            try:
                failed = ground.volumes.create(spec(ground, size_bytes=2 * GIB))
                failed = settled(ground, failed.id, VolumePhase.FAILED)
                assert failed.is_unplaceable
                assert "quota" in failed.message
                ground.volumes.delete(failed.id)
                gone(ground, failed.id)
            finally:
                ground.quota(None)
            with pytest.raises(errors.Unsupported):
                ground.volumes.capacity("", ())
            return
        try:
            if ground.traits.shows_quota:
                assert ground.volumes.capacity("", ()).available_bytes == GIB
            with pytest.raises(errors.QuotaExceeded):
                ground.volumes.create(spec(ground, size_bytes=2 * GIB))
            with pytest.raises(errors.QuotaExceeded):
                ground.volumes.resize(volume, 3 * GIB)
        finally:
            ground.quota(None)
        assert ground.volumes.capacity(ground.types()[0], ()).available_bytes > GIB
        with pytest.raises(errors.InvalidRequest):
            ground.volumes.capacity("gold", ())


def ids(observation: tuple[Volume, ...] | Unknown) -> list[str]:
    assert not isinstance(observation, Unknown)
    return [volume.id for volume in observation]

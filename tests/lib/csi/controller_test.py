"""What a successful call answers: sizes, zones, contexts, pages, capabilities."""

import dataclasses
import re
from collections.abc import Mapping

import pytest

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    Attachment,
    AttachmentPhase,
    Problems,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    VolumeSpec,
)
from lib.csi import clouds, controller, identity_service, messages
from lib.csi.spec import csi_pb2 as pb
from lib.volumes import callers, flow
from lib.volumes.csi_codes import Code, RefusedCall

KEY = "topology.example/zone"
GIB = volume_rules.GIB
OPTIONS = "mooring.io/mkfs-options"
NODE = InstanceId("node-1")
Mode = pb.VolumeCapability.AccessMode


class Recording(fake.FakeVolumes):
    """Keeps the specs of what is created; may keep its zones to itself."""

    def __init__(self, time: clock.Clock) -> None:
        super().__init__(time)
        self.specs: list[VolumeSpec] = []
        self.requests: list[VolumeRequest] = []
        self.tells_zones = True

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        self.requests.append(request)
        return super().parse(request)

    def create(self, spec: VolumeSpec) -> Volume:
        self.specs.append(spec)
        created = super().create(spec)
        if not self.tells_zones:
            created = dataclasses.replace(
                created, zones=None, phase=VolumePhase.AVAILABLE, was_ready=True
            )
            self.put(created)
        return created


class World:
    """A controller over one or two clouds."""

    def __init__(
        self,
        names: tuple[str, ...] = ("",),
        has_zones: bool = True,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        self.clock = clock.Clock()
        self.clouds = {name: Recording(self.clock) for name in names}
        for cloud in self.clouds.values():
            cloud.instances = {NODE}
        effects = callers.CallEffects(self.clock, self.clock.wait)
        self.asked: list[tuple[str, str]] = []
        self.is_kube_down = False

        def read(namespace: str, name: str, volume_name: str) -> Mapping[str, str]:
            del volume_name
            self.asked.append((namespace, name))
            if self.is_kube_down:
                raise RefusedCall(Code.UNAVAILABLE, "no API server")
            return annotations or {}

        self.controller = controller.Controller(
            clouds.Clouds(
                {
                    name: flow.VolumesFlow(lambda cloud=cloud: cloud, effects)  # type: ignore[misc]
                    for name, cloud in self.clouds.items()
                }
            ),
            controller.ControllerSettings("c", messages.Topology(KEY, has_zones), read),
        )

    @property
    def cloud(self) -> Recording:
        return next(iter(self.clouds.values()))

    def call(self) -> callers.Caller:
        return callers.Caller(self.clock() + 300)

    def create(self, **fields: object) -> pb.Volume:
        request = pb.CreateVolumeRequest(
            **{"name": "pvc-1", "volume_capabilities": [cap()], **fields}  # type: ignore[arg-type]
        )
        return self.controller.create_volume(request, self.call()).volume

    def list(self, most: int = 0, token: str = "") -> pb.ListVolumesResponse:
        request = pb.ListVolumesRequest(max_entries=most, starting_token=token)
        return self.controller.list_volumes(request, self.call())


def cap(
    mode: int = Mode.SINGLE_NODE_WRITER, block: bool = False
) -> pb.VolumeCapability:
    created = pb.VolumeCapability(access_mode=Mode(mode=Mode.Mode.Name(mode)))
    (created.block if block else created.mount).SetInParent()
    return created


def zones(requisite: str = "", preferred: str = "") -> pb.TopologyRequirement:
    def topologies(names: str) -> list[pb.Topology]:
        return [pb.Topology(segments={KEY: name, "x": "y"}) for name in names.split()]

    return pb.TopologyRequirement(
        requisite=topologies(requisite), preferred=topologies(preferred)
    )


def told(volume: pb.Volume) -> list[dict[str, str]]:
    return [dict(item.segments) for item in volume.accessible_topology]


def stock(number: int, **fields: object) -> Volume:
    volume = Volume(
        VolumeId(f"{number:08x}-0000-4000-8000-000000000000"),
        f"pvc-{number}",
        GIB,
        VolumePhase.AVAILABLE,
        cluster="c",
    )
    return dataclasses.replace(volume, **fields)  # type: ignore[arg-type]


def test_a_volume_is_answered_when_it_is_available() -> None:
    world = World()
    created = world.create(capacity_range=pb.CapacityRange(required_bytes=GIB + 1))
    (existing,) = world.cloud.volumes()
    assert created.volume_id == existing.id
    assert created.capacity_bytes == 2 * GIB
    assert existing.phase is VolumePhase.AVAILABLE


def test_the_same_name_gives_the_same_id() -> None:
    world = World()
    assert world.create() == world.create()
    assert len(world.cloud.volumes()) == 1


def test_the_provisioners_keys_become_metadata_and_no_parameters() -> None:
    world = World()
    arguments = {
        "csi.storage.k8s.io/pvc/name": "data",
        "csi.storage.k8s.io/pvc/namespace": "web",
        "csi.storage.k8s.io/pv/name": "pvc-1",
    }
    world.create(parameters={**arguments, "type": "fast"})
    (request,) = world.cloud.requests
    assert request.parameters == {"type": "fast"}
    assert request.metadata == arguments
    assert request.cluster == "c"
    assert world.asked == [("web", "data")]


def cap_of(fs_type: str) -> pb.VolumeCapability:
    created = cap()
    created.mount.fs_type = fs_type
    return created


@pytest.mark.parametrize(
    ("fs_type", "options"),
    [
        ("", "-I 512 -m 1"),
        ("ext4", "-E lazy_itable_init=0,nodiscard -O ^has_journal"),
        ("EXT3", "-b 4096"),
        ("xfs", "-m reflink=0,crc=1 -K"),
        ("btrfs", "--nodesize 16k -m dup"),
    ],
)
def test_options_of_mkfs_reach_the_node_and_not_the_cloud(
    fs_type: str, options: str
) -> None:
    """They are in the volume context, whose keys the driver knows as its own."""
    world = World()
    parameters = {OPTIONS: options, "type": "fast"}
    created = world.create(parameters=parameters, volume_capabilities=[cap_of(fs_type)])
    assert dict(created.volume_context) == {OPTIONS: options}
    assert world.cloud.requests[0].parameters == {"type": "fast"}
    validated = pb.ValidateVolumeCapabilitiesRequest(
        volume_id=created.volume_id,
        volume_capabilities=[cap_of(fs_type)],
        volume_context=created.volume_context,
        parameters=parameters,
    )
    assert world.controller.validate(validated, world.call()).message == ""
    capacity = pb.GetCapacityRequest(parameters=parameters)
    assert world.controller.get_capacity(capacity, world.call()).available_capacity > 0


@pytest.mark.parametrize(
    ("capabilities", "options", "expected"),
    [
        ([cap()], "-S", 'unsupported option "-S" of mkfs.ext4: must be one of'),
        ([cap_of("xfs")], "-I 512", 'unsupported option "-I" of mkfs.xfs'),
        ([cap_of("xfs")], "-l logdev=/dev/vda", "mkfs.xfs -l: invalid value"),
        ([cap_of("btrfs")], "-d raid0", 'unsupported option "-d" of mkfs.btrfs'),
        ([cap_of("ext4")], "-m", "mkfs.ext4 -m: not set: requires a value"),
        ([cap_of("vfat")], "-F 32", 'file system "vfat": has no mkfs options'),
        ([cap_of("ext4"), cap_of("xfs")], "-O quota", 'option "-O" of mkfs.xfs'),
        ([cap(block=True)], "-S", 'unsupported option "-S" of mkfs.ext4'),
    ],
)
def test_other_options_of_mkfs_create_no_volume(
    capabilities: list[pb.VolumeCapability], options: str, expected: str
) -> None:
    world = World()
    with pytest.raises(RefusedCall, match=re.escape(expected)) as refused:
        world.create(parameters={OPTIONS: options}, volume_capabilities=capabilities)
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message.startswith(f"{OPTIONS}: ")
    assert world.cloud.volumes() == ()


def test_a_volume_that_exists_needs_no_annotations() -> None:
    """It is looked up by its name first: the API server may be down for long."""
    world = World(annotations={})
    claim = {controller.CLAIM_NAME: "data", controller.CLAIM_NAMESPACE: "web"}
    first = world.create(parameters=claim)
    world.is_kube_down = True
    assert world.create(parameters=claim).volume_id == first.volume_id
    with pytest.raises(RefusedCall, match="UNAVAILABLE"):
        world.create(name="pvc-2", parameters=claim)


def test_annotations_of_the_claim_place_a_volume_by_others() -> None:
    """Names are turned into ids; what was said is told to the node plugin."""
    world = World(annotations={"near": "pvc-7, pvc-8"})
    world.cloud.put(stock(7), stock(8), stock(9))
    names = {
        "csi.storage.k8s.io/pvc/name": "d",
        "csi.storage.k8s.io/pvc/namespace": "n",
    }
    created = world.create(parameters=names)
    assert world.cloud.specs[0].near == (stock(7).id, stock(8).id)
    assert dict(created.volume_context) == {"near": "pvc-7, pvc-8"}


def test_an_affinity_with_nobody_is_refused() -> None:
    world = World(annotations={"apart": "nobody"})
    names = {
        "csi.storage.k8s.io/pvc/name": "d",
        "csi.storage.k8s.io/pvc/namespace": "n",
    }
    with pytest.raises(
        RefusedCall, match='anti-affinity: invalid value "nobody": must be names or IDs'
    ):
        world.create(parameters=names)


def test_a_change_at_creation_wins_over_the_class() -> None:
    world = World()
    world.create(parameters={"type": "slow"}, mutable_parameters={"type": "fast"})
    assert world.cloud.volumes()[0].type == "fast"


@pytest.mark.parametrize(
    ("fields", "zone"),
    [
        ({"parameters": {"zone": "z2"}}, "z2"),
        ({"accessibility_requirements": zones("z1 z2", "z2 z1")}, "z2"),
        ({"accessibility_requirements": zones("z2 z1")}, "z2"),
        (
            {
                "parameters": {"zone": "z1"},
                "accessibility_requirements": zones("z1 z2", "z2 z1"),
            },
            "z1",
        ),
    ],
)
def test_the_zone_is_that_of_parameter_preferred_requisite(
    fields: dict[str, object], zone: str
) -> None:
    world = World()
    assert told(world.create(**fields)) == [{KEY: zone}]


def test_a_volume_that_tells_no_zone_is_reached_from_where_it_was_wanted() -> None:
    """All of the segments that were preferred are repeated (ignore-volume-az)."""
    world = World()
    world.cloud.tells_zones = False
    created = world.create(accessibility_requirements=zones("z1 z2", "z1"))
    assert told(created) == [{KEY: "z1", "x": "y"}]


def test_without_topology_no_zone_is_chosen_nor_told() -> None:
    world = World(has_zones=False)
    created = world.create(accessibility_requirements=zones("z2", "z2"))
    assert told(created) == []
    assert world.cloud.requests[0].preferred == ()


def test_a_clone_names_its_source() -> None:
    world = World()
    world.cloud.put(stock(7))
    kind = pb.VolumeContentSource.VolumeSource
    source = pb.VolumeContentSource(volume=kind(volume_id=stock(7).id))
    created = world.create(volume_content_source=source)
    assert created.content_source == source
    assert world.cloud.volumes()[1].source == stock(7).id


@pytest.mark.parametrize(
    "mode", [Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_SINGLE_WRITER]
)
def test_a_file_system_is_attached_for_one_writer_alone(mode: int) -> None:
    """Of [ReadWriteOnce, ReadWriteMany] a kubelet hands the node only the first."""
    world = World()
    world.cloud.put(dataclasses.replace(stock(1), is_shareable=True))
    request = pb.ControllerPublishVolumeRequest(
        volume_id=stock(1).id, node_id=NODE, volume_capability=cap(mode)
    )
    with pytest.raises(RefusedCall, match="requires access_type block") as refused:
        world.controller.publish(request, world.call())
    assert refused.value.code is Code.INVALID_ARGUMENT
    (volume,) = world.cloud.volumes()
    assert volume.attachments == ()


def test_publishing_gives_the_clouds_context_each_time() -> None:
    world = World()
    world.cloud.put(stock(1))
    request = pb.ControllerPublishVolumeRequest(
        volume_id=stock(1).id, node_id=NODE, volume_capability=cap()
    )
    first = world.controller.publish(request, world.call())
    second = world.controller.publish(request, world.call())
    assert dict(first.publish_context) == {"DevicePath": "/dev/vdb"}
    assert first == second


def test_expanding_answers_the_size_there_is() -> None:
    world = World()
    world.cloud.put(stock(1))
    for required, size in ((GIB + 1, 2 * GIB), (GIB, 2 * GIB)):
        request = pb.ControllerExpandVolumeRequest(
            volume_id=stock(1).id,
            capacity_range=pb.CapacityRange(required_bytes=required),
        )
        answer = world.controller.expand(request, world.call())
        assert answer.capacity_bytes == size
        assert answer.node_expansion_required


def test_pages_show_each_volume_once_though_volumes_go() -> None:
    world = World(("", "second"))
    first, second = world.clouds.values()
    first.put(*(stock(number) for number in range(5)))
    second.put(*(stock(number) for number in range(10, 13)))
    observed: list[str] = []
    token = ""
    for _ in range(10):
        page = world.list(2, token)
        assert len(page.entries) <= 2
        observed += [entry.volume.volume_id for entry in page.entries]
        token = page.next_token
        if len(observed) == 2:  # the last one shown is deleted
            first.delete(stock(1).id)
            world.clock.move(61)
        if not token:
            break
    expected = [stock(number).id for number in (0, 1, 2, 3, 4, 10, 11, 12)]
    assert observed == expected


def test_a_page_that_ends_with_the_list_has_no_token() -> None:
    world = World()
    world.cloud.put(*(stock(number) for number in range(4)))
    assert world.list(4).next_token == ""
    assert len(world.list(3, "").entries) == 3
    assert len(world.list(3, world.list(3).next_token).entries) == 1
    assert world.list(0).next_token == ""


def test_no_page_is_larger_than_callers_take() -> None:
    """Also for one who asks for everything at once."""
    world = World()
    world.cloud.put(*(stock(number) for number in range(10_001)))
    first = world.list()
    assert len(first.entries) == 10_000
    assert first.ByteSize() < 4 * 2**20 / 2
    assert len(world.list(token=first.next_token).entries) == 1


def test_a_created_volume_raises_the_count_by_one_at_once() -> None:
    world = World()
    world.cloud.put(stock(7))
    assert len(world.list().entries) == 1
    created = world.create(name="new")
    assert len(world.list().entries) == 2
    request = pb.DeleteVolumeRequest(volume_id=created.volume_id)
    world.controller.delete_volume(request, world.call())
    assert len(world.list().entries) == 1
    assert world.cloud.calls.count("list volumes") == 1


def test_only_what_is_attached_counts_as_published() -> None:
    links = (
        Attachment(NODE),
        Attachment(InstanceId("node-2"), AttachmentPhase.ATTACHING),
    )
    world = World()
    world.cloud.put(stock(1, phase=VolumePhase.IN_USE, attachments=links))
    (entry,) = world.list().entries
    assert list(entry.status.published_node_ids) == [NODE]
    request = pb.ControllerGetVolumeRequest(volume_id=stock(1).id)
    observed = world.controller.get_volume(request, world.call())
    assert list(observed.status.published_node_ids) == [NODE]
    assert observed.volume.capacity_bytes == GIB


def test_secrets_choose_the_cloud_and_a_volume_is_looked_for_in_all() -> None:
    world = World(("", "second"))
    created = world.create(secrets={"cloud": "second"})
    assert not world.clouds[""].volumes()
    assert len(world.clouds["second"].volumes()) == 1
    request = pb.ControllerGetVolumeRequest(volume_id=created.volume_id)
    assert world.controller.get_volume(request, world.call()).volume.volume_id


def test_the_first_cloud_that_is_named_is_the_default() -> None:
    world = World(("first", "second"))
    world.create()
    assert len(world.clouds["first"].volumes()) == 1


@pytest.mark.parametrize(
    ("capability", "is_shareable", "message"),
    [
        (cap(), False, ""),
        (cap(Mode.SINGLE_NODE_MULTI_WRITER), False, ""),
        (cap(Mode.SINGLE_NODE_SINGLE_WRITER, block=True), False, ""),
        (cap(Mode.MULTI_NODE_READER_ONLY), True, ""),
        (cap(Mode.MULTI_NODE_READER_ONLY), False, "a volume type that allows several"),
        (cap(Mode.MULTI_NODE_MULTI_WRITER, block=True), True, ""),
        (cap(Mode.MULTI_NODE_MULTI_WRITER), True, "requires access_type block"),
    ],
)
def test_capabilities_are_confirmed_or_the_message_says_why_not(
    capability: pb.VolumeCapability, is_shareable: bool, message: str
) -> None:
    world = World()
    world.cloud.put(stock(1, is_shareable=is_shareable))
    request = pb.ValidateVolumeCapabilitiesRequest(
        volume_id=stock(1).id, volume_capabilities=[capability]
    )
    answer = world.controller.validate(request, world.call())
    assert answer.HasField("confirmed") == (not message)
    assert message in answer.message


def test_capacity_is_what_the_limits_leave() -> None:
    world = World()
    world.cloud.rules.quota_bytes = 10 * GIB
    world.cloud.put(stock(1))
    answer = world.controller.get_capacity(pb.GetCapacityRequest(), world.call())
    assert answer.available_capacity == 9 * GIB
    assert answer.minimum_volume_size.value == GIB
    assert answer.maximum_volume_size.value == 1024 * GIB


def test_exactly_what_is_offered_is_claimed() -> None:
    """No snapshots, and nothing that only a node plugin does."""
    world = World()
    request = pb.ControllerGetCapabilitiesRequest()
    answer = world.controller.offers(request, world.call())
    kind = pb.ControllerServiceCapability.RPC.Type
    assert {kind.Name(capability.rpc.type) for capability in answer.capabilities} == {
        "CREATE_DELETE_VOLUME",
        "PUBLISH_UNPUBLISH_VOLUME",
        "LIST_VOLUMES",
        "LIST_VOLUMES_PUBLISHED_NODES",
        "GET_CAPACITY",
        "GET_VOLUME",
        "VOLUME_CONDITION",
        "CLONE_VOLUME",
        "EXPAND_VOLUME",
        "MODIFY_VOLUME",
        "SINGLE_NODE_MULTI_WRITER",
    }


@pytest.mark.parametrize("has_zones", [True, False])
def test_the_plugin_says_who_it_is(has_zones: bool) -> None:
    identity = identity_service.IdentityService(
        identity_service.DriverDescription("cinder.example", "1", True, has_zones)
    )
    call = callers.Caller(0)
    info = identity.info(pb.GetPluginInfoRequest(), call)
    assert (info.name, info.vendor_version) == ("cinder.example", "1")
    observed = identity.offers(pb.GetPluginCapabilitiesRequest(), call).capabilities
    service = pb.PluginCapability.Service.Type
    services = {
        service.Name(item.service.type) for item in observed if item.HasField("service")
    }
    zones_told = "VOLUME_ACCESSIBILITY_CONSTRAINTS" in services
    assert zones_told == has_zones
    assert len([item for item in observed if item.HasField("volume_expansion")]) == 2
    assert identity.probe(pb.ProbeRequest(), call) == pb.ProbeResponse()


def test_a_claim_that_can_not_be_read_stops_the_creation() -> None:
    def read(namespace: str, name: str, volume_name: str) -> Mapping[str, str]:
        del namespace, name, volume_name
        raise RefusedCall(Code.UNAVAILABLE, "the API server does not answer")

    world = World()
    effects = callers.CallEffects(world.clock, world.clock.wait)
    flows = clouds.Clouds({"": flow.VolumesFlow(lambda: world.cloud, effects)})
    settings = controller.ControllerSettings("c", messages.Topology(KEY, True), read)
    request = pb.CreateVolumeRequest(
        name="pvc-1",
        volume_capabilities=[cap()],
        parameters={
            "csi.storage.k8s.io/pvc/name": "d",
            "csi.storage.k8s.io/pvc/namespace": "n",
        },
    )
    with pytest.raises(RefusedCall, match="does not answer"):
        controller.Controller(flows, settings).create_volume(request, world.call())
    assert world.cloud.calls == ["find volumes"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),
        ({"parameters": {"type": "slow"}}, ""),
        (
            {"parameters": {"type": "fast"}},
            'parameters.type: "fast": the volume has "slow"',
        ),
        (
            {"parameters": {"type": "gold"}},
            'parameter type: unsupported value "gold": must be one of',
        ),
        ({"parameters": {"zone": "z2"}}, "the volume is in zone z1, not in z2"),
        ({"parameters": {controller.CLAIM_NAME: "data"}}, ""),
        ({"mutable_parameters": {"type": "fast"}}, 'type: "fast"'),
        ({"volume_context": {"near": "a"}}, ""),
        ({"volume_context": {controller.PROVISIONER_IDENTITY: "x"}}, ""),
        (
            {"volume_context": {"invented": "a"}},
            'volume_context: unknown key "invented"',
        ),
    ],
)
def test_only_what_is_true_of_a_volume_is_confirmed(
    fields: dict[str, object], words: str
) -> None:
    world = World()
    created = world.create(parameters={"type": "slow"})
    request = pb.ValidateVolumeCapabilitiesRequest(
        volume_id=created.volume_id,
        volume_capabilities=[cap()],
        **fields,  # type: ignore[arg-type]  # any field
    )
    answer = world.controller.validate(request, world.call())
    assert answer.HasField("confirmed") == (not words)
    assert words in answer.message


@pytest.mark.parametrize("place", ["default", "other", "nowhere"])
@pytest.mark.parametrize("secrets", [{}, {"cloud": "other"}])
def test_a_volume_is_deleted_from_the_cloud_that_has_it(
    place: str, secrets: dict[str, str]
) -> None:
    """What the default cloud lacks, or that of the secrets, may be in another."""
    world = World(("default", "other"))
    if place in world.clouds:
        world.clouds[place].put(dataclasses.replace(stock(1), cluster="c"))
    request = pb.DeleteVolumeRequest(volume_id=stock(1).id, secrets=secrets)
    world.controller.delete_volume(request, world.call())
    assert not any(cloud.volumes() for cloud in world.clouds.values())


def test_a_cloud_that_cannot_be_read_may_have_the_volume() -> None:
    world = World(("default", "other"))
    away = errors.Unavailable("away", operation="get volume")
    world.clouds["other"].faults.refusals.append(away)
    request = pb.DeleteVolumeRequest(volume_id=stock(1).id)
    with pytest.raises(RefusedCall) as refused:
        world.controller.delete_volume(request, world.call())
    assert refused.value.code is Code.UNAVAILABLE


def test_a_volume_is_detached_in_the_cloud_that_has_it() -> None:
    world = World(("default", "other"))
    held = dataclasses.replace(
        stock(1), phase=VolumePhase.IN_USE, attachments=(Attachment(NODE),)
    )
    world.clouds["other"].put(held)
    request = pb.ControllerUnpublishVolumeRequest(volume_id=held.id, node_id=NODE)
    world.controller.unpublish(request, world.call())
    (volume,) = world.clouds["other"].volumes()
    assert volume.attachments == ()


CONDITIONS = {
    "available": (VolumePhase.AVAILABLE, "", False, "healthy"),
    "in use": (VolumePhase.IN_USE, "", False, "healthy"),
    "on its way": (VolumePhase.ATTACHING, "", False, "healthy"),
    "failed": (
        VolumePhase.FAILED,
        "",
        True,
        "in status error; the cloud administrator must repair it",
    ),
    "failed for a reason": (
        VolumePhase.FAILED,
        "no space",
        True,
        "in status error: no space; the cloud administrator must repair it",
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_an_abnormal_volume_is_reported_with_its_reason(name: str) -> None:
    """In the list, which reads each status anyway, and for one volume."""
    phase, why, is_abnormal, text = CONDITIONS[name]
    world = World()
    volume = dataclasses.replace(
        stock(1), phase=phase, native_phase="error", message=why
    )
    world.cloud.put(volume)
    request = pb.ControllerGetVolumeRequest(volume_id=volume.id)
    (entry,) = world.list().entries
    single = world.controller.get_volume(request, world.call())
    for status in (entry.status, single.status):
        condition = status.volume_condition
        assert (condition.abnormal, condition.message) == (is_abnormal, text)
    assert world.cloud.calls.count("list volumes") == 1

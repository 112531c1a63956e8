"""Each RPC, each condition that can be met, and the code that CSI wants for it.

One table in one file, long as it is. It is printed; a condition of the specification
without a row fails, and so does a message that does not name what is wrong.
"""

import dataclasses
import math
from collections.abc import Callable

import grpc
import pytest
from google.protobuf import message

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Attachment, Volume, VolumeId, VolumePhase
from lib.csi import clouds, controller, grpc_status, messages, services
from lib.csi.spec import csi_pb2 as pb
from lib.volumes import callers, csi_codes, flow
from lib.volumes.csi_codes import Code, RefusedCall

NODE, OTHER = InstanceId("node-1"), InstanceId("node-2")
ID = VolumeId("aaaaaaaa-0000-4000-8000-000000000000")
NO_ID = "fake-vol-id-xxxxxxxxxx"
GIB = volume_rules.GIB
VOLUME = Volume(ID, "pvc-1", 10 * GIB, VolumePhase.AVAILABLE, type="slow", cluster="c")
KEY = "topology.example/zone"
Mode = pb.VolumeCapability.AccessMode
Create, Created = pb.CreateVolumeRequest, pb.CreateVolumeResponse


class World:
    """A controller over a fake cloud, on a clock that only waiting moves."""

    def __init__(self) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.instances = {NODE, OTHER}
        effects = callers.CallEffects(self.clock, self.clock.wait)
        flows = {"": flow.VolumesFlow(lambda: self.cloud, effects, -math.inf)}
        settings = controller.ControllerSettings(
            "c", messages.Topology(KEY, is_on=True)
        )
        self.controller = controller.Controller(clouds.Clouds(flows), settings)
        self.patience_s = 300.0

    def ask(self, rpc: str, request: message.Message) -> str:
        """Return the code, and the message behind a colon."""
        method = services.controller(self.controller).methods[rpc]
        try:
            method(request, callers.Caller(self.clock() + self.patience_s))
        except RefusedCall as refused:
            return str(refused)
        return "OK"


Prepare = Callable[[World], None]


def _nothing(world: World) -> None:
    del world


def _has(**fields: object) -> Prepare:
    volume = dataclasses.replace(VOLUME, **fields)  # type: ignore[arg-type]
    return lambda world: world.cloud.put(volume)


def _held(*nodes: InstanceId, shareable: bool = False) -> Prepare:
    links = tuple(Attachment(node) for node in nodes)
    return _has(phase=VolumePhase.IN_USE, attachments=links, is_shareable=shareable)


def _refuses(*kinds: type[errors.CloudError] | None) -> Prepare:
    def prepare(world: World) -> None:
        world.cloud.put(VOLUME)
        for kind in kinds:
            error = None if kind is None else kind("words", operation="op")
            world.cloud.faults.refusals.append(error)

    return prepare


def _refuses_later(*kinds: type[errors.CloudError] | None) -> Prepare:
    """Refuse, in a cloud without the volume."""

    def prepare(world: World) -> None:
        _refuses(*kinds)(world)
        world.cloud.put(dataclasses.replace(VOLUME, name="other"))

    return prepare


def _full(*names: str) -> Prepare:
    def prepare(world: World) -> None:
        world.cloud.rules.full = names

    return prepare


def _types(*names: str) -> Prepare:
    """Register these types with the parser, too."""

    def prepare(world: World) -> None:
        world.cloud.rules.types = (*world.cloud.rules.types, *names)

    return prepare


def _both(*steps: Prepare) -> Prepare:
    def prepare(world: World) -> None:
        for step in steps:
            step(world)

    return prepare


def _quota(world: World) -> None:
    world.cloud.rules.quota_bytes = 10 * GIB


def _limit(world: World) -> None:
    world.cloud.rules.limit = 0


def _stuck(operation: str) -> Prepare:
    return lambda world: world.cloud.faults.stuck.add(operation)


def _fails(operation: str, times: int = 1) -> Prepare:
    return lambda world: world.cloud.faults.failing.extend([operation] * times)


def _patience(seconds: float) -> Prepare:
    def prepare(world: World) -> None:
        world.patience_s = seconds

    return prepare


def cap(
    mode: int = Mode.SINGLE_NODE_WRITER, kind: str = "mount"
) -> pb.VolumeCapability:
    created = pb.VolumeCapability(access_mode=Mode(mode=Mode.Mode.Name(mode)))
    if kind == "mount":
        created.mount.SetInParent()
    elif kind == "block":
        created.block.SetInParent()
    return created


def create(**fields: object) -> pb.CreateVolumeRequest:
    arguments: dict[str, object] = {"name": "pvc-1", "volume_capabilities": [cap()]}
    request = pb.CreateVolumeRequest(**{**arguments, **fields})  # type: ignore[arg-type]
    if not request.HasField("capacity_range"):
        request.capacity_range.required_bytes = 10 * GIB
    return request


def size(required: int = 0, limit: int = 0) -> pb.CapacityRange:
    return pb.CapacityRange(required_bytes=required, limit_bytes=limit)


def source(volume_id: str) -> pb.VolumeContentSource:
    kind = pb.VolumeContentSource.VolumeSource
    return pb.VolumeContentSource(volume=kind(volume_id=volume_id))


def snapshot() -> pb.VolumeContentSource:
    kind = pb.VolumeContentSource.SnapshotSource
    return pb.VolumeContentSource(snapshot=kind(snapshot_id="s"))


def zones(*requisite: str, preferred: tuple[str, ...] = ()) -> pb.TopologyRequirement:
    def topologies(names: tuple[str, ...]) -> list[pb.Topology]:
        return [pb.Topology(segments={KEY: name}) for name in names]

    return pb.TopologyRequirement(
        requisite=topologies(requisite), preferred=topologies(preferred)
    )


def publish(**fields: object) -> pb.ControllerPublishVolumeRequest:
    arguments: dict[str, object] = {
        "volume_id": ID,
        "node_id": NODE,
        "volume_capability": cap(),
    }
    kind = pb.ControllerPublishVolumeRequest
    return kind(**{**arguments, **fields})  # type: ignore[arg-type]


def unpublish(**fields: object) -> pb.ControllerUnpublishVolumeRequest:
    arguments: dict[str, object] = {"volume_id": ID, "node_id": NODE}
    kind = pb.ControllerUnpublishVolumeRequest
    return kind(**{**arguments, **fields})  # type: ignore[arg-type]


def expand(**fields: object) -> pb.ControllerExpandVolumeRequest:
    arguments: dict[str, object] = {"volume_id": ID, "capacity_range": size(20 * GIB)}
    kind = pb.ControllerExpandVolumeRequest
    return kind(**{**arguments, **fields})  # type: ignore[arg-type]


def modify(**parameters: str) -> pb.ControllerModifyVolumeRequest:
    kind = pb.ControllerModifyVolumeRequest
    return kind(volume_id=ID, mutable_parameters=parameters)


def validate(**fields: object) -> pb.ValidateVolumeCapabilitiesRequest:
    arguments: dict[str, object] = {"volume_id": ID, "volume_capabilities": [cap()]}
    kind = pb.ValidateVolumeCapabilitiesRequest
    return kind(**{**arguments, **fields})  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Row:
    """One condition. ends: the code; behind a colon what the message must name."""

    rpc: str
    condition: str
    request: message.Message
    ends: str
    prepare: Prepare = _nothing

    @property
    def code(self) -> str:
        return self.ends.partition(": ")[0]


CREATE, DELETE = "CreateVolume", "DeleteVolume"
PUBLISH, UNPUBLISH = "ControllerPublishVolume", "ControllerUnpublishVolume"
EXPAND, MODIFY = "ControllerExpandVolume", "ControllerModifyVolume"
LIST, GET, CAPACITY = "ListVolumes", "ControllerGetVolume", "GetCapacity"
VALIDATE, OFFERS = "ValidateVolumeCapabilities", "ControllerGetCapabilities"
_many = Mode.MULTI_NODE_MULTI_WRITER
_down = _refuses(errors.Unavailable)
_error = VolumePhase.FAILED
_mars = {"cloud": "mars"}
_down_ends = "UNAVAILABLE: words"
_delete = pb.DeleteVolumeRequest
_get = pb.ControllerGetVolumeRequest
_shared = {"type": "shared"}

ROWS = (
    Row(CREATE, "new", create(), "OK"),
    Row(CREATE, "same again", create(), "OK", _has()),
    Row(CREATE, "same again, attached", create(), "OK", _held(NODE)),
    Row(CREATE, "no size", create(capacity_range=size()), "OK"),
    Row(
        CREATE,
        "a size that is rounded up",
        create(capacity_range=size(10 * GIB - 1, 10 * GIB)),
        "OK",
    ),
    Row(CREATE, "name of 128 characters", create(name="n" * 128), "OK"),
    Row(CREATE, "no name", create(name=""), "INVALID_ARGUMENT: name: not set"),
    Row(
        CREATE,
        "no capabilities",
        create(volume_capabilities=[]),
        "INVALID_ARGUMENT: volume_capabilities",
    ),
    Row(
        CREATE,
        "no access type",
        create(volume_capabilities=[cap(kind="")]),
        "INVALID_ARGUMENT: volume_capabilities[0].access_type",
    ),
    Row(
        CREATE,
        "unknown access mode",
        create(volume_capabilities=[cap(), cap(Mode.UNKNOWN)]),
        'INVALID_ARGUMENT: [1].access_mode: unsupported value "UNKNOWN"',
    ),
    Row(
        CREATE,
        "several writers of a file system",
        create(volume_capabilities=[cap(_many)], parameters=_shared),
        "INVALID_ARGUMENT: MULTI_NODE_MULTI_WRITER requires access_type block",
    ),
    Row(
        CREATE,
        "several nodes, a type for one",
        create(volume_capabilities=[cap(_many, "block")]),
        'INVALID_ARGUMENT: type: invalid value ""',
    ),
    Row(
        CREATE,
        "several nodes, a type for several",
        create(volume_capabilities=[cap(_many, "block")], parameters=_shared),
        "OK",
    ),
    Row(
        CREATE,
        "single node, several writers",
        create(volume_capabilities=[cap(Mode.SINGLE_NODE_MULTI_WRITER)]),
        "OK",
    ),
    Row(
        CREATE,
        "unknown cloud",
        create(secrets=_mars),
        'INVALID_ARGUMENT: secrets[cloud]: unsupported value "mars"',
    ),
    Row(
        CREATE,
        "unknown type",
        create(parameters={"type": "gold"}),
        'INVALID_ARGUMENT: parameter type: unsupported value "gold": must be one of'
        " slow, fast, shared",
    ),
    Row(
        CREATE,
        "unknown zone",
        create(parameters={"zone": "z9"}),
        'INVALID_ARGUMENT: parameter zone: unsupported value "z9": must be one of z1,'
        " z2",
    ),
    Row(
        CREATE,
        "a zone that no node meant reaches",
        create(parameters={"zone": "z1"}, accessibility_requirements=zones("z2")),
        "RESOURCE_EXHAUSTED: no requested topology is accessible",
    ),
    Row(
        CREATE,
        "a snapshot as source",
        create(volume_content_source=snapshot()),
        'INVALID_ARGUMENT: volume_content_source: unsupported value "snapshot"',
    ),
    Row(
        CREATE,
        "a source without id",
        create(volume_content_source=source("")),
        "INVALID_ARGUMENT: volume_content_source.volume.volume_id",
    ),
    Row(
        CREATE,
        "no such source",
        create(volume_content_source=source(NO_ID)),
        "NOT_FOUND: fake-vol-id",
    ),
    Row(
        CREATE,
        "a source that is larger",
        create(
            name="clone", volume_content_source=source(ID), capacity_range=size(5 * GIB)
        ),
        "OUT_OF_RANGE: must be at least",
        _has(),
    ),
    Row(
        CREATE,
        "a clone",
        create(name="clone", volume_content_source=source(ID)),
        "OK",
        _has(),
    ),
    Row(
        CREATE,
        "negative size",
        create(capacity_range=size(-1)),
        'INVALID_ARGUMENT: required_bytes: invalid value "-1"',
    ),
    Row(
        CREATE,
        "negative limit",
        create(capacity_range=size(1, -1)),
        'INVALID_ARGUMENT: limit_bytes: invalid value "-1"',
    ),
    Row(
        CREATE,
        "limit below size",
        create(capacity_range=size(2 * GIB, GIB)),
        'OUT_OF_RANGE: limit_bytes: invalid value "1073741824"',
    ),
    Row(
        CREATE,
        "no size fits below the limit",
        create(capacity_range=size(GIB + 1, 2 * GIB - 1)),
        "OUT_OF_RANGE: must be at least 2147483648",
    ),
    Row(
        CREATE,
        "larger than the cloud makes",
        create(capacity_range=size(2048 * GIB)),
        "OUT_OF_RANGE: must be at most",
    ),
    Row(
        CREATE,
        "the name is taken, other size",
        create(),
        "ALREADY_EXISTS: its size is",
        _has(size_bytes=9 * GIB),
    ),
    Row(
        CREATE,
        "the name is taken, above the limit",
        create(capacity_range=size(5 * GIB, 9 * GIB)),
        "ALREADY_EXISTS: its size is",
        _has(),
    ),
    Row(
        CREATE,
        "the name is taken, within the range",
        create(capacity_range=size(5 * GIB, 20 * GIB)),
        "OK",
        _has(),
    ),
    Row(
        CREATE,
        "the name is taken, other type",
        create(parameters={"type": "fast"}),
        'ALREADY_EXISTS: its type is "slow"',
        _has(),
    ),
    Row(
        CREATE,
        "the name is taken, the type given by its ID",
        create(parameters={"type": "id-of-slow"}),
        "OK",
        _both(_has(), _types("id-of-slow")),
    ),
    Row(
        CREATE,
        "the name is taken, other zone",
        create(accessibility_requirements=zones("z2")),
        "ALREADY_EXISTS: its zone is z1",
        _has(zones=("z1",)),
    ),
    Row(
        CREATE,
        "the preferred zone is full",
        create(accessibility_requirements=zones("z1", "z2", preferred=("z2",))),
        "OK",
        _full("z2"),
    ),
    Row(
        CREATE,
        "a zone of the topology that the cloud lacks",
        create(accessibility_requirements=zones("moon")),
        "RESOURCE_EXHAUSTED: zone moon",
    ),
    Row(
        CREATE,
        "every zone is full",
        create(accessibility_requirements=zones("z1", "z2")),
        "RESOURCE_EXHAUSTED: zone z2",
        _full("z1", "z2"),
    ),
    Row(
        CREATE,
        "a clone that the nodes meant can't reach",
        create(
            name="new",
            volume_content_source=source(ID),
            accessibility_requirements=zones("z2"),
        ),
        "RESOURCE_EXHAUSTED: its zone is z1",
        _has(zones=("z1",)),
    ),
    Row(
        CREATE,
        "bad credentials while it is being created",
        create(),
        "UNAVAILABLE: words",
        _refuses_later(None, None, errors.Unauthenticated),
    ),
    Row(
        CREATE,
        "bad parameters, but its volume exists",
        create(parameters={"type": "gold"}),
        "ABORTED: parameter type",
        _has(),
    ),
    Row(
        CREATE,
        "the name is taken, other source",
        create(volume_content_source=source(ID)),
        "ALREADY_EXISTS: its source is none",
        _has(),
    ),
    Row(
        CREATE,
        "the name is taken, for one node",
        create(volume_capabilities=[cap(_many, "block")], parameters=_shared),
        "ALREADY_EXISTS: several instances",
        _has(type="shared"),
    ),
    Row(
        CREATE,
        "the name is taken by another cluster",
        create(),
        'ALREADY_EXISTS: ownership metadata names cluster "theirs"',
        _has(cluster="theirs"),
    ),
    Row(
        CREATE,
        "the name is taken by a volume without mark",
        create(),
        "ALREADY_EXISTS: ownership metadata names no cluster",
        _has(cluster=None),
    ),
    Row(
        CREATE,
        "failed before it was handed out",
        create(),
        "OK",
        _has(phase=_error, was_ready=False),
    ),
    Row(
        CREATE,
        "fails each time",
        create(),
        "RESOURCE_EXHAUSTED: no host has space",
        _fails("create", 2),
    ),
    Row(CREATE, "failed later", create(), "ABORTED: administrator", _has(phase=_error)),
    Row(
        CREATE,
        "never ends",
        create(),
        "DEADLINE_EXCEEDED: status creating",
        _stuck("create"),
    ),
    Row(
        CREATE,
        "quota",
        create(),
        "RESOURCE_EXHAUSTED: no space is left",
        _both(_has(name="other"), _quota),
    ),
    Row(CREATE, "cloud down", create(), _down_ends, _down),
    Row(
        CREATE,
        "bad credentials",
        create(),
        "UNAVAILABLE: words",
        _refuses(errors.Unauthenticated),
    ),
    Row(
        CREATE,
        "forbidden",
        create(name="new"),
        "PERMISSION_DENIED: words",
        _refuses(None, errors.Forbidden),
    ),
    Row(DELETE, "there", _delete(volume_id=ID), "OK", _has()),
    Row(DELETE, "gone", _delete(volume_id=ID), "OK"),
    Row(DELETE, "an id that is none", _delete(volume_id="reallyfakevolumeid"), "OK"),
    Row(
        DELETE,
        "of another cluster",
        _delete(volume_id=ID),
        'FAILED_PRECONDITION: owned by cluster "theirs"',
        _has(cluster="theirs"),
    ),
    Row(DELETE, "without ownership", _delete(volume_id=ID), "OK", _has(cluster=None)),
    Row(
        DELETE,
        "with snapshots",
        _delete(volume_id=ID),
        "FAILED_PRECONDITION: words",
        _both(_has(), _refuses(None, errors.InUse)),
    ),
    Row(DELETE, "failed", _delete(volume_id=ID), "OK", _has(phase=_error)),
    Row(DELETE, "no id", _delete(), "INVALID_ARGUMENT: volume_id: not set"),
    Row(
        DELETE,
        "unknown cloud",
        _delete(volume_id=ID, secrets=_mars),
        "INVALID_ARGUMENT: secrets[cloud]",
    ),
    Row(
        DELETE,
        "attached",
        _delete(volume_id=ID),
        "FAILED_PRECONDITION: attached",
        _held(NODE),
    ),
    Row(
        DELETE,
        "comes to nothing",
        _delete(volume_id=ID),
        "INTERNAL: administrator",
        _both(_has(), _fails("delete")),
    ),
    Row(
        DELETE,
        "never ends",
        _delete(volume_id=ID),
        "DEADLINE_EXCEEDED: status deleting",
        _both(_has(), _stuck("delete")),
    ),
    Row(
        DELETE,
        "busy all the time",
        _delete(volume_id=ID),
        "DEADLINE_EXCEEDED: status busy",
        _has(phase=VolumePhase.BUSY),
    ),
    Row(DELETE, "cloud down", _delete(volume_id=ID), _down_ends, _down),
    Row(PUBLISH, "free", publish(), "OK", _has()),
    Row(PUBLISH, "attached here", publish(), "OK", _held(NODE)),
    Row(
        PUBLISH,
        "attached elsewhere",
        publish(),
        "FAILED_PRECONDITION: attached to node-2",
        _held(OTHER),
    ),
    Row(
        PUBLISH,
        "attached elsewhere, for several",
        publish(volume_capability=cap(_many, "block")),
        "OK",
        _held(OTHER, shareable=True),
    ),
    Row(
        PUBLISH,
        "attached elsewhere, asked for one node",
        publish(),
        "FAILED_PRECONDITION: attached to node-2",
        _held(OTHER, shareable=True),
    ),
    Row(PUBLISH, "no volume id", publish(volume_id=""), "INVALID_ARGUMENT: volume_id"),
    Row(PUBLISH, "no node id", publish(node_id=""), "INVALID_ARGUMENT: node_id"),
    Row(
        PUBLISH,
        "no capability",
        publish(volume_capability=None),
        "INVALID_ARGUMENT: volume_capability: not set",
    ),
    Row(
        PUBLISH,
        "unknown access mode",
        publish(volume_capability=cap(Mode.UNKNOWN)),
        "INVALID_ARGUMENT: volume_capability.access_mode",
    ),
    Row(
        PUBLISH,
        "read-only",
        publish(readonly=True),
        "INVALID_ARGUMENT: readonly: not supported",
        _has(),
    ),
    Row(
        PUBLISH,
        "unknown cloud",
        publish(secrets=_mars),
        "INVALID_ARGUMENT: secrets[cloud]",
    ),
    Row(PUBLISH, "no such volume", publish(volume_id=NO_ID), "NOT_FOUND: fake-vol-id"),
    Row(
        PUBLISH,
        "no such node",
        publish(node_id="nobody"),
        'NOT_FOUND: node_id: instance "nobody" not found',
        _has(),
    ),
    Row(
        PUBLISH,
        "attach limit",
        publish(),
        "RESOURCE_EXHAUSTED: node-1",
        _both(_has(), _limit),
    ),
    Row(
        PUBLISH,
        "comes to nothing once",
        publish(),
        "OK",
        _both(_has(), _fails("attach")),
    ),
    Row(
        PUBLISH,
        "comes to nothing each time",
        publish(),
        "INTERNAL: did not complete after 3 accepted requests",
        _both(_has(), _fails("attach", 9)),
    ),
    Row(
        PUBLISH,
        "never ends",
        publish(),
        "DEADLINE_EXCEEDED: status attaching",
        _both(_has(), _stuck("attach"), _patience(100)),
    ),
    Row(PUBLISH, "failed", publish(), "INTERNAL: administrator", _has(phase=_error)),
    Row(
        PUBLISH,
        "being deleted",
        publish(),
        "ABORTED: status deleting",
        _has(phase=VolumePhase.DELETING),
    ),
    Row(
        PUBLISH,
        "instance busy all the time",
        publish(),
        "ABORTED: words",
        _both(_refuses(*[None, errors.Busy] * 20), _patience(20)),
    ),
    Row(PUBLISH, "cloud down", publish(), _down_ends, _down),
    Row(UNPUBLISH, "attached here", unpublish(), "OK", _held(NODE)),
    Row(UNPUBLISH, "not attached", unpublish(), "OK", _has()),
    Row(UNPUBLISH, "attached elsewhere", unpublish(), "OK", _held(OTHER)),
    Row(UNPUBLISH, "no such volume", unpublish(volume_id=NO_ID), "OK"),
    Row(UNPUBLISH, "no such node", unpublish(node_id="nobody"), "OK", _held(NODE)),
    Row(UNPUBLISH, "no node id", unpublish(node_id=""), "OK", _held(NODE)),
    Row(UNPUBLISH, "no id", unpublish(volume_id=""), "INVALID_ARGUMENT: volume_id"),
    Row(
        UNPUBLISH,
        "unknown cloud",
        unpublish(secrets=_mars),
        "INVALID_ARGUMENT: secrets[cloud]",
    ),
    Row(
        UNPUBLISH,
        "comes to nothing each time",
        unpublish(),
        "INTERNAL: detaching volume",
        _both(_held(NODE), _fails("detach", 9)),
    ),
    Row(
        UNPUBLISH,
        "never ends",
        unpublish(),
        "DEADLINE_EXCEEDED: status detaching",
        _both(_held(NODE), _stuck("detach"), _patience(100)),
    ),
    Row(UNPUBLISH, "cloud down", unpublish(), _down_ends, _down),
    Row(VALIDATE, "fit", validate(), "OK", _has()),
    Row(
        VALIDATE, "no such volume", validate(volume_id=NO_ID), "NOT_FOUND: fake-vol-id"
    ),
    Row(VALIDATE, "no id", validate(volume_id=""), "INVALID_ARGUMENT: volume_id"),
    Row(
        VALIDATE,
        "no capabilities",
        validate(volume_capabilities=[]),
        "INVALID_ARGUMENT: volume_capabilities",
    ),
    Row(
        VALIDATE,
        "unknown access mode",
        validate(volume_capabilities=[cap(Mode.UNKNOWN)]),
        "INVALID_ARGUMENT: volume_capabilities[0].access_mode",
    ),
    Row(
        VALIDATE,
        "unknown cloud",
        validate(secrets=_mars),
        "INVALID_ARGUMENT: secrets[cloud]",
    ),
    Row(VALIDATE, "cloud down", validate(), _down_ends, _down),
    Row(LIST, "all", pb.ListVolumesRequest(), "OK", _has()),
    Row(
        LIST,
        "negative number",
        pb.ListVolumesRequest(max_entries=-1),
        'INVALID_ARGUMENT: max_entries: invalid value "-1"',
    ),
    Row(
        LIST,
        "invalid token",
        pb.ListVolumesRequest(starting_token="invalid-token"),
        'ABORTED: starting_token: invalid value "invalid-token"',
    ),
    Row(
        LIST,
        "a token that was invented",
        pb.ListVolumesRequest(starting_token="no-such-thing:"),
        'ABORTED: starting_token: invalid value "no-such-thing:"',
    ),
    Row(
        LIST,
        "token of an unknown cloud",
        pb.ListVolumesRequest(starting_token=f"{ID}:mars"),
        "ABORTED: starting_token",
    ),
    Row(
        LIST,
        "token of a volume that is gone",
        pb.ListVolumesRequest(starting_token=f"{ID}:"),
        "OK",
    ),
    Row(LIST, "cloud down", pb.ListVolumesRequest(), _down_ends, _down),
    Row(GET, "there", _get(volume_id=ID), "OK", _has()),
    Row(GET, "no id", _get(), "INVALID_ARGUMENT: volume_id"),
    Row(GET, "no such volume", _get(volume_id=NO_ID), "NOT_FOUND: fake-vol-id"),
    Row(GET, "cloud down", _get(volume_id=ID), _down_ends, _down),
    Row(CAPACITY, "all", pb.GetCapacityRequest(), "OK"),
    Row(
        CAPACITY,
        "unknown type",
        pb.GetCapacityRequest(parameters={"type": "gold"}),
        'INVALID_ARGUMENT: parameter type: unsupported value "gold"',
    ),
    Row(
        CAPACITY,
        "unknown access mode",
        pb.GetCapacityRequest(volume_capabilities=[cap(Mode.UNKNOWN)]),
        "INVALID_ARGUMENT: volume_capabilities[0].access_mode",
    ),
    Row(CAPACITY, "cloud down", pb.GetCapacityRequest(), _down_ends, _down),
    Row(EXPAND, "free", expand(), "OK", _has()),
    Row(EXPAND, "attached", expand(), "OK", _held(NODE)),
    Row(EXPAND, "large enough", expand(capacity_range=size(GIB)), "OK", _has()),
    Row(EXPAND, "no id", expand(volume_id=""), "INVALID_ARGUMENT: volume_id"),
    Row(
        EXPAND,
        "no range",
        expand(capacity_range=None),
        "INVALID_ARGUMENT: capacity_range: not set",
    ),
    Row(
        EXPAND,
        "unknown access mode",
        expand(volume_capability=cap(Mode.UNKNOWN)),
        "INVALID_ARGUMENT: volume_capability.access_mode",
    ),
    Row(
        EXPAND,
        "unknown cloud",
        expand(secrets=_mars),
        "INVALID_ARGUMENT: secrets[cloud]",
    ),
    Row(EXPAND, "no such volume", expand(volume_id=NO_ID), "NOT_FOUND: fake-vol-id"),
    Row(
        EXPAND,
        "limit below size",
        expand(capacity_range=size(2 * GIB, GIB)),
        "OUT_OF_RANGE: limit_bytes",
        _has(),
    ),
    Row(
        EXPAND,
        "larger than the cloud makes",
        expand(capacity_range=size(2048 * GIB)),
        "OUT_OF_RANGE: must be at most",
        _has(),
    ),
    Row(
        EXPAND,
        "it is larger than the limit",
        expand(capacity_range=size(GIB, 2 * GIB)),
        "OUT_OF_RANGE: the size of the volume",
        _has(),
    ),
    Row(
        EXPAND,
        "quota",
        expand(),
        "RESOURCE_EXHAUSTED: no space is left",
        _both(_has(), _quota),
    ),
    Row(
        EXPAND,
        "comes to nothing",
        expand(),
        "INTERNAL: resizing volume",
        _both(_has(), _fails("resize")),
    ),
    Row(EXPAND, "failed", expand(), "INTERNAL: administrator", _has(phase=_error)),
    Row(
        EXPAND,
        "never ends",
        expand(),
        "DEADLINE_EXCEEDED: status resizing",
        _both(_has(), _stuck("resize")),
    ),
    Row(
        EXPAND,
        "attached, where the cloud can't grow that",
        expand(),
        "FAILED_PRECONDITION: words",
        _both(_held(NODE), _refuses(None, errors.InUse)),
    ),
    Row(EXPAND, "cloud down", expand(), _down_ends, _down),
    Row(MODIFY, "another type", modify(type="fast"), "OK", _has()),
    Row(MODIFY, "the same type", modify(type="slow"), "OK", _has()),
    Row(
        MODIFY,
        "no id",
        pb.ControllerModifyVolumeRequest(),
        "INVALID_ARGUMENT: volume_id",
    ),
    Row(
        MODIFY,
        "unknown cloud",
        pb.ControllerModifyVolumeRequest(volume_id=ID, secrets=_mars),
        "INVALID_ARGUMENT: secrets[cloud]",
    ),
    Row(
        MODIFY,
        "a type by its ID",
        modify(type="id-of-fast"),
        "OK",
        _both(_has(), _types("id-of-fast")),
    ),
    Row(MODIFY, "no such volume", modify(type="fast"), "NOT_FOUND: aaaaaaaa"),
    Row(
        MODIFY,
        "unknown type",
        modify(type="gold"),
        'INVALID_ARGUMENT: mutable parameter type: unsupported value "gold"',
        _has(),
    ),
    Row(
        MODIFY,
        "unknown parameter",
        modify(colour="red"),
        "INVALID_ARGUMENT: colour",
        _has(),
    ),
    Row(
        MODIFY,
        "comes to nothing",
        modify(type="fast"),
        "INTERNAL: retyping volume",
        _both(_has(), _fails("retype")),
    ),
    Row(MODIFY, "cloud down", modify(type="fast"), _down_ends, _down),
    Row(OFFERS, "asked", pb.ControllerGetCapabilitiesRequest(), "OK"),
)

SPECIFIED = {
    CREATE: {
        "no name",
        "no capabilities",
        "unknown access mode",
        "a snapshot as source",
        "no such source",
        "the name is taken, other size",
        "the name is taken, other source",
        "a zone that no node meant reaches",
        "limit below size",
        "larger than the cloud makes",
        "bad credentials",
        "forbidden",
        "every zone is full",
    },
    DELETE: {"no id", "attached", "an id that is none", "with snapshots"},
    PUBLISH: {
        "no volume id",
        "no node id",
        "no capability",
        "no such volume",
        "no such node",
        "attached elsewhere",
        "attach limit",
        "attached here",
    },
    UNPUBLISH: {"no id", "no such volume", "no such node"},
    VALIDATE: {"no id", "no capabilities", "no such volume"},
    LIST: {"invalid token", "negative number"},
    GET: {"no id", "no such volume"},
    CAPACITY: {"all"},
    EXPAND: {"no id", "no range", "no such volume", "larger than the cloud makes"},
    MODIFY: {"no id", "no such volume", "unknown parameter"},
    OFFERS: {"asked"},
}
"""Source: CSI specification 1.12.0, the table of errors of each RPC."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.rpc}: {row.condition}")
def test_each_condition_has_its_code(row: Row) -> None:
    world = World()
    row.prepare(world)
    code, _, reports = world.ask(row.rpc, row.request).partition(": ")
    assert code == row.code, reports
    assert row.ends.partition(": ")[2] in reports


def test_no_condition_of_the_specification_lacks_a_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with capsys.disabled():
        print(f"\n{'RPC':28} {'condition':44} code")
        for row in ROWS:
            print(f"{row.rpc:28} {row.condition:44} {row.code}")
    shown = {
        rpc: {row.condition for row in ROWS if row.rpc == rpc} for rpc in SPECIFIED
    }
    missing = {rpc: SPECIFIED[rpc] - shown[rpc] for rpc in SPECIFIED}
    assert not any(missing.values()), missing
    assert len({(row.rpc, row.condition) for row in ROWS}) == len(ROWS)
    assert set(services.controller(World().controller).methods) == set(SPECIFIED)
    down = {row.rpc for row in ROWS if row.condition == "cloud down"}
    assert down == set(SPECIFIED) - {OFFERS}


def test_each_refusal_of_a_cloud_has_a_code() -> None:
    known = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.CloudError)
    }
    assert set(csi_codes.CODES) == known - {errors.CloudError}


def test_each_code_is_one_of_grpcs() -> None:
    assert set(grpc_status.STATUS) == set(Code)
    assert all(
        isinstance(item, grpc.StatusCode) for item in grpc_status.STATUS.values()
    )

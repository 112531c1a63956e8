"""The RPCs of CSI's node service: requests checked, one call per volume at a time.

Source: CSI specification 1.12.0, "Node Service RPC".
"""

import dataclasses
import posixpath
import time
from collections.abc import Callable, Mapping

from lib.csi import capabilities, formatting
from lib.csi.spec import csi_pb2
from lib.kernel.model import is_below, top_mount
from lib.node_volumes import decide_stage, stats
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import (
    NodeExpand,
    NodePublish,
    NodeUnpublish,
    NodeVolume,
    Request,
    Snapshot,
    Stage,
    Unstage,
)
from lib.volumes import callers, turns
from lib.volumes.csi_codes import Code, RefusedCall, invalid

CODES: Mapping[FailureReason, Code] = {
    FailureReason.INVALID: Code.INVALID_ARGUMENT,
    FailureReason.NOT_FOUND: Code.NOT_FOUND,
    FailureReason.NOT_STAGED: Code.FAILED_PRECONDITION,
    FailureReason.INCOMPATIBLE: Code.ALREADY_EXISTS,
    FailureReason.CONTENT: Code.FAILED_PRECONDITION,
    FailureReason.OUT_OF_RANGE: Code.OUT_OF_RANGE,
    FailureReason.FAILED: Code.INTERNAL,
    FailureReason.UNCERTAIN: Code.UNAVAILABLE,
    FailureReason.TIMED_OUT: Code.DEADLINE_EXCEEDED,
    FailureReason.PENDING: Code.ABORTED,
}
"""Every reason of the flow as a code."""

_EPHEMERAL = "csi.storage.k8s.io/ephemeral"
"""Key of the volume context. Source: kubernetes pkg/volume/csi (csi_mounter.go)."""
_Mode = capabilities.Mode
_READERS = frozenset({_Mode.SINGLE_NODE_READER_ONLY, _Mode.MULTI_NODE_READER_ONLY})
_Type = csi_pb2.NodeServiceCapability.RPC
_OFFERED = (
    _Type.STAGE_UNSTAGE_VOLUME,
    _Type.EXPAND_VOLUME,
    _Type.GET_VOLUME_STATS,
    _Type.VOLUME_CONDITION,
    _Type.SINGLE_NODE_MULTI_WRITER,
)

Serial = Callable[[str, Mapping[str, str]], str]
"""Returns the serial of a volume's disk, from volume id and publish context; empty
where the context lacks what it is derived from."""


class IdentityUnknown(Exception):
    """The node does not know its own identity yet. The message has the reasons."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeInfo:
    """What the kubelet publishes of a node.

    segments: of its topology. volumes_max: 0 for "the caller decides".
    """

    id: str
    segments: Mapping[str, str]
    volumes_max: int


@dataclasses.dataclass(frozen=True, slots=True)
class NodeServiceSettings:
    """How volumes are found and where they may be mounted.

    kubelet: the folder below which all paths must be, without links; empty: any.
    """

    serial: Serial
    info: Callable[[], NodeInfo]
    kubelet: str = ""


class NodeService:
    """Implements the node service."""

    def __init__(self, flow: NodeVolumesFlow, settings: NodeServiceSettings) -> None:
        self._flow = flow
        self._settings = settings
        self._key_locks = turns.KeyLocks()

    def stage(
        self, request: csi_pb2.NodeStageVolumeRequest, call: callers.Caller
    ) -> csi_pb2.NodeStageVolumeResponse:
        """Mount the volume's file system at the staging path."""
        volume = self._with_disk(request.volume_id, request.publish_context)
        path = self._path("staging_target_path", request.staging_target_path)
        capability = _capability(request.volume_capability)
        fs_type = capability.mount.fs_type.lower()
        if unsupported := decide_stage.unsupported(fs_type):
            raise _refused(unsupported)
        stage = Stage(
            volume,
            path,
            fs_type,
            tuple(flag for flag in capability.mount.mount_flags if flag),
            formatting.words(request.volume_context, fs_type),
            is_block=capability.WhichOneof("access_type") == "block",
            is_for_readers=capabilities.are_readers(capability),
        )
        self._settle(stage, call)
        return csi_pb2.NodeStageVolumeResponse()

    def unstage(
        self, request: csi_pb2.NodeUnstageVolumeRequest, call: callers.Caller
    ) -> csi_pb2.NodeUnstageVolumeResponse:
        """Unmount the staging path."""
        volume = self._volume(request.volume_id, {})
        path = self._path("staging_target_path", request.staging_target_path)
        self._settle(Unstage(volume, path), call)
        return csi_pb2.NodeUnstageVolumeResponse()

    def publish(
        self, request: csi_pb2.NodePublishVolumeRequest, call: callers.Caller
    ) -> csi_pb2.NodePublishVolumeResponse:
        """Mount the staged volume, or bind the disk, at the target path."""
        volume = self._with_disk(request.volume_id, request.publish_context)
        target = self._path("target_path", request.target_path)
        capability = _capability(request.volume_capability)
        if request.volume_context.get(_EPHEMERAL) == "true":
            text = "inline ephemeral volumes are not supported"
            raise RefusedCall(Code.UNIMPLEMENTED, text)
        if not request.staging_target_path:
            text = "staging_target_path: not set: the volume must be staged first"
            raise RefusedCall(Code.FAILED_PRECONDITION, text)
        mode = capability.access_mode.mode
        publish = NodePublish(
            volume,
            self._path("staging_target_path", request.staging_target_path),
            target,
            is_block=capability.WhichOneof("access_type") == "block",
            is_read_only=request.readonly or mode in _READERS,
            is_exclusive=mode == _Mode.SINGLE_NODE_SINGLE_WRITER,
        )
        self._settle(publish, call)
        return csi_pb2.NodePublishVolumeResponse()

    def unpublish(
        self, request: csi_pb2.NodeUnpublishVolumeRequest, call: callers.Caller
    ) -> csi_pb2.NodeUnpublishVolumeResponse:
        """Unmount the target path and delete it."""
        volume = self._volume(request.volume_id, {})
        target = self._path("target_path", request.target_path)
        self._settle(NodeUnpublish(volume, target), call)
        return csi_pb2.NodeUnpublishVolumeResponse()

    def expand(
        self, request: csi_pb2.NodeExpandVolumeRequest, call: callers.Caller
    ) -> csi_pb2.NodeExpandVolumeResponse:
        """Expand the file system to the size of its disk."""
        volume = self._volume(request.volume_id, {})
        path = self._volume_path(request.volume_path)
        required, limit = (
            request.capacity_range.required_bytes,
            request.capacity_range.limit_bytes,
        )
        if 0 < limit < required:
            least = f"at least required_bytes, {required}"
            text = invalid("capacity_range.limit_bytes", limit, least)
            raise RefusedCall(Code.OUT_OF_RANGE, text)
        # Older callers send no capability; the mount then shows whether it is writable.
        is_for_readers = capabilities.are_readers(request.volume_capability)
        expand = NodeExpand(volume, path, required, is_for_readers)
        snapshot = self._settle(expand, call)
        size_bytes = _size_bytes(snapshot, expand)
        return csi_pb2.NodeExpandVolumeResponse(capacity_bytes=size_bytes)

    def get_stats(
        self, request: csi_pb2.NodeGetVolumeStatsRequest, call: callers.Caller
    ) -> csi_pb2.NodeGetVolumeStatsResponse:
        """Return usage and condition. A hanging file system blocks its path only."""
        del call
        volume = self._volume(request.volume_id, {})
        path = self._volume_path(request.volume_path)
        with self._key_locks.hold(f"statistics of {path}"):
            try:
                statistics = stats.read(self._flow.kernel, volume.id, path)
            except CallFailed as failure:
                raise _refused(failure) from failure
        condition = csi_pb2.VolumeCondition(
            abnormal=bool(statistics.problem), message=statistics.problem or "healthy"
        )
        return csi_pb2.NodeGetVolumeStatsResponse(
            usage=_usage(statistics), volume_condition=condition
        )

    def offers(
        self, request: csi_pb2.NodeGetCapabilitiesRequest, call: callers.Caller
    ) -> csi_pb2.NodeGetCapabilitiesResponse:
        """Return the capabilities."""
        del request, call
        kind = csi_pb2.NodeServiceCapability
        return csi_pb2.NodeGetCapabilitiesResponse(
            capabilities=[kind(rpc=_Type(type=type)) for type in _OFFERED]
        )

    def get_info(
        self, request: csi_pb2.NodeGetInfoRequest, call: callers.Caller
    ) -> csi_pb2.NodeGetInfoResponse:
        """Return id, topology and attach limit, computed for each call."""
        del request, call
        try:
            info = self._settings.info()
        except IdentityUnknown as error:
            raise RefusedCall(Code.UNAVAILABLE, str(error)) from error
        topology = csi_pb2.Topology(segments=dict(info.segments))
        return csi_pb2.NodeGetInfoResponse(
            node_id=info.id,
            max_volumes_per_node=info.volumes_max,
            accessible_topology=topology if info.segments else None,
        )

    def _volume(self, volume_id: str, publish_context: Mapping[str, str]) -> NodeVolume:
        if not volume_id:
            raise RefusedCall(Code.INVALID_ARGUMENT, "volume_id: not set")
        return NodeVolume(volume_id, self._settings.serial(volume_id, publish_context))

    def _with_disk(
        self, volume_id: str, publish_context: Mapping[str, str]
    ) -> NodeVolume:
        """Return a volume of which the disk is required."""
        volume = self._volume(volume_id, publish_context)
        if not volume.serial:
            text = f'publish_context: does not name the disk of volume "{volume_id}"'
            text = f"{text}: must be the context of ControllerPublishVolume"
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
        return volume

    def _path(self, field: str, path: str) -> str:
        if not path:
            raise RefusedCall(Code.INVALID_ARGUMENT, f"{field}: not set")
        text = f'{field}: invalid value "{path[:200]}"'
        if not path.startswith("/"):
            text = f"{text}: must be an absolute path"
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
        normal = posixpath.normpath(path)
        resolved = self._flow.kernel.resolve(normal)
        kubelet = self._settings.kubelet
        if kubelet and not is_below(resolved, kubelet):
            text = f"{text}: must be below {kubelet}"
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
        return normal

    def _volume_path(self, path: str) -> str:
        """Return a path at which a volume can be; where it cannot, it is not found."""
        try:
            return self._path("volume_path", path)
        except RefusedCall as refused:
            if not path:
                raise
            raise RefusedCall(Code.NOT_FOUND, refused.message) from refused

    def _settle(self, request: Request, call: callers.Caller) -> Snapshot:
        def left_s() -> float:
            return 0.0 if call.is_cancelled else call.deadline - time.monotonic()

        with self._key_locks.hold(request.volume.id):
            try:
                return self._flow.settle(request, left_s)
            except CallFailed as failure:
                raise _refused(failure) from failure


def _refused(failure: CallFailed) -> RefusedCall:
    return RefusedCall(CODES[failure.reason], failure.message)


def _capability(
    capability: csi_pb2.VolumeCapability,
) -> csi_pb2.VolumeCapability:
    capabilities.check(capability, "volume_capability")
    if problem := capabilities.wrong(capability, None):
        raise RefusedCall(Code.INVALID_ARGUMENT, f"volume_capability: {problem}")
    return capability


def _size_bytes(snapshot: Snapshot, request: NodeExpand) -> int:
    mount = top_mount(snapshot.mounts, request.path)
    is_disk = snapshot.entry.number is not None or mount is None
    number = snapshot.entry.number if is_disk or mount is None else mount.number
    disk = snapshot.disk(number)
    return 0 if disk is None else disk.size_bytes


def _usage(statistics: stats.Stats) -> list[csi_pb2.VolumeUsage]:
    unit = csi_pb2.VolumeUsage
    if statistics.size_bytes is not None:
        return [unit(unit=unit.BYTES, total=statistics.size_bytes)]
    if statistics.usage is None:
        return []
    usage = statistics.usage
    space = unit(
        unit=unit.BYTES,
        total=usage.total_bytes,
        used=usage.used_bytes,
        available=usage.available_bytes,
    )
    if usage.total_inodes == 0:
        return [space]
    inodes = unit(
        unit=unit.INODES,
        total=usage.total_inodes,
        used=usage.used_inodes,
        available=usage.free_inodes,
    )
    return [space, inodes]

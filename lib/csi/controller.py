"""The RPCs of CSI's controller service: each validates its message, then settles it.

The required fields and the codes of invalid messages are CSI's; the outcome of a valid
request is the flow's.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence, Set

from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    UNLIMITED_BYTES,
    Feature,
    Volume,
    VolumeId,
    VolumePlace,
    VolumeProblem,
    VolumeRequest,
    VolumeSpec,
    is_same_type,
)
from lib.csi import capabilities, formatting, messages, sizes
from lib.csi.clouds import Clouds
from lib.csi.spec import csi_pb2
from lib.process import config
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall, invalid

Kind = csi_pb2.ControllerServiceCapability.RPC
OFFERED = (
    Kind.CREATE_DELETE_VOLUME,
    Kind.PUBLISH_UNPUBLISH_VOLUME,
    Kind.LIST_VOLUMES,
    Kind.LIST_VOLUMES_PUBLISHED_NODES,
    Kind.GET_CAPACITY,
    Kind.GET_VOLUME,
    Kind.VOLUME_CONDITION,
    Kind.CLONE_VOLUME,
    Kind.EXPAND_VOLUME,
    Kind.MODIFY_VOLUME,
    Kind.SINGLE_NODE_MULTI_WRITER,
)
REQUIRES: Mapping[csi_pb2.ControllerServiceCapability.RPC.Type, Set[Feature]] = {
    Kind.LIST_VOLUMES: {Feature.LIST},
    Kind.LIST_VOLUMES_PUBLISHED_NODES: {Feature.LIST},
    Kind.GET_CAPACITY: {Feature.CAPACITY},
    Kind.CLONE_VOLUME: {Feature.CLONE},
    Kind.EXPAND_VOLUME: {Feature.EXPAND_OFFLINE, Feature.EXPAND_ONLINE},
    Kind.MODIFY_VOLUME: {Feature.CHANGE_TYPE},
}
"""Features of which the provider must have at least one to offer the capability."""
CLAIM_NAME = "csi.storage.k8s.io/pvc/name"
CLAIM_NAMESPACE = "csi.storage.k8s.io/pvc/namespace"
PROVISIONER_KEYS = (CLAIM_NAME, CLAIM_NAMESPACE, "csi.storage.k8s.io/pv/name")
"""Source: kubernetes-csi/external-provisioner, --extra-create-metadata."""

_NOT_OF_CLOUD = frozenset({*PROVISIONER_KEYS, formatting.KEY})
"""Parameters that the provider does not receive."""
PROVISIONER_IDENTITY = "storage.kubernetes.io/csiProvisionerIdentity"
"""Added to the volume context. Source: kubernetes-csi/external-provisioner."""

PAGE_MOST = 10_000
"""Maximum number of volumes in a page: callers accept 4 MiB, gRPC's default."""

Annotations = Callable[[str, str, str], Mapping[str, str]]
"""Returns the annotations of a claim by its namespace and name, and by the name of its
volume; raises RefusedCall."""


def no_annotations(namespace: str, name: str, volume_name: str) -> Mapping[str, str]:
    """Return no annotations."""
    del namespace, name, volume_name
    return {}


@dataclasses.dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of the controller service.

    cluster: cluster ID in the ownership metadata of volumes. annotations: of
    PersistentVolumeClaims. features: of the provider.
    """

    cluster: str
    topology: messages.Topology
    annotations: Annotations = no_annotations
    features: frozenset[Feature] = frozenset(Feature)

    @property
    def offered(self) -> tuple[csi_pb2.ControllerServiceCapability.RPC.Type, ...]:
        """The capabilities of the controller service, in a fixed order."""
        return tuple(
            kind
            for kind in OFFERED
            if kind not in REQUIRES or REQUIRES[kind] & self.features
        )


class Controller:
    """Implements the controller service. Safe for many threads."""

    def __init__(self, clouds: Clouds, settings: ControllerSettings) -> None:
        self._clouds = clouds
        self._settings = settings

    @property
    def offered(self) -> tuple[csi_pb2.ControllerServiceCapability.RPC.Type, ...]:
        """The capabilities that `offers` reports."""
        return self._settings.offered

    def create_volume(
        self, request: csi_pb2.CreateVolumeRequest, call: callers.Caller
    ) -> csi_pb2.CreateVolumeResponse:
        """Create a volume, or return the existing volume of this name."""
        cloud = self._clouds.of(request.secrets)
        _require("name", request.name)
        capabilities.check_all(request.volume_capabilities)
        for capability in request.volume_capabilities:
            _refuse(capabilities.wrong(capability, is_shareable=None))
        if request.HasField("volume_content_source") and not self._clones:
            _refuse("volume_content_source: not supported")
        cluster = self._settings.cluster
        options = formatting.context(request.parameters, request.volume_capabilities)
        try:
            spec = cloud.place(self._spec(request, cloud, call), call)
        except RefusedCall as refused:
            raise cloud.kept_open(refused, request.name, cluster, call) from refused
        volume = _existing(cloud.settle(model.Make(spec), call))
        topology = self._settings.topology.accessible(
            volume.zones, request.accessibility_requirements
        )
        source = request.volume_content_source if spec.source else None
        return csi_pb2.CreateVolumeResponse(
            volume=messages.volume(
                volume, (*spec.context, *options.items()), topology, source
            )
        )

    @property
    def _clones(self) -> bool:
        return Feature.CLONE in self._settings.features

    def _spec(
        self,
        request: csi_pb2.CreateVolumeRequest,
        cloud: flow.VolumesFlow,
        call: callers.Caller,
    ) -> VolumeSpec:
        requirement = request.accessibility_requirements
        preferred, requisite = self._settings.topology.requested(requirement)
        parameters = request.parameters
        metadata = {k: parameters[k] for k in PROVISIONER_KEYS if k in parameters}
        spec = cloud.parse(
            VolumeRequest(
                name=request.name,
                size_bytes=sizes.fit(request.capacity_range, cloud.sizing),
                cluster=self._settings.cluster,
                parameters=_of_cloud(parameters),
                changes=dict(request.mutable_parameters),
                metadata=metadata,
                annotations=self._annotations(request.name, metadata, cloud, call),
                preferred=preferred,
                requisite=requisite,
                source=_source(request),
                is_shared=capabilities.are_shared(request.volume_capabilities),
            )
        )
        if not isinstance(spec, VolumeSpec):
            raise _wrong(spec)
        reachable = _reachable(spec, requisite)
        limit = request.capacity_range.limit_bytes
        return dataclasses.replace(
            reachable,
            requisite=requisite,
            least_bytes=request.capacity_range.required_bytes,
            most_bytes=limit or None,
        )

    def _annotations(
        self,
        volume_name: str,
        metadata: Mapping[str, str],
        cloud: flow.VolumesFlow,
        call: callers.Caller,
    ) -> Mapping[str, str]:
        """Return the claim's annotations; a volume that exists needs none."""
        name, namespace = metadata.get(CLAIM_NAME), metadata.get(CLAIM_NAMESPACE)
        if not name or not namespace:
            return {}
        try:
            return self._settings.annotations(namespace, name, volume_name)
        except RefusedCall:
            if cloud.exists(volume_name, self._settings.cluster, call):
                return {}
            raise

    def delete_volume(
        self, request: csi_pb2.DeleteVolumeRequest, call: callers.Caller
    ) -> csi_pb2.DeleteVolumeResponse:
        """Delete a volume; an absent volume is no error."""
        _require("volume_id", request.volume_id)
        volume_id = VolumeId(request.volume_id)
        cloud = self._clouds.holding(request.secrets, volume_id, call)
        cloud.settle(model.RemoveVolume(volume_id, self._settings.cluster), call)
        return csi_pb2.DeleteVolumeResponse()

    def publish(
        self, request: csi_pb2.ControllerPublishVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerPublishVolumeResponse:
        """Attach a volume to a node."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        _require("node_id", request.node_id)
        capability = request.volume_capability
        if not request.HasField("volume_capability"):
            _refuse("volume_capability: not set")
        capabilities.check(capability, "volume_capability")
        # A kubelet hands on the first mode of a PersistentVolume, its attacher the
        # widest: the node may not see that there are several writers.
        if problem := capabilities.wrong(capability, is_shareable=None):
            _refuse(f"volume_capability: {problem}")
        if request.readonly:
            _refuse("readonly: not supported: PUBLISH_READONLY is not offered")
        node = InstanceId(request.node_id)
        is_shared = capabilities.are_shared([capability])
        publish = model.PublishVolume(VolumeId(request.volume_id), node, is_shared)
        volume = _existing(cloud.settle(publish, call))
        return csi_pb2.ControllerPublishVolumeResponse(
            publish_context=messages.publish_context(volume, node)
        )

    def unpublish(
        self, request: csi_pb2.ControllerUnpublishVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerUnpublishVolumeResponse:
        """Detach a volume from a node, or from all nodes when none is named."""
        _require("volume_id", request.volume_id)
        volume_id = VolumeId(request.volume_id)
        cloud = self._clouds.holding(request.secrets, volume_id, call)
        node = InstanceId(request.node_id) if request.node_id else None
        cloud.settle(model.UnpublishVolume(volume_id, node), call)
        return csi_pb2.ControllerUnpublishVolumeResponse()

    def validate(
        self, request: csi_pb2.ValidateVolumeCapabilitiesRequest, call: callers.Caller
    ) -> csi_pb2.ValidateVolumeCapabilitiesResponse:
        """Report whether a volume supports all requested capabilities."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        capabilities.check_all(request.volume_capabilities)
        volume = cloud.read(VolumeId(request.volume_id), call)
        problems = (
            *(
                capabilities.wrong(capability, volume.is_shareable)
                for capability in request.volume_capabilities
            ),
            self._differs(request, volume, cloud),
        )
        response = csi_pb2.ValidateVolumeCapabilitiesResponse
        if message := next(filter(None, problems), ""):
            return response(message=message)
        return response(
            confirmed=response.Confirmed(
                volume_context=request.volume_context,
                volume_capabilities=request.volume_capabilities,
                parameters=request.parameters,
                mutable_parameters=request.mutable_parameters,
            )
        )

    def _differs(
        self,
        request: csi_pb2.ValidateVolumeCapabilitiesRequest,
        volume: Volume,
        cloud: flow.VolumesFlow,
    ) -> str:
        """Return how a volume differs from a request; empty: it does not.

        Source: CSI specification 1.12, ValidateVolumeCapabilities: confirmed.
        """
        known = cloud.context_keys | {PROVISIONER_IDENTITY, formatting.KEY}
        for key in sorted(set(request.volume_context) - known):
            return f'volume_context: unknown key "{key}"'
        if not request.parameters and not request.mutable_parameters:
            return ""  # a provider may require some, which CSI leaves out here
        spec = cloud.parse(
            VolumeRequest(
                name=volume.name,
                size_bytes=volume.size_bytes,
                cluster=self._settings.cluster,
                parameters=_of_cloud(request.parameters),
                changes=dict(request.mutable_parameters),
            )
        )
        if not isinstance(spec, VolumeSpec):
            return _text(spec)
        type_ = cloud.type_name(spec.type) if spec.type else volume.type
        if not is_same_type(type_, volume.type):
            return f'parameters.type: "{spec.type}": the volume has "{volume.type}"'
        if spec.zones and volume.zones and set(spec.zones) != set(volume.zones):
            zones = ", ".join(volume.zones)
            return f"the volume is in zone {zones}, not in {', '.join(spec.zones)}"
        return ""

    def list_volumes(
        self, request: csi_pb2.ListVolumesRequest, call: callers.Caller
    ) -> csi_pb2.ListVolumesResponse:
        """Return a page of the list of all volumes, which is at most a minute old."""
        if request.max_entries < 0:
            _refuse(invalid("max_entries", request.max_entries, "0 or more"))
        most = min(request.max_entries or PAGE_MOST, PAGE_MOST)
        volumes = self._clouds.all(call, request.starting_token)
        page = list(itertools.islice(volumes, most + 1))
        token = page[most - 1][0] if len(page) > most else ""
        return csi_pb2.ListVolumesResponse(
            entries=[_entry(volume) for _, volume in page[:most]], next_token=token
        )

    def get_capacity(
        self, request: csi_pb2.GetCapacityRequest, call: callers.Caller
    ) -> csi_pb2.GetCapacityResponse:
        """Return the capacity for new volumes of a type in a zone."""
        del call  # one short call, bounded by its own time-out
        cloud = self._clouds.default
        for number, capability in enumerate(request.volume_capabilities):
            capabilities.check(capability, f"volume_capabilities[{number}]")
        requirement = csi_pb2.TopologyRequirement(
            preferred=[request.accessible_topology]
        )
        preferred, _ = self._settings.topology.requested(requirement)
        sizing = cloud.sizing
        spec = cloud.parse(
            VolumeRequest(
                name="",
                size_bytes=sizing.default_bytes,
                cluster=self._settings.cluster,
                parameters=_of_cloud(request.parameters),
                preferred=preferred,
            )
        )
        if not isinstance(spec, VolumeSpec):
            raise _wrong(spec)
        capacity = cloud.capacity(spec.type, spec.zones or ())
        response = csi_pb2.GetCapacityResponse(
            available_capacity=min(max(capacity.available_bytes, 0), UNLIMITED_BYTES)
        )
        response.minimum_volume_size.value = sizing.least_bytes
        if capacity.largest_bytes is not None:
            response.maximum_volume_size.value = capacity.largest_bytes
        return response

    def get_volume(
        self, request: csi_pb2.ControllerGetVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerGetVolumeResponse:
        """Return one volume; the request names no cloud, so all are searched."""
        _require("volume_id", request.volume_id)
        volume = self._clouds.find(VolumeId(request.volume_id), call)
        response = csi_pb2.ControllerGetVolumeResponse
        status = response.VolumeStatus(
            published_node_ids=messages.published(volume),
            volume_condition=messages.condition(volume),
        )
        return response(volume=messages.volume(volume), status=status)

    def expand(
        self, request: csi_pb2.ControllerExpandVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerExpandVolumeResponse:
        """Expand a volume."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        if not request.HasField("capacity_range"):
            _refuse("capacity_range: not set")
        if request.HasField("volume_capability"):
            capabilities.check(request.volume_capability, "volume_capability")
        size = sizes.fit(request.capacity_range, cloud.sizing)
        expand = model.Expand(VolumeId(request.volume_id), size)
        volume = _existing(cloud.settle(expand, call))
        limit = request.capacity_range.limit_bytes
        if limit and volume.size_bytes > limit:
            required = f"at least {volume.size_bytes}, the size of the volume"
            text = invalid("capacity_range.limit_bytes", limit, required)
            raise RefusedCall(Code.OUT_OF_RANGE, text)
        return csi_pb2.ControllerExpandVolumeResponse(
            capacity_bytes=volume.size_bytes, node_expansion_required=True
        )

    def modify(
        self, request: csi_pb2.ControllerModifyVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerModifyVolumeResponse:
        """Change a volume's type."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        change = cloud.parse_change(dict(request.mutable_parameters))
        if isinstance(change, tuple):
            raise _wrong(change)
        cloud.settle(model.Modify(VolumeId(request.volume_id), change), call)
        return csi_pb2.ControllerModifyVolumeResponse()

    def offers(
        self, request: csi_pb2.ControllerGetCapabilitiesRequest, call: callers.Caller
    ) -> csi_pb2.ControllerGetCapabilitiesResponse:
        """Return the offered capabilities."""
        del request, call
        kind = csi_pb2.ControllerServiceCapability
        return csi_pb2.ControllerGetCapabilitiesResponse(
            capabilities=[kind(rpc=kind.RPC(type=type_)) for type_ in self.offered]
        )


def _require(field: str, value: str) -> None:
    if not value:
        _refuse(f"{field}: not set")


def _refuse(text: str) -> None:
    """Refuse as INVALID_ARGUMENT for a reason; do nothing without a reason."""
    if text:
        raise RefusedCall(Code.INVALID_ARGUMENT, text)


def _wrong(problems: Sequence[VolumeProblem]) -> RefusedCall:
    return RefusedCall(Code.INVALID_ARGUMENT, _text(problems))


def _text(problems: Sequence[VolumeProblem]) -> str:
    """Return the problems of fields in one line."""
    fields = (
        config.FieldProblem(problem.field, problem.value, problem.allowed)
        for problem in problems
    )
    return "; ".join(map(str, fields))


def _of_cloud(parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters of a StorageClass that the provider interprets."""
    return {k: v for k, v in parameters.items() if k not in _NOT_OF_CLOUD}


def _source(request: csi_pb2.CreateVolumeRequest) -> VolumeId | None:
    """Return the volume to clone."""
    if not request.HasField("volume_content_source"):
        return None
    source = request.volume_content_source
    if source.WhichOneof("type") != "volume":
        kind = source.WhichOneof("type") or "empty"
        _refuse(f'volume_content_source: unsupported value "{kind}": must be a volume')
    _require("volume_content_source.volume.volume_id", source.volume.volume_id)
    return VolumeId(source.volume.volume_id)


def _reachable(spec: VolumeSpec, requisite: tuple[str, ...]) -> VolumeSpec:
    """Return a spec without the places outside the requested topology.

    Raises:
        RefusedCall: RESOURCE_EXHAUSTED: no place remains.
    """
    accessible = [
        place
        for place in (VolumePlace(spec.zones, spec.provider), *spec.places)
        if not place.zones or not requisite or set(place.zones) & set(requisite)
    ]
    if not accessible:
        text = (
            "accessibility_requirements.requisite: no requested topology is"
            f" accessible: the volume must be created in zone"
            f" {', '.join(spec.zones or ())}, the request allows {', '.join(requisite)}"
        )
        raise RefusedCall(Code.RESOURCE_EXHAUSTED, text)
    first, *others = accessible
    return dataclasses.replace(
        spec, zones=first.zones, provider=first.provider, places=tuple(others)
    )


def _existing(volume: Volume | None) -> Volume:
    if volume is None:
        raise TypeError("a request for a volume was settled without a volume")
    return volume


def _entry(volume: Volume) -> csi_pb2.ListVolumesResponse.Entry:
    status = csi_pb2.ListVolumesResponse.VolumeStatus(
        published_node_ids=messages.published(volume),
        volume_condition=messages.condition(volume),
    )
    return csi_pb2.ListVolumesResponse.Entry(
        volume=messages.volume(volume), status=status
    )

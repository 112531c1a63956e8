"""The RPCs of CSI's controller service: each judges its request, then states a wish.

What a request must hold, and which code it gets where it does not, is CSI's; what
becomes of the wish is the flow's.
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
)
from lib.csi import capabilities, formatting, messages, sizes
from lib.csi.clouds import Clouds
from lib.csi.spec import csi_pb2
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall

Kind = csi_pb2.ControllerServiceCapability.RPC
OFFERED = (
    Kind.CREATE_DELETE_VOLUME,
    Kind.PUBLISH_UNPUBLISH_VOLUME,
    Kind.LIST_VOLUMES,
    Kind.LIST_VOLUMES_PUBLISHED_NODES,
    Kind.GET_CAPACITY,
    Kind.GET_VOLUME,
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
"""Features of which a provider must have one, for the capability to be offered."""
CLAIM_NAME = "csi.storage.k8s.io/pvc/name"
CLAIM_NAMESPACE = "csi.storage.k8s.io/pvc/namespace"
PROVISIONER_KEYS = (CLAIM_NAME, CLAIM_NAMESPACE, "csi.storage.k8s.io/pv/name")
"""Source: kubernetes-csi/external-provisioner, --extra-create-metadata."""

_NOT_OF_CLOUD = frozenset({*PROVISIONER_KEYS, formatting.KEY})
"""Parameters that the provider does not receive."""
PROVISIONER_IDENTITY = "storage.kubernetes.io/csiProvisionerIdentity"
"""Added to the volume context. Source: kubernetes-csi/external-provisioner."""

PAGE_MOST = 10_000
"""Volumes in one page, whatever is asked for: callers take 4 MiB, gRPC's default."""

Annotations = Callable[[str, str, str], Mapping[str, str]]
"""Returns the annotations of a claim by its namespace and name, and by the name of the
volume that is for it; raises Refused."""


def no_annotations(namespace: str, name: str, volume_name: str) -> Mapping[str, str]:
    """Read none."""
    del namespace, name, volume_name
    return {}


@dataclasses.dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What a driver is configured with.

    cluster: the mark of our volumes. annotations: of PersistentVolumeClaims. features:
    those of the provider.
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
        """Make a volume, or find the one that was made for this name."""
        cloud = self._clouds.of(request.secrets)
        _require("name", request.name)
        capabilities.check_all(request.volume_capabilities)
        for one in request.volume_capabilities:
            _refuse(capabilities.wrong(one, is_shareable=None))
        if request.HasField("volume_content_source") and not self._clones:
            _refuse("volume_content_source is set; want none: it is not supported")
        cluster = self._settings.cluster
        options = formatting.context(request.parameters, request.volume_capabilities)
        try:
            spec = cloud.place(self._spec(request, cloud, call), call)
        except RefusedCall as refused:
            raise cloud.kept_open(refused, request.name, cluster, call) from refused
        made = _there(cloud.settle(model.Make(spec), call))
        topology = self._settings.topology.reached(
            made.zones, request.accessibility_requirements
        )
        source = request.volume_content_source if spec.source else None
        return csi_pb2.CreateVolumeResponse(
            volume=messages.volume(
                made, (*spec.context, *options.items()), topology, source
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
        preferred, requisite = self._settings.topology.wanted(requirement)
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
        """Delete a volume; one that is gone is fine."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        volume_id = VolumeId(request.volume_id)
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
            _refuse("volume_capability is not set; want one")
        capabilities.check(capability, "volume_capability")
        if request.readonly:
            _refuse("readonly is true; want false, PUBLISH_READONLY is not offered")
        node = InstanceId(request.node_id)
        is_shared = capabilities.are_shared([capability])
        wish = model.PublishVolume(VolumeId(request.volume_id), node, is_shared)
        held = _there(cloud.settle(wish, call))
        return csi_pb2.ControllerPublishVolumeResponse(
            publish_context=messages.publish_context(held, node)
        )

    def unpublish(
        self, request: csi_pb2.ControllerUnpublishVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerUnpublishVolumeResponse:
        """Detach a volume from a node, or from all when none is named."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        node = InstanceId(request.node_id) if request.node_id else None
        cloud.settle(model.UnpublishVolume(VolumeId(request.volume_id), node), call)
        return csi_pb2.ControllerUnpublishVolumeResponse()

    def validate(
        self, request: csi_pb2.ValidateVolumeCapabilitiesRequest, call: callers.Caller
    ) -> csi_pb2.ValidateVolumeCapabilitiesResponse:
        """Report whether a volume can be used in all these ways."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        capabilities.check_all(request.volume_capabilities)
        found = cloud.look(VolumeId(request.volume_id), call)
        wrongs = (
            *(
                capabilities.wrong(one, found.is_shareable)
                for one in request.volume_capabilities
            ),
            self._differs(request, found, cloud),
        )
        response = csi_pb2.ValidateVolumeCapabilitiesResponse
        if message := next(filter(None, wrongs), ""):
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
        """Return what of a request is not true of a volume; empty: all is.

        Source: CSI specification 1.12, ValidateVolumeCapabilities: confirmed.
        """
        known = cloud.context_keys | {PROVISIONER_IDENTITY, formatting.KEY}
        for key in sorted(set(request.volume_context) - known):
            return f"volume_context has {key!r}, which this driver never writes"
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
            return "; ".join(str(problem) for problem in spec)
        if spec.type and cloud.type_name(spec.type) != volume.type:
            return f"parameter type is {spec.type!r}; the volume is {volume.type!r}"
        if spec.zones and volume.zones and set(spec.zones) != set(volume.zones):
            zones = ", ".join(volume.zones)
            return f"the volume is in zone {zones}, not in {', '.join(spec.zones)}"
        return ""

    def list_volumes(
        self, request: csi_pb2.ListVolumesRequest, call: callers.Caller
    ) -> csi_pb2.ListVolumesResponse:
        """Return a page of all volumes there are, as of a minute ago at most."""
        if request.max_entries < 0:
            _refuse(f"max_entries is {request.max_entries}; want 0 or more")
        most = min(request.max_entries or PAGE_MOST, PAGE_MOST)
        found = self._clouds.all(call, request.starting_token)
        page = list(itertools.islice(found, most + 1))
        token = page[most - 1][0] if len(page) > most else ""
        return csi_pb2.ListVolumesResponse(
            entries=[_entry(volume) for _, volume in page[:most]], next_token=token
        )

    def get_capacity(
        self, request: csi_pb2.GetCapacityRequest, call: callers.Caller
    ) -> csi_pb2.GetCapacityResponse:
        """Return what can still be made of a type in a zone."""
        del call  # one short call, bounded by its own time-out
        cloud = self._clouds.default
        for number, one in enumerate(request.volume_capabilities):
            capabilities.check(one, f"volume_capabilities[{number}]")
        wanted = csi_pb2.TopologyRequirement(preferred=[request.accessible_topology])
        preferred, _ = self._settings.topology.wanted(wanted)
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
        found = cloud.capacity(spec.type, spec.zones or ())
        response = csi_pb2.GetCapacityResponse(
            available_capacity=min(max(found.available_bytes, 0), UNLIMITED_BYTES)
        )
        response.minimum_volume_size.value = sizing.least_bytes
        if found.largest_bytes is not None:
            response.maximum_volume_size.value = found.largest_bytes
        return response

    def get_volume(
        self, request: csi_pb2.ControllerGetVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerGetVolumeResponse:
        """Show one volume; the request names no cloud, so each is asked."""
        _require("volume_id", request.volume_id)
        found = self._clouds.find(VolumeId(request.volume_id), call)
        response = csi_pb2.ControllerGetVolumeResponse
        status = response.VolumeStatus(published_node_ids=messages.published(found))
        return response(volume=messages.volume(found), status=status)

    def expand(
        self, request: csi_pb2.ControllerExpandVolumeRequest, call: callers.Caller
    ) -> csi_pb2.ControllerExpandVolumeResponse:
        """Grow a volume."""
        cloud = self._clouds.of(request.secrets)
        _require("volume_id", request.volume_id)
        if not request.HasField("capacity_range"):
            _refuse("capacity_range is not set; want one")
        if request.HasField("volume_capability"):
            capabilities.check(request.volume_capability, "volume_capability")
        size = sizes.fit(request.capacity_range, cloud.sizing)
        wish = model.Expand(VolumeId(request.volume_id), size)
        grown = _there(cloud.settle(wish, call))
        limit = request.capacity_range.limit_bytes
        if limit and grown.size_bytes > limit:
            text = f"capacity_range.limit_bytes is {limit}; want at least"
            raise RefusedCall(
                Code.OUT_OF_RANGE, f"{text} {grown.size_bytes}, which the volume has"
            )
        return csi_pb2.ControllerExpandVolumeResponse(
            capacity_bytes=grown.size_bytes, node_expansion_required=True
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
        """Return what is offered."""
        del request, call
        kind = csi_pb2.ControllerServiceCapability
        return csi_pb2.ControllerGetCapabilitiesResponse(
            capabilities=[kind(rpc=kind.RPC(type=one)) for one in self.offered]
        )


def _require(field: str, value: str) -> None:
    if not value:
        _refuse(f"{field} is empty; want it set")


def _refuse(text: str) -> None:
    """Refuse as INVALID_ARGUMENT, for a reason; without one go on."""
    if text:
        raise RefusedCall(Code.INVALID_ARGUMENT, text)


def _wrong(problems: Sequence[VolumeProblem]) -> RefusedCall:
    return RefusedCall(Code.INVALID_ARGUMENT, "; ".join(str(one) for one in problems))


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
        _refuse(f"volume_content_source is {kind}; want a volume: there are no others")
    _require("volume_content_source.volume.volume_id", source.volume.volume_id)
    return VolumeId(source.volume.volume_id)


def _reachable(spec: VolumeSpec, requisite: tuple[str, ...]) -> VolumeSpec:
    """Leave out the places that none of the nodes meant could reach.

    Raises:
        Refused: RESOURCE_EXHAUSTED; there are no others.
    """
    reached = [
        place
        for place in (VolumePlace(spec.zones, spec.provider), *spec.places)
        if not place.zones or not requisite or set(place.zones) & set(requisite)
    ]
    if not reached:
        text = (
            f"the volume would be in zone {', '.join(spec.zones or ())}; want one of"
            f" {', '.join(requisite)} (accessibility_requirements.requisite)"
        )
        raise RefusedCall(Code.RESOURCE_EXHAUSTED, text)
    first, *others = reached
    return dataclasses.replace(
        spec, zones=first.zones, provider=first.provider, places=tuple(others)
    )


def _there(volume: Volume | None) -> Volume:
    if volume is None:
        raise TypeError("a wish for a volume was settled without one")
    return volume


def _entry(volume: Volume) -> csi_pb2.ListVolumesResponse.Entry:
    status = csi_pb2.ListVolumesResponse.VolumeStatus(
        published_node_ids=messages.published(volume)
    )
    return csi_pb2.ListVolumesResponse.Entry(
        volume=messages.volume(volume), status=status
    )

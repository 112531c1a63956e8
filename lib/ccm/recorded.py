"""State of Services, Nodes and volumes as the cluster records it.

Reads of the Kubernetes API alone; the cloud is not called. The number of calls does not
grow with the number of objects, but for the pages of lists.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lib.balancers import model as balancers
from lib.cloud import provider_id
from lib.kube import client, listing, objects, persistent_volumes, recorded_events
from lib.kube import nodes as kube_nodes
from lib.kube.resources import (
    CLAIMS,
    NODES,
    PERSISTENT_VOLUMES,
    SERVICES,
    VOLUME_ATTACHMENTS,
)

NETWORK = "NetworkUnavailable"
"""Condition of a Node that has no route. Source: Kubernetes core/v1."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceRow:
    """A Service. state: Ready, Pending, Deleting, or OtherClass: not managed here.

    load_balancer: the ID that is recorded; empty: none. address: all of them.
    """

    key: str
    address: str
    load_balancer: str
    state: str
    problem: str


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRow:
    """A Node. state: Ready, NotReady, Shutdown, Uninitialized or Deleting.

    server: the ID in the provider ID; empty: none.
    """

    name: str
    address: str
    server: str
    state: str
    problem: str


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeRow:
    """A PersistentVolume, or a claim without one.

    state: its phase, Attached, or Deleting. node: of the attachment.
    """

    name: str
    claim: str
    volume_id: str
    node: str
    state: str
    problem: str


def services(
    api: client.Api, id_annotations: Sequence[str], timeout_s: float
) -> tuple[ServiceRow, ...]:
    """Return the Services of type LoadBalancer: two calls.

    id_annotations: annotations with the ID of the load balancer, the first that is set.

    Raises:
        KubeError: they cannot be read.
    """
    listed = listing.read(api, SERVICES, balancers.Service, timeout_s=timeout_s)
    events = recorded_events.read(api, timeout_s, SERVICES.kind)
    problems = recorded_events.problems(events)
    return tuple(
        _service(service, id_annotations, problems)
        for service in sorted(listed.items, key=lambda service: service.key)
        if service.spec.type == balancers.TYPE or service.has_finalizer
    )


def _service(
    service: balancers.Service,
    id_annotations: Sequence[str],
    problems: Mapping[str, str],
) -> ServiceRow:
    about = service.metadata
    ingress = service.status.load_balancer.ingress
    addresses = [entry.ip or entry.hostname for entry in ingress]
    is_leaving = service.is_leaving and not service.is_of_other_class
    if is_leaving or about.deletion_timestamp is not None:
        state = "Deleting"
    elif service.spec.load_balancer_class:
        state = "OtherClass"
    else:
        state = "Ready" if addresses else "Pending"
    ids = [about.annotations.get(key, "") for key in id_annotations]
    load_balancer = next(filter(None, ids), "")
    problem = problems.get(about.uid, "")
    return ServiceRow(service.key, ", ".join(addresses), load_balancer, state, problem)


def nodes(api: client.Api, timeout_s: float) -> tuple[NodeRow, ...]:
    """Return all Nodes: two calls.

    Raises:
        KubeError: they cannot be read.
    """
    listed = listing.read(api, NODES, kube_nodes.Node, timeout_s=timeout_s)
    events = recorded_events.read(api, timeout_s, NODES.kind)
    problems = recorded_events.problems(events)
    ordered = sorted(listed.items, key=lambda node: node.name)
    return tuple(_node(node, problems) for node in ordered)


def _node(node: kube_nodes.Node, problems: Mapping[str, str]) -> NodeRow:
    addresses = [
        address.address
        for address in node.status.addresses
        if address.type in kube_nodes.IP_ADDRESS_TYPES
    ]
    # The kubelet reports Events of a Node with its name as the UID.
    problem = problems.get(node.metadata.uid) or problems.get(node.name, "")
    for condition in node.status.conditions:
        if condition.type == NETWORK and condition.status == "True":
            problem = problem or f"{NETWORK}: {condition.reason}"
    return NodeRow(
        node.name, ", ".join(addresses), _server(node), _state(node), problem
    )


def _server(node: kube_nodes.Node) -> str:
    try:
        return provider_id.parse(node.spec.provider_id).id
    except provider_id.ProviderIdError:
        return node.spec.provider_id


def _state(node: kube_nodes.Node) -> str:
    if node.metadata.deletion_timestamp is not None:
        return "Deleting"
    if node.has_taint(kube_nodes.UNINITIALIZED_TAINT):
        return "Uninitialized"
    if node.has_taint(kube_nodes.SHUTDOWN_TAINT):
        return "Shutdown"
    return "Ready" if node.is_ready else "NotReady"


class _ClaimReference(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(persistent_volumes.PersistentVolumeSpec, frozen=True, rename="camel"):
    claim_ref: _ClaimReference | None = None


class _Phase(msgspec.Struct, frozen=True):
    phase: str = ""
    message: str = ""


class _Volume(persistent_volumes.PersistentVolume, frozen=True):
    spec: _VolumeSpec = _VolumeSpec()
    status: _Phase = _Phase()


class _Claim(persistent_volumes.VolumeClaim, frozen=True):
    status: _Phase = _Phase()


class _AttachmentSource(msgspec.Struct, frozen=True, rename="camel"):
    persistent_volume_name: str | None = None


class _AttachmentSpec(msgspec.Struct, frozen=True, rename="camel"):
    source: _AttachmentSource = _AttachmentSource()
    node_name: str = ""


class _AttachmentError(msgspec.Struct, frozen=True):
    message: str = ""


class _AttachmentStatus(msgspec.Struct, frozen=True, rename="camel"):
    attached: bool = False
    attach_error: _AttachmentError | None = None
    detach_error: _AttachmentError | None = None


class _Attachment(msgspec.Struct, frozen=True):
    """Source: Kubernetes storage.k8s.io/v1 VolumeAttachment."""

    metadata: objects.ObjectMeta
    spec: _AttachmentSpec = _AttachmentSpec()
    status: _AttachmentStatus = _AttachmentStatus()

    @property
    def problem(self) -> str:
        error = self.status.attach_error or self.status.detach_error
        if error is None:
            return ""
        operation = "Attach" if self.status.attach_error else "Detach"
        return f"{operation}Error: {error.message}"


def volumes(api: client.Api, timeout_s: float) -> tuple[VolumeRow, ...]:
    """Return all PersistentVolumes, and claims without one: four calls.

    Raises:
        KubeError: they cannot be read.
    """
    listed = listing.read(api, PERSISTENT_VOLUMES, _Volume, timeout_s=timeout_s)
    claims = listing.read(api, CLAIMS, _Claim, timeout_s=timeout_s)
    attached = listing.read(api, VOLUME_ATTACHMENTS, _Attachment, timeout_s=timeout_s)
    events = recorded_events.read(api, timeout_s, CLAIMS.kind)
    problems = recorded_events.problems(events)
    rows = [_volume(volume, attached.items, problems) for volume in listed.items]
    rows += [
        VolumeRow(
            "",
            claim.metadata.key,
            "",
            "",
            claim.status.phase or "Pending",
            problems.get(claim.uid, ""),
        )
        for claim in claims.items
        if not claim.is_bound
    ]
    return tuple(sorted(rows, key=lambda row: (row.claim, row.name)))


def _volume(
    volume: _Volume, attached: Iterable[_Attachment], problems: Mapping[str, str]
) -> VolumeRow:
    claim = volume.spec.claim_ref or _ClaimReference()
    uses = [
        attachment
        for attachment in attached
        if attachment.spec.source.persistent_volume_name == volume.name
    ]
    state = volume.status.phase
    if volume.metadata.deletion_timestamp is not None:
        state = "Deleting"
    elif any(use.status.attached for use in uses):
        state = "Attached"
    reported = [use.problem for use in uses if use.problem]
    problem = next(iter(reported), "") or volume.status.message
    return VolumeRow(
        volume.name,
        "/".join(filter(None, (claim.namespace, claim.name))),
        volume.handle,
        ", ".join(sorted({use.spec.node_name for use in uses})),
        state,
        problem or problems.get(claim.uid, ""),
    )

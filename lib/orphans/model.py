"""Input and findings of cleanup. Frozen values only."""

import dataclasses
import datetime
import enum
from collections.abc import Mapping

import msgspec

from lib.cloud import layouts as cloud_layouts
from lib.cloud import load_balancers
from lib.cloud import machines as cloud_machines
from lib.cloud import routes as cloud_routes
from lib.cloud import volumes as cloud_volumes
from lib.cloud.load_balancers import Cluster, Role
from lib.kube import objects
from lib.kube import persistent_volumes as kube_volumes
from lib.kube.resources import Resource

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
"""Source: k8s.io/cloud-provider service/helpers, LoadBalancerCleanupFinalizer."""
MIN_AGE = datetime.timedelta(minutes=10)
"""Younger resources are ignored: their objects may not be known yet."""


class Other(enum.StrEnum):
    """Owned resources other than load balancers and their parts."""

    ROUTE = "route"
    PAIR = "address pair"
    VOLUME = "volume"
    MACHINE = "machine"
    """A VM of Cluster API, and its parts."""
    LAYOUT = "layout"
    """What terraform/ creates outside of the cluster."""


Subject = Role | Other
SUBJECTS: tuple[Subject, ...] = (*Role, *Other)


class ServiceSpec(msgspec.Struct, frozen=True):
    """The type of a Service."""

    type: str = ""


class Ingress(msgspec.Struct, frozen=True):
    """One entry of status.loadBalancer.ingress."""

    ip: str = ""
    hostname: str = ""


class ServiceLoadBalancer(msgspec.Struct, frozen=True):
    """status.loadBalancer."""

    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The addresses that a Service shows."""

    load_balancer: ServiceLoadBalancer = ServiceLoadBalancer()


class Service(msgspec.Struct, frozen=True):
    """A Service, with only what refers to resources of a cloud."""

    metadata: objects.ObjectMeta
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def has_resources(self) -> bool:
        """Report whether its controller creates or deletes resources for it."""
        is_desired = self.spec.type == "LoadBalancer"
        return is_desired or FINALIZER in self.metadata.finalizers

    @property
    def handles(self) -> frozenset[str]:
        """All IDs and addresses by which it may refer to a resource."""
        shown = self.status.load_balancer.ingress
        named = {text for ingress in shown for text in (ingress.ip, ingress.hostname)}
        return frozenset({*self.metadata.annotations.values(), *named} - {""})


class MachineRecord(msgspec.Struct, frozen=True):
    """A machine object of a provider of Cluster API, as far as it owns resources."""

    metadata: objects.ObjectMeta


@dataclasses.dataclass(frozen=True, slots=True)
class MachineKind:
    """The machine objects of a provider. finalizer: without it one is released."""

    resource: Resource
    finalizer: str

    def is_released(self, record: MachineRecord) -> bool:
        """Report whether its deletion ended without that of all it owns."""
        about = record.metadata
        is_kept = self.finalizer in about.finalizers
        return about.deletion_timestamp is not None and not is_kept


@dataclasses.dataclass(frozen=True, slots=True)
class FailedList:
    """A list that could not be read, and why, without secrets."""

    why: str


Listed = tuple[load_balancers.Owned | load_balancers.NotOwned, ...]
Routes = tuple[cloud_routes.Owned | cloud_routes.NotOwned, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CloudLists:
    """Lists of a cloud; None: the cloud does not support them, or none was read.

    balancers: by role. volumes: all of the project.
    """

    balancers: Mapping[Role, Listed | FailedList]
    volumes: tuple[cloud_volumes.Volume, ...] | FailedList | None = None
    routes: Routes | FailedList | None = None
    machines: tuple[cloud_machines.Owned, ...] | FailedList | None = None
    layouts: tuple[cloud_layouts.ProjectObject, ...] | FailedList | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterLists:
    """Lists of a cluster, read after the cloud.

    claims: PersistentVolumeClaims. nodes: names of all Nodes.
    """

    services: tuple[Service, ...] | FailedList = ()
    persistent: tuple[kube_volumes.PersistentVolume, ...] | FailedList = ()
    claims: tuple[kube_volumes.VolumeClaim, ...] | FailedList = ()
    nodes: frozenset[str] | FailedList = frozenset()
    machines: tuple[MachineRecord, ...] | FailedList = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a survey.

    volume_cluster: ID in the ownership metadata of volumes; empty: unknown.
    layout_cluster: the same of objects of layouts. subjects:
    of the findings. min_age: younger resources are ignored. is_gone: the cluster does
    not exist any more. own_id: the UID of the cluster's namespace kube-system.
    machine_kind: None: the provider has no machines of Cluster API.
    """

    cluster: Cluster
    volume_cluster: str
    subjects: frozenset[Subject] = frozenset(SUBJECTS)
    min_age: datetime.timedelta = MIN_AGE
    is_gone: bool = False
    own_id: str = ""
    machine_kind: MachineKind | None = None
    layout_cluster: str = ""


class FindingState(enum.StrEnum):
    """State of a finding."""

    ORPHAN = "orphan"
    KEPT = "kept"
    """Owned by no object, and kept on purpose: deleted only on explicit request."""
    NOT_OWNED = "not owned"
    """Without an ownership tag: it is never deleted."""


Records = tuple[cloud_routes.Record, ...]
"""Of one cluster, one for each table."""

Source = (
    load_balancers.Owned
    | load_balancers.NotOwned
    | cloud_volumes.Volume
    | cloud_routes.Owned
    | cloud_routes.NotOwned
    | cloud_machines.Owned
    | cloud_layouts.ProjectObject
)


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One resource. kind: in the cloud's words. created: UTC, None: not reported."""

    state: FindingState
    subject: Subject
    kind: str
    id: str
    name: str
    created: datetime.datetime | None
    created_for: str
    reason: str
    source: Source = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class UnknownSubject:
    """Resources of a kind that could not be compared, and why."""

    subject: Subject
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class Survey:
    """All findings, in the order of subjects, and what is unknown."""

    findings: tuple[Finding, ...]
    unknown: tuple[UnknownSubject, ...]

    def of(self, *states: FindingState) -> tuple[Finding, ...]:
        """Return the findings of these states."""
        return tuple(finding for finding in self.findings if finding.state in states)

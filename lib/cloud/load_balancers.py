"""The vocabulary of load balancers: what a Service asks for, and what a cloud answers.

Rules: frozen values only, no I/O. A provider's own settings and trees travel in fields
named `native`, which only the package that made them reads. One order of calls holds:
`refer` and `parse` facts, `observe` targets, `plan` one, `apply` its steps one by one
with `gates` between them.
"""

import dataclasses
import datetime
import enum
import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from lib.cloud import steps
from lib.cloud.model import Address, Seen, Unknown
from lib.cloud.write_places import Places

# ---------------------------------------------------------------- what is asked for


class PortProtocol(enum.StrEnum):
    """Source: Kubernetes core/v1 Protocol."""

    TCP = "TCP"
    UDP = "UDP"
    SCTP = "SCTP"


class IpFamily(enum.StrEnum):
    """Source: Kubernetes core/v1 IPFamily."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"


class IpMode(enum.StrEnum):
    """Source: Kubernetes core/v1 LoadBalancerIPMode."""

    VIP = "VIP"
    PROXY = "Proxy"


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Cluster that owns load balancers.

    id: unique in the world; part of every ownership tag. name: --cluster-name, part of
    names, and often the same in many clusters.
    """

    id: str
    name: str


PORTS_NAMED = 5
"""Ports of a Service named in one problem, at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class Port:
    """One port of a Service. node_port: 0 when none is allocated."""

    port: int
    protocol: PortProtocol = PortProtocol.TCP
    node_port: int = 0
    name: str = ""
    app_protocol: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A Node that may receive traffic: the exclusions of Kubernetes are applied.

    addresses: as in its status, in that order. labels: key to value.
    """

    name: str
    provider_id: str = ""
    addresses: tuple[Address, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Ingress:
    """One entry of status.loadBalancer.ingress. ip_mode: only with an ip."""

    ip: str = ""
    hostname: str = ""
    ip_mode: IpMode | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """State of a Service and its Nodes, not validated.

    annotations: all of the Service's. is_local: externalTrafficPolicy is Local.
    has_affinity: sessionAffinity is ClientIP. load_balancer_ip, source_ranges,
    ip_families, external_ips: of spec, in its order. ingress: as the status has it now.
    serving_nodes: with is_local, names of the Nodes on which an endpoint of the Service
    is ready; None: not known, see `LoadBalancers.uses_endpoints`.
    """

    cluster: Cluster
    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    nodes: tuple[Node, ...] = ()
    is_local: bool = False
    health_check_node_port: int = 0
    has_affinity: bool = False
    load_balancer_ip: str = ""
    load_balancer_class: str = ""
    source_ranges: tuple[str, ...] = ()
    ip_families: tuple[IpFamily, ...] = (IpFamily.IPV4,)
    external_ips: tuple[str, ...] = ()
    ingress: tuple[Ingress, ...] = ()
    serving_nodes: frozenset[str] | None = None


class Reason(steps.ProblemReason):
    """What can be wrong with a Service in any cloud; see `LoadBalancers.reasons`."""

    INVALID_ANNOTATION = "InvalidAnnotation"
    """A value that is not allowed; the default is used in its place, unless fatal."""
    INVALID_SERVICE = "InvalidService"
    """A field of spec that this cloud can't serve."""
    UNKNOWN_CLASS = "UnknownClass"
    NO_NODES = "NoNodes"
    NO_NODE_PORT = "NoNodePort"
    NO_ADDRESS = "NodeWithoutAddress"
    NO_HEALTH_CHECK = "NoHealthCheck"
    """Local traffic policy without a monitor: Nodes without a Pod drop traffic."""
    ADDRESS_TAKEN = "AddressTaken"
    PORT_CONFLICT = "PortConflict"
    """Another Service on the same load balancer has the port."""
    NOT_OWNED = "LoadBalancerNotOwned"
    """One bears our name or was named by the user, and is not ours to use."""
    MISSING = "LoadBalancerMissing"
    """The load balancer that the Service names, or had, does not exist."""
    IN_ERROR = "LoadBalancerInError"
    PENDING = "LoadBalancerPending"
    """The cloud has not ended its last change for minutes: nothing can be changed."""


def shown_ports(ports: Sequence[Port]) -> str:
    """Return the first ports of many, for one message: a Service may have thousands."""
    shown = ", ".join(f"{port.port}/{port.protocol}" for port in ports[:PORTS_NAMED])
    more = len(ports) - PORTS_NAMED
    if len(ports) == 1:
        return f"port {shown}"
    return f"each of ports {shown}{f' and {more} more' if more > 0 else ''}"


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """Identity of a load balancer; available even if the Service is invalid.

    native: what the room needs beside the names: stored ids, addresses.
    """

    cluster: Cluster
    namespace: str
    name: str
    uid: str
    native: Hashable = None

    @property
    def key(self) -> str:
        """The Service's key, for logs and Events."""
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """The desired state, parsed. problems: those that are not fatal."""

    native: object
    problems: tuple[steps.Problem, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Problems:
    """Why facts could not be parsed; at least one is fatal."""

    problems: tuple[steps.Problem, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One load balancer to be brought about; spec None: to be deleted.

    only: IDs of the resources that a plan without a spec may change or delete; None:
    everything that is owned by the Service.
    """

    ref: Ref
    spec: Spec | None
    only: frozenset[str] | None = None

    @property
    def key(self) -> str:
        """The Service's key."""
        return self.ref.key


# ---------------------------------------------------------------- what is there


class Depth(enum.IntEnum):
    """How much an observation reads; a deeper one shows all of a shallower one."""

    CHANGED = 1
    """What the cloud says has not changed since it was last read may be reused."""
    TREE = 2
    """All that lists and status trees show, read again."""
    FULL = 3
    """Also what only one call per pool shows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """What there is for one target, with all that a plan for it has to know.

    is_there: anything of ours exists. id: of the load balancer; empty without one.
    """

    is_there: bool
    id: str
    native: object


Observation = Seen[Observed] | Unknown
"""Unknown: it could not be read, so nothing may be planned."""


# ---------------------------------------------------------------- what is to be done


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """What a pass may write on the Service.

    ingress: None: not known, leave the status as it is. annotations: key to value,
    None to remove it; those that already hold are included.
    """

    ingress: tuple[Ingress, ...] | None = None
    annotations: tuple[tuple[str, str | None], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Plan(steps.Plan):
    """What brings a load balancer one way closer; see `steps.Plan`.

    results: may be written immediately, before the steps.
    """

    results: Results = dataclasses.field(default_factory=Results)


class Role(enum.StrEnum):
    """What a resource is to a Service, in words that no single cloud owns."""

    LOAD_BALANCER = "load balancer"
    USE = "use"
    """What a Service has on a load balancer of others."""
    PART = "part"
    """A part of a load balancer of others that nothing refers to."""
    ADDRESS = "address"
    FILTER = "packet filter"


ROLES = frozenset(Role)


@dataclasses.dataclass(frozen=True, slots=True)
class Owned:
    """A resource that carries the ownership tag of a cluster.

    kind: in the cloud's words. uid: of the Service that it was created for. created:
    UTC; of a USE the last change of the load balancer; None: not reported. service:
    that Service's key as far as the resource shows it. ref: what a plan without the
    Service needs; None: there can be none. handles: IDs and addresses by which a
    Service or another resource refers to it. is_free: an ADDRESS that leads nowhere.
    note: what is special about it, as a clause.
    """

    kind: str
    id: str
    name: str
    uid: str
    role: Role = Role.LOAD_BALANCER
    created: datetime.datetime | None = None
    service: str = ""
    ref: Ref | None = None
    handles: frozenset[str] = frozenset()
    is_free: bool = False
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class NotOwned:
    """A resource without any ownership tag that resembles those of a reference daemon.

    Fields: see `Owned`. Nothing proves which cluster it belongs to.
    """

    kind: str
    id: str
    name: str
    role: Role
    created: datetime.datetime | None = None
    service: str = ""
    note: str = ""

    @property
    def uid(self) -> str:
        """Empty: of no known Service."""
        return ""


@dataclasses.dataclass(frozen=True, slots=True)
class Adoption:
    """What takes a load balancer over for a Service.

    addresses: under which it can be reached. owners: "<cluster id>:<Service UID>" of
    its former ownership tags. steps: in this order, each after the gate of the load
    balancer. annotations: to be written on the Service afterwards. obstacle: why the
    steps cannot be applied; empty: they can.
    """

    name: str
    addresses: tuple[str, ...]
    owners: frozenset[str]
    steps: tuple[steps.Step, ...]
    annotations: tuple[tuple[str, str], ...]
    obstacle: str = ""


@runtime_checkable
class Adopting(Protocol):
    """What load balancers have beside `LoadBalancers` if they can be taken over."""

    def adoption(self, ref: Ref, id_: str) -> Adoption:
        """Return what takes a load balancer over, on the word of a person.

        Raises:
            NotFound: none exists with this ID. CloudError: it cannot be read.
        """
        ...


class LoadBalancers(Protocol):
    """Load balancers of one cloud. Safe to use from several threads.

    Pure: refer, parse, plan. Every other call is bounded by time-outs of its own.
    """

    @property
    def reasons(self) -> Collection[steps.ProblemReason]:
        """The provider's own reasons, beside `Reason` and `steps.CommonReason`."""
        ...

    @property
    def uses_endpoints(self) -> bool:
        """Whether facts are to contain `serving_nodes`: EndpointSlices are watched.

        False for a cloud that finds out by health checks which Nodes serve a Service.
        """
        ...

    @property
    def places(self) -> Places | None:
        """Return the places of what is written in parallel; None: there is no limit."""
        ...

    def refer(self, facts: Facts) -> Ref:
        """Return how to find what there is for these facts, however wrong they are."""
        ...

    def parse(self, facts: Facts) -> Spec | Problems:
        """Parse the desired state; every problem is named, with what is allowed."""
        ...

    def observe(
        self, targets: Collection[Target], depth: Depth
    ) -> Mapping[Ref, Observation]:
        """Read what there is; one entry each, never raises for one of them.

        Many targets cost a few lists and at most one call each at TREE, plus one for
        each pool at FULL.
        """
        ...

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """Return what brings the target closer. Pure: the same in, the same out.

        now: UTC.
        """
        ...

    def apply(self, step: steps.Step, within_s: float = math.inf) -> steps.StepResult:
        """Make one write of the cloud, and do not wait for what comes of it.

        within_s: the request is not sent later than this many seconds from now. One
        that was sent in time may be answered later.

        Raises:
            CloudError: Busy and Unavailable of a step that is not repeatable: observe
            before anything is made again.
        """
        ...

    def gates(
        self, asked: Collection[steps.Asked]
    ) -> Mapping[str, steps.Gate | Unknown]:
        """Ask whether open plans may continue, by ID; one call for any number."""
        ...

    def owned(
        self, cluster_id: str, roles: Collection[Role] = ROLES
    ) -> Iterator[Owned | NotOwned]:
        """List what carries the cluster's ownership tag, and what resembles it.

        roles: of what is listed; a few lists for each, however many resources.

        Raises:
            CloudError: it could not be read.
        """
        ...

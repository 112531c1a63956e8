"""The vocabulary of load balancers: what a Service asks for, and what a cloud answers.

Rules: frozen values only, no I/O. A provider's own settings and trees travel in fields
named `native`, which only the room that made them looks into. One order of calls holds:
`refer` and `parse` facts, `observe` targets, `plan` one, `apply` its steps one by one
with `gates` between them.
"""

import dataclasses
import datetime
import enum
import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Protocol

from lib.cloud.model import Address, Seen, Unknown

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
    """Whose load balancers these are.

    id: unique in the world; part of every mark. name: --cluster-name, part of names,
    and often the same in many clusters.
    """

    id: str
    name: str


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
    """What a Service and its Nodes say, unjudged.

    annotations: all of the Service's. is_local: externalTrafficPolicy is Local.
    has_affinity: sessionAffinity is ClientIP. load_balancer_ip, source_ranges,
    ip_families: of spec, in its order. ingress: as the status has it now.
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
    ingress: tuple[Ingress, ...] = ()


class Reason(enum.StrEnum):
    """The closed set of what can be wrong: label of the metric, reason of Events."""

    INVALID_ANNOTATION = "InvalidAnnotation"
    """A value that is not allowed; the default is used in its place, unless fatal."""
    INVALID_SERVICE = "InvalidService"
    """A field of spec that this cloud can't serve."""
    UNKNOWN_CLASS = "UnknownClass"
    UNSUPPORTED = "Unsupported"
    """The provider, or its version, lacks what is asked for."""
    IMMUTABLE = "ChangeNotPossible"
    """It differs from what is asked for, and can't be changed in place."""
    NO_NODES = "NoNodes"
    NO_NODE_PORT = "NoNodePort"
    NO_ADDRESS = "NodeWithoutAddress"
    NO_HEALTH_CHECK = "NoHealthCheck"
    """Local traffic policy without a monitor: Nodes without a Pod drop traffic."""
    SUBNET = "SubnetNotFound"
    """Missing, or several where one must be."""
    NO_FLOATING_NETWORK = "NoFloatingNetwork"
    ADDRESS_TAKEN = "AddressTaken"
    PORT_CONFLICT = "PortConflict"
    """Another Service on the same load balancer has the port."""
    SHARED_LIMIT = "SharedLimitReached"
    TLS = "TLSContainerNotReadable"
    FOREIGN = "ForeignLoadBalancer"
    """One bears our name or was named by the user, and is not ours to use."""
    MISSING = "LoadBalancerMissing"
    """The one that the Service names, or had, is gone."""
    AMBIGUOUS = "AmbiguousMatch"
    LEFT = "LeftBehind"
    """What is the Service's on one that it has moved away from can't go, or not yet."""
    IN_ERROR = "LoadBalancerInError"
    REFUSED = "RefusedByCloud"
    """The cloud did not take a write, and will not as long as nothing changes."""
    DRIFT = "DriftRepaired"
    """Something was changed or deleted by hand; it is being repaired."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one Service, in words for its owner.

    message: whole, the same each time; names field, value and what would be right.
    is_fatal: nothing is written as long as it stands, whatever else is asked for.
    event: reason of its Event where the reference has one of its own for it.
    """

    reason: Reason
    message: str
    is_fatal: bool = False
    event: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """By what a Service's load balancer is found, also when its facts can't be parsed.

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
    """What is wanted, parsed. problems: those that are not fatal."""

    native: object
    problems: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Problems:
    """Why facts could not be parsed; at least one is fatal."""

    problems: tuple[Problem, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One load balancer to be brought about; spec None: to be gone."""

    ref: Ref
    spec: Spec | None


# ---------------------------------------------------------------- what is there


class Depth(enum.IntEnum):
    """How much an observation reads; a deeper one shows all of a shallower one."""

    CHANGED = 1
    """What the cloud says has not changed since it was last read may be reused."""
    TREE = 2
    """All that lists and status trees show, anew."""
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


class Verb(enum.StrEnum):
    """What a step does with its thing."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One cloud write, printable.

    path: of the thing in the tree, outermost first ("load balancer x", "pool y").
    why: what is otherwise than wanted; no secret. is_gated: it may only be applied
    when the load balancer's gate is open. is_repeatable: applying it twice does no
    harm; of the others at most one goes into a pass, and none right after one whose
    answer was lost: observe first.
    """

    verb: Verb
    path: tuple[str, ...]
    why: str
    native: object
    is_gated: bool = True
    is_repeatable: bool = True

    def __str__(self) -> str:
        return f"{self.verb} {' / '.join(self.path)}: {self.why}"


class NoticeType(enum.StrEnum):
    """Source: Kubernetes core/v1 Event, type."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """An Event for the Service about what is no problem; the reference has it, too."""

    type: NoticeType
    reason: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """What a pass may write on the Service.

    ingress: None: not known, leave the status as it is. annotations: key to value,
    None to remove it; those that already hold are included.
    """

    ingress: tuple[Ingress, ...] | None = None
    annotations: tuple[tuple[str, str | None], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What brings the load balancer one way closer.

    steps: to be applied in this order; what can't be known before the last of them
    is done comes with the next plan. settled: all that is wanted holds, or, without a
    spec, nothing of ours is left. retry_after_s: look again after it; None: nothing
    but a change, the drift period or (with fatal problems) the queue's backoff brings
    the key back. backs_off: the steps may only be applied after the queue's backoff,
    as for a failed pass: they make again what failed. problems: all of them, those of
    the spec too; with a fatal one steps is empty. results: may be written at once,
    before the steps. load_balancer_id: whose gate the steps wait for, or, without
    steps, whose has to open before there can be any; empty: that of the one observed.
    """

    steps: tuple[Step, ...] = ()
    settled: bool = False
    retry_after_s: float | None = None
    backs_off: bool = False
    results: Results = dataclasses.field(default_factory=Results)
    notices: tuple[Notice, ...] = ()
    problems: tuple[Problem, ...] = ()
    load_balancer_id: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class StepResult:
    """What a step brought about.

    id: of the thing made. annotations: to be written on the Service before the next
    step, since without them the thing could not be found again. opens_after_s: when
    it is worth asking for the gate first; 0: no gate was closed.
    """

    id: str = ""
    annotations: tuple[tuple[str, str | None], ...] = ()
    opens_after_s: float = 0.0


class GateState(enum.Enum):
    """Whether the next step of an open plan may be applied."""

    OPEN = "open"
    CLOSED = "closed"
    """The cloud is still at the last write; retry_after_s says when to ask again."""
    LOST = "lost"
    """It failed, is gone or was changed by somebody: drop the plan and observe."""


@dataclasses.dataclass(frozen=True, slots=True)
class Gate:
    """The answer of a gate. retry_after_s: of one that is closed."""

    state: GateState
    retry_after_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A gate that is asked for.

    id: of the load balancer (`Observed.id`, or `StepResult.id` of the step that made
    it). waited_s: how long ago the last step was applied.
    """

    id: str
    waited_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class Owned:
    """A thing in the cloud that carries the mark of a cluster.

    uid: of the Service it was made for. kind: in the cloud's words.
    """

    kind: str
    id: str
    name: str
    uid: str


class LoadBalancers(Protocol):
    """Load balancers of one cloud. Safe to use from several threads.

    Pure: refer, parse, plan. Every other call is bounded by time-outs of its own.
    """

    def refer(self, facts: Facts) -> Ref:
        """Say how to find what there is for these facts, however wrong they are."""
        ...

    def parse(self, facts: Facts) -> Spec | Problems:
        """Read what is wanted; every problem is named, with what is allowed."""
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
        """Say what brings the target closer. Pure: the same in, the same out.

        now: UTC.
        """
        ...

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """Make one write of the cloud, and do not wait for what comes of it.

        within_s: the request is not sent later than this many seconds from now. One
        that was sent in time may be answered later.

        Raises:
            CloudError: Busy and Unavailable of a step that is not repeatable: observe
            before anything is made again.
        """
        ...

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """Ask whether open plans may go on, by id; one call whatever their number."""
        ...

    def changes(self) -> Iterator[str] | None:
        """Hints from a watch: uids of Services whose load balancer changed.

        May lie and may miss; None where the cloud has no watch.
        """
        ...

    def owned(self, cluster_id: str) -> Iterator[Owned]:
        """Find everything that carries the cluster's mark.

        Raises:
            CloudError: it could not be read.
        """
        ...

"""What the flow knows and does: the Service as it sees it, snapshots, actions."""

import dataclasses
import enum

import msgspec

from lib.cloud import load_balancers
from lib.cloud.steps import Problem
from lib.kube import objects
from lib.plans import memory
from lib.plans import model as plans
from lib.reconcile import outcome

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
"""Source: k8s.io/cloud-provider service/helpers, LoadBalancerCleanupFinalizer."""

TYPE = "LoadBalancer"


class Topic(enum.StrEnum):
    """Why a Service is reconciled."""

    SYNC = "sync"
    """It is new or changed, or what was begun for it continues."""
    NODES = "nodes"
    """The Nodes that may receive traffic have changed."""
    DRIFT = "drift"
    """Drift detection: changes by other clients are due to be repaired."""
    LISTED_DRIFT = "listed drift"
    """Drift detection by the lists of the project: unchanged objects are not read."""
    DEEP_DRIFT = "deep drift"
    """Drift detection with the reads that take more calls."""


class Operation(enum.StrEnum):
    """Operations on a Service, as the reference's metrics call them.

    Source: kubernetes/cloud-provider-openstack pkg/metrics/metrics_occm.go.
    """

    ENSURE = "loadbalancer_ensure"
    UPDATE = "loadbalancer_update"
    """For the sake of Nodes alone."""
    DELETE = "loadbalancer_delete"


class TerminalError(Exception):
    """A Service requests what cannot be served; an Event has reported it."""


class ServicePort(msgspec.Struct, frozen=True, rename="camel"):
    """One port of a Service."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    node_port: int = 0
    app_protocol: str = ""


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of spec that this flow reads."""

    type: str = ""
    ports: tuple[ServicePort, ...] = ()
    load_balancer_class: str | None = None
    load_balancer_ip: str = msgspec.field(default="", name="loadBalancerIP")
    load_balancer_source_ranges: tuple[str, ...] = ()
    external_traffic_policy: str = ""
    health_check_node_port: int = 0
    session_affinity: str = ""
    ip_families: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = msgspec.field(default=(), name="externalIPs")

    @property
    def is_local(self) -> bool:
        """True when Nodes without a ready endpoint drop its traffic.

        Source: Kubernetes core/v1 ServiceExternalTrafficPolicy.
        """
        return self.external_traffic_policy == "Local"


class ServiceIngress(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of status.loadBalancer.ingress."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None


class ServiceLoadBalancer(msgspec.Struct, frozen=True):
    """status.loadBalancer."""

    ingress: tuple[ServiceIngress, ...] = ()


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of status that this flow reads, and alone writes."""

    load_balancer: ServiceLoadBalancer = ServiceLoadBalancer()


class Service(msgspec.Struct, frozen=True):
    """A Kubernetes Service, with only what the flow needs of it."""

    metadata: objects.ObjectMeta
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def key(self) -> str:
        """namespace/name."""
        return self.metadata.key

    @property
    def has_finalizer(self) -> bool:
        """True when it is kept until its load balancer is deleted."""
        return FINALIZER in self.metadata.finalizers

    @property
    def is_desired(self) -> bool:
        """True when it is to have a load balancer managed here.

        Source: k8s.io/cloud-provider service controller, wantsLoadBalancer.
        """
        is_managed = self.spec.type == TYPE and not self.spec.load_balancer_class
        return is_managed and self.metadata.deletion_timestamp is None

    @property
    def is_leaving(self) -> bool:
        """True when its load balancer is to be deleted.

        Also one whose type or class has changed. Source: the same, needsCleanup.
        """
        return self.has_finalizer and not self.is_desired

    @property
    def is_of_other_class(self) -> bool:
        """True when it is to have a load balancer of another controller.

        That controller may have set the finalizer, which is the same, and the status.
        """
        is_deleted = self.metadata.deletion_timestamp is not None
        has_class = self.spec.type == TYPE and bool(self.spec.load_balancer_class)
        return has_class and not is_deleted

    @property
    def concerns_us(self) -> bool:
        """True when this flow reconciles it."""
        return self.is_desired or self.is_leaving


OpenPlan = plans.OpenPlan[load_balancers.Target]
Memory = memory.Memory[load_balancers.Target, load_balancers.Results]


@dataclasses.dataclass(frozen=True, slots=True)
class Contested:
    """A write of one field that another client has undone several times.

    other: that client, as far as it is known. left_s: the write does not follow for so
    many seconds.
    """

    write: "Write"
    other: str
    left_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one reconciliation knows of one Service.

    held: our own last write is not back in the watch yet. target: None when the facts
    are invalid; see problems. observed: None when it need not be read.
    resumed: the open plan that continues, with its gate. is_in_progress: this
    process has begun to change its load balancer and has not ended yet. nodes:
    those that may receive traffic. serving: names of those with ready endpoints,
    where they matter. backoff_s: seconds that must pass before what failed is
    created again. failed: groups of steps that failed without a refusal, in the
    order in which they are tried again. reported: the problems that were reported
    last. is_report_due: those that stand are reported again. contested: writes that
    it lacks, and that are not repeated yet. error: why this Service, and no other,
    could not be read. written: what the API server answered to the last write of
    this reconciliation. left: the Service as observed, with nothing but our own
    writes. None: no write yet. requeues: when else the Service is due again.
    """

    service: Service
    topics: frozenset[Topic] = frozenset()
    held: bool = False
    target: load_balancers.Target | None = None
    problems: tuple[Problem, ...] = ()
    observed: load_balancers.Observation | None = None
    resumed: plans.Resumed[load_balancers.Target] | None = None
    is_in_progress: bool = False
    nodes: tuple[load_balancers.Node, ...] = ()
    serving: frozenset[str] | None = None
    backoff_s: float = 0.0
    failed: tuple[str, ...] = ()
    reported: plans.TellProblems | None = None
    is_report_due: bool = False
    contested: tuple[Contested, ...] = ()
    error: Exception | None = None
    written: Service | None = None
    left: Service | None = None
    requeues: tuple[outcome.Requeue, ...] = ()

    @property
    def latest(self) -> Service:
        """The Service as it is after what this reconciliation has written."""
        return self.written or self.service

    @property
    def as_left(self) -> Service:
        """The Service as observed, with nothing but our own writes.

        What others have changed in the meantime was not observed, so that this
        reconciliation cannot have brought it about.
        """
        return self.left or self.service

    @property
    def withheld(self) -> frozenset["Write"]:
        """The writes of single fields that are not repeated yet."""
        return frozenset(contested.write for contested in self.contested)

    @property
    def operation(self) -> Operation:
        """What the reconciliation does for it."""
        if not self.service.is_desired:
            return Operation.DELETE
        if self.topics == {Topic.NODES}:
            return Operation.UPDATE
        return Operation.ENSURE


class Source(enum.StrEnum):
    """Source of an Event."""

    SERVICE = "service-controller"
    """The controller of the reference's framework."""
    PROVIDER = "provider"
    """The reference's provider; the caller of the flow names its component."""


@dataclasses.dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Keep the Service until its load balancer is deleted."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """All owned objects are deleted, so the Service may be. Empties its status, too."""


@dataclasses.dataclass(frozen=True, slots=True)
class SetAnnotations:
    """Write the references to the load balancer; None removes a key."""

    annotations: tuple[tuple[str, str | None], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SetIngress:
    """Write the addresses into the status."""

    ingress: tuple[load_balancers.Ingress, ...]


Write = AddFinalizer | RemoveFinalizer | SetAnnotations | SetIngress
"""A write of the Service."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settle:
    """Remember that everything holds, and what was written on the Service for it."""

    results: load_balancers.Results


@dataclasses.dataclass(frozen=True, slots=True)
class RecordEvent(outcome.ReportAction):
    """Record an Event of the Service."""

    source: Source
    is_warning: bool
    reason: str
    message: str


Action = (
    Write
    | plans.ApplyStep
    | plans.Await
    | plans.StartBackoff
    | Settle
    | plans.TellProblems
    | RecordEvent
)

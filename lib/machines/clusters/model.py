"""What the flow knows and does: kinds, stages, snapshots, actions."""

import dataclasses
import enum
from collections.abc import Mapping

from lib.cloud import machines, steps
from lib.cloud.model import Seen, Unknown
from lib.kube.resources import Resource
from lib.kube.store import Store
from lib.machines.kinds import (
    NO_ENDPOINT,
    ClusterObject,
    ControlPlaneEndpoint,
    MachineObject,
    OwnerCluster,
    Path,
)
from lib.plans import model as plans
from lib.reconcile import outcome


class ClusterReason(steps.ProblemReason):
    """Reasons of conditions and Events of infrastructure clusters."""

    PROVISIONED = "Provisioned"
    WAITING_FOR_MACHINES = "WaitingForMachines"
    """It is deleted once none of its machine objects exists."""
    CLEANING_UP = "CleaningUp"
    """Resources that machines have left are being deleted."""
    CLEANUP_FAILED = "CleanupFailed"
    """The cloud could not be read, or rejected a deletion."""
    OTHER_FINALIZERS = "OtherFinalizers"
    """All is deleted here; other controllers keep the object."""
    CLEANUP_SKIPPED = "CleanupSkipped"
    """Another cluster object of this process exists: nothing was deleted."""


class PlaceReason(steps.ProblemReason):
    """Reasons of clusters in a cloud that has `MachineClusters`, beside its own."""

    NOT_VERIFIED = "ClusterNotVerified"
    """The cloud does not answer whether what the cluster refers to exists."""


class Topic(enum.StrEnum):
    """Why a cluster is reconciled."""

    SYNC = "sync"
    """One of its objects has changed, or its cleanup continues."""


class ClusterStage(enum.Enum):
    """What the objects of Cluster API allow to be done for a cluster."""

    IGNORED = "ignored"
    """It has no owner, or another controller is responsible for it."""
    PAUSED = "paused"
    DESIRED = "desired"
    DELETED = "deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterKinds:
    """All that the flow knows of a provider's kind.

    cluster: the provider's infrastructure cluster. finalizer: of it; empty: it has
    none, and nothing that machines have left is deleted with it. field_manager: of its
    status. mirrors: paths in status that repeat `initialization.provisioned` for older
    contracts.
    """

    cluster: Resource
    finalizer: str
    field_manager: str
    mirrors: tuple[Path, ...] = (("ready",),)


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterStores:
    """The watched kinds."""

    infrastructure: Store[ClusterObject]
    clusters: Store[OwnerCluster]
    machines: Store[MachineObject]


@dataclasses.dataclass(frozen=True, slots=True)
class Leftover:
    """Resources of one machine that does not exist any more.

    owned: what carries the ownership tag. target: of their deletion; None: they can
    not be deleted by this process. observed: what exists of the target.
    """

    owned: tuple[machines.Owned, ...]
    target: machines.Target | None = None
    observed: machines.Observation | None = None

    @property
    def machine(self) -> str:
        """The name of the machine; empty where this process cannot delete it."""
        return "" if self.target is None else self.target.ref.name

    @property
    def names(self) -> tuple[str, ...]:
        """Kind and name of each resource."""
        return tuple(f"{resource.kind} {resource.name}" for resource in self.owned)


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one reconciliation knows of one cluster.

    held: our own last write is not back in the watch yet. machines: names of its
    machine objects. others: keys of further cluster objects that this process
    reconciles. endpoint: of the API server. left: None: the cloud was not read.
    failures: why the last deletions were rejected, by machine. written: the object as
    the last write of this reconciliation returned it. spec_writes: own writes that have
    changed its generation.
    """

    cluster: ClusterObject
    held: bool = False
    stage: ClusterStage = ClusterStage.IGNORED
    machines: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    endpoint: ControlPlaneEndpoint = NO_ENDPOINT
    place: Seen[steps.Problem | None] | Unknown | None = None
    left: tuple[Leftover, ...] | Unknown | None = None
    failures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    written: ClusterObject | None = None
    spec_writes: int = 0

    @property
    def latest(self) -> ClusterObject:
        """The object as it is after what this reconciliation has written."""
        return self.written or self.cluster

    @property
    def uid(self) -> str:
        """UID of the object."""
        return self.cluster.metadata.uid


@dataclasses.dataclass(frozen=True, slots=True)
class AddClusterFinalizer:
    """Keep the object until all that its machines have left is deleted."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveClusterFinalizer:
    """Release the object."""


@dataclasses.dataclass(frozen=True, slots=True)
class SetEndpoint:
    """Write spec.controlPlaneEndpoint; it is not changed afterwards."""

    endpoint: ControlPlaneEndpoint


@dataclasses.dataclass(frozen=True)
class WriteClusterStatus:
    """Apply all fields of the status that this program owns.

    document: without observedGeneration. removed: fields of others to be removed.
    """

    document: Mapping[str, object]
    removed: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class CleanUp:
    """Apply one step of the deletion of leftovers. name: of the machine."""

    name: str
    step: plans.ApplyStep

    def __str__(self) -> str:
        return str(self.step)


@dataclasses.dataclass(frozen=True, slots=True)
class RecordClusterEvent(outcome.ReportAction):
    """Record a warning about the cluster object."""

    reason: steps.ProblemReason
    message: str


Action = (
    AddClusterFinalizer
    | RemoveClusterFinalizer
    | SetEndpoint
    | WriteClusterStatus
    | CleanUp
    | RecordClusterEvent
)

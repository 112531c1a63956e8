"""What the flow knows and does: stages, snapshots, actions."""

import dataclasses
import enum
from collections.abc import Mapping

from lib.cloud import machines
from lib.cloud.steps import Problem
from lib.kube.store import Store
from lib.machines.bootstrap import BootstrapSecret
from lib.machines.kinds import (
    ClusterObject,
    MachineObject,
    OwnerCluster,
    OwnerMachine,
)
from lib.plans import memory
from lib.plans import model as plans
from lib.reconcile import outcome

Path = tuple[str, ...]


class Topic(enum.StrEnum):
    """Why a machine is reconciled."""

    SYNC = "sync"
    """One of its objects has changed, or what was begun for it continues."""
    DRIFT = "drift"
    """The cloud has reported a change, or drift detection is due."""


class MachineStage(enum.Enum):
    """What the objects of Cluster API allow to be done for a machine."""

    IGNORED = "ignored"
    """It has no owner, or another controller is responsible for it."""
    PAUSED = "paused"
    WAITING = "waiting"
    DESIRED = "desired"
    DELETED = "deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class Assessment:
    """A stage, with what is to be reported of one that waits.

    bootstrap: the data that an instance may be created with. problem: for the owner.
    """

    stage: MachineStage
    state: machines.ConditionState | None = None
    bootstrap: machines.Bootstrap | None = None
    problem: Problem | None = None


IGNORED = Assessment(MachineStage.IGNORED)


MachineMemory = memory.Memory[machines.Target, machines.Results]


@dataclasses.dataclass(frozen=True, slots=True)
class Related:
    """The objects of Cluster API that belong to a machine, as far as they exist."""

    owner: OwnerMachine | None = None
    cluster: OwnerCluster | None = None
    secret: BootstrapSecret | None = None
    infrastructure: ClusterObject | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Stores:
    """The watched kinds. infrastructure: None: no machine needs it."""

    machines: Store[MachineObject]
    owners: Store[OwnerMachine]
    clusters: Store[OwnerCluster]
    secrets: Store[BootstrapSecret]
    infrastructure: Store[ClusterObject] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class MachineSettings:
    """What a component sets.

    cluster_id: part of every ownership tag. watch_filter: value of the label of objects
    that are reconciled; empty: those of any value. namespace: empty: all.
    deletion_timeout_s: see `decide.Rules`.
    """

    cluster_id: str
    watch_filter: str = ""
    namespace: str = ""
    deletion_timeout_s: float = 600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one reconciliation knows of one machine.

    held: our own last write is not back in the watch yet. target: None when nothing is
    to be done, or the facts are invalid. observed: None when it need not be read;
    settled then holds what was observed last. failed: see `lib/balancers`.
    refusal: why the cloud rejects a write.
    refused_s: for how many seconds it has rejected writes, by the path of their step.
    may_be_late: its deletion began before the time limit. Others: see `lib/balancers`.
    written: the object as the last write of this reconciliation returned it.
    spec_writes: own writes that have changed its generation.
    """

    machine: MachineObject
    topics: frozenset[Topic] = frozenset()
    held: bool = False
    related: Related = dataclasses.field(default_factory=Related)
    assessment: Assessment = IGNORED
    target: machines.Target | None = None
    problems: tuple[Problem, ...] = ()
    observed: machines.Observation | None = None
    settled: machines.Results | None = None
    resumed: plans.Resumed[machines.Target] | None = None
    is_in_progress: bool = False
    may_be_late: bool = False
    backoff_s: float = 0.0
    reported: plans.TellProblems | None = None
    failed: tuple[str, ...] = ()
    refusal: Problem | None = None
    refused_s: Mapping[Path, float] = dataclasses.field(default_factory=dict)
    error: Exception | None = None
    written: MachineObject | None = None
    spec_writes: int = 0
    requeues: tuple[outcome.Requeue, ...] = ()

    @property
    def latest(self) -> MachineObject:
        """The object as it is after what this reconciliation has written."""
        return self.written or self.machine

    @property
    def uid(self) -> str:
        """UID of the object."""
        return self.machine.metadata.uid

    @property
    def is_desired(self) -> bool:
        """Report whether an instance is to exist for it."""
        return not self.machine.is_deleted


@dataclasses.dataclass(frozen=True, slots=True)
class AddMachineFinalizer:
    """Keep the object until all that it owns is deleted."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveMachineFinalizer:
    """Release the object. is_complete: nothing that it owned is left."""

    is_complete: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class SetProviderId:
    """Write spec.providerID; it never changes afterwards."""

    provider_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class AnnotateMachine:
    """Write annotations; None removes a key."""

    annotations: tuple[tuple[str, str | None], ...]


@dataclasses.dataclass(frozen=True)
class WriteMachineStatus:
    """Apply all fields of the status that this program owns.

    document: without observedGeneration. removed: fields of others to be removed.
    """

    document: Mapping[str, object]
    removed: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class SettleMachine:
    """Keep in memory that the target holds, and with which results."""

    results: machines.Results


@dataclasses.dataclass(frozen=True, slots=True)
class RecordEvent(outcome.ReportAction):
    """Record an Event of the machine object."""

    is_warning: bool
    reason: str
    message: str


Action = (
    AddMachineFinalizer
    | RemoveMachineFinalizer
    | SetProviderId
    | AnnotateMachine
    | WriteMachineStatus
    | plans.ApplyStep
    | plans.Await
    | plans.StartBackoff
    | SettleMachine
    | plans.TellProblems
    | RecordEvent
)

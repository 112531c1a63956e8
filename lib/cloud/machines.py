"""The vocabulary of machines: what Cluster API requires of a cloud, and its result.

Rules: frozen values only, no I/O. A provider's own part of a spec and its trees travel
in fields that only the provider package reads. One order of calls holds: `refer` and
`parse` facts, `observe` targets, `plan` each, `apply` its steps one by one with `gates`
between them. Bootstrap data is in none of these values: see `Bootstrap`.
"""

import dataclasses
import datetime
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import NoReturn, Protocol

from lib.cloud import steps
from lib.cloud.model import Address, Seen, Unknown

# ---------------------------------------------------------------- bootstrap data


@dataclasses.dataclass(frozen=True, slots=True)
class Bootstrap:
    """Reference to the Secret with the bootstrap data of a machine.

    version: changes with the content. size_bytes: of the data. The data itself is read
    by the step that passes it on, during `Machines.apply`: it is in no target, step,
    plan or memory, so that nothing can print, log or store it.
    """

    namespace: str
    name: str
    version: str
    size_bytes: int


class BootstrapData:
    """Bootstrap data on its way into one request; it can be neither shown nor saved."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def reveal(self) -> bytes:
        """Return the data, to be put into the body of one request."""
        return self._value

    def __repr__(self) -> str:
        return f"BootstrapData({len(self._value)} bytes)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("bootstrap data is not to be saved")


ReadBootstrap = Callable[[Bootstrap], BootstrapData]
"""Reads bootstrap data, within a time limit of its own.

A provider is opened with one, and calls it in `apply` only. Raises CloudError:
Unavailable where the API server does not answer, NotFound without such a Secret.
"""


# ---------------------------------------------------------------- desired state


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What the objects of Cluster API show about one machine, not yet validated.

    cluster_id: unique in the world; part of every ownership tag. namespace, name, uid:
    of the provider's machine object. machine_name: of the Machine that owns it. spec:
    the provider's part, as in the object. failure_domain: of the Machine; empty: any.
    provider_id: as recorded. was_provisioned: as recorded. has_node: a Node has joined.
    bootstrap: None: not available (any more). cluster_spec: of the infrastructure
    cluster, as opaque as `spec`; None: none exists, or no machine needs it. recorded:
    annotations of the machine object, with those of `steps.StepResult`.
    """

    cluster_id: str
    namespace: str
    name: str
    uid: str
    machine_name: str
    spec: Mapping[str, object] = dataclasses.field(default_factory=dict)
    failure_domain: str = ""
    is_control_plane: bool = False
    provider_id: str = ""
    was_provisioned: bool = False
    has_node: bool = False
    bootstrap: Bootstrap | None = None
    cluster_spec: Mapping[str, object] | None = None
    recorded: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Reason(steps.ProblemReason):
    """Reasons of conditions and Events of machines in any cloud.

    Those that begin with VM or WaitingFor are of the reference, in its spelling.

    Source: deckhouse modules/030-cloud-provider-dvp and -zvirt, capi controllers.
    """

    WAITING_FOR_CLUSTER = "WaitingForClusterInfrastructure"
    WAITING_FOR_BOOTSTRAP = "WaitingForBootstrapScript"
    RUNNING = "VMRunning"
    NOT_READY = "VMNotReady"
    """It is being created, started or moved."""
    STOPPED = "VMInStoppedState"
    FAILED = "VMInFailedState"
    ERROR = "VMError"
    """The cloud could not be read, or rejected a write."""
    MISSING = "VMMissing"
    """It was provisioned, and was deleted by another client; never recreated."""
    INVALID_BOOTSTRAP = "InvalidBootstrapData"
    INVALID_SPEC = "InvalidMachineSpec"
    PREREQUISITE = "PrerequisiteNotReady"
    """A class, image or storage class is missing or not ready."""
    NOT_OWNED = "VMNotOwned"
    """An object with the name exists that is not owned by this machine."""
    DELETING = "Deleting"
    DELETION_TIMED_OUT = "DeletionTimedOut"
    PAUSED = "Paused"
    NOT_PAUSED = "NotPaused"


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """How a machine is found, also when its facts cannot be parsed.

    native: what the provider needs beside the names: a stored ID.
    """

    cluster_id: str
    namespace: str
    name: str
    uid: str
    native: Hashable = None

    @property
    def key(self) -> str:
        """Key of the provider's machine object, for logs and Events."""
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
    """One machine to be created, or with spec None to be deleted.

    only: IDs of the resources that a plan without a spec may change or delete; None:
    everything that is owned by the machine.
    """

    ref: Ref
    spec: Spec | None
    only: frozenset[str] | None = None

    @property
    def key(self) -> str:
        """Key of the provider's machine object."""
        return self.ref.key


# ---------------------------------------------------------------- observed state


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """What exists for one target, with all that a plan for it needs.

    is_there: anything owned exists. id: of the instance; empty without one.
    """

    is_there: bool
    id: str
    native: object


Observation = Seen[Observed] | Unknown
"""Unknown: it could not be read, so nothing may be planned."""


# ---------------------------------------------------------------- plans


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionState:
    """Content of one condition. is_true: None: unknown. reason: of a closed set."""

    is_true: bool | None
    reason: steps.ProblemReason
    message: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """What a reconciliation may write on the machine object.

    state: of the instance. is_provisioned: it has become usable, now or earlier; the
    flow never takes that back. provider_id, addresses, failure_domain: empty: not known
    yet. failure: only a new spec helps; mirrored for v1beta1 where no Node has joined.
    conditions: further ones, by type.
    """

    state: ConditionState
    is_provisioned: bool = False
    provider_id: str = ""
    addresses: tuple[Address, ...] = ()
    failure_domain: str = ""
    failure: steps.Problem | None = None
    conditions: tuple[tuple[str, ConditionState], ...] = ()


UNREAD = Results(ConditionState(None, Reason.NOT_READY))


@dataclasses.dataclass(frozen=True, slots=True)
class Plan(steps.Plan):
    """What brings a machine closer to its target; see `steps.Plan`.

    results: may be written immediately; of a plan without a spec only `state` counts.
    leftovers: what a deletion still has to delete, as "kind name". abandoned:
    annotations for the machine object that is released although those are left; a
    search for orphans finds them. asked_at: UTC at which the cloud accepted the first
    of their deletions; None as long as the deletion of one of them was not accepted.
    """

    results: Results = UNREAD
    leftovers: tuple[str, ...] = ()
    abandoned: tuple[tuple[str, str], ...] = ()
    asked_at: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Owned:
    """A resource that carries the ownership tag of a cluster.

    kind: in the cloud's words. uid: of the machine object that it was created for;
    empty: not known. created: UTC; None: not reported. ref: what a plan without a spec
    needs; None: there can be none. note: what is special about it, as a clause.
    """

    kind: str
    id: str
    name: str
    uid: str
    created: datetime.datetime | None = None
    ref: Ref | None = None
    note: str = ""


class MachineClusters(Protocol):
    """What an infrastructure cluster refers to in a cloud, such as its host cluster."""

    def check(self, spec: Mapping[str, object]) -> steps.Problem | None:
        """Return why no machine can be created in it; None: all that it needs exists.

        spec: of the infrastructure cluster.

        Raises:
            CloudError: it is not known.
        """
        ...


class Machines(Protocol):
    """Machines of one cloud. Safe to use from several threads.

    Pure: refer, parse, plan. Every other call is bounded by time limits of its own.
    """

    @property
    def reasons(self) -> Collection[steps.ProblemReason]:
        """The provider's own reasons, beside `Reason` and `steps.CommonReason`."""
        ...

    @property
    def conditions(self) -> Collection[str]:
        """Types of the provider's own conditions, see `Results.conditions`."""
        ...

    @property
    def bootstrap_bytes_max(self) -> int:
        """Bytes of bootstrap data that the cloud accepts."""
        ...

    def refer(self, facts: Facts) -> Ref:
        """Return how to find what exists for these facts, however wrong they are."""
        ...

    def parse(self, facts: Facts) -> Spec | Problems:
        """Parse the desired state; every problem names its field and what is valid.

        The result must not change when only `was_provisioned` or `has_node` do.
        """
        ...

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """Read what exists; one entry each, never raises for one of them.

        The number of calls does not grow with the number of targets, but for those
        whose parts the cloud only shows one by one.
        """
        ...

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """Return what brings the target closer. Pure. now: UTC.

        Nothing is created for a machine with a recorded provider ID that is absent:
        that is a fatal problem. Nothing without the ownership tag is changed, adopted
        or deleted. A provisioned machine is never deleted as a repair.
        """
        ...

    def apply(self, step: steps.Step, within_s: float = math.inf) -> steps.StepResult:
        """Make one write of the cloud, and do not wait for its effect.

        within_s: the request is not sent later than this many seconds from now.

        Raises:
            CloudError: Busy while the object is locked. Unavailable of a step that is
            not repeatable: observe before anything is created again.
        """
        ...

    def gates(
        self, asked: Collection[steps.Asked]
    ) -> Mapping[str, steps.Gate | Unknown]:
        """Return whether open plans may continue, by id.

        The number of calls does not grow with the number of plans: two are enough.
        """
        ...

    def owned(self, cluster_id: str) -> Iterator[Owned]:
        """List what carries the cluster's ownership tag.

        Raises:
            CloudError: it could not be read.
        """
        ...

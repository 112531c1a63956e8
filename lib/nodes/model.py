"""What the nodes flow knows and does: the Node as it sees it, snapshots, actions."""

import dataclasses
import datetime
import enum

import msgspec

from lib.cloud.model import Address, AddressType, Instance, Observation
from lib.kube import objects
from lib.nodes import guard
from lib.reconcile import outcome

UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN_TAINT = "node.cloudprovider.kubernetes.io/shutdown"
PROVIDED_IP_ANNOTATION = "alpha.kubernetes.io/provided-node-ip"


class Topic(enum.StrEnum):
    """Why a Node is looked at."""

    SYNC = "sync"
    """It is new or changed: initialise it, reconcile its labels."""
    ADDRESSES = "addresses"
    """The periodic refresh of its addresses is due."""
    LIVENESS = "liveness"
    """It is not Ready, or became so: is its instance gone, or shut down?"""


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A Node's taint, whole: the list is written back as one.

    Source: Kubernetes core/v1 Taint; the list has no merge key (atomic).
    """

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of spec that this flow reads."""

    provider_id: str = msgspec.field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()


class NodeAddress(msgspec.Struct, frozen=True):
    """One address as the API server holds it."""

    type: str
    address: str


class NodeCondition(msgspec.Struct, frozen=True, rename="camel"):
    """One condition's type and status, and since when it is that."""

    type: str
    status: str
    last_transition_time: datetime.datetime | None = None


class NodeStatus(msgspec.Struct, frozen=True):
    """The part of status that this flow reads."""

    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """A Kubernetes Node, with only what the flow needs of it."""

    metadata: objects.ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """The Node's name."""
        return self.metadata.name

    @property
    def is_ready(self) -> bool:
        """True when the Ready condition is there and True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.conditions)

    @property
    def ready_since(self) -> datetime.datetime | None:
        """Since when the Ready condition is what it is, True or not; None: unsaid."""
        times = [c.last_transition_time for c in self.conditions if c.type == "Ready"]
        return times[0] if times else None

    @property
    def conditions(self) -> tuple[NodeCondition, ...]:
        """The Node's conditions."""
        return self.status.conditions

    @property
    def has_ip(self) -> bool:
        """True when any address is an IP."""
        kinds = (AddressType.INTERNAL_IP, AddressType.EXTERNAL_IP)
        return any(address.type in kinds for address in self.status.addresses)

    @property
    def may_be_gone(self) -> bool:
        """True when the absence of its instance may delete the Node.

        By id, or by name as long as it was never initialised: a Node that lost its
        provider id later proves nothing by its name.
        """
        named = bool(self.spec.provider_id)
        return not self.is_ready and (named or self.has_taint(UNINITIALIZED_TAINT))

    @property
    def is_confirmed(self) -> bool:
        """True when a human has said that the Node may be deleted."""
        return guard.CONFIRM_ANNOTATION in self.metadata.annotations

    def has_taint(self, key: str) -> bool:
        """Say whether a taint of that key is there, whatever its value and effect."""
        return any(taint.key == key for taint in self.spec.taints)


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What a user may set of the flow. Times in seconds.

    initialises, watches_lifecycle: the two controllers of the reference, each of
    which `--controllers` may switch off. deletes: False keeps every Node. limit: how
    many Nodes may go at once.
    """

    initialises: bool = True
    watches_lifecycle: bool = True
    deletes: bool = True
    confirm_after_s: float = 15.0
    unnamed_age_s: float = 600.0
    limit: guard.Limit = dataclasses.field(default_factory=guard.Limit)


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one pass knows of one Node.

    node: None when it is gone. held: our own last write is not back in the watch yet.
    age_s: seconds since the Node was created, by this host's clock. known_for_s:
    seconds since this process first read the Node, which no wrong clock changes.
    instance: None when no topic needs a cloud read. gone_for_s: seconds between the
    first direct "not found" and the one of this pass; None when there was none.
    crowd: how many Nodes are absent. was_told: an Event about its being held back was
    recorded lately.
    """

    node: Node | None
    topics: frozenset[Topic]
    held: bool = False
    age_s: float = 0.0
    known_for_s: float = 0.0
    instance: Observation[Instance] | None = None
    gone_for_s: float | None = None
    crowd: guard.Crowd = dataclasses.field(default_factory=guard.Crowd)
    was_told: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class SetAddresses:
    """Replace the Node's addresses."""

    addresses: tuple[Address, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class InitialiseNode:
    """Set provider id (None: leave it) and labels, and drop the taint, in one write."""

    provider_id: str | None
    labels: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SetLabels:
    """Set these labels and leave the others."""

    labels: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class AddShutdownTaint:
    """Keep pods away from a Node whose instance is shut down."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveShutdownTaint:
    """The Node is back."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteNode:
    """Delete the Node: its instance is gone for good."""


@dataclasses.dataclass(frozen=True, slots=True)
class HoldNodeBack:
    """Tell that the Node is not deleted, since too many would go at once."""

    message: str


class Source(enum.StrEnum):
    """Which controller of the reference an Event speaks for."""

    NODE = "cloud-node-controller"
    LIFECYCLE = "cloud-node-lifecycle-controller"


@dataclasses.dataclass(frozen=True, slots=True)
class RecordEvent(outcome.Report):
    """Record an Event of the Node."""

    source: Source
    is_warning: bool
    reason: str
    message: str


Action = (
    SetAddresses
    | InitialiseNode
    | SetLabels
    | AddShutdownTaint
    | RemoveShutdownTaint
    | DeleteNode
    | HoldNodeBack
    | RecordEvent
)

"""Snapshots, settings and actions of the nodes flow."""

import dataclasses
import enum

from lib.cloud import absence_limit
from lib.cloud.model import Address, Instance, Observation
from lib.kube import nodes
from lib.kube.nodes import Node
from lib.nodes import deletion_budget
from lib.reconcile import outcome

PROVIDED_IP_ANNOTATION = "alpha.kubernetes.io/provided-node-ip"


FINALIZED_BY_S = 300.0
"""The deletion of a Node that waits for finalizers for longer is reported."""


class Topic(enum.StrEnum):
    """Cause of a reconciliation of a Node."""

    SYNC = "sync"
    """A new or changed Node: initialise it, reconcile its labels."""
    ADDRESSES = "addresses"
    """The periodic refresh of its addresses is due."""
    LIVENESS = "liveness"
    """A Node that is not Ready, or is Ready again: read its instance."""


def may_be_gone(node: Node) -> bool:
    """Report whether the absence of its instance may delete the Node.

    By id, or by name as long as it was never initialised: a Node that lost its
    provider id later proves nothing by its name.
    """
    named = bool(node.spec.provider_id)
    return not node.is_ready and (named or node.has_taint(nodes.UNINITIALIZED_TAINT))


def is_confirmed(node: Node) -> bool:
    """Report whether a user has confirmed that the Node may be deleted."""
    return deletion_budget.CONFIRM_ANNOTATION in node.metadata.annotations


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSettings:
    """What a user may set of the flow. Times in seconds.

    initialises, watches_lifecycle: the two controllers of the reference, each of
    which `--controllers` may switch off. deletes: False keeps every Node. limit: of the
    deletion budget.
    """

    initialises: bool = True
    watches_lifecycle: bool = True
    deletes: bool = True
    confirm_after_s: float = absence_limit.CONFIRM_S
    unnamed_age_s: float = 600.0
    limit: deletion_budget.Limit = dataclasses.field(
        default_factory=deletion_budget.Limit
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """Observed state of one Node in one reconciliation.

    node: None when it does not exist. held: the watch has not returned our own last
    write yet.
    age_s: seconds since the Node was created, by this host's clock. known_for_s:
    seconds since this process first read the Node, which no wrong clock changes.
    instance: None when no topic needs a cloud read. gone_for_s: seconds between the
    first direct "not found" and that of this reconciliation; None without one.
    budget: the deletion budget. was_reported: an Event reported the suspended deletion
    within REPORT_EVERY_S. deleting_for_s: seconds since the deletion of the Node was
    requested, by this host's clock; None: it was not.
    """

    node: Node | None
    topics: frozenset[Topic]
    held: bool = False
    age_s: float = 0.0
    known_for_s: float = 0.0
    instance: Observation[Instance] | None = None
    gone_for_s: float | None = None
    budget: deletion_budget.DeletionBudget = dataclasses.field(
        default_factory=deletion_budget.DeletionBudget
    )
    was_reported: bool = False
    deleting_for_s: float | None = None


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
    """Set these labels; the others are not changed."""

    labels: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class AddShutdownTaint:
    """Keep pods away from a Node whose instance is shut down."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveShutdownTaint:
    """Remove the taint of a Node that is Ready, or of which the instance runs again."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteNode:
    """Delete the Node: its instance does not exist."""


@dataclasses.dataclass(frozen=True, slots=True)
class HoldNodeBack:
    """Report that the deletion budget suspends the deletion of the Node."""

    message: str


class Source(enum.StrEnum):
    """Controller of the reference that is the source of an Event."""

    NODE = "cloud-node-controller"
    LIFECYCLE = "cloud-node-lifecycle-controller"


@dataclasses.dataclass(frozen=True, slots=True)
class RecordEvent(outcome.ReportAction):
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

"""What the flow knows and does: keys, topics, snapshots, actions."""

import dataclasses
import enum
from collections.abc import Mapping

from lib.cloud import routes
from lib.cloud.steps import Problem
from lib.kube.nodes import Node
from lib.plans import memory
from lib.plans import model as plans
from lib.reconcile import outcome

TABLE = "routes"
"""The key of the table; all routes of a cluster are one object of the cloud."""
NODE = "node/"
ENTRY = "entry/"
"""Prefixes of the keys of Nodes, and of what holds single entries, such as ports."""
CONDITION = "NetworkUnavailable"
FAILED = "FailedToCreateRoute"
"""Source: k8s.io/cloud-provider controllers/route/route_controller.go."""


class Topic(enum.StrEnum):
    """Why a key is reconciled."""

    SYNC = "sync"
    """Nodes were changed, or a write has to be followed up."""
    DRIFT = "drift"
    """It is time to compare the routes with the cloud's, as cheaply as possible."""
    DEEP_DRIFT = "deep drift"
    """The same with all address pairs and the record."""


@dataclasses.dataclass(frozen=True, slots=True)
class Desired:
    """What the Nodes of the cluster ask for, before a cloud is asked.

    nodes, present: as in `lib.cloud.routes.Target`. problems: by Node. unserved: Nodes
    with a podCIDR that cannot get a route.
    """

    nodes: tuple[routes.Node, ...] = ()
    present: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    problems: Mapping[str, tuple[Problem, ...]] = dataclasses.field(
        default_factory=dict
    )
    unserved: frozenset[str] = frozenset()

    def unserved_by(self, plan: routes.Plan) -> frozenset[str]:
        """Return the Nodes that lack an entry, by what they ask for or by a plan."""
        return self.unserved | plan.unserved

    def served_by(self, plan: routes.Plan) -> frozenset[str]:
        """Return the Nodes whose Pods are reached once a plan is carried out."""
        return frozenset(node.name for node in self.nodes) - self.unserved_by(plan)

    def problems_by(self, plan: routes.Plan, node: str) -> tuple[Problem, ...]:
        """Return what is wrong with a Node, in what it asks for and in a plan."""
        return (*self.problems.get(node, ()), *plan.problems_of.get(node, ()))


@dataclasses.dataclass(frozen=True, slots=True)
class StoredPart:
    """A ConfigMap of records. version: its resourceVersion; empty: it is absent."""

    version: str = ""
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """The ConfigMaps of records: the first one alone, or all parts.

    may_split: False: the Role of a former chart does not allow to read the other parts.
    """

    parts: tuple[StoredPart, ...] = (StoredPart(),)
    may_split: bool = True

    def part(self, number: int) -> StoredPart:
        """Return a part; one that was not read is absent."""
        return self.parts[number] if number < len(self.parts) else StoredPart()

    def text(self, number: int, key: str) -> str | None:
        """Return the text of a key in a part."""
        return self.part(number).data.get(key)

    def replaced(self, number: int, part: StoredPart) -> "Stored":
        """Return the ConfigMaps with another part."""
        count = max(len(self.parts), number + 1)
        parts = [self.part(index) for index in range(count)]
        parts[number] = part
        return dataclasses.replace(self, parts=tuple(parts))


@dataclasses.dataclass(frozen=True, slots=True)
class TableSnapshot:
    """All that is known for the table.

    plan: None when the cloud could not be read; error: why. record: of the table,
    as stored. former: records of tables that are no longer configured, with their
    plans. unreadable: parts and keys of texts that could not be read. reported: by
    subject what was reported last; see `ReportProblems`. due: subjects whose problems
    are reported again, because the API server forgets Events.
    """

    desired: Desired
    stored: Stored
    plan: routes.Plan | None = None
    record: routes.Record | None = None
    former: tuple[tuple[routes.Record, routes.Plan], ...] = ()
    error: Exception | None = None
    reported: Mapping[str, tuple[Problem, ...]] = dataclasses.field(
        default_factory=dict
    )
    due: frozenset[str] = frozenset()
    unreadable: tuple[tuple[int, str], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class EntrySnapshot:
    """A write of single entries that is due."""

    key: str
    action: plans.ApplyStep


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """A Node and whether its pods are reached. held: see `lib.kube.fresh`."""

    node: Node
    is_served: bool
    held: bool = False


Snapshot = TableSnapshot | EntrySnapshot | NodeSnapshot
Memory = memory.Memory[routes.Target, None]


@dataclasses.dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write keys of the ConfigMap of a part; None removes one."""

    changes: tuple[tuple[str, str | None], ...]
    part: int = 0

    def __str__(self) -> str:
        keys = ", ".join(key for key, _ in self.changes)
        return f"record {keys}, part {self.part}" if self.part else f"record {keys}"


@dataclasses.dataclass(frozen=True, slots=True)
class Publish:
    """Enqueue the entries and the Nodes, each for a reconciliation of its own."""

    plan: routes.Plan
    desired: Desired


@dataclasses.dataclass(frozen=True, slots=True)
class ReportProblems:
    """Report what is wrong where it has changed. subject: TABLE, or NODE and a name."""

    subject: str
    problems: tuple[Problem, ...]
    is_unserved: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Disable:
    """Note that the cloud has no route tables."""

    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class SetCondition:
    """Write the condition NetworkUnavailable.

    Source: k8s.io/cloud-provider route controller, updateNetworkingCondition.
    """

    is_served: bool

    @property
    def status(self) -> str:
        """The status of the condition."""
        return "False" if self.is_served else "True"

    @property
    def reason(self) -> str:
        """The reason of the condition."""
        return "RouteCreated" if self.is_served else "NoRouteCreated"

    @property
    def message(self) -> str:
        """The message of the condition."""
        if self.is_served:
            return "RouteController created a route"
        return "RouteController failed to create a route"


@dataclasses.dataclass(frozen=True, slots=True)
class RecordEvent(outcome.ReportAction):
    """Record an Event about the table."""

    reason: str
    message: str


Action = (
    WriteRecord
    | plans.ApplyStep
    | Publish
    | ReportProblems
    | Disable
    | SetCondition
    | RecordEvent
)

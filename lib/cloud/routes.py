"""The vocabulary of pod routes: which Node's pods are reached where, and who owns that.

A table is a list of routes that several clusters may share, such as a router's extra
routes; its entries carry no tags. What a cluster owns there is kept in a record, which
is written before the cloud is (`lib/cloud/route_records.py`).

Rules: frozen values only, no I/O. Only recorded entries are ever removed. One order of
calls holds: `observe` tables, `plan` one, write its record, `apply` its steps.
"""

import dataclasses
import datetime
import enum
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from lib.cloud import steps
from lib.cloud.model import Address, Seen, Unknown

# ---------------------------------------------------------------- entries


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Route:
    """One route of a table. destination: a CIDR; next_hop: an address; canonical."""

    destination: str
    next_hop: str

    def __str__(self) -> str:
        return f"{self.destination} via {self.next_hop}"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class AddressPair:
    """A CIDR whose packets may pass a port of a Node. address: canonical."""

    port_id: str
    address: str

    def __str__(self) -> str:
        return f"{self.address} at port {self.port_id}"


Entry = Route | AddressPair


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """An entry owned by a cluster. node: the name of the Node that it was created for.

    since: when it was recorded, in whole seconds since the epoch (UTC).
    """

    entry: Entry
    node: str
    since: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """All that one cluster owns in one table. table: see `Routes.table`.

    entries: sorted by entry. is_readable: False when the record was there and could
    not be read: nothing is known to be owned then.
    """

    table: str
    cluster_id: str
    entries: tuple[Recorded, ...] = ()
    is_readable: bool = True

    @property
    def owned(self) -> Mapping[Entry, Recorded]:
        """The entries, by what they are."""
        return {recorded.entry: recorded for recorded in self.entries}


# ---------------------------------------------------------------- desired


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A Node whose pods are to be reached.

    addresses: as in its status, in that order. pod_cidrs: valid, canonical, and of no
    other Node. created: UTC; the oldest Nodes are served first.
    """

    name: str
    provider_id: str = ""
    addresses: tuple[Address, ...] = ()
    pod_cidrs: tuple[str, ...] = ()
    created: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """What one table is to hold for one cluster.

    nodes: those that are served; empty: nothing of the cluster is to remain. present:
    names of all Nodes of the cluster with all their podCIDRs, those that cannot be
    served included: what they have is kept. kept: address pairs that another table of
    the cluster needs.
    """

    record: Record
    nodes: tuple[Node, ...] = ()
    present: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    kept: frozenset[AddressPair] = frozenset()

    @property
    def key(self) -> str:
        """The table."""
        return self.record.table


class Reason(steps.ProblemReason):
    """What can be wrong with routes in any cloud; see `Routes.reasons`."""

    NO_POD_CIDR = "NoPodCIDR"
    INVALID_POD_CIDR = "InvalidPodCIDR"
    OUTSIDE_CLUSTER = "PodCIDROutsideClusterCIDR"
    DUPLICATE = "PodCIDRNotUnique"
    NO_NEXT_HOP = "NoNextHop"
    """The Node has no address of the family that the table can reach."""
    CONFLICT = "RouteConflict"
    """The table has a route to the podCIDR that this cluster does not own."""
    LIMIT = "RouteLimitReached"
    TABLE_UNAVAILABLE = "RouteTableUnavailable"
    """The table is missing, cannot be read, or must not be changed."""
    RECORD_UNREADABLE = "RouteRecordUnreadable"


# ---------------------------------------------------------------- observed


class Depth(enum.IntEnum):
    """How much an observation reads."""

    CHANGED = 1
    """The routes; everything else may be as old as the last whole observation."""
    FULL = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """One table as it is. exists: False: it is absent, with all its routes."""

    exists: bool
    native: object


Observation = Seen[Observed] | Unknown
"""Unknown: it could not be read, so nothing may be planned. With `errors.Unsupported`
the cloud has no such tables at all."""


# ---------------------------------------------------------------- plans


@dataclasses.dataclass(frozen=True, slots=True)
class Plan(steps.Plan):
    """What brings a table closer to its target; see `steps.Plan`.

    record: to be written before any step; None: as it is. steps: additions to the
    table. entry_steps: by the id of their object, in any order and in parallel, after
    `steps`. removals: of the table, last of all. waits: by Node, the keys of
    entry_steps after which its pods are reached. problems_of: by Node. unserved: Nodes
    that lack an entry because of a problem. problems: of the table itself.
    """

    record: Record | None = None
    entry_steps: Mapping[str, steps.Step] = dataclasses.field(default_factory=dict)
    removals: tuple[steps.Step, ...] = ()
    waits: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    problems_of: Mapping[str, tuple[steps.Problem, ...]] = dataclasses.field(
        default_factory=dict
    )
    unserved: frozenset[str] = frozenset()

    @property
    def has_steps(self) -> bool:
        """Report whether the cloud is to be written."""
        return bool(self.steps or self.entry_steps or self.removals)


@dataclasses.dataclass(frozen=True, slots=True)
class Owned:
    """An entry that exists in the cloud and is recorded as a cluster's.

    kind: "route" or "address pair". id: of the object that holds it: a router or a
    port. native: what `release` needs.
    """

    kind: str
    id: str
    recorded: Recorded
    native: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class NotOwned:
    """A route that exists in a table and is in no record given."""

    id: str
    route: Route


class Routes(Protocol):
    """Route tables of one cloud. Safe to use from several threads.

    Pure: plan, release. Every other call is bounded by time-outs of its own.
    """

    @property
    def table(self) -> str:
        """The table of the configuration: an id, or a word where there is none."""
        ...

    @property
    def has_routes(self) -> bool:
        """Report whether the table holds routes, or address pairs alone."""
        ...

    @property
    def reasons(self) -> Collection[steps.ProblemReason]:
        """The provider's own reasons, beside `Reason` and `steps.CommonReason`."""
        ...

    def observe(
        self, tables: Collection[str], depth: Depth
    ) -> Mapping[str, Observation]:
        """Read tables; one entry each, never raises for one of them.

        One call for each table at CHANGED, and a few for all of them at FULL; the
        number does not grow with the number of Nodes but by pages.
        """
        ...

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """Return what brings the table closer. Pure: the same in, the same out.

        now: UTC.
        """
        ...

    def apply(self, step: steps.Step, within_s: float = math.inf) -> steps.StepResult:
        """Make one write of the cloud, and do not wait for its effect.

        within_s: the request is not sent later than this many seconds from now.

        Raises:
            CloudError: Busy: the object was changed by others since it was observed.
        """
        ...

    def gates(
        self, asked: Collection[steps.Asked]
    ) -> Mapping[str, steps.Gate | Unknown]:
        """Return whether open plans may continue, by id; see `lib.plans`."""
        ...

    def owned(self, records: Collection[Record]) -> Iterator[Owned | NotOwned]:
        """Return the recorded entries that exist, and routes that no record has.

        records: of one cluster, one for each table. Tables that are absent hold none.

        Raises:
            CloudError: it could not be read.
        """
        ...

    def release(self, owned: Collection[Owned]) -> tuple[steps.Step, ...]:
        """Return the steps that remove these entries and change nothing else.

        Each is refused with Busy when its object has been changed since `owned`.
        """
        ...

"""All reads of a reconciliation: Nodes from the store, the table, the record."""

import dataclasses
import datetime
from collections.abc import Callable, Sequence

from lib.cloud import route_records
from lib.cloud.model import Unknown
from lib.cloud.routes import (
    AddressPair,
    Depth,
    Plan,
    Record,
    Routes,
    Target,
)
from lib.cloud.steps import Problem
from lib.kube import store
from lib.kube.nodes import Node
from lib.routes import desired
from lib.routes.model import NODE, TABLE, Desired, Memory, TableSnapshot
from lib.routes.records import Records


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """What an Observer reads.

    cluster_id: of this cluster. cluster_cidrs: of --cluster-cidr. now: UTC.
    """

    nodes: store.Store[Node]
    routes: Callable[[], Routes]
    records: Records
    cluster_id: Callable[[], str]
    cluster_cidrs: Sequence[desired.Cidr]
    now: Callable[[], datetime.datetime]


class Observer:
    """Reads the table with its record."""

    def __init__(self, sources: Sources, memory: Memory) -> None:
        self._sources = sources
        self._memory = memory

    def table(self, depth: Depth) -> TableSnapshot:
        """Read the table; deeper than asked for where a difference shows.

        So an idle check costs one call, and whatever is written has been read now.

        Raises:
            KubeError: the record could not be read.
        """
        nodes = self._sources.nodes.items().values()
        wanted = desired.of(nodes, self._sources.cluster_cidrs, self._sources.now())
        if depth is Depth.CHANGED:
            found = self._read(wanted, Depth.CHANGED)
            if found.error is not None or is_settled(found):
                return found
        return self._read(wanted, Depth.FULL)

    def _read(self, wanted: Desired, depth: Depth) -> TableSnapshot:
        sources = self._sources
        stored = sources.records.read(is_fresh=depth is Depth.FULL)
        cluster_id = sources.cluster_id()
        records = dict(route_records.read(stored.data, cluster_id))
        table = sources.routes().table
        record = records.pop(table, Record(table, cluster_id))
        observed = sources.routes().observe((table, *sorted(records)), depth)
        suffix = f".{cluster_id}{route_records.UNREADABLE}"
        found = TableSnapshot(
            wanted,
            stored,
            reported=self._reported(wanted),
            unreadable=tuple(sorted(k for k in stored.data if k.endswith(suffix))),
        )
        seen = observed[table]
        if isinstance(seen, Unknown):
            return dataclasses.replace(found, error=seen.error)
        now = sources.now()
        target = Target(record, wanted.nodes, wanted.present)
        tables = sources.routes()
        plan = tables.plan(target, seen.value, now)
        former = [
            (old, tables.plan(_leaving(old, record, plan, wanted), there, now))
            for old in records.values()
            if not isinstance(seen := observed[old.table], Unknown)
            and (there := seen.value)
        ]
        return dataclasses.replace(
            found, plan=plan, record=record, former=tuple(former)
        )

    def _reported(self, wanted: Desired) -> dict[str, tuple[Problem, ...]]:
        names = (TABLE, *(f"{NODE}{name}" for name in wanted.present))
        return {name: self._memory.reported(name).problems for name in names}


def _leaving(old: Record, current: Record, plan: Plan, wanted: Desired) -> Target:
    """Return the target of a table that is configured no longer: to hold nothing.

    What Nodes have there is kept as long as the current table cannot serve them, and so
    are address pairs that the current table needs.
    """
    unserved = wanted.unserved_by(plan)
    present = {n: cidrs for n, cidrs in wanted.present.items() if n in unserved}
    both = (*current.owned, *(plan.record.owned if plan.record else ()))
    kept = frozenset(entry for entry in both if isinstance(entry, AddressPair))
    return Target(old, (), present, kept)


def is_settled(found: TableSnapshot) -> bool:
    """Report whether neither the cloud nor the record is to be written."""
    former = any(plan.has_steps or plan.record for _, plan in found.former)
    return found.plan is not None and found.plan.settled and not former

"""All reads of a reconciliation: Nodes from the store, the table, the record."""

import dataclasses
import datetime
import itertools
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
from lib.kube import errors as kube_errors
from lib.kube import store
from lib.kube.nodes import Node
from lib.routes import desired
from lib.routes.model import (
    NODE,
    TABLE,
    Desired,
    Memory,
    Stored,
    TableSnapshot,
)
from lib.routes.records import Records

REPEATED = 20
"""Nodes whose problems one observation reports again, at most: one mistake may concern
all of 5,000, which are then reported once in 40 minutes."""


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
            KubeError: the record could not be read, and may be soon.
        """
        nodes = self._sources.nodes.items().values()
        desired_routes = desired.of(
            nodes, self._sources.cluster_cidrs, self._sources.now()
        )
        if depth is Depth.CHANGED:
            snapshot = self._read(desired_routes, Depth.CHANGED)
            if snapshot.error is not None:
                return snapshot
            if is_settled(snapshot) and not is_news(snapshot):
                return snapshot
        return self._read(desired_routes, Depth.FULL)

    def _read(self, desired_routes: Desired, depth: Depth) -> TableSnapshot:
        sources = self._sources
        try:
            stored = sources.records.read(is_fresh=depth is Depth.FULL)
        except kube_errors.KubeError as error:
            if not kube_errors.is_denied(error):
                raise
            return TableSnapshot(
                desired_routes,
                Stored(),
                error=error,
                reported=self._reported(desired_routes),
                due=self._due(desired_routes),
            )
        cluster_id = sources.cluster_id()
        texts = [part.data for part in stored.parts]
        records = dict(route_records.read(texts, cluster_id))
        table = sources.routes().table
        record = records.pop(table, Record(table, cluster_id))
        observed = sources.routes().observe((table, *sorted(records)), depth)
        suffix = f".{cluster_id}{route_records.UNREADABLE}"
        snapshot = TableSnapshot(
            desired_routes,
            stored,
            reported=self._reported(desired_routes),
            due=self._due(desired_routes),
            unreadable=tuple(
                (number, key)
                for number, data in enumerate(texts)
                for key in sorted(data)
                if key.endswith(suffix)
            ),
        )
        current = observed[table]
        if isinstance(current, Unknown):
            return dataclasses.replace(snapshot, error=current.error)
        now = sources.now()
        target = Target(record, desired_routes.nodes, desired_routes.present)
        tables = sources.routes()
        plan = tables.plan(target, current.value, now)
        former = [
            (
                old,
                tables.plan(_leaving(old, record, plan, desired_routes), content, now),
            )
            for old in records.values()
            if not isinstance(of_old := observed[old.table], Unknown)
            and (content := of_old.value)
        ]
        return dataclasses.replace(
            snapshot, plan=plan, record=record, former=tuple(former)
        )

    def _reported(self, desired_routes: Desired) -> dict[str, tuple[Problem, ...]]:
        names = _subjects(desired_routes)
        return {name: self._memory.reported(name).problems for name in names}

    def _due(self, desired_routes: Desired) -> frozenset[str]:
        """Return the subjects that are reported again: the next few of many."""
        names = _subjects(desired_routes)
        due = (name for name in names if self._memory.is_report_due(name))
        return frozenset(itertools.islice(due, REPEATED))


def _subjects(desired_routes: Desired) -> tuple[str, ...]:
    return (TABLE, *(f"{NODE}{name}" for name in desired_routes.present))


def _leaving(
    old: Record, current: Record, plan: Plan, desired_routes: Desired
) -> Target:
    """Return the target of a table that is configured no longer: to hold nothing.

    Entries of a Node are kept as long as the current table cannot serve it, and so are
    address pairs that the current table requires.
    """
    unserved = desired_routes.unserved_by(plan)
    present = {n: cidrs for n, cidrs in desired_routes.present.items() if n in unserved}
    both = (*current.owned, *(plan.record.owned if plan.record else ()))
    kept = frozenset(entry for entry in both if isinstance(entry, AddressPair))
    return Target(old, (), present, kept)


def is_news(snapshot: TableSnapshot) -> bool:
    """Report whether something is wrong with a Node that was not reported yet.

    A port that is newer than the last whole reading is not seen by a check for drift.
    """
    plan, desired_routes = snapshot.plan, snapshot.desired
    return plan is not None and any(
        desired_routes.problems_by(plan, name) != snapshot.reported[f"{NODE}{name}"]
        for name in desired_routes.present
    )


def is_settled(snapshot: TableSnapshot) -> bool:
    """Report whether neither the cloud nor the record is to be written."""
    former = any(plan.has_steps or plan.record for _, plan in snapshot.former)
    return snapshot.plan is not None and snapshot.plan.settled and not former

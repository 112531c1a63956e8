"""What brings a table closer to its target: pure.

Rules: an entry is removed only if it is recorded, and its Node is absent, has another
podCIDR, or has another next hop by now. An entry is recorded before it is created, and
its record is dropped once an observation shows that it does not exist.
"""

import dataclasses
import datetime
from collections.abc import Iterable, Mapping

from lib.cloud import absence_limit
from lib.cloud.openstack.routes import actions, desire, native
from lib.cloud.openstack.routes.desire import DesiredTable
from lib.cloud.openstack.routes.native import Pair, Port, Table
from lib.cloud.routes import (
    AddressPair,
    Entry,
    Observed,
    Plan,
    Reason,
    Record,
    Recorded,
    Route,
    Target,
)
from lib.cloud.steps import Problem, Step, Verb

PROBE_S = 0.5
"""When to add more routes where the limit of the router is not known exactly yet."""
_LIMIT = "limit"
"""What a Node waits for in the meantime, instead of a port."""
NAMED = 5
"""Entries named in a step, at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """All that a plan is made of. existing: entries of the table and its ports."""

    target: Target
    table: Table
    desired: DesiredTable
    existing: frozenset[Entry]
    owned: Mapping[Entry, Recorded]

    def is_surplus(self, entry: Entry) -> bool:
        """Report whether an owned entry is to be removed."""
        if entry in self.desired.entries or entry in self.target.kept:
            return False
        recorded, cidr = self.owned[entry], _cidr(entry)
        if cidr not in self.target.present.get(recorded.node, ()):
            return True
        return any(
            isinstance(other, type(entry)) and _cidr(other) == cidr
            for other in self.desired.entries
        )

    def is_kept(self, entry: Entry) -> bool:
        """Report whether an owned entry stays in the record."""
        if entry in self.desired.entries:
            return True
        if entry in self.target.kept:
            return False
        return entry in self.existing or not self.is_surplus(entry)


def _cidr(entry: Entry) -> str:
    return entry.destination if isinstance(entry, Route) else entry.address


def plan(target: Target, observed: Observed, now: datetime.datetime) -> Plan:
    """Return what brings the table closer to its target; see the protocol."""
    table = native.of(observed)
    if not observed.exists and target.nodes:
        message = f"router {table.id}: not found, or of another project"
        problem = Problem(Reason.TABLE_UNAVAILABLE, message, is_fatal=True)
        return Plan(problems=(problem,))
    if implausible := _mass_absence(target, table):
        return Plan(problems=(implausible,))
    case = _case(target, table)
    record = _record(case, int(now.timestamp()))
    missing, surplus = _routes(case)
    adding, removing = _table_steps(table, missing, surplus)
    pair_steps, waits = _pair_steps(case)
    has_steps = adding or removing or pair_steps
    is_recorded = record == target.record and target.record.is_readable
    return Plan(
        steps=adding,
        removals=removing,
        entry_steps=pair_steps,
        waits=waits,
        record=None if is_recorded else record,
        settled=not has_steps and is_recorded,
        problems_of={n: tuple(some) for n, some in case.desired.problems.items()},
        unserved=frozenset(case.desired.unserved),
        retry_after_s=PROBE_S if case.desired.pending else None,
        object_id=table.id,
    )


def _mass_absence(target: Target, table: Table) -> Problem | None:
    """Return the problem of a list of ports that lacks too many that were used before.

    Else one wrong list sets the condition of all these Nodes.
    """
    ids = {port.id for port in table.ports}
    addresses = {fixed.ip_address for port in table.ports for fixed in port.fixed_ips}
    is_known: dict[str, bool] = {}
    for recorded in target.record.entries:
        entry, node = recorded.entry, recorded.node
        if node in target.present:
            if isinstance(entry, AddressPair):
                exists = entry.port_id in ids
            else:
                exists = entry.next_hop in addresses
            is_known[node] = is_known.get(node, False) or exists
    absent = sorted(node for node, exists in is_known.items() if not exists)
    if not absence_limit.is_mass(len(absent), len(is_known), absence_limit.Limit()):
        return None
    text = (
        f"the ports of {len(absent)} of {len(is_known)} Nodes are absent at the same"
        f" time ({', '.join(absent[:NAMED])}); this is not taken for true, and no"
        " route is changed: check Neutron"
    )
    return Problem(Reason.TABLE_UNAVAILABLE, text, is_fatal=True)


def _case(target: Target, table: Table) -> _Case:
    pairs = frozenset(pair for port in table.ports for pair in native.pairs(port))
    existing: frozenset[Entry] = frozenset(table.routes) | pairs
    desired = desire.desired(target, table)
    owned = dict(target.record.owned)
    for route, node in desire.adoptable(target.nodes, table):
        owned.setdefault(route, Recorded(route, node))
    for entry, node in desired.entries.items():
        if isinstance(entry, AddressPair) and entry in existing:
            owned.setdefault(entry, Recorded(entry, node))
    return _Case(target, table, desired, existing, owned)


def _record(case: _Case, now_s: int) -> Record:
    """Return the record before the first step: all that is, or will be, owned."""
    entries: dict[Entry, Recorded] = {}
    for entry, recorded in case.owned.items():
        if case.is_kept(entry):
            entries[entry] = recorded
    for entry, node in case.desired.entries.items():
        old = entries.get(entry, Recorded(entry, node))
        entries[entry] = dataclasses.replace(old, node=node)
    dated = [
        recorded if recorded.since else dataclasses.replace(recorded, since=now_s)
        for recorded in entries.values()
    ]
    before = case.target.record
    return Record(before.table, before.cluster_id, tuple(sorted(dated, key=order)))


def order(recorded: Recorded) -> tuple[str, ...]:
    """Return the key by which entries of a record are sorted."""
    entry = recorded.entry
    if isinstance(entry, Route):
        return ("route", entry.destination, entry.next_hop)
    return ("pair", entry.port_id, entry.address)


def _routes(case: _Case) -> tuple[tuple[Route, ...], tuple[Route, ...]]:
    """Return the routes to be added and those to be removed."""
    missing = [
        entry
        for entry in case.desired.entries
        if isinstance(entry, Route) and entry not in case.existing
    ]
    surplus = [
        entry
        for entry in case.owned
        if isinstance(entry, Route)
        and entry in case.existing
        and case.is_surplus(entry)
    ]
    return tuple(missing), tuple(sorted(surplus))


def _table_steps(
    table: Table, missing: tuple[Route, ...], surplus: tuple[Route, ...]
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that add routes, and those that remove some afterwards."""
    if table.router is None or not (missing or surplus):
        return (), ()
    if not table.limits.is_atomic:
        return (_whole(table, missing, surplus),), ()
    total = len(table.routes) + len(missing)
    parts = [(route,) for route in missing] if table.limits.is_singly else [missing]
    adding = [
        _table_step(table, Verb.CREATE, actions.AddRoutes(table.id, part, total))
        for part in parts
        if part
    ]
    removal = actions.RemoveRoutes(table.id, surplus)
    removing = [_table_step(table, Verb.DELETE, removal)] if surplus else []
    return tuple(adding), tuple(removing)


def _table_step(
    table: Table, verb: Verb, action: actions.AddRoutes | actions.RemoveRoutes
) -> Step:
    why = listed(action.routes)
    path = (f"router {table.id}", "routes")
    group = "" if verb is Verb.DELETE else why
    return Step(verb, path, why, action, is_gated=False, group=group)


def _whole(
    table: Table, missing: tuple[Route, ...], surplus: tuple[Route, ...]
) -> Step:
    """Return the step that writes all routes, upon the revision that was read."""
    kept = tuple(route for route in table.routes if route not in surplus)
    revision = table.router.revision_number if table.router is not None else None
    action = actions.WriteRoutes(table.id, (*kept, *missing), missing, revision)
    why = f"add {listed(missing)}; remove {listed(surplus)}"
    path = (f"router {table.id}", "routes")
    return Step(Verb.CHANGE, path, why, action, is_gated=False)


def removal(table: Table, routes: tuple[Route, ...]) -> tuple[Step, ...]:
    """Return the steps that remove these routes of a table and nothing else."""
    adding, removing = _table_steps(table, (), routes)
    return (*adding, *removing)


def listed(entries: Iterable[Entry]) -> str:
    """Return the first few entries in words."""
    some = [str(entry) for entry in entries]
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return ", ".join(some[:NAMED]) + more if some else "none"


def _pair_steps(
    case: _Case,
) -> tuple[dict[str, Step], dict[str, frozenset[str]]]:
    """Return a step for each port that changes, and for which ports a Node waits."""
    adding: dict[str, list[AddressPair]] = {}
    removing: dict[str, list[AddressPair]] = {}
    waits: dict[str, set[str]] = {}
    for entry, node in case.desired.entries.items():
        if isinstance(entry, AddressPair) and entry not in case.existing:
            adding.setdefault(entry.port_id, []).append(entry)
            waits.setdefault(node, set()).add(entry.port_id)
    for entry in case.owned:
        is_there = isinstance(entry, AddressPair) and entry in case.existing
        if isinstance(entry, AddressPair) and is_there and case.is_surplus(entry):
            removing.setdefault(entry.port_id, []).append(entry)
    for node in case.desired.pending:
        waits.setdefault(node, set()).add(_LIMIT)
    changed = adding.keys() | removing.keys()
    ports = {port.id: port for port in case.table.ports if port.id in changed}
    steps = {
        id_: pair_step(port, adding.get(id_, ()), removing.get(id_, ()))
        for id_, port in sorted(ports.items())
    }
    return steps, {node: frozenset(ids) for node, ids in waits.items()}


def pair_step(
    port: Port, added: Iterable[AddressPair], removed: Iterable[AddressPair]
) -> Step:
    """Return the step that changes some pairs of a port, upon the revision read."""
    gone = {pair.address for pair in removed}
    new = tuple(added)
    kept = tuple(
        pair
        for pair in port.allowed_address_pairs or ()
        if pair.mac_address not in ("", port.mac_address)
        or native.network(pair.ip_address) not in gone
    )
    desired = (*kept, *(Pair(pair.address) for pair in new))
    action = actions.WritePairs(port.id, desired, new, port.revision_number)
    why = f"add {listed(new)}; remove {', '.join(sorted(gone)) or 'none'}"
    path = (f"port {port.id}", "allowed address pairs")
    return Step(Verb.CHANGE, path, why, action, is_gated=False, group=path[0])

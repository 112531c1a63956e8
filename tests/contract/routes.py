"""What every implementation of `Routes` does, row by row."""

import contextlib
import dataclasses
import datetime
from collections.abc import Iterable, Mapping
from typing import Protocol

from lib.cloud import errors
from lib.cloud.model import Seen, Unknown
from lib.cloud.routes import (
    AddressPair,
    Depth,
    Entry,
    Node,
    NotOwned,
    Observed,
    Owned,
    Plan,
    Reason,
    Record,
    Route,
    Routes,
    Target,
)
from lib.cloud.steps import Asked, Gate, GateState, Problem, Step, StepResult

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CLUSTER = "contract"
RECONCILIATIONS = 30


class Ground(Protocol):
    """A table with Nodes that it reaches, and the means of others to change it."""

    @property
    def routes(self) -> Routes: ...

    def restart(self) -> None:
        """Forget everything that only the process knew."""
        ...

    def node(self, name: str, *pod_cidrs: str) -> Node:
        """Return a Node whose ports exist; the same for the same name."""
        ...

    def put_route(self, route: Route) -> None:
        """Add a route as another client would."""
        ...

    def remove_route(self, route: Route) -> None:
        """Remove a route as another client would."""
        ...

    def put_pair(self, pair: AddressPair) -> None:
        """Add an address pair as another client would."""
        ...

    def entries(self) -> frozenset[Entry]:
        """Return all routes and address pairs that exist, read past the product."""
        ...

    def clear(self) -> None:
        """Remove all routes and address pairs."""
        ...


class Served:
    """One cluster and the reconciliations of its table; the record survives a kill."""

    def __init__(self, ground: Ground, *nodes: Node, table: str = "") -> None:
        self.ground = ground
        self.nodes = nodes
        self.table = table or ground.routes.table
        self.record = Record(self.table, CLUSTER)
        self.steps: list[Step] = []

    def target(self) -> Target:
        present = {node.name: frozenset(node.pod_cidrs) for node in self.nodes}
        return Target(self.record, self.nodes, present)

    def observe(self, depth: Depth = Depth.FULL) -> Observed:
        observation = self.ground.routes.observe([self.table], depth)[self.table]
        assert isinstance(observation, Seen), observation
        return observation.value

    def plan(self, depth: Depth = Depth.FULL) -> Plan:
        target, observed = self.target(), self.observe(depth)
        plan = self.ground.routes.plan(target, observed, NOW)
        assert plan == self.ground.routes.plan(target, observed, NOW)
        return plan

    def reconcile(self) -> Plan:
        """Carry one plan out; what fails is left to the next."""
        plan = self.plan()
        if plan.record is not None:
            self.record = plan.record
        for step in (*plan.steps, *plan.entry_steps.values(), *plan.removals):
            try:
                assert self.ground.routes.apply(step) == StepResult()
            except errors.Busy:
                break
            self.steps.append(step)
        return plan

    def settle(self) -> Plan:
        """Reconcile until nothing is left to do; return the last plan."""
        self.steps = []
        for _ in range(RECONCILIATIONS):
            plan = self.reconcile()
            if plan.settled:
                assert not plan.has_steps
                assert plan.record is None
                return plan
        raise AssertionError(f"does not settle: {[str(s) for s in self.steps[-9:]]}")

    def replace(self, *nodes: Node) -> None:
        self.nodes = nodes


def reasons(plan: Plan) -> Mapping[str, list[str]]:
    """Return the reasons of all problems by Node."""
    return {
        node: [str(problem.reason) for problem in some]
        for node, some in plan.problems_of.items()
    }


def routes_of(node: Node) -> frozenset[Entry]:
    """Return the routes that a Node of two families, or one, needs."""
    entries: set[Entry] = set()
    for cidr in node.pod_cidrs:
        version = ":" in cidr
        hop = next(a.address for a in node.addresses if (":" in a.address) == version)
        entries.add(Route(cidr, hop))
    return frozenset(entries)


class Contract:
    """Every row has Nodes and podCIDRs of its own; the table is shared."""

    def _served(self, ground: Ground, number: int) -> Served:
        ground.clear()
        ground.restart()
        nodes = [
            ground.node(
                f"n{n}", f"10.{100 + number}.{n}.0/24", f"fd00:{number}:{n}::/64"
            )
            for n in (1, 2)
        ]
        return Served(ground, *nodes)

    def test_nodes_get_routes_and_pairs_in_one_write_of_the_table(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 1)
        plan = served.settle()
        expected = routes_of(served.nodes[0]) | routes_of(served.nodes[1])
        result = ground.entries()
        assert {e for e in result if isinstance(e, Route)} == expected
        pairs = {e.address for e in result if isinstance(e, AddressPair)}
        assert pairs == {c for node in served.nodes for c in node.pod_cidrs}
        assert set(served.record.owned) == result
        assert (plan.problems, plan.problems_of) == ((), {})
        assert len(served.steps) == 1 + 2, [str(step) for step in served.steps]

    def test_a_settled_table_is_not_written(self, ground: Ground) -> None:
        served = self._served(ground, 2)
        served.settle()
        ground.restart()
        for depth in (Depth.FULL, Depth.CHANGED, Depth.FULL):
            plan = served.plan(depth)
            assert (plan.settled, plan.has_steps, plan.record) == (True, False, None)

    def test_entries_of_a_deleted_node_are_removed_from_cloud_and_record(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 3)
        served.settle()
        served.replace(served.nodes[0])
        served.settle()
        result = ground.entries()
        assert {e for e in result if isinstance(e, Route)} == routes_of(served.nodes[0])
        assert set(served.record.owned) == result

    def test_entries_without_a_record_are_kept(self, ground: Ground) -> None:
        served = self._served(ground, 4)
        stranger = ground.node("stranger", "10.104.77.0/24")
        hop = next(iter(routes_of(stranger)))
        assert isinstance(hop, Route)
        others: set[Entry] = {hop, Route("10.104.1.128/25", hop.next_hop)}
        for entry in others:
            assert isinstance(entry, Route)
            ground.put_route(entry)
        served.settle()
        served.replace()
        served.settle()
        assert ground.entries() == others
        assert served.record.entries == ()

    def test_a_lost_record_removes_nothing(self, ground: Ground) -> None:
        served = self._served(ground, 5)
        served.settle()
        before = ground.entries()
        served.record = Record(served.table, CLUSTER, is_readable=False)
        served.replace(served.nodes[0])
        served.settle()
        assert ground.entries() == before

    def test_entries_of_the_reference_are_adopted_without_a_write(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 6)
        served.settle()
        before = ground.entries()
        served.record = Record(served.table, CLUSTER)
        ground.restart()
        served.settle()
        assert served.steps == []
        assert set(served.record.owned) == before == ground.entries()

    def test_a_route_of_others_to_a_pod_cidr_is_a_conflict(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 7)
        stranger = ground.node("stranger", "10.107.1.0/24")
        (other,) = routes_of(stranger)
        assert isinstance(other, Route)
        ground.put_route(other)
        plan = served.settle()
        assert reasons(plan) == {"n1": [str(Reason.CONFLICT)]}
        assert plan.unserved == {"n1"}
        assert other in ground.entries()
        assert routes_of(served.nodes[1]) <= ground.entries()
        ground.remove_route(other)
        served.settle()
        assert routes_of(served.nodes[0]) <= ground.entries()

    def test_drift_is_seen_at_the_lowest_depth_and_repaired(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 8)
        served.settle()
        lost = sorted(routes_of(served.nodes[0]), key=str)[0]
        assert isinstance(lost, Route)
        ground.remove_route(lost)
        assert not served.plan(Depth.CHANGED).settled
        served.settle()
        assert lost in ground.entries()

    def test_pairs_of_others_on_a_port_are_kept(self, ground: Ground) -> None:
        served = self._served(ground, 9)
        served.settle()
        pair = next(e for e in served.record.owned if isinstance(e, AddressPair))
        address_pair = AddressPair(pair.port_id, "192.0.2.77/32")
        ground.put_pair(address_pair)
        served.replace()
        served.settle()
        assert ground.entries() == {address_pair}

    def test_a_port_that_others_changed_in_between_is_busy(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 10)
        plan = served.plan()
        port_id, step = next(iter(plan.entry_steps.items()))
        ground.put_pair(AddressPair(port_id, "192.0.2.78/32"))
        try:
            ground.routes.apply(step)
        except errors.Busy:
            pass
        else:
            raise AssertionError("a write upon an old revision was accepted")
        served.settle()
        assert AddressPair(port_id, "192.0.2.78/32") in ground.entries()

    def test_another_next_hop_is_added_before_the_old_one_is_removed(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 11)
        served.settle()
        moved = ground.node("moved", *served.nodes[0].pod_cidrs)
        served.replace(dataclasses.replace(moved, name="n1"), served.nodes[1])
        plan = served.plan()
        assert plan.steps, "removed without a replacement"
        served.settle()
        assert routes_of(moved) <= ground.entries()
        assert not routes_of(ground.node("n1", *moved.pod_cidrs)) & ground.entries()

    def test_steps_may_be_applied_twice(self, ground: Ground) -> None:
        served = self._served(ground, 12)
        plan = served.plan()
        self._twice(ground, plan.steps)
        served.settle()
        removing = Served(ground, *served.nodes)
        removing.record = served.record
        removing.replace()
        plan = removing.plan()
        self._twice(ground, plan.removals)
        removing.settle()
        assert ground.entries() == frozenset()

    def _twice(self, ground: Ground, steps: Iterable[Step]) -> None:
        """Busy: a table without single routes is written upon its revision only."""
        for step in (*steps, *steps):
            with contextlib.suppress(errors.Busy):
                ground.routes.apply(step)

    def test_an_absent_table_is_a_fatal_problem(self, ground: Ground) -> None:
        served = self._served(ground, 13)
        absent = "00000000-0000-4000-8000-00000000dead"
        elsewhere = Served(ground, *served.nodes, table=absent)
        observed = elsewhere.observe()
        assert not observed.exists
        plan = ground.routes.plan(elsewhere.target(), observed, NOW)
        (problem,) = plan.problems
        assert isinstance(problem, Problem)
        assert (problem.reason, problem.is_fatal) == (Reason.TABLE_UNAVAILABLE, True)
        assert not plan.has_steps
        assert plan.record is None

    def test_owned_lists_what_exists_and_release_removes_only_that(
        self, ground: Ground
    ) -> None:
        served = self._served(ground, 14)
        stranger = ground.node("stranger", "10.114.77.0/24")
        (other,) = routes_of(stranger)
        assert isinstance(other, Route)
        ground.put_route(other)
        served.settle()
        result = list(ground.routes.owned([served.record]))
        owned = [each for each in result if isinstance(each, Owned)]
        assert {o.recorded.entry for o in owned} == set(served.record.owned)
        assert {o.recorded.node for o in owned} == {"n1", "n2"}
        assert [e.route for e in result if isinstance(e, NotOwned)] == [other]
        some = [o for o in owned if o.recorded.node == "n1"]
        for step in ground.routes.release(some):
            ground.routes.apply(step)
        left = {o.recorded.entry for o in owned if o.recorded.node == "n2"}
        assert ground.entries() == left | {other}

    def test_gates_are_open(self, ground: Ground) -> None:
        """A table has carried a write out when it answers."""
        gates = ground.routes.gates([Asked("x", 0.0)])
        gate = gates["x"]
        assert not isinstance(gate, Unknown)
        assert gate == Gate(GateState.OPEN)

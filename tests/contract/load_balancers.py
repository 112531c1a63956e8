"""What every implementation of `LoadBalancers` does, row by row."""

import dataclasses
import datetime
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Facts,
    LoadBalancers,
    Node,
    Observed,
    Owned,
    Plan,
    Port,
    Problems,
    Role,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import Asked, Gate, GateState, Step, StepResult, Verb

PASSES = 400
"""Reconciliations after which a Service has not settled."""
NOBODY = "00000000-0000-4000-8000-00000000dead"


class Ground(Protocol):
    """A cloud of load balancers, and the means to change it.

    balancers: those of one process; `restart` replaces them. cluster_id: whose
    ownership tag they carry.
    """

    @property
    def balancers(self) -> LoadBalancers: ...

    @property
    def cluster_id(self) -> str: ...

    def facts(self, name: str) -> Facts:
        """Return the facts of a new Service with one port and two Nodes."""
        ...

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        """Return facts with a value that is not allowed, and the field it is in."""
        ...

    def sleep(self, seconds: float) -> None:
        """Advance the time; a real cloud may return earlier."""
        ...

    def restart(self) -> None:
        """Forget everything that only the process knew."""
        ...

    def delete(self, id_: str) -> None:
        """Delete a load balancer as another client would; absent when this returns."""
        ...


class Served:
    """One Service, and the reconciliations that serve it.

    facts: as Kubernetes has them. steps: applied by the last `settle`.
    """

    def __init__(self, ground: Ground, facts: Facts) -> None:
        self.ground = ground
        self.facts = facts
        self.steps: list[Step] = []
        self.id = ""

    def target(self, *, gone: bool = False) -> Target:
        balancers = self.ground.balancers
        spec: Spec | None = None
        if not gone:
            parsed = balancers.parse(self.facts)
            assert isinstance(parsed, Spec), parsed
            spec = parsed
        return Target(balancers.refer(self.facts), spec)

    def observe(self, target: Target, depth: Depth = Depth.FULL) -> Observed:
        observation = self.ground.balancers.observe([target], depth)[target.ref]
        assert isinstance(observation, Seen), observation
        return observation.value

    def plan(self, *, gone: bool = False) -> Plan:
        """Observe and plan; what the plan reports is written to the Service."""
        target = self.target(gone=gone)
        observed = self.observe(target)
        self.id = observed.id or self.id
        plan = self.ground.balancers.plan(target, observed, _now())
        again = self.ground.balancers.plan(target, observed, _now())
        assert again == plan
        self._annotate(plan.results.annotations)
        if plan.results.ingress is not None:
            self.facts = dataclasses.replace(self.facts, ingress=plan.results.ingress)
        return plan

    def settle(self, *, gone: bool = False) -> Plan:
        """Reconcile until nothing is left to do; return the last plan."""
        self.steps = []
        for _ in range(PASSES):
            plan = self.plan(gone=gone)
            if plan.settled:
                assert plan.steps == ()
                return plan
            assert plan.steps or plan.retry_after_s is not None, plan
            self._apply(plan)
            if not plan.steps:
                self.ground.sleep(plan.retry_after_s or 0.0)
        raise AssertionError(f"does not settle: {[str(s) for s in self.steps[-9:]]}")

    def _apply(self, plan: Plan) -> None:
        """Apply steps until one fails, cannot be repeated, or finds its gate lost."""
        for step in plan.steps:
            if step.is_gated and self.id and self.wait().state is not GateState.OPEN:
                return
            self.apply(step)
            if not step.is_repeatable:
                return

    def apply(self, step: Step) -> StepResult:
        self.steps.append(step)
        result = self.ground.balancers.apply(step)
        self._annotate(result.annotations)
        self.id = self.id or result.id
        return result

    def wait(self) -> Gate:
        """Wait until the gate is open or lost."""
        waited_s = 0.0
        for _ in range(PASSES):
            gate = self.gate(waited_s)
            if gate.state is not GateState.CLOSED:
                return gate
            assert gate.retry_after_s > 0
            self.ground.sleep(gate.retry_after_s)
            waited_s += gate.retry_after_s
        raise AssertionError("the gate does not open")

    def gate(self, waited_s: float = 0.0) -> Gate:
        gate = self.ground.balancers.gates([Asked(self.id, waited_s)])[self.id]
        assert not isinstance(gate, Unknown), gate
        return gate

    def owned(self) -> list[str]:
        """Return the IDs of everything that carries the Service's ownership tag."""
        result = self.ground.balancers.owned(self.ground.cluster_id)
        return [row.id for row in result if row.uid == self.facts.uid]

    def _annotate(self, values: tuple[tuple[str, str | None], ...]) -> None:
        both = {**self.facts.annotations, **dict(values)}
        kept = {key: value for key, value in both.items() if value is not None}
        self.facts = dataclasses.replace(self.facts, annotations=kept)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class InMemory:
    """What grounds of clouds in memory share: a Service of one port, and two Nodes."""

    cluster_id = "cluster-1"

    def facts(self, name: str) -> Facts:
        """See `Ground`."""
        return Facts(
            Cluster(self.cluster_id, "kubernetes"),
            "default",
            name,
            f"uid-of-{name}",
            ports=(Port(80, node_port=30080),),
            nodes=(Node("node-1"), Node("node-2")),
        )


class Contract:
    """The rows. A subclass, or its module, has the fixture `ground`."""

    @pytest.fixture(scope="class")
    @classmethod
    def web(cls, ground: Ground) -> Served:
        """A Service that several rows share; the last one deletes it."""
        return Served(ground, ground.facts("web"))

    def test_a_reference_is_stable_and_needs_no_valid_facts(
        self, ground: Ground
    ) -> None:
        facts = ground.facts("referred")
        ref = ground.balancers.refer(facts)
        assert ground.balancers.refer(facts) == ref
        assert hash(ground.balancers.refer(facts)) == hash(ref)
        assert (ref.uid, ref.key) == (facts.uid, f"{facts.namespace}/referred")
        wrong, _ = ground.invalid(facts)
        assert ground.balancers.refer(wrong).uid == facts.uid

    def test_an_invalid_value_is_a_problem_that_names_its_field(
        self, ground: Ground
    ) -> None:
        facts = ground.facts("invalid")
        wrong, field = ground.invalid(facts)
        parsed = ground.balancers.parse(wrong)
        assert parsed.problems
        assert any(field in problem.message for problem in parsed.problems)
        is_fatal = any(problem.is_fatal for problem in parsed.problems)
        assert isinstance(parsed, Problems) == is_fatal
        valid = ground.balancers.parse(facts)
        assert isinstance(valid, Spec)
        assert not any(field in problem.message for problem in valid.problems)

    def test_without_any_load_balancer_each_target_has_an_answer(
        self, ground: Ground
    ) -> None:
        several = [Served(ground, ground.facts(f"absent-{n}")) for n in range(3)]
        targets = [served.target() for served in several]
        for depth in Depth:
            answers = ground.balancers.observe(targets, depth)
            assert set(answers) == {target.ref for target in targets}
            for answer in answers.values():
                assert isinstance(answer, Seen)
                assert (answer.value.is_there, answer.value.id) == (False, "")
        assert ground.balancers.observe([], Depth.TREE) == {}
        gone = several[0].plan(gone=True)
        assert (gone.settled, gone.steps) == (True, ())

    def test_a_service_settles_and_then_nothing_is_left_to_do(
        self, ground: Ground, web: Served
    ) -> None:
        plan = web.settle()
        print([str(step) for step in web.steps])
        assert web.steps
        assert web.facts.ingress
        assert web.facts.ingress == plan.results.ingress
        assert all(ingress.ip or ingress.hostname for ingress in web.facts.ingress)
        observed = web.observe(web.target())
        assert (observed.is_there, observed.id) == (True, web.id)
        ground.restart()
        assert web.settle().results == plan.results
        assert web.steps == []

    def test_a_gate_is_open_at_rest_and_lost_for_what_is_absent(
        self, ground: Ground, web: Served
    ) -> None:
        asked = [Asked(web.id, 0.0), Asked(NOBODY, 0.0)]
        gates = ground.balancers.gates(asked)
        states = {
            id_: gate.state for id_, gate in gates.items() if isinstance(gate, Gate)
        }
        assert states == {web.id: GateState.OPEN, NOBODY: GateState.LOST}
        assert ground.balancers.gates([]) == {}

    def test_what_is_owned_is_listed_for_its_cluster_alone(
        self, ground: Ground, web: Served
    ) -> None:
        assert web.id in web.owned()
        others = ground.balancers.owned(f"other-{ground.cluster_id}")
        assert web.id not in [other.id for other in others]

    def test_a_plan_without_the_service_is_restricted_to_what_was_listed(
        self, ground: Ground, web: Served
    ) -> None:
        """What `owned` returns suffices for a plan; other IDs are not touched."""
        roles = frozenset({Role.LOAD_BALANCER})
        result = ground.balancers.owned(ground.cluster_id, roles)
        (owned,) = (row for row in result if row.id == web.id)
        assert isinstance(owned, Owned)
        assert (owned.uid, owned.role) == (web.facts.uid, Role.LOAD_BALANCER)
        assert owned.ref is not None
        for only, has_steps in ((frozenset({NOBODY}), False), ({web.id}, True)):
            target = Target(owned.ref, None, frozenset(only))
            plan = ground.balancers.plan(target, web.observe(target), _now())
            assert (bool(plan.steps), plan.settled) == (has_steps, not has_steps)

    def test_another_port_and_one_node_less_are_changed_in_place(
        self, ground: Ground, web: Served
    ) -> None:
        before = web.id
        ports = (*web.facts.ports, Port(8080, node_port=30081, name="more"))
        web.facts = dataclasses.replace(
            web.facts, ports=ports, nodes=web.facts.nodes[:1]
        )
        web.settle()
        print([str(step) for step in web.steps])
        assert web.steps
        assert web.id == before
        ground.restart()
        assert web.settle().settled
        assert web.steps == []

    def test_a_creation_whose_answer_is_lost_is_found_again(
        self, ground: Ground
    ) -> None:
        """The process ends after the write, and nothing of it is on the Service."""
        lost = Served(ground, ground.facts("lost"))
        plan = lost.plan()
        first = plan.steps[0]
        assert first.verb is Verb.CREATE
        with pytest.raises(errors.Unavailable):
            ground.balancers.apply(first, within_s=0.0)
        assert lost.owned() == []
        created = ground.balancers.apply(first).id
        ground.restart()
        lost.settle()
        assert lost.id == created
        result = [
            row.id
            for row in ground.balancers.owned(ground.cluster_id)
            if (row.uid, row.role) == (lost.facts.uid, Role.LOAD_BALANCER)
        ]
        assert result == [created]
        ground.delete(created)
        assert lost.gate().state is GateState.LOST

    def test_a_service_that_wants_none_leaves_nothing(
        self, ground: Ground, web: Served
    ) -> None:
        web.settle(gone=True)
        assert web.steps
        observed = web.observe(web.target(gone=True))
        assert not observed.is_there
        assert web.owned() == []
        web.settle(gone=True)
        assert web.steps == []

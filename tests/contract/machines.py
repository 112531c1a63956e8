"""What every implementation of `Machines` does, row by row."""

import dataclasses
import datetime
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.machines import (
    Bootstrap,
    BootstrapData,
    Facts,
    Machines,
    Observed,
    Plan,
    Problems,
    Reason,
    Spec,
    Target,
)
from lib.cloud.model import AddressType, Seen
from lib.cloud.steps import Asked, Gate, GateState, Step, StepResult, Verb

PASSES = 400
"""Reconciliations after which a machine has not settled."""
NOBODY = "00000000-0000-4000-8000-00000000dead"
NOW = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
SECRET = "join-token-that-no-one-may-see"


class Ground(Protocol):
    """A cloud of machines, and the means to change it.

    machines: those of one process; `restart` replaces them. cluster_id: whose
    ownership tag they carry. starts_again: whether a stopped one is started, as the
    reference does it there. bootstrap data of all contains SECRET.
    """

    @property
    def machines(self) -> Machines: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def starts_again(self) -> bool: ...

    def facts(self, name: str) -> Facts:
        """Return the facts of a new machine, with bootstrap data."""
        ...

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        """Return facts with an invalid value, and the field that contains it."""
        ...

    def changed(self, facts: Facts) -> tuple[Facts, str]:
        """Return facts with another value of an immutable field, and that field."""
        ...

    def sleep(self, seconds: float) -> None:
        """Advance the time; a real cloud may return earlier."""
        ...

    def restart(self) -> None:
        """Forget everything that only the process knew."""
        ...

    def delete(self, name: str) -> None:
        """Delete an instance as another client would; absent when this returns."""
        ...

    def stop(self, name: str) -> None:
        """Stop an instance as its user would; stopped when this returns."""
        ...

    def occupy(self, name: str) -> str:
        """Create an instance of this name that is not owned; return its ID."""
        ...

    def exists(self, id_: str) -> bool:
        """Report whether an instance or a disk exists."""
        ...

    def attach_disk(self, name: str) -> str:
        """Attach a disk that is not the machine's own, as CSI does; return its ID."""
        ...

    def passed_on(self, name: str) -> bytes:
        """Return the bootstrap data that the instance has."""
        ...


class Served:
    """One machine object, and the reconciliations that serve it.

    steps: applied by the last `settle`. plan: the last one.
    """

    def __init__(self, ground: Ground, facts: Facts) -> None:
        self.ground = ground
        self.facts = facts
        self.steps: list[Step] = []
        self.id = ""

    def target(self, *, gone: bool = False) -> Target:
        machines = self.ground.machines
        spec: Spec | None = None
        if not gone:
            parsed = machines.parse(self.facts)
            assert isinstance(parsed, Spec), parsed
            spec = parsed
        return Target(machines.refer(self.facts), spec)

    def observe(self, target: Target) -> Observed:
        observation = self.ground.machines.observe([target])[target.ref]
        assert isinstance(observation, Seen), observation
        return observation.value

    def plan(self, *, gone: bool = False) -> Plan:
        """Observe and plan; what the plan reports is recorded on the object."""
        target = self.target(gone=gone)
        observed = self.observe(target)
        self.id = observed.id or self.id
        plan = self.ground.machines.plan(target, observed, NOW)
        assert self.ground.machines.plan(target, observed, NOW) == plan
        if not gone and plan.results.is_provisioned:
            assert plan.results.provider_id
            self.facts = dataclasses.replace(
                self.facts,
                provider_id=plan.results.provider_id,
                was_provisioned=True,
            )
        return plan

    def settle(self, *, gone: bool = False) -> Plan:
        """Reconcile until nothing is left to do; return the last plan."""
        self.steps = []
        for _ in range(PASSES):
            plan = self.plan(gone=gone)
            is_refused = any(problem.is_fatal for problem in plan.problems)
            if plan.settled or is_refused:
                assert plan.steps == ()
                return plan
            assert plan.steps or plan.retry_after_s is not None, plan
            self._apply(plan)
            if not plan.steps:
                self.ground.sleep(plan.retry_after_s or 0.0)
        raise AssertionError(f"does not settle: {[str(s) for s in self.steps[-9:]]}")

    def _apply(self, plan: Plan) -> None:
        for step in plan.steps:
            if step.is_gated and self.id and self.wait() is not GateState.OPEN:
                return
            self.apply(step)
            if not step.is_repeatable:
                return

    def apply(self, step: Step) -> StepResult:
        self.steps.append(step)
        result = self.ground.machines.apply(step)
        self.id = result.id or self.id
        recorded = {**self.facts.recorded, **dict(result.annotations)}
        self.facts = dataclasses.replace(
            self.facts, recorded={k: v for k, v in recorded.items() if v is not None}
        )
        return result

    def wait(self) -> GateState:
        """Wait until the gate is open or lost."""
        waited_s = 0.0
        for _ in range(PASSES):
            gate = self.ground.machines.gates([Asked(self.id, waited_s)])[self.id]
            assert isinstance(gate, Gate), gate
            if gate.state is not GateState.CLOSED:
                return gate.state
            assert gate.retry_after_s > 0
            self.ground.sleep(gate.retry_after_s)
            waited_s += gate.retry_after_s
        raise AssertionError("the gate does not open")

    def owned(self) -> list[str]:
        """Return the IDs of everything that carries the ownership tag."""
        rows = self.ground.machines.owned(self.ground.cluster_id)
        return [row.id for row in rows if row.uid == self.facts.uid]


def reason_of(plan: Plan) -> tuple[bool | None, str]:
    return plan.results.state.is_true, str(plan.results.state.reason)


class Contract:
    """The rows. A subclass, or its module, has the fixture `ground`."""

    @pytest.fixture(scope="class")
    @classmethod
    def worker(cls, ground: Ground) -> Served:
        """A machine that several rows share; the last one deletes it."""
        return Served(ground, ground.facts("worker"))

    def test_a_reference_is_stable_and_needs_no_valid_facts(
        self, ground: Ground
    ) -> None:
        facts = ground.facts("referred")
        ref = ground.machines.refer(facts)
        assert hash(ground.machines.refer(facts)) == hash(ref)
        assert (ref.uid, ref.key) == (facts.uid, f"{facts.namespace}/referred")
        wrong, _ = ground.invalid(facts)
        assert ground.machines.refer(wrong).uid == facts.uid

    def test_an_invalid_value_is_a_problem_that_names_its_field(
        self, ground: Ground
    ) -> None:
        facts = ground.facts("invalid")
        wrong, field = ground.invalid(facts)
        parsed = ground.machines.parse(wrong)
        assert isinstance(parsed, Problems)
        assert any(field in problem.message for problem in parsed.problems)
        assert any(problem.is_fatal for problem in parsed.problems)
        assert isinstance(ground.machines.parse(facts), Spec)

    def test_what_was_recorded_does_not_change_the_desired_state(
        self, ground: Ground
    ) -> None:
        """Otherwise our own status writes would end open plans."""
        facts = ground.facts("recorded")
        later = dataclasses.replace(facts, was_provisioned=True, has_node=True)
        assert ground.machines.parse(facts) == ground.machines.parse(later)

    def test_without_any_machine_each_target_has_an_answer(
        self, ground: Ground
    ) -> None:
        several = [Served(ground, ground.facts(f"absent-{n}")) for n in range(3)]
        targets = [served.target() for served in several]
        answers = ground.machines.observe(targets)
        assert set(answers) == {target.ref for target in targets}
        for answer in answers.values():
            assert isinstance(answer, Seen)
            assert (answer.value.is_there, answer.value.id) == (False, "")
        assert ground.machines.observe([]) == {}
        gone = several[0].plan(gone=True)
        assert (gone.settled, gone.steps, gone.leftovers) == (True, (), ())

    def test_without_bootstrap_data_nothing_is_created(self, ground: Ground) -> None:
        facts = dataclasses.replace(ground.facts("early"), bootstrap=None)
        early = Served(ground, facts)
        plan = early.settle()
        assert (early.steps, plan.results.is_provisioned) == ([], False)
        assert early.owned() == []

    def test_a_machine_settles_and_then_nothing_is_left_to_do(
        self, ground: Ground, worker: Served
    ) -> None:
        plan = worker.settle()
        print([str(step) for step in worker.steps])
        assert worker.steps
        assert reason_of(plan) == (True, Reason.RUNNING)
        assert plan.results.is_provisioned
        assert plan.results.failure is None
        types = {address.type for address in plan.results.addresses}
        assert {AddressType.HOSTNAME, AddressType.INTERNAL_IP} <= types
        assert 0 < len(plan.results.provider_id) <= 512
        assert set(dict(plan.results.conditions)) <= set(ground.machines.conditions)
        ground.restart()
        again = worker.settle()
        assert worker.steps == []
        assert again.results == plan.results

    def test_bootstrap_data_reaches_the_instance_and_nothing_else(
        self, ground: Ground, worker: Served
    ) -> None:
        fresh = Served(ground, ground.facts("discreet"))
        plan = fresh.plan()
        shown = repr((plan, fresh.facts, fresh.target(), fresh.observe(fresh.target())))
        fresh.settle()
        shown += repr(fresh.steps)
        assert SECRET not in shown
        assert SECRET in ground.passed_on("discreet").decode()
        assert SECRET in ground.passed_on("worker").decode()
        fresh.settle(gone=True)

    def test_a_gate_is_open_at_rest_and_lost_for_what_is_absent(
        self, ground: Ground, worker: Served
    ) -> None:
        asked = [Asked(worker.id, 0.0), Asked(NOBODY, 0.0)]
        gates = ground.machines.gates(asked)
        states = {
            id_: gate.state for id_, gate in gates.items() if isinstance(gate, Gate)
        }
        assert states == {worker.id: GateState.OPEN, NOBODY: GateState.LOST}
        assert ground.machines.gates([]) == {}

    def test_what_is_owned_is_listed_for_its_cluster_alone(
        self, ground: Ground, worker: Served
    ) -> None:
        assert worker.id in worker.owned()
        others = ground.machines.owned(f"other-{ground.cluster_id}")
        assert worker.id not in [other.id for other in others]

    def test_a_plan_without_the_object_is_restricted_to_what_was_listed(
        self, ground: Ground, worker: Served
    ) -> None:
        rows = ground.machines.owned(ground.cluster_id)
        (owned,) = (row for row in rows if row.id == worker.id)
        assert owned.ref is not None
        for only, has_steps in ((frozenset({NOBODY}), False), ({worker.id}, True)):
            target = Target(owned.ref, None, frozenset(only))
            plan = ground.machines.plan(target, worker.observe(target), NOW)
            assert (bool(plan.steps), plan.settled) == (has_steps, not has_steps)

    def test_an_immutable_field_is_reported_and_changes_nothing(
        self, ground: Ground, worker: Served
    ) -> None:
        before = worker.facts
        worker.facts, field = ground.changed(before)
        plan = worker.settle()
        worker.facts = dataclasses.replace(
            before,
            provider_id=worker.facts.provider_id,
            was_provisioned=worker.facts.was_provisioned,
        )
        assert worker.steps == []
        assert any(field in problem.message for problem in plan.problems)
        assert worker.settle().problems == ()

    def test_a_stopped_machine_is_reported_and_stays_provisioned(
        self, ground: Ground
    ) -> None:
        """It is started where the reference does that; an Event then reports it."""
        still = Served(ground, ground.facts("still"))
        still.settle()
        ground.stop("still")
        plan = still.plan()
        assert reason_of(plan) == (False, Reason.STOPPED)
        assert plan.results.is_provisioned
        starts = ground.starts_again
        assert (bool(plan.notices), plan.backs_off) == (starts, starts)
        plan = still.settle()
        after = (True, Reason.RUNNING) if starts else (False, Reason.STOPPED)
        assert (len(still.steps), reason_of(plan)) == (int(starts), after)
        still.settle(gone=True)

    def test_a_machine_deleted_by_others_is_reported_and_not_recreated(
        self, ground: Ground
    ) -> None:
        lost = Served(ground, ground.facts("deleted"))
        lost.settle()
        ground.delete("deleted")
        plan = lost.settle()
        assert lost.steps == []
        assert reason_of(plan) == (False, Reason.MISSING)
        ground.restart()
        assert reason_of(lost.settle()) == (False, Reason.MISSING)
        assert lost.steps == []
        lost.settle(gone=True)

    def test_what_another_owns_is_never_adopted_or_deleted(
        self, ground: Ground
    ) -> None:
        other = ground.occupy("taken")
        taken = Served(ground, ground.facts("taken"))
        plan = taken.settle()
        assert taken.steps == []
        assert reason_of(plan) == (False, Reason.NOT_OWNED)
        assert not plan.results.is_provisioned
        taken.settle(gone=True)
        assert taken.steps == []
        assert ground.exists(other)

    def test_a_creation_whose_response_is_lost_is_found_again(
        self, ground: Ground
    ) -> None:
        lost = Served(ground, ground.facts("lost"))
        first = lost.plan().steps[0]
        assert first.verb is Verb.CREATE
        with pytest.raises(errors.Unavailable):
            ground.machines.apply(first, within_s=0.0)
        assert lost.owned() == []
        ground.machines.apply(first)
        ground.restart()
        lost.settle()
        ids = lost.owned()
        assert len(ids) == len(set(ids))
        assert ids.count(lost.id) == 1
        lost.settle(gone=True)

    def test_a_half_created_machine_is_deleted_completely(self, ground: Ground) -> None:
        """After each number of steps of the creation."""
        rows = []
        for count in range(1, 20):
            half = Served(ground, ground.facts(f"half-{count}"))
            applied = self._apply_some(half, count)
            half.settle(gone=True)
            rows.append(f"{applied} steps, deleted by {len(half.steps)}")
            assert half.owned() == []
            if applied < count:
                break
        print("\n".join(rows))
        assert len(rows) >= 2

    def _apply_some(self, served: Served, count: int) -> int:
        applied = 0
        for _ in range(PASSES):
            plan = served.plan()
            if plan.settled or applied == count:
                return applied
            if not plan.steps:
                served.ground.sleep(plan.retry_after_s or 0.0)
            elif not served.id or served.wait() is GateState.OPEN:
                served.apply(plan.steps[0])
                applied += 1
        raise AssertionError("does not settle")

    def test_a_deleted_machine_leaves_nothing_but_the_disks_of_others(
        self, ground: Ground, worker: Served
    ) -> None:
        disk = ground.attach_disk("worker")
        plan = worker.plan(gone=True)
        assert (plan.settled, bool(plan.leftovers)) == (False, True)
        assert plan.abandoned
        worker.settle(gone=True)
        print([str(step) for step in worker.steps])
        assert worker.steps
        assert worker.owned() == []
        assert ground.exists(disk)
        ground.restart()
        worker.settle(gone=True)
        assert worker.steps == []


def bootstrap(name: str) -> Bootstrap:
    """Return a reference to bootstrap data."""
    return Bootstrap("default", f"{name}-bootstrap", "1", len(SECRET))


def read_bootstrap(reference: Bootstrap) -> BootstrapData:
    """Return bootstrap data with SECRET in it."""
    return BootstrapData(f"#cloud-config {reference.name} {SECRET}".encode())

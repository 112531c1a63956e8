"""What reaches a provider beside the spec of a machine, and how its ID is recorded."""

import dataclasses
from collections.abc import Callable
from typing import Any

from lib.cloud.machines import Facts, Ref
from lib.cloud.steps import Step, StepResult

Make = Callable[..., Any]
INFRA = {"id": "engine-cluster-1"}


def watch_facts(ground: Any) -> list[Facts]:
    """Return a list of all facts that the cloud is all_facts."""
    all_facts: list[Facts] = []
    refer = ground.cloud.refer

    def recorded(facts: Facts) -> Ref:
        all_facts.append(facts)
        ref: Ref = refer(facts)
        return ref

    ground.cloud.refer = recorded
    return all_facts


def test_facts_have_the_spec_of_the_infrastructure_cluster(
    ground: Any, make_process: Make
) -> None:
    all_facts = watch_facts(ground)
    ground.machine("one")
    process = make_process(ground)
    process.turn()
    assert all_facts[-1].cluster_spec is None
    ground.put(ground.kinds.infrastructure, "infra", spec=INFRA)
    process.settle()
    assert all_facts[-1].cluster_spec == INFRA


def test_another_kind_of_infrastructure_is_no_fact(
    ground: Any, make_process: Make
) -> None:
    all_facts = watch_facts(ground)
    ground.put(ground.kinds.infrastructure, "infra", spec=INFRA)
    reference = {"name": "infra", "kind": "OtherCluster"}
    ground.put(ground.kinds.clusters, "one", spec={"infrastructureRef": reference})
    ground.machine("one")
    make_process(ground).turn()
    assert all_facts[-1].cluster_spec is None


def test_the_own_id_is_recorded_without_its_scheme(
    ground: Any, make_process: Make
) -> None:
    ground.machine("one")
    make_process(ground).settle()
    spec = ground.get(ground.kinds.machine, "one")["spec"]
    assert spec["providerID"] == f"fake-machine://{spec['id']}"


def test_what_a_step_records_is_a_fact_and_keeps_its_plan_open(
    ground: Any, make_process: Make
) -> None:
    """A plan whose target seems to have changed would be dropped and read again."""
    all_facts = watch_facts(ground)
    apply, refer = ground.cloud.apply, ground.cloud.refer
    recorded = (("example.com/boot-disk", "disk-1"),)

    def noted(step: Step, within_s: float = 0.0) -> StepResult:
        result: StepResult = apply(step, within_s)
        is_disk = step.path[-1] == "disk"
        return dataclasses.replace(result, annotations=recorded if is_disk else ())

    def by_record(facts: Facts) -> Ref:
        native = facts.recorded.get("example.com/boot-disk")
        ref: Ref = refer(facts)
        return dataclasses.replace(ref, native=native)

    ground.cloud.apply, ground.cloud.refer = noted, by_record
    ground.machine("one")
    make_process(ground).settle()
    assert all_facts[-1].recorded["example.com/boot-disk"] == "disk-1"
    assert ground.cloud.calls.count("list machines") == 4, "as without annotations"

"""Machines that the reference leaves, adopted while the core of Cluster API runs.

The reference itself is not available: the test writes what it writes, in parent and
child. Real: the core with its webhooks, both API servers, capdvp and dvp-ccm.
"""

import collections
from collections.abc import Mapping, Sequence

import pytest

from lib.lab.dvp import kinds
from lib.lab.run import waiting
from tests.harness.kube import audit
from tests.harness.machines import life
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.reference_machines import WHOLE
from tests.harness.machines.reference_provider import ReferenceProvider
from tests.harness.machines.status_history import StatusHistory

NEW_READY, OLD_READY = "new, ready", "old, ready"
NEW_VM, OLD_PARTS = "new, half created", "old, half created"
NEW_ENDING, OLD_LEFT = "new, half deleted", "old, half deleted"
LEFT: Mapping[str, Sequence[str]] = {
    NEW_READY: WHOLE,
    OLD_READY: WHOLE,
    NEW_VM: ("VM",),
    OLD_PARTS: ("disk", "Secret"),
    NEW_ENDING: WHOLE,
    OLD_LEFT: WHOLE,
}
"""Generation and state of a machine, and its parts in the parent."""
READY = (NEW_READY, OLD_READY, NEW_ENDING, OLD_LEFT)
DELETED = (NEW_ENDING, OLD_LEFT)
COUNT = len(LEFT)
WRITES = ("create", "patch", "delete")


@pytest.fixture(scope="module")
def reference(stage: CapiStage) -> ReferenceProvider:
    return ReferenceProvider(stage.fleet)


@pytest.fixture(scope="module")
def names(stage: CapiStage, reference: ReferenceProvider) -> Mapping[str, str]:
    """Leave a Machine in each state; return their names."""
    fleet = stage.fleet
    fleet.create_cluster()
    reference.provision_cluster()
    fleet.create_template("small")
    fleet.create_deployment("small", COUNT)
    waiting.until("the Machines exist", lambda: len(fleet.machines()) == COUNT)
    machines = sorted(fleet.picture().machines)
    by_state = dict(zip(LEFT, machines, strict=True))
    for state, name in by_state.items():
        reference.begin(name)
        reference.machines.leave(name, *LEFT[state], is_old=state.startswith("old"))
    ready = {by_state[state] for state in READY}
    for name in sorted(ready):
        reference.provision(name)
    waiting.until("they run", lambda: fleet.picture().running == ready)
    reference.age(by_state[OLD_READY])
    delete_half(stage, reference, [by_state[state] for state in DELETED])
    return by_state


def delete_half(
    stage: CapiStage, reference: ReferenceProvider, names: Sequence[str]
) -> None:
    """Have the core delete Machines; only their VMs are deleted then, one of them not
    completely.
    """
    fleet = stage.fleet
    for name in names:
        fleet.delete_machine(name)
    for name in names:
        reference.until_deleted(name)
    ending, gone = names
    stage.parent.configure({"hold": f"machine-gone {ending}"})
    for name in names:
        fleet.in_parent.delete(kinds.MACHINES, name, None)
    waiting.until(
        "one VM is deleted", lambda: fleet.in_parent.get(kinds.MACHINES, gone) is None
    )


def writes(stage: CapiStage) -> collections.Counter[tuple[str, str, str]]:
    """Count the writes of capdvp in the parent, by verb, kind and name."""
    rows = audit.rows(stage.parent.where, stage.account)
    return collections.Counter(
        (row.verb, row.resource, row.name) for row in rows if row.verb in WRITES
    )


def test_machines_of_the_reference_are_adopted(
    stage: CapiStage, reference: ReferenceProvider, names: Mapping[str, str]
) -> None:
    """No VM is changed; no status of a Machine goes back."""
    fleet, history = stage.fleet, StatusHistory()
    kept = {
        state: name
        for state, name in names.items()
        if fleet.in_parent.get(kinds.MACHINES, name)
    }
    before = {state: reference.machines.vm(name) for state, name in kept.items()}
    capdvp = stage.capdvp()
    deleted = [names[state] for state in DELETED]
    with history.watched(fleet.api):
        try:
            capdvp.start()
            waiting.until(
                "what is left is deleted",
                lambda: not any(names[OLD_LEFT] in part for part in owned(stage)),
            )
            assert reference.is_deleted(names[NEW_ENDING])
            stage.parent.configure({"hold": None})
            after = fleet.until_whole(COUNT, without=deleted)
        finally:
            capdvp.stop()
    counts = writes(stage)
    for state, name in names.items():
        rows = [f"{v} {k}" for v, k, of in sorted(counts) if name in of]
        print(f"{state:18} {', '.join(rows)}")
    print(after)
    assert set(before) == {NEW_READY, OLD_READY, NEW_VM, NEW_ENDING}
    for state in (NEW_READY, OLD_READY, NEW_VM):
        assert reference.machines.vm(names[state]) == before[state]
    for state in (NEW_READY, OLD_READY):
        assert {v for v, _, of in counts if names[state] in of} == {"patch"}
    assert not history.reversals()
    assert not stage.duplicates()


def owned(stage: CapiStage) -> list[str]:
    return [name for names in stage.fleet.owned().values() for name in names]


def delete_as_reference(
    stage: CapiStage, reference: ReferenceProvider, name: str
) -> None:
    stage.fleet.delete_machine(name)
    reference.until_deleted(name)
    reference.delete(name)
    waiting.until(
        "nothing is left", lambda: not any(name in part for part in owned(stage))
    )


def test_the_reference_goes_on_with_them(
    stage: CapiStage, reference: ReferenceProvider, names: Mapping[str, str]
) -> None:
    """It would change nothing of a machine that runs, and deletes what it should."""
    fleet = stage.fleet
    machines = sorted(fleet.picture().machines)
    for name in machines:
        reference.check(name)
    created = next(name for name in machines if name not in names.values())
    for name in (names[NEW_READY], created):
        delete_as_reference(stage, reference, name)
    print(f"{len(machines)} machines read, 2 deleted as the reference deletes them")


def test_capdvp_goes_on_after_the_reference(stage: CapiStage) -> None:
    """The Machines that replace the deleted ones run; nothing is left in the end."""
    capdvp = stage.capdvp()
    try:
        capdvp.start()
        stage.fleet.until_whole(COUNT)
        print(life.delete_cluster(stage.fleet))
    finally:
        capdvp.stop()
    assert not stage.duplicates()

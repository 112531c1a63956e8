"""DVP's machines on a real API server keep the contract, and adopt the reference's.

As the user of a project: with the rights that the reference's daemons have there.
"""

import collections
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.dvp import ownership
from lib.cloud.dvp.machines import machine_names
from lib.cloud.machines import Facts, Reason
from lib.lab.dvp.kinds import DISKS, MACHINES
from lib.lab.dvp.project import STORAGE_AT_ONCE, Project
from lib.lab.kube import cluster
from tests.contract import machines
from tests.contract.dvp_machines import SPEC, ParentMachines
from tests.contract.machines import Served
from tests.harness.dvp import dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines.reference_machines import (
    SECRETS,
    WHOLE,
    ReferenceMachines,
    labels,
)

Json = dict[str, Any]
ONE_DISK = {**SPEC, "rootDiskStorageClass": STORAGE_AT_ONCE, "additionalDisks": []}
ADDITIONAL = [{"size": "32Mi", "storageClass": STORAGE_AT_ONCE}]
REQUESTS_MAX = 6


def pause(seconds: float) -> None:
    """Wait for the watch: nothing is polled."""
    time.sleep(min(seconds, 0.1))


@dataclasses.dataclass
class LabMachines(ParentMachines):
    """The contract's ground in a project of the simulated parent."""

    parent: DvpParent | None = None
    project: Project | None = None

    def stop(self, name: str) -> None:
        """See the contract: its user stops the VM by an operation."""
        if self.parent is None or self.project is None:
            raise TypeError("there is no parent")
        self.parent.operate(self.project, name, "Stop")
        self.wait_phase(name, "Stopped")


def child_of(parent: DvpParent, project: Project, uuid: str) -> LabMachines:
    """Return the machines of one child of the project."""
    return LabMachines(
        cluster.connect(project.kubeconfig),
        pause,
        project.namespace,
        uuid,
        {**ONE_DISK, "additionalDisks": ADDITIONAL},
        parent=parent,
        project=project,
    )


@pytest.fixture(scope="module")
def lab(parent: DvpParent, project: Project) -> Iterator[LabMachines]:
    ground = child_of(parent, project, dvp_parent.CLUSTER)
    yield ground
    ground.close()


class TestOnARealParent(machines.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, lab: LabMachines) -> machines.Ground:
        return lab


def test_requests_of_a_machine_are_within_their_limits(
    lab: LabMachines, parent: DvpParent, project: Project
) -> None:
    """By the audit log of the parent; lists belong to watches."""

    def verbs(since: int) -> collections.Counter[str]:
        rows = parent.settled(project)[since:]
        return collections.Counter(row.verb for row in rows if row.verb != "list")

    counted = Served(lab, lab.facts("counted"))
    before = len(parent.settled(project))
    counted.settle()
    created = verbs(before)
    before = len(parent.settled(project))
    counted.settle(gone=True)
    deleted = verbs(before)
    print(f"with an additional disk: created by {dict(created)}, deleted by {deleted}")
    assert created == {"create": 4}
    assert deleted["delete"] <= REQUESTS_MAX - 2
    assert deleted.total() <= REQUESTS_MAX


# ---------------------------------------------------------------- the reference


LEFT: dict[str, tuple[tuple[str, ...], bool, bool]] = {
    "new-ready": (WHOLE, False, True),
    "old-ready": (WHOLE, True, True),
    "new-half-created": (("VM",), False, False),
    "new-half-created-with-its-id": (("VM", "Secret"), False, True),
    "old-half-created": (("disk", "Secret"), True, False),
}
"""What the reference leaves: parts, old generation or new, with a recorded ID."""


def facts_of(lab: LabMachines, name: str, is_recorded: bool) -> Facts:
    facts = dataclasses.replace(lab.facts(name), spec=ONE_DISK)
    provider_id = machine_names.provider_id(name) if is_recorded else ""
    return dataclasses.replace(facts, provider_id=provider_id)


@pytest.mark.parametrize("name", LEFT)
def test_what_the_reference_leaves_is_adopted_without_a_change_to_a_vm(
    name: str, lab: LabMachines, parent: DvpParent, project: Project
) -> None:
    parts, is_old, is_recorded = LEFT[name]
    reference = ReferenceMachines(parent, project)
    reference.leave(name, *parts, is_old=is_old)
    is_vm, is_ready = "VM" in parts, parts == WHOLE
    if is_ready:
        parent.wait_phase(MACHINES, project, name, "Running")
    before = reference.vm(name) if is_vm else None
    lab.restart()
    adopted = Served(lab, facts_of(lab, name, is_recorded))
    plan = adopted.settle()
    print(f"{name}: {[str(step) for step in adopted.steps]}")
    assert plan.problems == ()
    assert (plan.results.state.is_true, plan.results.state.reason) == (
        True,
        Reason.RUNNING,
    )
    if is_vm:
        assert reference.vm(name) == before
    if is_ready:
        assert {str(step.verb) for step in adopted.steps} == {"change"}
    owned = adopted.owned()
    assert len(owned) == 3
    vm = lab.read(MACHINES, name) or {}
    assert labels(name).items() <= vm["metadata"]["labels"].items()
    lab.restart()
    again = Served(lab, adopted.facts)
    again.settle()
    assert again.steps == []
    again.settle(gone=True)
    assert again.owned() == []


def test_what_the_reference_left_half_deleted_is_deleted(
    lab: LabMachines, parent: DvpParent, project: Project
) -> None:
    """The VM is gone; disk and Secret of the old generation have no owner."""
    name = "old-half-deleted"
    ReferenceMachines(parent, project).leave(name, "disk", "Secret", is_old=True)
    lab.restart()
    left = Served(lab, facts_of(lab, name, is_recorded=True))
    left.settle(gone=True)
    assert [str(step.verb) for step in left.steps] == ["delete", "delete"]
    objects = parent.objects(project)
    assert objects.get(DISKS, machine_names.boot_disk(name)) is None
    assert objects.get(SECRETS, machine_names.secret(name)) is None


# ---------------------------------------------------------------- other children


def test_two_children_with_equal_names_do_not_touch_each_other(
    lab: LabMachines, parent: DvpParent, project: Project
) -> None:
    """The second one may not have the name; nothing of the first one changes."""
    other = child_of(parent, project, dvp_parent.OTHER_CLUSTER)
    first = Served(lab, lab.facts("equal"))
    first.settle()
    objects = parent.objects(project)
    disk = machine_names.boot_disk("equal")

    def shown() -> list[object]:
        rows = [objects.get(MACHINES, "equal"), objects.get(DISKS, disk)]
        return [(row["metadata"]["labels"], row["spec"]) for row in rows if row]

    before = shown()
    facts = dataclasses.replace(other.facts("equal"), uid="another-uid")
    second = Served(other, facts)
    (step,) = second.plan().steps
    with pytest.raises(errors.Busy, match="it exists"):
        other.machines.apply(step)
    plan = second.plan()
    assert plan.results.state.reason is Reason.NOT_OWNED
    assert dvp_parent.CLUSTER in plan.results.state.message
    second.settle(gone=True)
    assert second.steps == []
    assert shown() == before
    assert ownership.CLUSTER in str(before)
    first.settle(gone=True)
    other.close()

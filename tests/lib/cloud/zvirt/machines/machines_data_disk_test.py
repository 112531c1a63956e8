"""A data disk is never deleted with a VM, whenever and however it was attached."""

import dataclasses

import pytest

from tests.contract.machines import Served
from tests.contract.zvirt_machines import EngineMachines


@pytest.fixture(params=[True, False], ids=["clone", "linked"])
def ground(request: pytest.FixtureRequest) -> EngineMachines:
    ground = EngineMachines()
    ground.spec = {**ground.spec, "clone": request.param}
    return ground


def running(ground: EngineMachines, name: str = "worker") -> Served:
    served = Served(ground, ground.facts(name))
    served.settle()
    return served


def test_a_disk_that_is_attached_before_the_deletion_survives(
    ground: EngineMachines,
) -> None:
    served = running(ground)
    disk = ground.attach_disk("worker")
    served.settle(gone=True)
    assert ground.exists(disk)
    assert ground.aliases() == ["pvc-worker"]
    assert ground.names() == []


@pytest.mark.parametrize("count", range(1, 6))
def test_a_disk_that_is_attached_before_any_step_survives(
    ground: EngineMachines, count: int
) -> None:
    """count: number of the step; the plan that has it does not know of the disk."""
    served = running(ground)
    disk = ground.disk("data")
    done = 0
    for _ in range(60):
        plan = served.plan(gone=True)
        if plan.settled:
            break
        for step in plan.steps:
            done += 1
            if done == count:
                served.wait()
                if ground.names():
                    ground.attach("worker", disk)
            elif served.wait().name != "OPEN" and step.is_gated:
                break
            try:
                served.apply(step)
            except Exception as error:
                print(step, error)
                ground.sleep(5.0)
                break
        else:
            ground.sleep(plan.retry_after_s or 5.0)
    assert ground.exists(disk)
    assert (ground.names(), ground.aliases()) == ([], ["data"])


def test_a_disk_that_is_attached_together_with_the_removal_survives() -> None:
    ground = EngineMachines()
    served = running(ground)
    disk = ground.disk("data")

    def attach(method: str, path: str) -> None:
        is_removal = method == "DELETE" and path.count("/") == 1
        if is_removal and path.startswith("vms/") and ground.names():
            ground.at_request = lambda method, path: None
            ground.attach("worker", disk)

    ground.at_request = attach
    served.settle(gone=True)
    assert ground.exists(disk)
    assert ground.names() == []


@pytest.mark.parametrize("bootable", [True, False], ids=["bootable", "data"])
def test_a_vm_whose_boot_disk_was_replaced_by_hand_keeps_what_it_has(
    bootable: bool,
) -> None:
    ground = EngineMachines()
    served = running(ground)
    vm = ground.vm("worker").key
    ground.stop("worker")
    (own,) = (
        row.entity.id for row in ground.stage.engine.within("disk_attachment", vm)
    )
    ground.stage.ok("DELETE", f"vms/{vm}/diskattachments/{own}")
    ground.sleep(5.0)
    other = ground.disk("by-hand", "mooring.io/cluster=another")
    ground.attach("worker", other, bootable=bootable)
    served.settle(gone=True)
    assert ground.exists(other)
    assert ground.names() == []


def test_a_boot_disk_that_another_vm_uses_by_now_is_kept() -> None:
    ground = EngineMachines()
    served = running(ground)
    vm = ground.vm("worker").key
    (own,) = (
        row.entity.id for row in ground.stage.engine.within("disk_attachment", vm)
    )
    ground.stop("worker")
    ground.stage.ok("DELETE", f"vms/{vm}/diskattachments/{own}")
    ground.sleep(5.0)
    ground.occupy("rescue")
    ground.attach("rescue", own)
    for _ in range(20):
        plan = served.plan(gone=True)
        if plan.settled:
            break
        try:
            for step in plan.steps:
                served.apply(step)
        except Exception as error:
            print(error)
        ground.sleep(5.0)
    assert ground.exists(own)
    assert ground.names() == ["rescue"]
    assert not plan.settled, "reported until somebody decides"


def test_a_disk_of_a_vm_of_the_reference_survives() -> None:
    """Its boot disk has no tag before the deletion."""
    ground = EngineMachines()
    vm = ground.occupy("old", starts=True)
    facts = ground.facts("old")
    recorded = {"id": vm, "providerID": f"zvirt://{vm}", **facts.spec}
    facts = dataclasses.replace(
        facts, spec=recorded, provider_id=f"zvirt://{vm}", was_provisioned=True
    )
    served = Served(ground, facts)
    plan = served.plan()
    assert plan.steps == ()
    disk = ground.attach_disk("old")
    served.settle(gone=True)
    assert ground.exists(disk)
    assert ground.aliases() == ["pvc-old"]


def test_a_vm_with_snapshots_is_removed_with_its_boot_disk_alone() -> None:
    ground = EngineMachines()
    served = running(ground)
    ground.stage.set("vm", "worker", snapshots=1)
    disk = ground.attach_disk("worker")
    served.settle(gone=True)
    assert ground.exists(disk)
    assert ground.aliases() == ["pvc-worker"]

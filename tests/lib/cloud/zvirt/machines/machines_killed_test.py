"""A process that is killed before or after any request creates and deletes one VM.

Prints the number of requests at which it was killed. Its successor knows nothing but
what is recorded on the machine object.
"""

import dataclasses

import pytest

from lib.cloud import errors
from tests.contract.machines import Served
from tests.contract.zvirt_machines import EngineMachines

REQUESTS_MAX = 400


class Death(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at the call of a number; each request has two."""

    def __init__(self, ground: EngineMachines, at: int) -> None:
        self.left, self.has_killed = at, False
        ground.at_request = self

    def __call__(self, method: str, path: str) -> None:
        self.left -= 1
        if self.left == 0:
            self.has_killed = True
            raise Death


def settle(served: Served, *, gone: bool = False) -> None:
    """Reconcile with as many processes as it takes; refused writes are tried again."""
    for _ in range(30):
        try:
            served.settle(gone=gone)
            return
        except Death:
            served.ground.restart()
        except errors.CloudError as error:
            print(error)
            served.ground.sleep(10.0)
    raise AssertionError("does not settle")


@pytest.mark.parametrize("is_clone", [True, False], ids=["clone", "linked"])
def test_a_creation_that_is_killed_anywhere_yields_one_vm(is_clone: bool) -> None:
    for at in range(1, REQUESTS_MAX):
        ground = EngineMachines()
        ground.spec = {**ground.spec, "clone": is_clone}
        killer = Killer(ground, at)
        served = Served(ground, ground.facts("worker"))
        settle(served)
        if not killer.has_killed:
            break
        assert ground.names() == ["worker"], at
        nics = list(ground.stage.engine.within("nic", ground.vm("worker").key))
        assert (len(nics), len(ground.aliases())) == (1, 1), at
        assert served.facts.provider_id == f"zvirt://{ground.vm('worker').key}"
    print(f"killed at each of {at - 1} calls")
    assert at > 20


@pytest.mark.parametrize("is_clone", [True, False], ids=["clone", "linked"])
def test_a_deletion_that_is_killed_anywhere_keeps_data_disks_alone(
    is_clone: bool,
) -> None:
    for at in range(1, REQUESTS_MAX):
        ground = EngineMachines()
        ground.spec = {**ground.spec, "clone": is_clone}
        served = Served(ground, ground.facts("worker"))
        served.settle()
        disk = ground.attach_disk("worker")
        killer = Killer(ground, at)
        settle(served, gone=True)
        if not killer.has_killed:
            break
        assert (ground.names(), ground.aliases()) == ([], ["pvc-worker"]), at
        assert ground.exists(disk)
    print(f"killed at each of {at - 1} calls")
    assert at > 10


def test_a_creation_costs_few_writes() -> None:
    """The tag exists for all machines but the first. Goal: at most 7."""
    ground = EngineMachines()
    Served(ground, ground.facts("first")).settle()
    ground.requests.clear()
    served = Served(ground, ground.facts("second"))
    served.settle()
    print("\n".join(ground.writes()))
    assert len(ground.writes()) == 5
    ground.requests.clear()
    served.settle(gone=True)
    print("\n".join(ground.writes()))
    assert len(ground.writes()) == 3


def test_a_machine_of_the_reference_is_adopted_without_a_write() -> None:
    ground = EngineMachines()
    vm = ground.occupy("old", starts=True)
    facts = ground.facts("old")
    id_ = f"zvirt://{vm}"
    facts = dataclasses.replace(
        facts, spec={**facts.spec, "id": vm, "providerID": id_}, provider_id=id_
    )
    ground.requests.clear()
    served = Served(ground, facts)
    plan = served.plan()
    assert (plan.steps, ground.writes()) == ((), [])
    assert plan.results.is_provisioned
    assert plan.results.provider_id == id_


@pytest.mark.parametrize(
    ("is_tagged", "number", "description", "is_adopted"),
    [
        (True, 2, "", True),
        (False, 2, "", False),
        (True, 2, "mooring.io/machine=another/uid", False),
        (True, 2, "mooring.io/cluster=another", False),
    ],
    ids=["tag of the cluster", "no tag", "other owner", "other cluster"],
)
def test_what_the_reference_has_not_completed_is_adopted_by_its_tag_alone(
    is_tagged: bool, number: int, description: str, is_adopted: bool
) -> None:
    ground = EngineMachines()
    vm = ground.occupy("half", description, number)
    if is_tagged:
        ground.tag(vm)
    served = Served(ground, ground.facts("half"))
    plan = served.settle()
    assert plan.results.is_provisioned is is_adopted
    assert ground.names() == ["half"]
    served.settle(gone=True)
    assert ground.exists(vm) is not is_adopted

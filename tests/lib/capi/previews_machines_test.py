"""Plans of machines: each state, nothing written, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.capi import previews_machines
from lib.cloud import errors
from lib.cloud.fake import machine_plans
from lib.cloud.fake import machines as fake_cloud
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.machines import bootstrap
from lib.machines.model import MachineSettings
from lib.machines.preview import MachinePlanState


@pytest.fixture()
def objects(make_objects: Callable[[fake_api.FakeApi], Any]) -> Any:
    return make_objects(fake_api.FakeApi())


@pytest.fixture()
def cloud(objects: Any) -> fake_cloud.FakeMachines:
    return fake_cloud.FakeMachines(lambda: 0.0, bootstrap.Reader(objects.api))


PARTS = ("finalizer", "provider ID", "status")


def plan(
    objects: Any, cloud: fake_cloud.FakeMachines, *names: str
) -> previews_machines.MachinesPreview:
    settings = MachineSettings("cluster-1")
    return previews_machines.machines(
        objects.api, cloud, objects.machine, settings, names
    )


def change(objects: Any, name: str, **parts: Any) -> None:
    machine = objects.get(objects.machine.machine, name)
    metadata = {**machine["metadata"], **parts.pop("metadata", {})}
    whole = {**machine, **parts, "metadata": metadata}
    objects.api.put(objects.machine.machine, whole)


def test_each_state(objects: Any, cloud: fake_cloud.FakeMachines) -> None:
    """Prints the plan of each, but of one in sync and one that cannot be read."""
    names = ("new", "waits", "paused", "stray", "bad", "there", "gone")
    for name in names:
        objects.create(name)
    objects.delete(resources.SECRETS, "waits-data")
    owner = objects.get(objects.machine.owners, "waits")
    objects.api.put(
        objects.machine.owners, {**owner, "spec": {**owner["spec"], "bootstrap": {}}}
    )
    paused = {"cluster.x-k8s.io/paused": ""}
    change(objects, "paused", metadata={"annotations": paused})
    change(objects, "stray", metadata={"ownerReferences": []})
    change(objects, "bad", spec={"cores": 0, "disk": 20})
    for number, name in enumerate(("there", "gone")):
        uid = objects.get(objects.machine.machine, name)["metadata"]["uid"]
        vm = machine_plans.Vm(f"vm-{number}", name, ("cluster-1", uid))
        vm.state, vm.has_run, vm.disk_gib = machine_plans.VmState.UP, True, 20
        vm.tags, vm.nics = {"cluster-1"}, [True]
        cloud.vms[vm.id] = vm
    finalizers = {"finalizers": [objects.machine.finalizer]}
    change(objects, "gone", metadata=finalizers)
    objects.delete(objects.machine.machine, "gone")
    before = len(objects.api.calls), len(cloud.calls)
    rows = {row.machine.rpartition("/")[2]: row for row in plan(objects, cloud).rows}
    for name, row in rows.items():
        print(f"{name:8} {row.state:12} {row.reason}")
        for each in row.changes:
            print(f"         {each.verb} {each.object}: {each.reason}")
    states = {name: row.state for name, row in rows.items()}
    assert states == {
        "new": MachinePlanState.WOULD_CREATE,
        "waits": MachinePlanState.WAITING,
        "paused": MachinePlanState.PAUSED,
        "stray": MachinePlanState.IGNORED,
        "bad": MachinePlanState.INVALID,
        "there": MachinePlanState.WOULD_CHANGE,
        "gone": MachinePlanState.WOULD_DELETE,
    }
    assert not [call for call in objects.api.calls[before[0] :] if call.is_write]
    assert cloud.calls[before[1] :] == ["list machines"]
    others = {MachinePlanState.IN_SYNC, MachinePlanState.UNKNOWN}
    assert set(states.values()) == set(MachinePlanState) - others
    objects_written = [each.object for each in rows["there"].changes]
    assert objects_written == [f"FakeMachine / {part}" for part in PARTS]
    assert rows["bad"].problems[0].is_fatal


def test_a_cloud_that_cannot_be_read(
    objects: Any, cloud: fake_cloud.FakeMachines
) -> None:
    objects.create("one")
    cloud.faults = [errors.Unavailable("503", operation="list machines")]
    (row,) = plan(objects, cloud).unread
    assert row.state is MachinePlanState.UNKNOWN
    assert "503" in row.reason


def test_names(objects: Any, cloud: fake_cloud.FakeMachines) -> None:
    objects.create("one")
    objects.create("two")
    assert len(plan(objects, cloud).rows) == 2
    assert [row.machine for row in plan(objects, cloud, "two").rows] == ["machines/two"]
    with pytest.raises(kube_errors.NotFound, match="none of that name"):
        plan(objects, cloud, "three")

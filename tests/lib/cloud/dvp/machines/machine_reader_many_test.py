"""What many machines cost: requests to the parent, by watches that are real."""

import threading
import time
from collections.abc import Iterator

import pytest

from lib.cloud.dvp import parent
from lib.cloud.dvp.machines import machine_names
from lib.cloud.dvp.machines.cloud import DvpMachines
from lib.cloud.machines import Target
from lib.cloud.model import Seen
from tests.contract import machines as contract
from tests.contract.dvp_machines import (
    DISKS,
    NAMESPACE,
    SECRETS,
    UUID,
    VMS,
    MachineParent,
)
from tests.lib.cloud.dvp.machines import machine_objects as objects

COUNT = 1000
REQUESTS_MAX = 12


def put(fake: MachineParent, name: str) -> None:
    """Create a complete machine which runs."""

    def about(part: str) -> dict[str, object]:
        uid = f"uid-of-{name}"
        whole = objects.metadata(part, owner=uid)
        labels = {**whole["labels"], "dvp.deckhouse.io/hostname": name}
        return {"name": part, "namespace": NAMESPACE, "labels": labels}

    refs = [{"kind": "VirtualDisk", "name": machine_names.boot_disk(name)}]
    spec = {
        "virtualMachineClassName": "generic",
        "cpu": {"cores": 2, "coreFraction": "50%"},
        "memory": {"size": "2Gi"},
        "blockDeviceRefs": refs,
    }
    status = {"phase": "Running", "ipAddress": "10.0.0.1", "nodeName": "h"}
    fake.put(VMS, {"metadata": about(name), "spec": spec, "status": status})
    claim = {"persistentVolumeClaim": {"size": "64Mi"}}
    boot = about(machine_names.boot_disk(name))
    fake.put(DISKS, {"metadata": boot, "spec": claim})
    fake.put(
        SECRETS,
        {
            "metadata": about(machine_names.secret(name)),
            "type": machine_names.SECRET_TYPE,
        },
    )


@pytest.fixture(scope="module")
def fake() -> MachineParent:
    parent_in_memory = MachineParent(lambda: objects.NOW)
    parent_in_memory.moves = False
    for number in range(COUNT):
        put(parent_in_memory, f"node-{number}")
    return parent_in_memory


@pytest.fixture()
def machines(fake: MachineParent) -> Iterator[DvpMachines]:
    access = parent.Parent(fake, NAMESPACE, UUID)
    yield DvpMachines(access, contract.read_bootstrap)
    access.close()
    fake.break_watches()


def targets() -> list[Target]:
    return [
        objects.target(
            objects.facts(
                f"node-{number}",
                provider_id=f"dvp://node-{number}",
                spec={"additionalDisks": []},
            )
        )
        for number in range(COUNT)
    ]


def test_a_restart_with_many_machines_is_a_list_of_each_kind(
    fake: MachineParent, machines: DvpMachines
) -> None:
    before = len(fake.calls)
    reported: list[str] = []
    machines.subscribe(reported.append)
    aims = targets()
    began = time.monotonic()
    answers = machines.observe(aims)
    plans = []
    for aim in aims:
        answer = answers[aim.ref]
        assert isinstance(answer, Seen), answer
        plans.append(machines.plan(aim, answer.value, objects.NOW))
    seconds = time.monotonic() - began
    sent = [call for call in fake.calls[before:] if call.verb != "watch"]
    print(f"{COUNT} machines: {len(sent)} requests, {seconds:.1f} s")
    assert all(plan.settled and not plan.steps for plan in plans)
    assert len(sent) <= REQUESTS_MAX
    assert {call.verb for call in sent} == {"list"}
    idle = len(fake.calls)
    machines.observe(aims)
    threading.Event().wait(0.5)
    rest = [call for call in fake.calls[idle:] if call.verb != "watch"]
    assert rest == []


def test_a_change_is_reported_to_its_machine_and_a_statistic_is_not(
    fake: MachineParent, machines: DvpMachines
) -> None:
    machines.observe(targets()[:2])
    heard = threading.Event()
    reported: list[str] = []

    def hear(uid: str) -> None:
        reported.append(uid)
        heard.set()

    machines.subscribe(hear)
    reported.clear()
    heard.clear()
    show(fake, stats={"launchTimeDuration": {"guestOSAgentStarting": "1s"}})
    show(fake, phase="Stopped")
    assert heard.wait(20)
    assert reported == ["uid-of-node-1"]
    show(fake, phase="Running")


def show(fake: MachineParent, **status: object) -> None:
    """Have the parent show this of a VM."""
    vm = fake.get(VMS, "node-1")
    assert vm is not None
    fake.put(VMS, {**vm, "status": {**vm["status"], **status}})

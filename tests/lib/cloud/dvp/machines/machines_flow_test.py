"""The machines flow converges on DVP: killed at every call, refused at every write."""

import collections
from collections.abc import Callable, Iterator

import pytest

from lib.cloud.dvp import ownership
from lib.kube import errors
from lib.kube.fake import calls
from lib.machines import model
from lib.reconcile.failure import SLOW_S
from tests.contract.dvp_machines import (
    ATTACHMENTS,
    DISKS,
    NAMESPACE,
    SECRETS,
    STORAGE,
    VMS,
)
from tests.lib.cloud.dvp.machines.stage import PARTS, UUID, Life, Stage, live

Arrange = Callable[[Stage], None]
WRITES = (
    ("create", VMS.plural),
    ("create", SECRETS.plural),
    ("create", DISKS.plural),
    ("patch", VMS.plural),
    ("patch", DISKS.plural),
    ("patch", SECRETS.plural),
    ("delete", ATTACHMENTS.plural),
    ("delete", VMS.plural),
    ("delete", DISKS.plural),
    ("deletecollection", DISKS.plural),
    ("delete", SECRETS.plural),
)
"""Every write of the provider."""


DISK = {"size": "32Mi", "storageClass": STORAGE}


def adopted(stage: Stage) -> None:
    """Make the objects of a machine those of the reference: without our labels."""
    for kind in PARTS[:3]:
        for row in stage.parent.each(kind):
            labels, notes = row["metadata"]["labels"], row["metadata"]["annotations"]
            is_adopted = labels["dvp.deckhouse.io/hostname"] == "adopted"
            if is_adopted and labels.pop("mooring.io/owner-uid", None):
                notes.clear()
                stage.parent.put(kind, row)


def unlabelled(stage: Stage) -> None:
    """Take our label from one disk of a machine: it cannot be selected by that."""
    disk = stage.parent.get(DISKS, "leaves-boot") or {}
    if disk["metadata"]["labels"].pop("mooring.io/owner-uid", None):
        stage.parent.put(DISKS, disk)


def story(
    die_at: int | None = None,
    arrange: Arrange = lambda stage: None,
    quiet_s: float = 30.0,
) -> Stage:
    """Create machines, one without data; then delete one, adopt one, change one."""
    stage = Stage()
    for name in ("plain", "adopted"):
        stage.machine(name)
    stage.machine("leaves", additionalDisks=[DISK] * 2)
    stage.machine("early", secret=None)
    arrange(stage)
    stage.die_at = die_at
    live(stage, quiet_s=quiet_s)
    adopted(stage)
    stage.attach("leaves")
    unlabelled(stage)
    stage.machine("early", runPolicy="AlwaysOn")
    stage.machine("plain", runPolicy="AlwaysOn", liveMigrationPolicy="AlwaysSafe")
    stage.delete("leaves")
    live(stage, quiet_s=quiet_s)
    return stage


@pytest.fixture(scope="module")
def undisturbed() -> Stage:
    return story()


def test_every_machine_ends_as_it_should(undisturbed: Stage) -> None:
    state = undisturbed.state()
    assert set(state["machines"]) == {"plain", "early", "adopted"}
    for name in ("plain", "early", "adopted"):
        machine = state["machines"][name]
        assert machine["ID"] == f"dvp://{name}"
        assert (machine["provisioned"], machine["ready"]) == (True, True)
        assert machine["addresses"] == 4
        assert machine["conditions"]["Ready"] == ("True", "VMRunning")
        assert machine["conditions"]["PartsReady"] == ("True", "PartsReady")
        assert machine["conditions"]["SpecApplied"] == ("True", "SpecApplied")
        owned = [part for part, row in state["parent"].items() if row[0] == name]
        assert len(owned) == 4, owned
    assert state["parent"].pop("VirtualDisk pvc-of-leaves")[2] is False
    assert not [part for part in state["parent"] if "leaves" in part]
    vm = undisturbed.parent.get(VMS, "plain") or {}
    policies = (vm["spec"]["runPolicy"], vm["spec"]["liveMigrationPolicy"])
    assert policies == ("AlwaysOn", "AlwaysSafe")


def deleted_by(stage: Stage, name: str = "one") -> list[str]:
    """Delete a machine; return the requests that this takes."""
    before = len(stage.requests())
    stage.delete(name)
    live(stage)
    return stage.requests()[before:]


@pytest.mark.parametrize("number", [0, 1, 3, 8])
def test_requests_of_each_machine(number: int) -> None:
    """3 of a creation and one per further disk; at most 5 of its deletion."""
    stage = Stage()
    stage.machine("one", additionalDisks=[DISK] * number)
    live(stage)
    created = stage.requests()
    for volume in range(number):
        stage.attach("one", f"pvc-{volume}")
    deleted = deleted_by(stage)
    print(f"created by {created}\ndeleted by {deleted}")
    disks = [DISKS] * (number + 1)
    assert created == [f"create {kind.plural}" for kind in (VMS, SECRETS, *disks)]
    many = "deletecollection" if number > 1 else "delete"
    assert deleted == [
        *([f"{many} {ATTACHMENTS.plural}"] if number else []),
        f"delete {VMS.plural}",
        f"{'deletecollection' if number else 'delete'} {DISKS.plural}",
        f"delete {SECRETS.plural}",
        f"get {VMS.plural}",
    ]
    left = {row["metadata"]["name"] for row in stage.parent.each(DISKS)}
    assert left == {f"pvc-{volume}" for volume in range(number)}


def copy(stage: Stage, disk: str, name: str, **labels: str) -> None:
    """Copy a disk by hand, with its labels."""
    document = stage.parent.get(DISKS, disk) or {}
    kept = {**document["metadata"]["labels"], **labels}
    about = {"name": name, "namespace": NAMESPACE, "labels": kept}
    stage.parent.put(DISKS, {"metadata": about, "spec": document["spec"]})


def test_a_copy_of_a_disk_is_not_deleted_with_its_machine() -> None:
    """It has all labels of the machine, and a name that is none of its disks."""
    stage = Stage()
    stage.machine("one")
    live(stage)
    copy(stage, "one-boot", "backup-of-one")
    deleted = deleted_by(stage)
    assert f"deletecollection {DISKS.plural}" not in deleted
    assert deleted.count(f"delete {DISKS.plural}") == 2
    assert [d["metadata"]["name"] for d in stage.parent.each(DISKS)] == [
        "backup-of-one"
    ]


LOOK_ALIKES = {
    "another-owner": ({ownership.OWNER_UID: "uid-of-another"}, True),
    "another-cluster": ({ownership.CLUSTER: "cluster-2"}, True),
    "another-host": ({ownership.HOSTNAME: "two"}, False),
    "pvc-of-claim": (
        {ownership.HOSTNAME: "", ownership.OWNER_UID: "uid-of-a-claim"},
        True,
    ),
}
"""Disks that differ from those of a machine in these labels, and whether the disks of
the machine are deleted together beside them."""


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_no_disk_with_other_labels_is_selected(name: str) -> None:
    labels, is_together = LOOK_ALIKES[name]
    stage = Stage()
    stage.machine("one")
    live(stage)
    copy(stage, "one-boot", name, **labels)
    deleted = deleted_by(stage)
    print(f"{name}: deleted by {deleted}")
    assert [row["metadata"]["name"] for row in stage.parent.each(DISKS)] == [name]
    assert (f"deletecollection {DISKS.plural}" in deleted) is is_together


def test_attachments_of_another_vm_with_the_same_host_name_stay() -> None:
    """Then those of the machine are deleted one by one."""
    stage = Stage()
    stage.machine("one")
    live(stage)
    labels = {**ownership.labels_of(UUID), ownership.HOSTNAME: "one"}
    stage.parent.add_vm("terraform-one", labels)
    for disk in ("pvc-0", "pvc-1"):
        stage.attach("one", disk)
    stage.attach("terraform-one", "pvc-2", host="one")
    deleted = deleted_by(stage)
    assert deleted.count(f"delete {ATTACHMENTS.plural}") == 2
    kept = [row["spec"]["virtualMachineName"] for row in stage.parent.each(ATTACHMENTS)]
    assert kept == ["terraform-one"]


def test_a_settled_cluster_costs_no_request(undisturbed: Stage) -> None:
    """After a start, after drift detection, and then."""
    before = len(undisturbed.requests()), len(undisturbed.api.calls)
    process = Life(undisturbed)
    process.settle()
    process.drift()
    process.settle()
    assert undisturbed.requests()[before[0] :] == []
    assert not [c for c in undisturbed.api.calls[before[1] :] if c.is_write]


def deaths() -> Iterator[Stage]:
    at = 0
    while (stage := story(at)).died_in:
        yield stage
        at += 1


def test_death_at_every_call_ends_the_same(undisturbed: Stage) -> None:
    """Prints each call with the result of a crash there; each must appear."""
    desired = undisturbed.state()
    table: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    acted: set[str] = set()
    for stage in deaths():
        result = "converged" if stage.state() == desired else "differs"
        table[stage.killed_at][result] += 1
        acted.add(stage.died_in)
    for call, results in sorted(table.items()):
        print(f"killed {call:56} {results.total():3} times: {dict(results)}")
    assert not any(results["differs"] for results in table.values())
    expected = {f"{when} {verb} {of}" for verb, of in WRITES for when in TIMES}
    assert expected <= set(table), expected - set(table)
    writing = {"AddMachineFinalizer", "RemoveMachineFinalizer", "SetProviderId"}
    assert {*writing, "ApplyStep", "WriteMachineStatus"} <= acted


TIMES = ("before", "after")
FAULTS = {
    "409": errors.Conflict("changed", operation="PATCH", status=409),
    "403": errors.Forbidden("no right", operation="POST", status=403),
    "429": errors.Unavailable("slow down", operation="POST", status=429),
    "503": errors.Unavailable("no answer", operation="POST", status=503),
    "lost": errors.Unavailable("no answer", operation="POST"),
}


def test_every_write_may_be_refused_or_its_answer_lost(undisturbed: Stage) -> None:
    """Each write of the provider with each way in which it fails, three times."""
    desired = undisturbed.state()
    rows: list[tuple[str, str]] = []
    for verb, plural in WRITES:
        for name, error in FAULTS.items():
            fault = calls.Fault(error, verb, plural, after=name == "lost")

            def arrange(stage: Stage, fault: calls.Fault = fault) -> None:
                stage.parent.faults += [fault] * 3

            stage = story(arrange=arrange, quiet_s=2 * SLOW_S)
            unused = len(stage.parent.faults)
            is_same = stage.state() == desired
            print(f"{verb:6} {plural:38} {name:5} {3 - unused} times: {is_same}")
            assert is_same
            assert unused < 3, (verb, plural, name)
            rows.append((f"{verb} {plural}", name))
    assert len(set(rows)) == len(WRITES) * len(FAULTS)


REFUSALS = (
    FAULTS["403"],
    errors.Forbidden(
        'admission webhook "guard" denied the request', operation="DELETE", status=403
    ),
)
"""The permission is missing, or a policy protects one of the disks."""


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_disks_are_deleted_one_by_one_after_a_refusal(
    refusal: errors.KubeError,
) -> None:
    """One request is refused in the life of a process, and nothing is left."""
    stage = Stage()
    for name in ("one", "two"):
        stage.machine(name)
    process = Life(stage)
    process.settle()
    refused = calls.Fault(refusal, "deletecollection", DISKS.plural)
    stage.parent.faults = [refused] * 2
    for name in ("one", "two"):
        stage.delete(name)
        process.settle()
    assert stage.requests().count(f"deletecollection {DISKS.plural}") == 1
    assert stage.parent.each(DISKS) == []
    assert not [event for event in stage.events() if "delete" in event]


def test_two_processes_at_once_create_one_of_each(undisturbed: Stage) -> None:
    """They do not know of one another, and take turns."""
    stage = Stage()
    for name in ("plain", "other"):
        stage.machine(name)
    both = [Life(stage), Life(stage)]
    for _ in range(150):
        for process in both:
            process.relist()
            process.turn()
        stage.now_s += 0.5
    state = stage.state()
    assert len(state["parent"]) == 8
    for name in ("plain", "other"):
        assert state["machines"][name]["conditions"]["Ready"] == ("True", "VMRunning")


def test_bootstrap_data_is_in_the_secret_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    stage.machine("one")
    stage.parent.faults = [
        calls.Fault(FAULTS["503"], "create", SECRETS.plural),
        calls.Fault(FAULTS["403"], "create", SECRETS.plural),
    ]
    process = Life(stage)
    process.settle()
    process.send_events()
    kept = repr([dict(opened.items()) for opened in process.access.opened])
    shown = repr((stage.state(), stage.events(), process.flow._memory._records))
    assert "join-token-that-no-one-may-see" not in kept + shown + caplog.text
    assert "join-token" not in repr(stage.parent.calls)
    secret = stage.parent.get(SECRETS, "cloud-init-one") or {}
    assert list(secret["data"]) == ["userData"]
    assert (secret["immutable"], secret["type"]) == (
        True,
        "provisioning.virtualization.deckhouse.io/cloud-init",
    )


def test_all_actions_are_those_of_the_flow() -> None:
    """The table above names actions: none was renamed."""
    names = {kind.__name__ for kind in model.Action.__args__}
    assert {"AddMachineFinalizer", "ApplyStep", "WriteMachineStatus"} <= names

"""The entry point: what is owned, gates, and steps of other packages."""

import pytest

from lib.cloud import errors
from lib.cloud.dvp import ownership
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.machines import Ref
from lib.cloud.steps import Asked, Gate, GateState, Step, Verb
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from tests.contract.dvp_machines import DISKS, NAMESPACE, SECRETS, VMS
from tests.harness.dvp import parent_api
from tests.lib.cloud.dvp.machines import machine_objects as objects
from tests.lib.cloud.dvp.machines.machine_objects import metadata
from tests.lib.cloud.dvp.machines.stage import Life, Stage

NAMES = "machines"
UNLABELLED = {
    "VirtualMachine master-0-abcdef": (VMS, "master-0-abcdef", "master-0", None),
    "VirtualMachine old": (VMS, "old", "old", Ref("cluster-1", "", "old", "")),
    "VirtualDisk old-boot": (DISKS, "old-boot", "old", Ref("cluster-1", "", "old", "")),
    "VirtualDisk master-0-123456": (DISKS, "master-0-123456", "master-0", None),
    "Secret cloud-init-old": (
        SECRETS,
        "cloud-init-old",
        "old",
        Ref("cluster-1", "", "old", ""),
    ),
}
"""Objects of the cluster without the label of a machine, with what deletes them."""


def put(stage: Stage, kind: object, name: str, host: str) -> None:
    about = metadata(name, owner="", cluster="cluster-1")
    labels = {**about["labels"], "dvp.deckhouse.io/hostname": host}
    document: dict[str, object] = {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": parent_api.vm_spec() if kind == VMS else {},
    }
    if kind == SECRETS:
        document["type"] = "provisioning.virtualization.deckhouse.io/cloud-init"
    for known in (VMS, DISKS, SECRETS):
        if known == kind:
            stage.parent.put(known, document)


def test_owned_lists_machines_and_what_has_no_label_of_one() -> None:
    stage = Stage()
    stage.machine("one")
    Life(stage).settle()
    stage.attach("one")
    stage.parent.moves = False
    for kind, name, host, _ in UNLABELLED.values():
        put(stage, kind, name, host)
    stage.access.relist()
    rows = {f"{row.kind} {row.name}": row for row in stage.cloud.owned("cluster-1")}
    machine = stage.get(stage.kinds.machine, "one") or {}
    uid = machine["metadata"]["uid"]
    own = {key for key, row in rows.items() if row.uid == uid}
    assert own == {
        "VirtualMachine one",
        "VirtualDisk one-boot",
        "VirtualDisk one-additional-disk-0",
        "Secret cloud-init-one",
    }
    for key in own:
        assert rows[key].ref == Ref("cluster-1", NAMES, "one", uid)
    assert set(rows) == {*own, *UNLABELLED}
    for key, (_, _, _, expected) in UNLABELLED.items():
        assert (rows[key].uid, rows[key].ref) == ("", expected)
        assert rows[key].note == "it has no label of a machine"
    assert list(stage.cloud.owned("another")) == []


def test_gates_show_whether_the_vm_exists_without_a_request() -> None:
    stage = Stage()
    stage.machine("one")
    Life(stage).settle()
    vm = stage.parent.get(VMS, "one") or {}
    uid = vm["metadata"]["uid"]
    before = len(stage.requests())
    gates = stage.cloud.gates([Asked(uid, 0.0), Asked("nothing", 0.0)])
    assert gates == {uid: Gate(GateState.OPEN), "nothing": Gate(GateState.LOST)}
    assert len(stage.requests()) == before


def test_a_step_without_time_is_not_sent() -> None:
    stage = Stage()
    stage.open()
    planned = objects.plan(ParentMachine(objects.identity()))
    with pytest.raises(errors.Unavailable, match="no time is left") as caught:
        stage.cloud.apply(planned.steps[0], within_s=0.0)
    assert caught.value.was_rejected
    assert stage.requests() == []


def test_a_step_of_another_cloud_is_refused() -> None:
    stage = Stage()
    stage.open()
    with pytest.raises(TypeError, match="not of this cloud"):
        stage.cloud.apply(Step(Verb.DELETE, ("VM",), "why", object()))


def test_a_vm_that_lost_its_labels_gets_them_back() -> None:
    """No store shows it: it is read directly, since the machine has its ID."""
    stage = Stage()
    stage.machine("one")
    process = Life(stage)
    process.settle()
    vm = stage.parent.get(VMS, "one") or {}
    labels = dict(vm["metadata"]["labels"])
    vm["metadata"]["labels"] = {ownership.HOSTNAME: "one"}
    stage.parent.put(VMS, vm)
    process.settle()
    vm = stage.parent.get(VMS, "one") or {}
    assert vm["metadata"]["labels"] == labels
    assert stage.conditions("one")["Ready"] == ("True", "VMRunning")


def test_bootstrap_data_that_disappears_sends_nothing() -> None:
    """The Secret is deleted between the VM and the step that needs it."""
    stage = Stage()
    stage.machine("one")
    process = Life(stage)

    def before(call: calls.Call) -> None:
        if call.verb == "get" and call.resource == "secrets":
            raise kube_errors.NotFound("gone", operation="GET", status=404)

    stage.api.before_call = before
    process.settle(quiet_s=5)
    assert stage.requests() == [f"create {VMS.plural}"]
    assert stage.conditions("one")["Ready"][0] != "True"
    stage.api.before_call = None
    process.settle(quiet_s=60)
    assert stage.conditions("one")["Ready"] == ("True", "VMRunning")

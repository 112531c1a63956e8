"""The simulated parent moves VMs and disks as the controllers of the platform do."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest

from lib.kube import resources
from lib.kube.resources import Resource
from lib.lab.dvp import disks, machines, operations, writes
from lib.lab.dvp.kinds import (
    ADDRESSES,
    CLASSES,
    CLUSTER_IMAGES,
    DISKS,
    MACHINES,
    NODES,
    OPERATIONS,
    Item,
    World,
)

Json = dict[str, Any]
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SPEC = {
    "virtualMachineClassName": "generic",
    "virtualMachineIPAddressName": "address",
    "cpu": {"cores": 1},
    "memory": {"size": "1Gi"},
    "blockDeviceRefs": [{"kind": "VirtualDisk", "name": "boot"}],
}
SOURCE = {
    "type": "ObjectRef",
    "objectRef": {"kind": "ClusterVirtualImage", "name": "image"},
}


def item(name: str, kind: Resource, **parts: Any) -> tuple[Resource, Item]:
    about = {"name": name, "uid": f"uid-{name}", **parts.pop("metadata", {})}
    if kind.namespaced:
        about["namespace"] = "p"
    return kind, msgspec.convert({"metadata": about, **parts}, Item)


def world(*items: tuple[Resource, Item]) -> World:
    by_kind: dict[Resource, dict[str, Item]] = {}
    for kind, each in items:
        by_kind.setdefault(kind, {})[each.metadata.key] = each
    return World(by_kind)


def ready(type_: str, reason: str, status: str = "False") -> Json:
    return {"conditions": [{"type": type_, "status": status, "reason": reason}]}


READY = {"phase": "Ready"}
CLASS = item("generic", CLASSES, status=READY)
BOUND = item("address", ADDRESSES, status={"phase": "Bound", "address": "10.0.0.7"})
BOOT = item("boot", DISKS, status=READY)
NODE = item("node", NODES, metadata={"labels": {machines.NODE_LABEL: ""}})
SURROUNDINGS = (CLASS, BOUND, BOOT, NODE)


def vm(phase: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Item:
    about = {"labels": dict(labels or {})}
    whole = {**SPEC, **spec}
    return item("vm", MACHINES, metadata=about, spec=whole, status={"phase": phase})[1]


def launcher(phase: str = "Running") -> tuple[Resource, Item]:
    status = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    labels = {machines.MACHINE_LABEL: "vm"}
    about = {"labels": labels}
    return item("launcher", resources.PODS, metadata=about, status=status)


def step(machine: Item, *others: tuple[Resource, Item]) -> writes.Step | None:
    """Return the first step of the VM itself."""
    whole = world((MACHINES, machine), *others)
    steps = (each for each in machines.decide(whole, NOW) if each.item is machine)
    return next(steps, None)


def status(call: object) -> Json:
    """Return the status that a call writes."""
    assert isinstance(call, writes.PatchObject)
    written: Json = call.body["status"]
    return written


def stepped(taken: writes.Step | None) -> tuple[str, Json]:
    """Return transition and status of a step."""
    assert taken is not None
    return taken.transition, status(taken.calls[-1])


def test_a_vm_that_crashes_is_pending() -> None:
    taken = step(vm("Starting"), *SURROUNDINGS, launcher())
    assert taken is not None
    assert taken.failed is not None
    written = status(taken.failed("Crashed", "it does not boot"))
    assert written["phase"] == "Pending"
    assert "Crashed" in [row["reason"] for row in written["conditions"]]


@pytest.mark.parametrize("policy", ["AlwaysOff", "Manual"])
def test_a_vm_that_is_held_back_waits_for_its_parts(policy: str) -> None:
    """Stopped is the phase of an instance, which is taken of ready parts."""
    held = vm("Pending", runPolicy=policy)
    without_disk = stepped(step(held, CLASS, BOUND, NODE))
    assert without_disk[0] == "machine-blocked"
    assert stepped(step(held, *SURROUNDINGS)) == (
        "machine-held-back",
        {"observedGeneration": 0, "phase": "Stopped"},
    )


def test_the_address_is_there_before_the_vm_runs() -> None:
    """While it waits for a disk, and while it starts."""
    for others in ((CLASS, BOUND, NODE), SURROUNDINGS):
        _, written = stepped(step(vm("Pending"), *others))
        assert written["ipAddress"] == "10.0.0.7"
        assert written.get("phase") in (None, "Starting")


@pytest.mark.parametrize(("phase", "is_labelled"), [("Running", 1), ("Pending", 0)])
def test_labels_reach_pods_that_run(phase: str, is_labelled: int) -> None:
    labelled = vm("Starting", labels={"a": "b"})
    whole = world((MACHINES, labelled), *SURROUNDINGS, launcher(phase))
    taken = [each.transition for each in machines.decide(whole, NOW)]
    assert taken.count("machine-labels") == is_labelled


def test_a_refused_start_has_a_fixed_text() -> None:
    """Without that of the API server: a quota is not named."""
    taken = step(vm("Pending"), *SURROUNDINGS)
    assert taken is not None
    assert taken.refused is not None
    written = status(taken.refused("Forbidden", "exceeded quota: pods"))
    texts = [row["message"] for row in written["conditions"]]
    assert "Cannot start the virtual machine: creating its instance failed." in texts
    assert "quota" not in repr(texts)


def test_reasons_are_those_of_the_platform() -> None:
    """Of the condition Running, in each step of a VM and of operations.

    Source: api/core/v1alpha2/vmcondition, RunningReason.
    """
    known = {"NotRunning", "Running", "PodNotStarted", "PodTerminating"}
    reasons = set()
    for phase in ("", "Pending", "Starting", "Running", "Stopping", "Stopped"):
        machine = vm(phase)
        for kind in ("Start", "Stop", "Restart"):
            spec = {"type": kind, "virtualMachineName": "vm"}
            asked = item("operation", OPERATIONS, spec=spec)
            whole = world((MACHINES, machine), asked, *SURROUNDINGS, launcher())
            for taken in (
                *machines.decide(whole, NOW),
                *operations.decide(whole, NOW),
            ):
                reasons |= set(running_reasons(taken.calls))
    print(sorted(reasons))
    assert len(reasons) >= 3
    assert reasons <= known


def running_reasons(calls: Iterable[object]) -> list[str]:
    rows = (
        row
        for call in calls
        if isinstance(call, writes.PatchObject) and call.kind == MACHINES
        for row in call.body.get("status", {}).get("conditions", ())
    )
    return [row["reason"] for row in rows if row["type"] == "Running"]


def test_an_operation_starts_a_vm_that_is_held_back() -> None:
    """As long as it is not done; another one of another VM does not."""
    held = vm("Pending", runPolicy="Manual")
    for name, transition in (("vm", "machine-started"), ("x", "machine-held-back")):
        spec = {"type": "Start", "virtualMachineName": name}
        asked = item("o", OPERATIONS, spec=spec, status={"phase": "InProgress"})
        assert stepped(step(held, *SURROUNDINGS, asked))[0] == transition


# Disks.

FAST = item("fast", resources.STORAGE_CLASSES, volumeBindingMode="Immediate")


def disk(phase: str, reason: str = "", **spec: Any) -> Item:
    claim = {"storageClassName": "fast", "size": "64Mi"}
    whole = {"persistentVolumeClaim": claim, **spec}
    shown = {"phase": phase, **(ready("Ready", reason) if reason else {})}
    return item("boot", DISKS, spec=whole, status=shown)[1]


def claim_of(each: Item, phase: str = "Bound") -> tuple[Resource, Item]:
    return item(disks.claim_name(each), resources.CLAIMS, status={"phase": phase})


def disk_step(each: Item, *others: tuple[Resource, Item]) -> writes.Step | None:
    return next(disks.decide(world((DISKS, each), FAST, *others), NOW), None)


@pytest.mark.parametrize(
    "reason", ["ProvisioningNotStarted", "QuotaExceeded", "ProvisioningFailed"]
)
def test_a_disk_that_failed_recovers(reason: str) -> None:
    """With a claim and without one."""
    failed = disk("Failed", reason)
    assert stepped(disk_step(failed))[0] == "disk-claimed"
    transition, written = stepped(disk_step(failed, claim_of(failed)))
    assert (transition, written["phase"]) == ("disk-ready", "Ready")


@pytest.mark.parametrize(
    "reason", ["ProvisioningFailedTerminally", "StorageClassProvisionerMismatch"]
)
def test_a_disk_that_failed_terminally_stays(reason: str) -> None:
    failed = disk("Failed", reason)
    assert disk_step(failed) is None
    assert disk_step(failed, claim_of(failed)) is None


def test_a_quota_fails_the_importer_and_not_the_claim() -> None:
    waits, runs = disk("Pending", "ProvisioningNotStarted"), disk("Provisioning")
    refused = disk_step(waits)
    assert refused is not None
    assert refused.refused is not None
    assert status(refused.refused("Forbidden", "exceeded quota"))["phase"] == "Pending"
    importing = disk_step(runs, claim_of(runs))
    assert importing is not None
    assert importing.failed is not None
    assert status(importing.failed("QuotaExceeded", "pods"))["phase"] == "Failed"


@pytest.mark.parametrize(
    ("size", "phase"), [(2**26, "Provisioning"), (2**26 + 1, "Failed")]
)
def test_an_image_is_aligned_before_it_is_compared(size: int, phase: str) -> None:
    """A disk that is smaller by less than a block is too small."""
    shown = {"phase": "Ready", "size": {"unpackedBytes": str(size)}}
    image = item("image", CLUSTER_IMAGES, status=shown)
    _, written = stepped(disk_step(disk("Pending", dataSource=SOURCE), image))
    assert written["phase"] == phase

"""Plans of machines on DVP: phases, troubles, differences, ownership, deletion."""

import dataclasses
import datetime
from typing import Any

import pytest

from lib.cloud.dvp.machines import machine_names, machine_plan, machine_writes
from lib.cloud.dvp.machines.machine_reasons import (
    PARTS_READY,
    SPEC_APPLIED,
    DvpMachineReason,
)
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.machines import Observed, Plan, Reason
from lib.cloud.steps import CommonReason, ProblemReason, Verb
from lib.lab.dvp import parent_kinds
from tests.contract.dvp_machines import UUID
from tests.lib.cloud.dvp.machines import machine_objects as objects
from tests.lib.cloud.dvp.machines.machine_objects import (
    ID,
    NAME,
    NOW,
    complete,
    condition,
    disk,
    disks,
    plan,
    secret,
    steps,
    vm,
)

BOOT = machine_names.boot_disk(NAME)
MORE = machine_names.additional_disk(NAME, 0)
SECRET = machine_names.secret(NAME)
LATE: dict[str, Any] = {"about": {"age_s": 120}}
REFERENCE: dict[str, Any] = {"owner": ""}


def state(planned: Plan) -> tuple[bool | None, ProblemReason]:
    return planned.results.state.is_true, planned.results.state.reason


# ---------------------------------------------------------------- phases

PHASES: dict[str, tuple[bool | None, Reason, bool]] = {
    "": (None, Reason.NOT_READY, False),
    "Pending": (None, Reason.NOT_READY, False),
    "Starting": (None, Reason.NOT_READY, False),
    "Running": (True, Reason.RUNNING, True),
    "Stopping": (None, Reason.NOT_READY, True),
    "Stopped": (False, Reason.STOPPED, True),
    "Terminating": (None, Reason.NOT_READY, False),
    "Migrating": (None, Reason.NOT_READY, True),
    "Pause": (None, Reason.NOT_READY, True),
    "Degraded": (False, Reason.FAILED, False),
    "Frozen": (None, Reason.NOT_READY, False),
}
"""Condition and whether it was provisioned, of each phase; the last is unknown."""


def test_every_phase_of_a_vm_is_a_condition_and_never_a_repair() -> None:
    assert set(parent_kinds.phases("virtualmachines")) | {"", "Frozen"} == set(PHASES)
    for phase, (is_true, reason, is_provisioned) in PHASES.items():
        planned = plan(complete(vm=vm(phase)))
        print(f"{phase:12} {state(planned)} {planned.results.is_provisioned}")
        assert state(planned) == (is_true, reason), phase
        assert planned.results.is_provisioned is is_provisioned, phase
        assert planned.results.failure is None
        assert planned.steps == ()
        assert planned.results.provider_id == ID
        assert planned.settled or planned.retry_after_s is not None


def test_a_vm_that_its_policy_keeps_stopped_has_never_been_provisioned() -> None:
    for policy in ("AlwaysOff", "Manual"):
        held = complete(vm=vm("Stopped", spec={"runPolicy": policy}))
        changes: Any = {"spec": {"runPolicy": policy}}
        assert plan(held, **changes).results.is_provisioned is False
        recorded = plan(held, provider_id=ID, **changes)
        assert recorded.results.is_provisioned is True
        assert policy in recorded.results.state.message


def test_a_vm_without_an_address_is_not_provisioned() -> None:
    planned = plan(complete(vm=vm("Running", ipAddress="")))
    assert state(planned) == (None, Reason.NOT_READY)
    assert not planned.results.is_provisioned
    assert planned.retry_after_s is not None


def test_results_show_addresses_and_zone() -> None:
    zone = {"nodeSelector": {machine_names.ZONE: "zone-a"}}
    results = plan(complete(vm=vm(spec=zone)), failure_domain="zone-a").results
    assert results.failure_domain == "zone-a"
    assert [(str(a.type), a.address) for a in results.addresses] == [
        ("Hostname", NAME),
        ("InternalDNS", NAME),
        ("InternalIP", "10.66.0.1"),
        ("ExternalIP", "10.66.0.1"),
    ]


# ---------------------------------------------------------------- troubles

QUOTA, FAILED = DvpMachineReason.QUOTA, DvpMachineReason.DISK_FAILED
WAITS = DvpMachineReason.DISK_NOT_READY
READY_REASONS: dict[str, DvpMachineReason | None] = {
    "WaitForUserUpload": None,
    "Provisioning": None,
    "ProvisioningNotStarted": None,
    "WaitingForFirstConsumer": None,
    "ProvisioningFailed": WAITS,
    "ProvisioningFailedTerminally": FAILED,
    "PVCLost": FAILED,
    "Exporting": None,
    "QuotaExceeded": QUOTA,
    "ImagePullFailed": WAITS,
    "DatasourceIsNotReady": WAITS,
    "DatasourceIsNotFound": WAITS,
    "StorageClassIsNotReady": WAITS,
    "StorageClassProvisionerMismatch": FAILED,
}
"""Every reason of Ready=False of a disk. Source: deckhouse/virtualization."""


def test_every_reason_of_a_disk_is_shown_and_only_a_final_one_is_a_failure() -> None:
    for reason, expected in READY_REASONS.items():
        rows = [condition("Ready", reason)]
        bad = disk(BOOT, phase="Pending", conditions=rows)
        native = complete(vm=vm("Pending"), disks={**disks(), BOOT: bad})
        planned = plan(native)
        shown = dict(planned.results.conditions)[PARTS_READY]
        print(f"{reason:32} {shown.reason} failure: {planned.results.failure}")
        assert planned.steps == ()
        if expected is None:
            assert state(planned) == (None, Reason.NOT_READY)
            continue
        assert (shown.is_true, shown.reason) == (False, expected)
        assert state(planned) == (False, expected)
        assert f"VirtualDisk {BOOT}: {reason}" in planned.results.state.message
        assert (planned.results.failure is not None) is (expected is FAILED)


def test_a_disk_that_recovers_was_no_failure_of_the_machine() -> None:
    """The parent shows Failed while it tries; only a final reason, or phase, counts."""
    rows: dict[str, tuple[str, str | None, DvpMachineReason | None]] = {
        "importer not initialised": ("Failed", "ProvisioningNotStarted", None),
        "quota of the importer": ("Failed", "QuotaExceeded", QUOTA),
        "storage profile missing": ("Failed", "ProvisioningFailed", WAITS),
        "no condition": ("Failed", None, WAITS),
        "unknown reason": ("Failed", "NewReason", WAITS),
        "final": ("Failed", "ProvisioningFailedTerminally", FAILED),
        "lost": ("PVCLost", None, FAILED),
    }
    for row, (phase, reason, expected) in rows.items():
        conditions = [condition("Ready", reason)] if reason else []
        bad = disk(BOOT, phase=phase, conditions=conditions)
        native = complete(vm=vm("Pending"), disks={**disks(), BOOT: bad})
        planned = plan(native)
        print(f"{row:26} {state(planned)} failure: {planned.results.failure}")
        failed = (False, expected)
        assert state(planned) == (failed if expected else (None, Reason.NOT_READY))
        assert (planned.results.failure is not None) is (expected is FAILED)


@pytest.mark.parametrize(
    ("progress", "shown"),
    [("", f"{BOOT} Provisioning"), ("47.3%", f"{BOOT} Provisioning 40%")],
)
def test_a_vm_that_waits_for_an_import_is_not_blocked(
    progress: str, shown: str
) -> None:
    """For many minutes; other conditions that are false are named even then."""
    waits = condition(
        "BlockDevicesReady",
        "BlockDevicesNotReady",
        "Waiting for block devices to be ready: 0/2.",
    )
    imported = disk(BOOT, phase="Provisioning", progress=progress)
    parts = {"disks": {**disks(), BOOT: imported}}
    planned = plan(complete(vm=vm("Pending", **LATE, conditions=[waits]), **parts))
    assert state(planned) == (None, Reason.NOT_READY)
    assert planned.results.state.message == f"the VM waits for its disks: {shown}"
    address = condition("VirtualMachineIPAddressReady", "NotReady", "no address left")
    both = vm("Pending", **LATE, conditions=[waits, address])
    planned = plan(complete(vm=both, **parts))
    assert state(planned) == (False, DvpMachineReason.BLOCKED)
    assert "no address left" in planned.results.state.message
    assert "block devices" not in planned.results.state.message


def test_a_disk_lost_under_a_vm_that_runs_is_no_failure_of_the_machine() -> None:
    lost = {**disks(), MORE: disk(MORE, phase="PVCLost")}
    planned = plan(complete(disks=lost), provider_id=ID)
    assert state(planned) == (True, Reason.RUNNING)
    assert dict(planned.results.conditions)[PARTS_READY].reason is FAILED
    assert planned.results.failure is None


def test_what_a_vm_waits_for_is_shown_when_it_lasts_or_cannot_end_by_itself() -> None:
    usual = condition("BlockDevicesReady", "NotReady", "disk is missing")
    sizing = condition("SizingPolicyMatched", "NotMatched", "5 cores")
    pod = "Cannot start the virtual machine: creating its instance failed."
    refused = condition("Running", "PodNotStarted", pod)
    for rows, native, expected in (
        ([usual], vm("Pending", conditions=[usual]), None),
        ([usual], vm("Pending", **LATE, conditions=[usual]), DvpMachineReason.BLOCKED),
        ([sizing], vm("Pending", conditions=[sizing]), DvpMachineReason.BLOCKED),
        ([refused], vm("Pending", conditions=[refused]), None),
        (
            [refused],
            vm("Pending", **LATE, conditions=[refused]),
            DvpMachineReason.BLOCKED,
        ),
    ):
        planned = plan(complete(vm=native))
        if expected is None:
            assert state(planned) == (None, Reason.NOT_READY)
        else:
            assert state(planned) == (False, expected)
            assert rows[0]["message"] in planned.results.state.message
        assert planned.retry_after_s is not None


# ---------------------------------------------------------------- parts


def test_a_vm_is_created_alone_and_not_twice() -> None:
    planned = plan(ParentMachine(objects.identity()))
    (step,) = planned.steps
    assert (step.verb, step.is_repeatable) == (Verb.CREATE, False)
    assert str(step) == f"create VirtualMachine {NAME} of the parent: there is none"


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "Secret": ({"secret": None}, SECRET),
    "boot disk": ({"disks": {MORE: disk(MORE)}}, BOOT),
    "additional disk": ({"disks": {BOOT: disk(BOOT)}}, MORE),
}


@pytest.mark.parametrize("part", MISSING)
def test_a_missing_part_is_created_unless_the_vm_has_run(part: str) -> None:
    absent, name = MISSING[part]
    new = plan(complete(vm=vm("Pending"), **absent))
    (step,) = new.steps
    assert step.is_repeatable
    write = machine_writes.of(step)
    assert (write.name, step.verb) == (name, Verb.CREATE)
    document: Any = write.document
    (owner,) = document["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("VirtualMachine", f"id-of-{NAME}")
    for phase in ("Running", "Stopped", "Degraded", "Pending"):
        old = plan(complete(vm=vm(phase), **absent), provider_id=ID)
        assert old.steps == (), phase
        shown = dict(old.results.conditions)[PARTS_READY]
        assert (shown.is_true, shown.reason) == (False, DvpMachineReason.PART_MISSING)
        assert name in shown.message


def test_without_bootstrap_data_no_secret_is_created() -> None:
    planned = plan(complete(vm=vm("Pending"), secret=None), bootstrap=None)
    assert planned.steps == ()
    assert state(planned) == (False, Reason.WAITING_FOR_BOOTSTRAP)
    assert plan(complete(vm=vm("Pending")), bootstrap=None).problems == ()


def test_a_recorded_vm_that_is_absent_is_missing_for_good() -> None:
    planned = plan(ParentMachine(objects.identity()), provider_id=ID)
    assert planned.steps == ()
    assert state(planned) == (False, Reason.MISSING)
    (problem,) = planned.problems
    assert problem.is_fatal


def test_what_others_are_deleting_is_waited_for() -> None:
    ending: dict[str, Any] = {"about": {"deletionTimestamp": NOW.isoformat()}}
    planned = plan(complete(vm=vm(**ending)))
    assert (planned.steps, state(planned)) == ((), (None, Reason.NOT_READY))
    planned = plan(complete(vm=vm(**ending)), provider_id=ID)
    assert (planned.steps, state(planned)) == ((), (False, Reason.MISSING))
    left = ParentMachine(objects.identity(), disks={BOOT: disk(BOOT, **ending)})
    planned = plan(left)
    assert (planned.steps, planned.retry_after_s is not None) == ((), True)
    assert BOOT in planned.results.state.message


# ---------------------------------------------------------------- documents


def test_the_vm_has_all_fields_of_the_spec() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    spec = {
        "nodeSelector": {"pool": "fast"},
        "tolerations": [toleration],
        "priorityClassName": "high",
        "additionalLabels": {"team": "a"},
        "additionalAnnotations": {"note": "b"},
        "runPolicy": "AlwaysOn",
    }
    planned = plan(
        ParentMachine(objects.identity()),
        spec=spec,
        failure_domain="zone-a",
        is_control_plane=True,
    )
    document = machine_writes.of(planned.steps[0]).document
    assert document == {
        "metadata": {
            "name": NAME,
            "labels": {
                "team": "a",
                "deckhouse.io/managed-by": "deckhouse",
                "dvp.deckhouse.io/cluster-uuid": UUID,
                "dvp.deckhouse.io/hostname": NAME,
                "mooring.io/owner-uid": objects.UID,
            },
            "annotations": {"note": "b", "mooring.io/machine": f"machines/{NAME}"},
        },
        "spec": {
            "virtualMachineClassName": "generic",
            "runPolicy": "AlwaysOn",
            "liveMigrationPolicy": "PreferForced",
            "osType": "Generic",
            "bootloader": "EFI",
            "enableParavirtualization": True,
            "cpu": {"cores": 2, "coreFraction": "50%"},
            "memory": {"size": "2Gi"},
            "provisioning": {
                "type": "UserDataRef",
                "userDataRef": {"kind": "Secret", "name": SECRET},
            },
            "blockDeviceRefs": [
                {"kind": "VirtualDisk", "name": BOOT},
                {"kind": "VirtualDisk", "name": MORE},
            ],
            "nodeSelector": {"pool": "fast", machine_names.ZONE: "zone-a"},
            "tolerations": [toleration],
            "priorityClassName": "high",
        },
    }


def test_the_boot_disk_is_made_of_the_image_and_others_are_blank() -> None:
    planned = plan(complete(vm=vm("Pending"), disks={}))
    documents: list[Any] = [machine_writes.of(step).document for step in planned.steps]
    boot, more = documents
    assert boot["metadata"]["labels"]["virtualDiskName"] == BOOT
    assert boot["spec"] == {
        "persistentVolumeClaim": {"storageClassName": "replicated", "size": "64Mi"},
        "dataSource": {
            "type": "ObjectRef",
            "objectRef": {"kind": "ClusterVirtualImage", "name": "base"},
        },
    }
    assert more["metadata"]["name"] == MORE
    assert "dataSource" not in more["spec"]


# ---------------------------------------------------------------- differences

CHANGED: dict[str, dict[str, Any]] = {
    "spec.vmClassName": {"vmClassName": "other"},
    "spec.cpu.cores": {"cpu": {"cores": 4, "cpuFraction": "50%"}},
    "spec.cpu.cpuFraction": {"cpu": {"cores": 2, "cpuFraction": "20%"}},
    "spec.memory": {"memory": "4Gi"},
    "spec.bootloader": {"bootloader": "BIOS"},
    "spec.rootDiskSize": {"rootDiskSize": "128Mi"},
    "spec.rootDiskStorageClass": {"rootDiskStorageClass": "other"},
    "spec.additionalDisks": {"additionalDisks": []},
    "spec.additionalDisks[0].size": {
        "additionalDisks": [{"size": "1Gi", "storageClass": "replicated"}]
    },
    "spec.bootDiskImageRef": {
        "bootDiskImageRef": {"kind": "VirtualImage", "name": "base"}
    },
    "spec.failureDomain": {"failureDomain": "zone-b"},
    "spec.nodeSelector[pool]": {"nodeSelector": {"pool": "fast"}},
    "spec.tolerations": {"tolerations": [{"operator": "Exists"}]},
    "spec.priorityClassName": {"priorityClassName": "high"},
    "spec.additionalLabels[team]": {"additionalLabels": {"team": "a"}},
    "spec.additionalAnnotations[note]": {"additionalAnnotations": {"note": "b"}},
}


@pytest.mark.parametrize("field", CHANGED)
def test_a_changed_field_is_reported_and_changes_nothing(field: str) -> None:
    planned = plan(complete(), spec=CHANGED[field], provider_id=ID)
    assert planned.steps == ()
    assert planned.settled
    (problem,) = planned.problems
    print(problem.message)
    assert problem.message.startswith(f"{field}: ")
    assert (problem.reason, problem.is_fatal) == (CommonReason.IMMUTABLE, False)
    shown = dict(planned.results.conditions)[SPEC_APPLIED]
    assert (shown.is_true, shown.reason) == (False, CommonReason.IMMUTABLE)
    assert state(planned) == (True, Reason.RUNNING)


def test_two_policies_are_changed_in_place_by_one_patch() -> None:
    spec = {"runPolicy": "AlwaysOn", "liveMigrationPolicy": "AlwaysSafe"}
    planned = plan(complete(), spec=spec)
    (step,) = planned.steps
    write = machine_writes.of(step)
    assert write.document == {"metadata": {"uid": f"id-of-{NAME}"}, "spec": spec}
    assert (step.verb, step.is_repeatable) == (Verb.CHANGE, True)
    assert planned.problems == ()
    assert not planned.settled
    unset = plan(complete(vm=vm(spec=spec)))
    assert (unset.steps, unset.settled) == ((), True)


# ---------------------------------------------------------------- ownership

PARTS = ("VM", "boot disk", "Secret")
LABELS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "owned": ({}, "", True),
    "of the reference": (REFERENCE, "", True),
    "of the reference, with its ID": (REFERENCE, ID, True),
    "old, without the label of the cluster": (
        {"owner": "", "cluster": ""},
        "",
        False,
    ),
    "old, with its ID": ({"owner": "", "cluster": ""}, ID, True),
    "of another cluster": ({"owner": "", "cluster": "other"}, "", False),
    "of another cluster, with its ID": ({"owner": "", "cluster": "other"}, ID, False),
    "of another machine": ({"owner": "other"}, "", False),
    "of another machine, with its ID": ({"owner": "other"}, ID, False),
    "moved, with its ID": (
        {"owner": "old", "annotations": {"mooring.io/machine": f"machines/{NAME}"}},
        ID,
        True,
    ),
    "moved, without its ID": (
        {"owner": "old", "annotations": {"mooring.io/machine": f"machines/{NAME}"}},
        "",
        False,
    ),
    "of a VM with another host name": (
        {"owner": "", "labels": {"dvp.deckhouse.io/hostname": "master-0"}},
        "",
        False,
    ),
}


def labelled(part: str, about: dict[str, Any], phase: str) -> ParentMachine:
    """Return a machine of which one part has these labels."""
    boot = {**disks(), BOOT: disk(BOOT, about if part == PARTS[1] else None)}
    return complete(
        vm=vm(phase, about if part == PARTS[0] else None),
        disks=boot,
        secret=secret(about if part == PARTS[2] else None),
    )


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("row", LABELS)
def test_labels_decide_whether_an_object_is_adopted(row: str, part: str) -> None:
    about, provider_id, is_ours = LABELS[row]
    native = labelled(part, about, "Running" if part == "VM" else "Pending")
    is_new = part == "VM" or not provider_id
    planned = plan(native, provider_id=provider_id)
    print(f"{row}, {part}: {steps(planned)} {[p.message for p in planned.problems]}")
    for step in planned.steps:
        write = machine_writes.of(step)
        document: Any = write.document
        assert set(document) == {"metadata"}
        assert set(document["metadata"]) == {"uid", "labels", "annotations"}
    if is_ours:
        assert len(planned.steps) == (row != "owned")
        assert not any(problem.is_fatal for problem in planned.problems)
    elif is_new:
        assert planned.steps == ()
        assert state(planned) == (False, Reason.NOT_OWNED)
        assert "must be deleted, or the machine must get another name" in (
            planned.problems[0].message
        )
    else:
        assert planned.steps == ()


def test_a_vm_gets_our_labels_after_all_its_parts() -> None:
    native = ParentMachine(
        objects.identity(),
        vm("Pending", REFERENCE),
        {BOOT: disk(BOOT, REFERENCE)},
        secret(REFERENCE),
    )
    planned = plan(native, provider_id=ID)
    assert steps(planned) == [
        f"create VirtualDisk {MORE} of the parent",
        f"change VirtualDisk {BOOT} of the parent",
        f"change Secret {SECRET} of the parent",
        f"change VirtualMachine {NAME} of the parent",
    ]


# ---------------------------------------------------------------- deletion


def test_a_deletion_detaches_first_and_then_deletes_everything() -> None:
    plugged = (objects.attachment("a"), objects.attachment("b"))
    kind = "VirtualMachineBlockDeviceAttachment"
    planned = plan(complete(attachments=plugged), gone=True)
    assert steps(planned) == [
        f"delete {kind} a of the parent",
        f"delete {kind} b of the parent",
    ]
    assert planned.leftovers == (
        f"{kind} a",
        f"{kind} b",
        f"VirtualMachine {NAME}",
        f"VirtualDisk {MORE}",
        f"VirtualDisk {BOOT}",
        f"Secret {SECRET}",
    )
    planned = plan(complete(), gone=True)
    assert steps(planned) == [
        f"delete {part} of the parent" for part in planned.leftovers
    ]
    assert state(planned) == (False, Reason.DELETING)


def test_what_only_the_labels_select_is_deleted_together() -> None:
    """With what lacks the labels beside it, by the UID of each."""
    plugged = (objects.attachment("a"), objects.attachment("b"))
    labelled = [
        objects.attachment(name, labels={"virtualMachineName": NAME}) for name in "cd"
    ]
    kinds_ = frozenset({"virtualdisks", "virtualmachineblockdeviceattachments"})
    native = complete(attachments=(*plugged, *labelled), selectable=kinds_)
    kind = "VirtualMachineBlockDeviceAttachment"
    assert steps(plan(native, gone=True)) == [
        f"delete {kind}s c, d of the parent",
        f"delete {kind} a of the parent",
        f"delete {kind} b of the parent",
    ]
    planned = plan(dataclasses.replace(native, attachments=()), gone=True)
    assert steps(planned) == [
        f"delete VirtualMachine {NAME} of the parent",
        f"delete VirtualDisks {MORE}, {BOOT} of the parent",
        f"delete Secret {SECRET} of the parent",
    ]
    labels = dict(machine_writes.of(planned.steps[1]).labels)
    assert labels["mooring.io/owner-uid"] == objects.UID
    assert labels["dvp.deckhouse.io/cluster-uuid"] == UUID
    assert labels["dvp.deckhouse.io/hostname"] == NAME


def test_an_attachment_that_does_not_end_delays_a_deletion_by_a_minute() -> None:
    since = NOW - datetime.timedelta(seconds=59)
    stuck = objects.attachment("a", deletionTimestamp=since.isoformat())
    native = complete(attachments=(stuck,))
    waits = plan(native, gone=True)
    assert (waits.steps, waits.retry_after_s is not None) == ((), True)
    later = plan(native, gone=True, now=NOW + datetime.timedelta(seconds=1))
    assert len(later.steps) == 4


def test_annotations_of_what_is_left_are_those_of_the_reference() -> None:
    """Source of the hash: the first 8 hex digits of the SHA-1 of the name."""
    planned = plan(complete(), gone=True)
    assert dict(planned.abandoned) == {
        "dvp.deckhouse.io/orphaned-vm": NAME,
        "dvp.deckhouse.io/orphaned-vm-timestamp": "2026-11-25T12:00:00Z",
        "dvp.deckhouse.io/orphaned-disk-a896816e": BOOT,
        "dvp.deckhouse.io/orphaned-disk-be8f3717": MORE,
    }


def test_a_deletion_ends_once_nothing_owned_is_left() -> None:
    assert plan(ParentMachine(objects.identity()), gone=True).settled
    for row, (about, provider_id, is_ours) in LABELS.items():
        native = complete(
            vm=vm(about=about), disks=disks(**about), secret=secret(about)
        )
        planned = plan(native, gone=True, provider_id=provider_id)
        assert planned.settled is not is_ours, row
        assert len(planned.steps) == (4 if is_ours else 0), row


def test_a_deletion_of_listed_objects_deletes_no_other() -> None:
    target = dataclasses.replace(objects.gone(), only=frozenset({f"id-of-{BOOT}"}))
    planned = machine_plan.plan(target, Observed(True, "id", complete()), NOW)
    assert steps(planned) == [f"delete VirtualDisk {BOOT} of the parent"]

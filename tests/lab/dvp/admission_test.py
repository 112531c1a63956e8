"""The parent refuses what the platform refuses, field by field."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab.dvp import parent as lab_parent
from lib.lab.dvp import project as projects
from lib.lab.dvp import rules
from lib.lab.dvp.kinds import (
    ADDRESSES,
    ATTACHMENTS,
    CLASSES,
    CLUSTER_IMAGES,
    DISKS,
    IMAGES,
    MACHINES,
    OPERATIONS,
)
from lib.lab.dvp.project import Project
from lib.lab.run import processes, waiting
from tests.harness.dvp import dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent

Json = dict[str, Any]
HTTP = {"type": "HTTP", "http": {"url": "https://lab.invalid/x"}}
CLAIM = {"storageClassName": projects.STORAGE, "size": "1Gi"}
REFERENCE = {"kind": "VirtualDisk", "name": "d"}
UPLOAD = {"type": "Upload", "http": None}
VALID: Mapping[Resource, Json] = {
    MACHINES: dvp_parent.machine_spec("boot"),
    DISKS: {"persistentVolumeClaim": CLAIM},
    ATTACHMENTS: {"virtualMachineName": "v", "blockDeviceRef": REFERENCE},
    IMAGES: {"dataSource": HTTP},
    CLUSTER_IMAGES: {"dataSource": HTTP},
    CLASSES: {"cpu": {"type": "Host"}},
    ADDRESSES: {"type": "Auto"},
    OPERATIONS: {"type": "Stop", "virtualMachineName": "v"},
}
_TOO_LONG = {"type": "UserData", "userData": "x" * 2049}
_TWO = {"type": "UserData", "userDataRef": {"kind": "Secret", "name": "s"}}
_DEVICES = [{"kind": "VirtualDisk", "name": f"d{n}"} for n in range(17)]
_LEGACY = {"osType": "Legacy"}
_OBJECT = {"kind": "VirtualDisk", "name": "d"}

REFUSED: Sequence[tuple[Resource, Json, str]] = (
    (MACHINES, {"virtualMachineClassName": None}, "virtualMachineClassName"),
    (MACHINES, {"runPolicy": "Sometimes"}, "runPolicy"),
    (MACHINES, {"liveMigrationPolicy": "Manual"}, "liveMigrationPolicy"),
    (MACHINES, {"liveMigrationPolicy": "Never"}, "liveMigrationPolicy"),
    (MACHINES, {"osType": "Linux"}, "osType"),
    (MACHINES, {"bootloader": "UEFI"}, "bootloader"),
    (MACHINES, {"cpu": {"cores": 0}}, "cpu.cores"),
    (MACHINES, {"cpu": {"cores": 1, "coreFraction": "0%"}}, "coreFraction"),
    (MACHINES, {"cpu": {"cores": 1, "coreFraction": "101%"}}, "coreFraction"),
    (MACHINES, {"memory": {"size": "much"}}, "memory.size"),
    (MACHINES, {"blockDeviceRefs": []}, "blockDeviceRefs"),
    (MACHINES, {"blockDeviceRefs": _DEVICES}, "blockDeviceRefs"),
    (MACHINES, {"blockDeviceRefs": [REFERENCE, REFERENCE]}, "more than once"),
    (MACHINES, {"virtualMachineIPAddressName": ""}, "virtualMachineIPAddressName"),
    (MACHINES, {"priorityClassName": ""}, "priorityClassName"),
    (MACHINES, {"memory": {"size": 1}}, "memory.size"),
    (MACHINES, {"tolerations": [{"operator": 1}]}, "operator"),
    (MACHINES, {"provisioning": _TOO_LONG}, "2048"),
    (MACHINES, {"provisioning": _TWO}, "provisioning"),
    (MACHINES, {**_LEGACY, "bootloader": "EFI"}, "needs bootloader BIOS"),
    (
        MACHINES,
        {**_LEGACY, "provisioning": {"type": "UserData", "userData": "x"}},
        "has no provisioning",
    ),
    (
        MACHINES,
        {
            **_LEGACY,
            "enableParavirtualization": False,
            "blockDeviceRefs": _DEVICES[:5],
        },
        "4 block devices",
    ),
    (MACHINES, {"usbDevices": [{"name": f"u{n}"} for n in range(9)]}, "usbDevices"),
    (DISKS, {"persistentVolumeClaim": None}, "needs persistentVolumeClaim.size"),
    (DISKS, {"persistentVolumeClaim": {"size": "0"}}, "greater than zero"),
    (DISKS, {"dataSource": {"type": "HTTP"}}, "needs http"),
    (DISKS, {"dataSource": {**HTTP, "type": "Upload"}}, "has no http"),
    (
        DISKS,
        {"dataSource": {"type": "ObjectRef", "objectRef": _OBJECT}},
        "objectRef.kind",
    ),
    (ATTACHMENTS, {"virtualMachineName": ""}, "virtualMachineName"),
    (ATTACHMENTS, {"blockDeviceRef": None}, "blockDeviceRef"),
    (
        DISKS,
        {"persistentVolumeClaim": {**CLAIM, "storageClassName": "gone"}},
        "not found",
    ),
    (CLASSES, {"sizingPolicies": [{"memory": {}}]}, "cores"),
    (CLASSES, {"sizingPolicies": [{"cores": {"min": 1, "max": 1}}]}, "greater"),
    (ATTACHMENTS, {"blockDeviceRef": {"kind": "Disk", "name": "d"}}, "kind"),
    (IMAGES, {"storage": "Floppy"}, "storage"),
    (
        CLUSTER_IMAGES,
        {"dataSource": {"type": "ObjectRef", "objectRef": _OBJECT}},
        "needs namespace",
    ),
    (CLASSES, {"cpu": {"type": "Fast"}}, "cpu.type"),
    (CLASSES, {"cpu": None}, "cpu"),
    (ADDRESSES, {"type": "Static"}, "staticIP is set"),
    (ADDRESSES, {"staticIP": "10.0.0.1"}, "staticIP is set"),
    (ADDRESSES, {"type": "Static", "staticIP": "10.0.0.999"}, "staticIP"),
    (OPERATIONS, {"type": "Explode"}, "type"),
    (OPERATIONS, {"type": "Start", "force": True}, "cannot be forced"),
)
"""Kind, what differs from a valid spec, and a part of the message."""

RESERVED = "vm.virtualization.deckhouse.io/name"
SIZE = "persistentVolumeClaim"
CHANGES: Mapping[str, Sequence[tuple[Resource, str, Json, str]]] = {
    "machine-reserved-keys": (
        (MACHINES, "", {"metadata": {"labels": {RESERVED: ""}}}, "must not contain"),
    ),
    "machine-devices-once": (
        (MACHINES, "", {"spec": {"blockDeviceRefs": [REFERENCE, REFERENCE]}}, "once"),
    ),
    "machine-cpu-count": (
        (MACHINES, "", {"spec": {"cpu": {"cores": 18}}}, ""),
        (MACHINES, "", {"spec": {"cpu": {"cores": 17}}}, "multiple of the sockets"),
    ),
    "attachment-unchanged": (
        (ATTACHMENTS, "", {"spec": {"virtualMachineName": "w"}}, "cannot be changed"),
    ),
    "image-frozen": (
        (IMAGES, "Ready", {"spec": {"dataSource": UPLOAD}}, "dataSource"),
        (IMAGES, "Pending", {"spec": {"dataSource": UPLOAD}}, ""),
    ),
    "disk-growth": (
        (DISKS, "Ready", {"spec": {SIZE: {"size": "512Mi"}}}, "only grow"),
        (DISKS, "Ready", {"spec": {SIZE: {"size": None}}}, "omitted"),
        (DISKS, "Ready", {"spec": {SIZE: {"size": "2Gi"}}}, ""),
        (DISKS, "WaitForFirstConsumer", {"spec": {SIZE: {"size": "512Mi"}}}, ""),
        (DISKS, "Migrating", {"spec": {SIZE: {"size": "2Gi"}}}, "migrates"),
    ),
    "disk-frozen": (
        (DISKS, "Ready", {"spec": {"dataSource": HTTP}}, "dataSource"),
        (DISKS, "Pending", {"spec": {"dataSource": HTTP}}, ""),
        (DISKS, "Terminating", {"spec": {SIZE: {"size": "2Gi"}}}, "being deleted"),
    ),
    "disk-class": (
        (DISKS, "Ready", {"spec": {SIZE: {"storageClassName": "x"}}}, "running VM"),
        (DISKS, "Pending", {"spec": {SIZE: {"storageClassName": "x"}}}, "not found"),
    ),
}
"""By rule: kind, phase of the object, change, and a part of the message or "": it is
accepted. All rules have rows in tests/lib/lab/dvp/admission_rules_test.py; these are
judged through an API server."""


def refusal(parent: DvpParent, kind: Resource, project: Project, body: Json) -> str:
    """Return the message with which a creation is refused; empty: it is accepted."""
    space = project.namespace if kind.namespaced else None
    text = json.dumps(
        {"apiVersion": kind.api_version, "kind": kind.kind, **body}
    ).encode()
    try:
        parent.api.create(kind, text, space, timeout_s=30, query={"dryRun": "All"})
    except (kube_errors.Invalid, kube_errors.Forbidden) as error:
        return str(error)
    return ""


def test_each_field_is_judged(parent: DvpParent, project: Project) -> None:
    """Valid objects of each kind are accepted, and every row is refused by name."""
    for kind, spec in VALID.items():
        body = {"metadata": {"name": "valid"}, "spec": spec}
        assert refusal(parent, kind, project, body) == "", kind
    for kind, change, expected in REFUSED:
        spec = {**copy.deepcopy(VALID[kind]), **change}
        spec = {key: value for key, value in spec.items() if value is not None}
        body = {"metadata": {"name": "refused"}, "spec": spec}
        message = refusal(parent, kind, project, body)
        print(f"{kind.kind:36} {json.dumps(change)[:60]:60} {message[-90:]}")
        assert expected in message, (kind.kind, change, message)


def test_names_of_machines_are_short(parent: DvpParent, project: Project) -> None:
    for length, expected in ((63, ""), (64, "63 characters")):
        body = {"metadata": {"name": "n" * length}, "spec": VALID[MACHINES]}
        assert expected in refusal(parent, MACHINES, project, body)


@pytest.fixture(scope="module")
def kept(parent: DvpParent, project: Project) -> Iterator[DvpParent]:
    """Have objects of each kind, which no transition moves."""
    with parent.holding("* kept"):
        for kind in (MACHINES, DISKS, ATTACHMENTS, IMAGES):
            parent.objects(project).make(kind, "kept", spec=VALID[kind])
        yield parent


def test_the_webhooks_judge_changes(kept: DvpParent, project: Project) -> None:
    """Prints a row for each change; the message is that of a webhook."""
    judged = {rule.name: rule for rule in rules.RULES}
    for name, changes in CHANGES.items():
        for kind, phase, change, expected in changes:
            if phase:
                kept.set_status(kind, project, "kept", {"phase": phase})
            message = changed(kept, kind, project, change)
            print(f"{name:22} {phase:22} {message[-80:] or 'accepted'}")
            print(f"{'':22} {judged[name].fact}")
            assert expected in message
            assert bool(expected) == bool(message)
            assert not message or rules.webhook(kind) in message


def test_without_its_controller_no_write_is_accepted(
    kept: DvpParent, project: Project
) -> None:
    """Of a VM, a disk and an attachment; other kinds, deletions and statuses are."""
    label = {"metadata": {"labels": {"a": "b"}}}
    processes.stop(kept.where, [lab_parent.SIMULATOR])
    try:
        for kind in (MACHINES, DISKS, ATTACHMENTS):
            with pytest.raises(kube_errors.KubeError) as refused:
                kept.objects(project).patch(kind, "kept", **label)
            print(kind.kind, refused.value.status, str(refused.value)[:160])
            assert refused.value.status == 500
            assert "failed calling webhook" in str(refused.value)
            kept.set_status(kind, project, "kept", {"phase": "Pending"})
    finally:
        kept.restart()
    waiting.until(
        "the webhooks answer",
        lambda: changed(kept, DISKS, project, label) == "",
    )


def changed(
    parent: DvpParent,
    kind: Resource,
    project: Project,
    change: Json,
    name: str = "kept",
) -> str:
    """Return the message with which a change is refused; empty: it is accepted."""
    try:
        parent.api.patch(
            kind,
            name,
            json.dumps(change).encode(),
            project.namespace,
            timeout_s=30,
            query={"dryRun": "All"},
        )
    except (kube_errors.Invalid, kube_errors.Forbidden) as error:
        return str(error)
    except kube_errors.Unavailable as error:
        return str(error)
    return ""


def test_a_class_that_is_restricted_refuses_every_write_of_its_vms(
    parent: DvpParent, project: Project
) -> None:
    """Also of a label: the VM can be changed again once it is resized, or deleted."""
    objects = parent.objects(project)
    allowed = {"cores": {"min": 4, "max": 8}}
    spec = {"cpu": {"type": "Host"}}
    objects.make(CLASSES, "restricted", spec=spec)
    sized = {**VALID[MACHINES], "virtualMachineClassName": "restricted"}
    with parent.holding("* sized"):
        objects.make(MACHINES, "sized", spec=sized)
        policies_ = {"spec": {"sizingPolicies": [allowed]}}
        objects.patch(CLASSES, "restricted", **policies_)
        label = {"metadata": {"labels": {"a": "b"}}}
        waiting.until(
            "the label is refused",
            lambda: "sizing policy"
            in changed(parent, MACHINES, project, label, "sized"),
        )
        resized = {**label, "spec": {"cpu": {"cores": 4}}}
        assert changed(parent, MACHINES, project, resized, "sized") == ""
        objects.delete(MACHINES, "sized")
    objects.delete(CLASSES, "restricted")

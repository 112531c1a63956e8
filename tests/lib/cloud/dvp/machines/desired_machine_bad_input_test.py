"""Bad input of a machine: each row names its field, its value and what is valid."""

import dataclasses
from typing import Any

import pytest

from lib.cloud.dvp.machines import desired_machine, machine_names
from lib.cloud.dvp.machines.machine_reasons import DvpMachineReason
from lib.cloud.dvp.machines.observed_machine import ParentMachine, Prerequisites
from lib.cloud.machines import Facts, Problems, Reason, Spec
from tests.contract.dvp_machines import CLASS, IMAGE, SPEC, STORAGE, UUID
from tests.lib.cloud.dvp.machines import machine_objects as objects
from tests.lib.cloud.dvp.machines.machine_objects import facts

DISK = {"size": "1Gi", "storageClass": STORAGE}
LONG = "a" * 59
INVALID: dict[str, tuple[Facts, str, str]] = {
    "class not set": (
        facts(spec={"vmClassName": None}),
        "spec.vmClassName: not set",
        "the name of a VirtualMachineClass",
    ),
    "no cores": (
        facts(spec={"cpu": {"cores": 0}}),
        'spec.cpu.cores: invalid value "0"',
        "above 0",
    ),
    "cores are no number": (
        facts(spec={"cpu": {"cores": "two"}}),
        'spec.cpu.cores: invalid value "two"',
        "a whole number above 0",
    ),
    "fraction": (
        facts(spec={"cpu": {"cores": 2, "cpuFraction": "0%"}}),
        'spec.cpu.cpuFraction: invalid value "0%"',
        "a percentage from 1% to 100%",
    ),
    "fraction is a number": (
        facts(spec={"cpu": {"cores": 2, "cpuFraction": 50}}),
        'spec.cpu.cpuFraction: invalid value "50"',
        "a percentage",
    ),
    "memory": (
        facts(spec={"memory": "8 GB"}),
        'spec.memory: invalid value "8 GB"',
        "such as 8Gi",
    ),
    "memory of none": (
        facts(spec={"memory": 0}),
        'spec.memory: invalid value "0"',
        "above 0",
    ),
    "size of the disk": (
        facts(spec={"rootDiskSize": "big"}),
        'spec.rootDiskSize: invalid value "big"',
        "a quantity",
    ),
    "no size": (
        facts(spec={"rootDiskSize": None}),
        "spec.rootDiskSize: not set",
        "a quantity",
    ),
    "no storage class": (
        facts(spec={"rootDiskStorageClass": ""}),
        "spec.rootDiskStorageClass: not set",
        "the name of a StorageClass",
    ),
    "size of an additional disk": (
        facts(spec={"additionalDisks": [DISK, {**DISK, "size": "-1Gi"}]}),
        'spec.additionalDisks[1].size: invalid value "-1Gi"',
        "a quantity",
    ),
    "class of an additional disk": (
        facts(spec={"additionalDisks": [{"size": "1Gi"}]}),
        "spec.additionalDisks[0].storageClass: not set",
        "the name of a StorageClass",
    ),
    "too many disks": (
        facts("w", spec={"additionalDisks": [DISK] * 16}),
        'spec.additionalDisks: invalid value "16 disks"',
        "at most 15 disks",
    ),
    "disks are no list": (
        facts(spec={"additionalDisks": "10Gi"}),
        'spec.additionalDisks: invalid value "10Gi"',
        "a list",
    ),
    "no image": (
        facts(spec={"bootDiskImageRef": None}),
        "spec.bootDiskImageRef.name: not set",
        "the name of an image",
    ),
    "kind of image": (
        facts(spec={"bootDiskImageRef": {"kind": "Disk", "name": IMAGE}}),
        'spec.bootDiskImageRef.kind: unsupported value "Disk"',
        "VirtualDiskSnapshot",
    ),
    "bootloader": (
        facts(spec={"bootloader": "GRUB"}),
        'spec.bootloader: unsupported value "GRUB"',
        "EFIWithSecureBoot",
    ),
    "run policy": (
        facts(spec={"runPolicy": "Always"}),
        'spec.runPolicy: unsupported value "Always"',
        "AlwaysOnUnlessStoppedManually",
    ),
    "migration policy Manual": (
        facts(spec={"liveMigrationPolicy": "Manual"}),
        'spec.liveMigrationPolicy: unsupported value "Manual"',
        "AlwaysSafe, PreferSafe, AlwaysForced, PreferForced",
    ),
    "migration policy Never": (
        facts(spec={"liveMigrationPolicy": "Never"}),
        'spec.liveMigrationPolicy: unsupported value "Never"',
        "AlwaysSafe",
    ),
    "zone and selector": (
        facts(failure_domain="a", spec={"nodeSelector": {machine_names.ZONE: "b"}}),
        f'spec.nodeSelector[{machine_names.ZONE}]: invalid value "b"',
        "a, the failureDomain",
    ),
    "selector": (
        facts(spec={"nodeSelector": {"a": 1}}),
        "spec.nodeSelector: invalid value",
        "a map of texts",
    ),
    "toleration": (
        facts(spec={"tolerations": ["all"]}),
        'spec.tolerations[0]: invalid value "all"',
        "an object",
    ),
    "label of the parent": (
        facts(spec={"additionalLabels": {"virtualization.deckhouse.io/x": "y"}}),
        'spec.additionalLabels: invalid value "virtualization.deckhouse.io/x"',
        "without reserved keys",
    ),
    "label of ownership": (
        facts(spec={"additionalLabels": {"mooring.io/owner-uid": "y"}}),
        'spec.additionalLabels: invalid value "mooring.io/owner-uid"',
        "without reserved keys",
    ),
    "name over 63 characters": (
        facts("a" * 64),
        f'metadata.name: invalid value "{"a" * 64}"',
        "at most 45 characters with 1 additional disks",
    ),
    "name too long for its disk": (
        facts(LONG, spec={"additionalDisks": []}),
        f'metadata.name: invalid value "{LONG}"',
        "a DNS label of at most 58 characters",
    ),
    "name with dots": (
        facts("a.b"),
        'metadata.name: invalid value "a.b"',
        "a DNS label",
    ),
    "cluster UUID not set": (
        facts(cluster_id=""),
        "CLUSTER_UUID: not set",
        "the UUID of this",
    ),
    "another cluster UUID": (
        facts(cluster_id="x"),
        'CLUSTER_UUID: invalid value "x"',
        UUID,
    ),
    "another provider ID": (
        facts(provider_id="dvp://other"),
        'spec.providerID: invalid value "dvp://other"',
        objects.ID,
    ),
}


@pytest.mark.parametrize("row", INVALID)
def test_an_invalid_field_is_named_with_what_is_valid(row: str) -> None:
    wrong, begins, contains = INVALID[row]
    parsed = desired_machine.parse(wrong, UUID)
    assert isinstance(parsed, Problems), row
    texts = [problem.message for problem in parsed.problems]
    print(f"{row}: {texts}")
    matching = [text for text in texts if text.startswith(begins)]
    assert len(matching) == 1
    assert contains in matching[0]
    assert {problem.reason for problem in parsed.problems} == {Reason.INVALID_SPEC}
    assert all(problem.is_fatal for problem in parsed.problems)


def test_all_problems_are_reported_together() -> None:
    parsed = desired_machine.parse(facts(spec=dict.fromkeys(SPEC)), UUID)
    assert isinstance(parsed, Problems)
    assert len(parsed.problems) == 4


def test_defaults_are_those_of_the_reference() -> None:
    spec: dict[str, Any] = {"cpu": {}, "memory": None, "additionalDisks": None}
    spec["bootDiskImageRef"] = {"name": IMAGE}
    parsed = desired_machine.parse(facts(spec=spec), UUID)
    assert isinstance(parsed, Spec)
    desired = desired_machine.of(parsed)
    assert desired is not None
    assert (desired.cores, desired.core_fraction, desired.memory) == (4, "100%", "8Gi")
    assert (desired.bootloader, desired.image[0]) == ("EFI", "VirtualImage")
    assert len(desired.disks) == 1


def offered(**changes: Any) -> Prerequisites:
    names = {"spec.vmClassName": (CLASS,), "spec.rootDiskStorageClass": (STORAGE,)}
    return dataclasses.replace(objects.OFFERED, offered=names, **changes)


UNMET: dict[str, tuple[Prerequisites, str, str, Reason | DvpMachineReason]] = {
    "class missing": (
        offered(machine_class=None),
        f'spec.vmClassName: unsupported value "{CLASS}"',
        f"must be one of {CLASS}, the VirtualMachineClass objects",
        Reason.PREREQUISITE,
    ),
    "class not ready": (
        offered(machine_class=objects.machine_class("Pending")),
        f"spec.vmClassName: VirtualMachineClass {CLASS} is Pending",
        "must be Ready",
        Reason.PREREQUISITE,
    ),
    "image missing": (
        offered(image=None),
        f'spec.bootDiskImageRef.name: invalid value "{IMAGE}"',
        "a ClusterVirtualImage of the parent",
        Reason.PREREQUISITE,
    ),
    "image not ready": (
        offered(image=objects.image("Provisioning")),
        f"spec.bootDiskImageRef.name: ClusterVirtualImage {IMAGE} is Provisioning",
        "must be Ready",
        Reason.PREREQUISITE,
    ),
    "storage class missing": (
        offered(storage_classes={}),
        f'spec.rootDiskStorageClass: unsupported value "{STORAGE}"',
        "StorageClass",
        Reason.PREREQUISITE,
    ),
    "image larger than its disk": (
        offered(image=objects.image(size=2**26 + 1)),
        'spec.rootDiskSize: invalid value "64Mi"',
        f"at least {2**26 + 2**20}, the bytes of ClusterVirtualImage {IMAGE}",
        DvpMachineReason.IMAGE_TOO_LARGE,
    ),
}


@pytest.mark.parametrize("row", UNMET)
def test_nothing_is_created_without_its_prerequisites(row: str) -> None:
    available, begins, contains, reason = UNMET[row]
    native = ParentMachine(objects.identity(), prerequisites=available)
    planned = objects.plan(native)
    assert planned.steps == ()
    assert planned.results.state.is_true is False
    assert planned.results.state.reason == reason
    texts = [problem.message for problem in planned.problems]
    print(f"{row}: {texts}")
    matching = [text for text in texts if text.startswith(begins)]
    assert len(matching) == 1
    assert contains in matching[0]


SIZES: dict[str, dict[str, Any]] = {
    "cores outside": {"cores": {"min": 4, "max": 8}},
    "the greatest number beside the steps": {"cores": {"min": 1, "max": 2, "step": 2}},
    "memory between two steps": {"memory": {"min": "1Gi", "max": "8Gi", "step": "3Gi"}},
    "another fraction": {"coreFractions": [10, "20%"]},
}


@pytest.mark.parametrize("row", SIZES)
def test_sizing_policies_are_left_to_the_parent(row: str) -> None:
    """Its rules differ between versions; it may accept what looks wrong here."""
    available = offered(machine_class=objects.machine_class(**SIZES[row]))
    native = ParentMachine(objects.identity(), prerequisites=available)
    assert objects.steps(objects.plan(native)) == [
        f"create VirtualMachine {objects.NAME} of the parent"
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (4, "8Gi")),
        ({"cpu": {"cores": 2, "cpuFraction": "50%"}, "memory": 1024}, (2, "1024")),
        ({"cpu": {"cores": 0}}, None),
        ({"memory": "much"}, None),
    ],
)
def test_cores_and_memory_of_a_template(
    spec: dict[str, object], expected: tuple[int, str] | None
) -> None:
    assert desired_machine.cores_and_memory(spec) == expected

"""Each rule of a parent's webhooks: what it refuses, and what it admits."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from lib.kube import resources
from lib.kube.resources import Resource
from lib.lab.dvp import admission, rules
from lib.lab.dvp.kinds import (
    ADDRESSES,
    ATTACHMENTS,
    CLASSES,
    CLUSTER_IMAGES,
    DISKS,
    IMAGES,
    MACHINES,
    NODES,
    VOLUMES,
    Item,
    World,
)

Json = dict[str, Any]
STORAGE = resources.STORAGE_CLASSES
DISK = {"kind": "VirtualDisk", "name": "d"}
IMAGE = {"kind": "ClusterVirtualImage", "name": "i"}
SPECS: Mapping[Resource, Json] = {
    MACHINES: {
        "virtualMachineClassName": "generic",
        "cpu": {"cores": 2},
        "memory": {"size": "2Gi"},
        "blockDeviceRefs": [DISK],
    },
    DISKS: {"persistentVolumeClaim": {"storageClassName": "fast", "size": "1Gi"}},
    ATTACHMENTS: {"virtualMachineName": "x", "blockDeviceRef": DISK},
    IMAGES: {"storage": "ContainerRegistry", "dataSource": {"type": "Upload"}},
    ADDRESSES: {"type": "Auto"},
}
"""A valid spec of each kind; the name of the object is x."""
UID = "00000000-0000-4000-8000-000000000000"


def thing(kind: Resource, name: str, **parts: Any) -> tuple[Resource, Json]:
    about = {"name": name, **parts.pop("metadata", {})}
    if kind.namespaced:
        about["namespace"] = "p"
    return kind, {"metadata": about, **parts}


def attachment(name: str, phase: str = "Attached") -> tuple[Resource, Json]:
    spec = {"virtualMachineName": "x", "blockDeviceRef": DISK}
    return thing(ATTACHMENTS, name, spec=spec, status={"phase": phase})


def sized(**policy: Any) -> tuple[Resource, Json]:
    spec = {"cpu": {"type": "Host"}, "sizingPolicies": [policy]}
    return thing(CLASSES, "generic", spec=spec)


FAST = thing(STORAGE, "fast", provisioner="one")
OTHER = thing(STORAGE, "other", provisioner="two")
OLD = thing(STORAGE, "old", metadata={"labels": {"module": "local-path-provisioner"}})
IN_VOLUME = thing(
    IMAGES,
    "i",
    spec={"storage": "PersistentVolumeClaim"},
    status={"phase": "Ready", "storageClassName": "other"},
)
FROM_IMAGE = {"type": "ObjectRef", "objectRef": {"kind": "VirtualImage", "name": "i"}}
VOLUME = thing(
    VOLUMES,
    "v",
    spec={
        "claimRef": {"namespace": "p", "name": f"vd-d-{UID}"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {
                                "key": "kubernetes.io/hostname",
                                "operator": "In",
                                "values": ["b"],
                            }
                        ]
                    }
                ]
            }
        },
    },
)
HOSTS = [
    thing(NODES, name, metadata={"labels": {"kubernetes.io/hostname": name}})
    for name in "ab"
]
READY = {"phase": "Ready"}
RUNNING = thing(MACHINES, "vm", status={"phase": "Running"})
USED = {
    "phase": "Ready",
    "attachedToVirtualMachines": [{"name": "vm", "mounted": True}],
}
GIB_POLICY = {"cores": {"min": 1, "max": 8}, "memory": {"min": "1Gi", "max": "8Gi"}}


@dataclasses.dataclass(frozen=True)
class Row:
    """One write. change: of the spec, None removes; before: None: a new object."""

    rule: str
    title: str
    expected: str = ""
    change: Json = dataclasses.field(default_factory=dict)
    others: Sequence[tuple[Resource, Json]] = ()
    is_update: bool = False
    metadata: Json = dataclasses.field(default_factory=dict)
    status: Json = dataclasses.field(default_factory=dict)


def update(rule: str, title: str, expected: str = "", **parts: Any) -> Row:
    return Row(rule, title, expected, is_update=True, **parts)


def cores(number: int, **more: Any) -> Json:
    return {"cpu": {"cores": number, **more}}


def claim(**fields: Any) -> Json:
    return {"persistentVolumeClaim": {"storageClassName": "fast", **fields}}


LABEL = {"labels": {"vm.virtualization.deckhouse.io/name": "x"}}
SIXTEEN = [{"kind": "VirtualDisk", "name": f"d{n}"} for n in range(16)]
FULL = thing(MACHINES, "x", spec={"blockDeviceRefs": SIXTEEN})
MEMORY = {"memory": {"size": "3Gi"}}
PER_CORE = {"perCore": {"min": "1Gi", "max": "4Gi"}, "step": "1Gi"}
ROWS = (
    Row("machine-name", "64 characters", "63", metadata={"name": "n" * 64}),
    Row("machine-name", "63 characters", metadata={"name": "n" * 63}),
    Row("machine-reserved-keys", "a label", "labels", metadata=LABEL),
    update("machine-reserved-keys", "a label later", "labels", metadata=LABEL),
    Row(
        "machine-address",
        "an address of its name",
        "exists",
        others=[thing(ADDRESSES, "x")],
    ),
    Row(
        "machine-address",
        "an address that it names",
        change={"virtualMachineIPAddressName": "x"},
        others=[thing(ADDRESSES, "x")],
    ),
    update("machine-address", "its own address", others=[thing(ADDRESSES, "x")]),
    Row(
        "machine-devices-once",
        "a device twice",
        "more than once",
        {"blockDeviceRefs": [DISK, DISK]},
    ),
    Row(
        "machine-devices-once",
        "a boot order twice",
        "bootOrder",
        {"blockDeviceRefs": [{**DISK, "bootOrder": 1}, {**IMAGE, "bootOrder": 1}]},
    ),
    Row(
        "machine-sizing", "a class without policies", others=[thing(CLASSES, "generic")]
    ),
    Row("machine-sizing", "a class that is missing"),
    Row(
        "machine-sizing",
        "no range of cores",
        "any sizing policy",
        others=[sized(cores={"min": 4, "max": 8})],
    ),
    Row(
        "machine-sizing",
        "a policy without cores never matches",
        "any sizing policy",
        others=[sized(memory={"min": "1Gi"})],
    ),
    update(
        "machine-sizing",
        "a label of a VM that its class does not admit any more",
        "any sizing policy",
        metadata={"labels": {"a": "b"}},
        others=[sized(cores={"min": 4, "max": 8})],
    ),
    Row(
        "machine-sizing",
        "8 of 1 to 8 by 2: the greatest always belongs to it",
        change=cores(8),
        others=[sized(cores={"min": 1, "max": 8, "step": 2})],
    ),
    Row(
        "machine-sizing",
        "4 of 1 to 8 by 2",
        "step 2",
        change=cores(4),
        others=[sized(cores={"min": 1, "max": 8, "step": 2})],
    ),
    Row(
        "machine-sizing",
        "a fraction that is not listed",
        "core fraction 50%",
        change=cores(2, coreFraction="50%"),
        others=[sized(cores={"min": 1, "max": 8}, coreFractions=[10, 100])],
    ),
    Row(
        "machine-sizing",
        "memory out of the range",
        "memory is out",
        change={"memory": {"size": "9Gi"}},
        others=[sized(**GIB_POLICY)],
    ),
    Row(
        "machine-sizing",
        "a step of memory without a maximum is not judged",
        change={"memory": {"size": "2560Mi"}},
        others=[
            sized(cores={"min": 1, "max": 8}, memory={"min": "1Gi", "step": "1Gi"})
        ],
    ),
    Row(
        "machine-sizing",
        "memory for each core off its step",
        "for each core",
        change=MEMORY,
        others=[sized(cores={"min": 1, "max": 8}, memory=PER_CORE)],
    ),
    Row(
        "machine-device-count",
        "16 devices and an attachment",
        "more than 16",
        {"blockDeviceRefs": SIXTEEN},
        others=[attachment("a")],
    ),
    Row("machine-device-count", "16 devices", "", {"blockDeviceRefs": SIXTEEN}),
    Row("machine-cpu-count", "18 cores of 2 sockets", "", cores(18)),
    Row("machine-cpu-count", "17 cores", "multiple of the sockets", cores(17)),
    Row("machine-cpu-count", "256 cores", "248 at most", cores(256)),
    Row("machine-core-fraction", "Auto", "autoscaling", cores(2, coreFraction="Auto")),
    Row(
        "machine-networks",
        "Main is not the first",
        "first",
        {"networks": [{"type": "Network", "name": "n"}, {"type": "Main"}]},
    ),
    Row(
        "machine-first-device",
        "an image that is no CD-ROM",
        "CD-ROM",
        {"blockDeviceRefs": [IMAGE]},
        others=[thing(CLUSTER_IMAGES, "i", status=READY)],
    ),
    Row(
        "machine-attachments",
        "a device that is attached",
        "already attached by a",
        others=[attachment("a")],
    ),
    Row(
        "machine-attachments",
        "a device whose attachment ends",
        others=[attachment("a", "Terminating")],
    ),
    Row(
        "machine-volumes",
        "a volume that no node of the VM reaches",
        "topology",
        {"nodeSelector": {"kubernetes.io/hostname": "a"}},
        others=[VOLUME, *HOSTS],
    ),
    Row(
        "machine-volumes",
        "a volume that a node reaches",
        others=[VOLUME, *HOSTS],
    ),
    Row("disk-size", "nothing", "greater than zero", claim(size="0")),
    Row("disk-size", "a blank disk without size", "needs", claim()),
    update(
        "disk-growth",
        "smaller, Ready",
        "only grow",
        change=claim(size="1Mi"),
        status=READY,
    ),
    update("disk-growth", "removed, Ready", "omitted", change=claim(), status=READY),
    update("disk-growth", "larger, Ready", change=claim(size="2Gi"), status=READY),
    update(
        "disk-growth",
        "smaller, not provisioned",
        change=claim(size="1Mi"),
        status={"phase": "WaitForFirstConsumer"},
    ),
    update(
        "disk-growth",
        "larger, Migrating",
        "migrates",
        change=claim(size="2Gi"),
        status={"phase": "Migrating"},
    ),
    update(
        "disk-frozen",
        "another source, Ready",
        "dataSource",
        change={"dataSource": FROM_IMAGE},
        status=READY,
    ),
    update(
        "disk-frozen",
        "a change while it is deleted",
        "being deleted",
        change=claim(size="2Gi"),
        status={"phase": "Terminating"},
    ),
    Row("disk-name", "a dot", "dot", metadata={"name": "a.b"}),
    Row(
        "disk-class",
        "no such class",
        'class "slow" not found',
        claim(storageClassName="slow", size="1Gi"),
    ),
    Row(
        "disk-class",
        "a deprecated provisioner",
        "deprecated",
        claim(storageClassName="old", size="1Gi"),
    ),
    update(
        "disk-class",
        "another class without a VM",
        "running VM",
        change=claim(storageClassName="other", size="1Gi"),
        status=READY,
    ),
    update(
        "disk-class",
        "another class with a running VM",
        change=claim(storageClassName="other", size="1Gi"),
        others=[RUNNING],
        status=USED,
    ),
    update(
        "disk-class",
        "a label, although the class is gone",
        metadata={"labels": {"a": "b"}},
        change=claim(storageClassName="gone", size="1Gi"),
    ),
    Row(
        "disk-image-class",
        "an image in a volume of another provisioner",
        "does not match",
        {"dataSource": FROM_IMAGE},
        others=[IN_VOLUME],
    ),
    update(
        "image-frozen",
        "another source, Ready",
        "dataSource",
        change={"dataSource": FROM_IMAGE},
        status=READY,
    ),
    update(
        "attachment-unchanged",
        "another VM",
        "cannot be changed",
        change={"virtualMachineName": "y"},
    ),
    Row(
        "attachment-conflict",
        "a disk with an attachment",
        "already",
        others=[attachment("a")],
    ),
    Row("attachment-conflict", "one that failed", others=[attachment("a", "Failed")]),
    Row("attachment-count", "a VM with 16 devices", "16 block", others=[FULL]),
    Row("address-fields", "Static without address", "staticIP", {"type": "Static"}),
    Row(
        "address-fields",
        "no address",
        "IPv4",
        {"type": "Static", "staticIP": "10.0.0.999"},
    ),
)
JUDGED = {rule.name: rule for rule in rules.RULES}


def world(row: Row) -> World:
    items: dict[Resource, dict[str, Item]] = {}
    for kind, document in (FAST, OTHER, OLD, *row.others):
        item = msgspec.convert(document, Item)
        items.setdefault(kind, {})[item.metadata.key] = item
    return World(items)


def review(row: Row) -> admission.Review:
    kind = JUDGED[row.rule].kind
    whole = {**SPECS[kind], **row.change}
    about = {"name": "x", "namespace": "p"}
    new = {"metadata": {**about, **row.metadata}, "spec": whole, "status": row.status}
    is_of_label = "labels" in row.metadata
    spec = whole if is_of_label else SPECS[kind]
    old = {"metadata": about, "spec": spec, "status": row.status}
    return admission.Review(kind, new, old if row.is_update else None, world(row))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.rule}: {row.title}")
def test_a_write_is_judged(row: Row) -> None:
    """The text names what is wrong; an admitted write has none."""
    text = admission.refusal(rules.RULES, review(row))
    assert row.expected in text
    assert bool(text) == bool(row.expected), text


def test_every_rule_has_a_row_that_it_refuses() -> None:
    """And a source."""
    refused = {row.rule for row in ROWS if row.expected}
    assert refused == JUDGED.keys()
    assert all(rule.fact for rule in rules.RULES)


def test_a_vm_that_is_deleted_is_not_judged() -> None:
    """Source: vm_webhook.go, ValidateUpdate."""
    row = update(
        "machine-reserved-keys",
        "ends",
        metadata={
            **LABEL,
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
    )
    assert admission.refusal(rules.RULES, review(row)) == ""

"""Objects of the parent as plans read them, and facts of machines."""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.machines import (
    desired_machine,
    machine_names,
    machine_ownership,
    machine_plan,
    observed_machine,
)
from lib.cloud.dvp.machines.machine_ownership import MachineIdentity
from lib.cloud.dvp.machines.observed_machine import ParentMachine, Prerequisites
from lib.cloud.machines import Facts, Observed, Plan, Ref, Spec, Target
from tests.contract import machines as contract
from tests.contract.dvp_machines import CLASS, IMAGE, IMAGE_BYTES, SPEC, STORAGE, UUID

NOW = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.UTC)
NAME, UID = "worker-1", "uid-of-worker-1"
ID = f"dvp://{NAME}"
Json = dict[str, Any]


def facts(name: str = NAME, **changes: Any) -> Facts:
    """Return valid facts. spec: fields instead of the usual ones."""
    spec = {**SPEC, **changes.pop("spec", {})}
    spec = {key: value for key, value in spec.items() if value is not None}
    usual = Facts(
        UUID,
        "machines",
        name,
        f"uid-of-{name}",
        name,
        spec,
        bootstrap=contract.bootstrap(name),
    )
    return dataclasses.replace(usual, **changes)


def ref(provider_id: str = "", uid: str = UID, name: str = NAME) -> Ref:
    return Ref(UUID, "machines", name, uid, provider_id or None)


def target(of: Facts) -> Target:
    """Return what is desired for facts."""
    parsed = desired_machine.parse(of, UUID)
    assert isinstance(parsed, Spec), parsed
    return Target(ref(of.provider_id, of.uid, of.name), parsed)


def gone(provider_id: str = "") -> Target:
    return Target(ref(provider_id), None)


def metadata(name: str, **changes: Any) -> Json:
    """Return metadata of an object of the machine. owner: empty: the reference's."""
    owner, cluster = changes.pop("owner", UID), changes.pop("cluster", UUID)
    labels = {ownership.MANAGED_BY: "deckhouse", ownership.HOSTNAME: NAME}
    labels |= {ownership.CLUSTER: cluster} if cluster else {}
    labels |= {ownership.OWNER_UID: owner} if owner else {}
    created = (NOW - datetime.timedelta(seconds=changes.pop("age_s", 10))).isoformat()
    usual = {"name": name, "namespace": "project", "uid": f"id-of-{name}"}
    usual |= {"creationTimestamp": created}
    labels |= changes.pop("labels", {})
    return {**usual, "labels": labels, **changes}


def vm(
    phase: str = "Running",
    about: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    **status: Any,
) -> kinds.VirtualMachine:
    """Return a VM of SPEC."""
    usual: Json = {
        "virtualMachineClassName": CLASS,
        "runPolicy": "AlwaysOnUnlessStoppedManually",
        "liveMigrationPolicy": "PreferSafe",
        "bootloader": "EFI",
        "cpu": {"cores": 2, "coreFraction": "50%"},
        "memory": {"size": "2Gi"},
        "blockDeviceRefs": [
            {"kind": "VirtualDisk", "name": name}
            for name in machine_names.disks(NAME, 1)
        ],
    }
    is_started = phase not in ("", "Pending")
    shown = {"ipAddress": "10.66.0.1", "nodeName": "h"} if is_started else {}
    return msgspec.convert(
        {
            "metadata": metadata(NAME, **(about or {})),
            "spec": {**usual, **(spec or {})},
            "status": {"phase": phase, **shown, **status},
        },
        kinds.VirtualMachine,
        strict=False,
    )


def condition(type_: str, reason: str, message: str = "because") -> Json:
    return {"type": type_, "status": "False", "reason": reason, "message": message}


def disk(
    name: str,
    about: Mapping[str, Any] | None = None,
    size: str = "",
    storage: str = STORAGE,
    **status: Any,
) -> kinds.VirtualDisk:
    """Return a disk of SPEC, which is Ready."""
    is_boot = name == machine_names.boot_disk(NAME)
    source = {"objectRef": {"kind": "ClusterVirtualImage", "name": IMAGE}}
    claim = {
        "storageClassName": storage,
        "size": size or ("64Mi" if is_boot else "32Mi"),
    }
    spec: Json = {"persistentVolumeClaim": claim}
    spec |= {"dataSource": source} if is_boot else {}
    return msgspec.convert(
        {
            "metadata": metadata(name, **(about or {})),
            "spec": spec,
            "status": {"phase": "Ready", **status},
        },
        kinds.VirtualDisk,
        strict=False,
    )


def secret(about: Mapping[str, Any] | None = None) -> kinds.ParentSecret:
    name = machine_names.secret(NAME)
    document = {
        "metadata": metadata(name, **(about or {})),
        "type": machine_names.SECRET_TYPE,
    }
    return msgspec.convert(document, kinds.ParentSecret, strict=False)


def attachment(name: str, **about: Any) -> kinds.DiskAttachmentRequest:
    """Return the attachment of a volume to the VM."""
    document = {
        "metadata": metadata(name, **about),
        "spec": {
            "virtualMachineName": NAME,
            "blockDeviceRef": {"kind": "VirtualDisk", "name": f"pvc-{name}"},
        },
    }
    return msgspec.convert(document, kinds.DiskAttachmentRequest, strict=False)


def machine_class(phase: str = "Ready", **policy: Any) -> kinds.VirtualMachineClass:
    spec = {"sizingPolicies": [policy]} if policy else {}
    document = {"metadata": {"name": CLASS}, "spec": spec, "status": {"phase": phase}}
    return msgspec.convert(document, kinds.VirtualMachineClass, strict=False)


def image(phase: str = "Ready", size: int = IMAGE_BYTES) -> kinds.DiskImage:
    status = {"phase": phase, "size": {"unpackedBytes": str(size)}}
    document = {"metadata": {"name": IMAGE}, "status": status}
    return msgspec.convert(document, kinds.DiskImage, strict=False)


def storage_class(name: str = STORAGE) -> kinds.ParentStorageClass:
    return msgspec.convert({"metadata": {"name": name}}, kinds.ParentStorageClass)


OFFERED = Prerequisites(machine_class(), image(), {STORAGE: storage_class()})


def disks(**about: Any) -> dict[str, kinds.VirtualDisk]:
    return {name: disk(name, about) for name in machine_names.disks(NAME, 1)}


def complete(**parts: Any) -> ParentMachine:
    """Return a machine of which everything exists."""
    usual: Json = {"vm": vm(), "disks": disks(), "secret": secret()}
    return ParentMachine(identity(), **{**usual, **parts})


def identity(provider_id: str = "") -> MachineIdentity:
    return machine_ownership.identity(ref(provider_id))


def plan(
    native: ParentMachine,
    of: Facts | None = None,
    now: datetime.datetime = NOW,
    **changes: Any,
) -> Plan:
    """Return the plan for facts; those of a deletion with gone=True."""
    recorded = changes.pop("provider_id", "")
    is_gone = changes.pop("gone", False)
    desired_facts = of or facts(provider_id=recorded, **changes)
    aim = gone(recorded) if is_gone else target(desired_facts)
    native = dataclasses.replace(native, machine=machine_ownership.identity(aim.ref))
    desired = desired_machine.of(aim.spec)
    is_needed = desired and observed_machine.needs_prerequisites(native, desired)
    if is_needed and native.prerequisites is None:
        native = dataclasses.replace(native, prerequisites=OFFERED)
    return machine_plan.plan(aim, Observed(True, "id", native), now)


def steps(planned: Plan) -> list[str]:
    return [f"{step.verb} {step.path[0]}" for step in planned.steps]

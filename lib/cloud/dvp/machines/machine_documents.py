"""Documents of the parent's objects of a machine, as they are created. Pure.

Source: deckhouse modules/030-cloud-provider-dvp, images/dvp-common/api.
"""

import base64

from lib.cloud.dvp import kinds
from lib.cloud.dvp.machines import machine_names, machine_ownership
from lib.cloud.dvp.machines.desired_machine import (
    RUN_POLICY,
    DesiredDisk,
    DesiredMachine,
)
from lib.cloud.dvp.machines.machine_ownership import MachineIdentity
from lib.cloud.machines import BootstrapData
from lib.process import decoding

Json = dict[str, object]
DISK_KIND = "VirtualDisk"


def virtual_machine(machine: MachineIdentity, desired: DesiredMachine) -> Json:
    """Return the VM; disks and Secret that it names are created after it."""
    return {
        "metadata": {
            "name": desired.name,
            "labels": {**dict(desired.labels), **machine_ownership.labels(machine)},
            "annotations": {
                **dict(desired.annotations),
                **machine_ownership.annotations(machine),
            },
        },
        "spec": {**_usual(desired), **_placement(desired)},
    }


def migration_policy(desired: DesiredMachine) -> str:
    """Return the policy of a new VM; without one in the spec it follows its role."""
    by_role = "PreferForced" if desired.is_control_plane else "PreferSafe"
    return desired.live_migration_policy or by_role


def _usual(desired: DesiredMachine) -> Json:
    cpu = {"cores": desired.cores, "coreFraction": desired.core_fraction}
    secret = {"kind": "Secret", "name": machine_names.secret(desired.name)}
    return {
        "virtualMachineClassName": desired.class_name,
        "runPolicy": desired.run_policy or RUN_POLICY,
        "liveMigrationPolicy": migration_policy(desired),
        "osType": "Generic",
        "bootloader": desired.bootloader,
        "enableParavirtualization": True,
        "cpu": cpu,
        "memory": {"size": desired.memory},
        "provisioning": {"type": "UserDataRef", "userDataRef": secret},
        "blockDeviceRefs": [
            {"kind": DISK_KIND, "name": disk.name} for disk in desired.disks
        ],
    }


def _placement(desired: DesiredMachine) -> Json:
    fields: Json = {
        "nodeSelector": desired.selector,
        "tolerations": [
            decoding.decode(toleration, dict[str, object])
            for toleration in desired.tolerations
        ],
        "priorityClassName": desired.priority_class,
    }
    return {name: value for name, value in fields.items() if value}


def _owned_by(vm: kinds.VirtualMachine, machine: MachineIdentity) -> Json:
    """Return metadata of an object that the parent deletes together with the VM."""
    kind = kinds.VIRTUAL_MACHINES.resource
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": vm.metadata.name,
        "uid": vm.metadata.uid,
    }
    return {
        "labels": machine_ownership.labels(machine),
        "annotations": machine_ownership.annotations(machine),
        "ownerReferences": [owner],
    }


def disk(
    machine: MachineIdentity,
    vm: kinds.VirtualMachine,
    desired: DesiredDisk,
    image: tuple[str, str] | None,
) -> Json:
    """Return a disk. image: kind and name; None: the disk is blank."""
    labels = machine_ownership.labels(machine)
    own = {"labels": {**labels, machine_names.DISK_LABEL: desired.name}}
    metadata = {"name": desired.name, **_owned_by(vm, machine), **own}
    claim = {"storageClassName": desired.storage_class, "size": desired.size}
    spec: Json = {"persistentVolumeClaim": claim}
    if image is not None:
        reference = {"kind": image[0], "name": image[1]}
        spec["dataSource"] = {"type": "ObjectRef", "objectRef": reference}
    return {"metadata": metadata, "spec": spec}


def secret(machine: MachineIdentity, vm: kinds.VirtualMachine) -> Json:
    """Return the Secret without its data; see `with_data`."""
    name = machine_names.secret(vm.metadata.name)
    return {
        "metadata": {"name": name, **_owned_by(vm, machine)},
        "type": machine_names.SECRET_TYPE,
        "immutable": True,
    }


def with_data(document: Json, data: BootstrapData) -> Json:
    """Return the Secret as it is sent; the result must not be kept or shown."""
    encoded = base64.b64encode(data.reveal()).decode()
    return {**document, "data": {machine_names.SECRET_KEY: encoded}}


def adoption(machine: MachineIdentity, uid: str) -> Json:
    """Return the merge patch that adds our labels to an object of that UID."""
    return {
        "metadata": {
            "uid": uid,
            "labels": machine_ownership.labels(machine),
            "annotations": machine_ownership.annotations(machine),
        }
    }

"""Names, labels and documents of the parent's objects for volumes: pure.

The ID of a volume is the name of its disk, and that is the name that CSI requested,
wherever the parent accepts it as the name of a disk.

Source: deckhouse modules/030-cloud-provider-dvp, images/dvp-csi-driver and
images/dvp-common/api (names and labels); deckhouse/virtualization api/core/v1alpha2.
"""

import hashlib
import re

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import DiskAttachmentRequest, VirtualDisk, VirtualMachine

DISK_LABEL = "virtualDiskName"
ATTACHED_DISK_LABEL = "virtualMachineDiskName"
ATTACHED_VM_LABEL = ownership.ATTACHED_VM
"""The reference finds disks and attachments by these labels."""
VOLUME_NAME = "mooring.io/volume-name"
"""Annotation of a disk with another name than its volume: the name of the volume."""
PUBLISHED = "mooring.io/published-by"
PUBLISHER = "csi-controller"
"""Label of an attachment with a publish context that the cluster knows."""

NAME_MAX = 60
"""Characters of the name of a disk: KubeVirt derives names of volumes from it."""
_OBJECT_NAME_MAX = 253
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_CLAIM_UID = re.compile(r"pvc-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""Source: kubernetes-csi/external-provisioner, --volume-name-prefix."""

Json = dict[str, object]


def is_label(text: str) -> bool:
    """Report whether a text is a label of a DNS name, of any length."""
    return _NAME.fullmatch(text) is not None


def is_disk_name(text: str) -> bool:
    """Report whether a disk can have this name."""
    return len(text) <= NAME_MAX and is_label(text)


def disk_name(volume_name: str) -> str:
    """Return the name of the disk for a requested name: that name, or a hash of it."""
    if is_disk_name(volume_name):
        return volume_name
    return f"csi-{hashlib.sha256(volume_name.encode()).hexdigest()[:40]}"


def volume_name(disk: VirtualDisk) -> str:
    """Return the requested name of a volume."""
    return disk.metadata.annotations.get(VOLUME_NAME, disk.metadata.name)


def is_volume(disk: VirtualDisk) -> bool:
    """Report whether a disk was created for CSI, not as a part of a VM.

    Disks of machines have the name of their machine in the label of the host name.
    """
    labels = disk.metadata.labels
    return not labels.get(ownership.HOSTNAME) and DISK_LABEL in labels


def hostname(machine: VirtualMachine) -> str:
    """Return the name of the Node of a VM."""
    metadata = machine.metadata
    return metadata.labels.get(ownership.HOSTNAME) or metadata.name


def attachment_name(disk: str, host: str) -> str:
    """Return the name of the attachment of a disk to the VM of a host."""
    name = f"vmbda-{disk}-{host}"
    if len(name) <= _OBJECT_NAME_MAX:
        return name
    return f"vmbda-{hashlib.sha256(name.encode()).hexdigest()[:40]}"


def is_published(attachment: DiskAttachmentRequest) -> bool:
    """Report whether the cluster knows the publish context of an attachment."""
    return attachment.metadata.labels.get(PUBLISHED) == PUBLISHER


def disk_document(
    name: str, storage_class: str, size_bytes: int, cluster_uuid: str
) -> Json:
    """Return the document of a blank disk. name: of the volume."""
    disk = disk_name(name)
    claim = _CLAIM_UID.fullmatch(name)
    labels = {
        **ownership.labels_of(cluster_uuid, claim.group(1) if claim else ""),
        ownership.HOSTNAME: "",
        DISK_LABEL: disk,
    }
    metadata: Json = {"name": disk, "labels": labels}
    if disk != name:
        metadata["annotations"] = {VOLUME_NAME: name}
    request = {"storageClassName": storage_class, "size": str(size_bytes)}
    return {"metadata": metadata, "spec": {"persistentVolumeClaim": request}}


def attachment_document(
    disk: VirtualDisk, machine: VirtualMachine, cluster_uuid: str
) -> Json:
    """Return the document of an attachment. It is deleted together with its VM."""
    host, name = hostname(machine), disk.metadata.name
    labels = {
        **ownership.labels_of(cluster_uuid, disk.metadata.uid),
        ownership.HOSTNAME: host,
        ATTACHED_DISK_LABEL: name,
        ATTACHED_VM_LABEL: host,
        PUBLISHED: PUBLISHER,
    }
    owner = {
        "apiVersion": kinds.VIRTUAL_MACHINES.resource.api_version,
        "kind": kinds.VIRTUAL_MACHINES.resource.kind,
        "name": machine.metadata.name,
        "uid": machine.metadata.uid,
    }
    return {
        "metadata": {
            "name": attachment_name(name, host),
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "virtualMachineName": machine.metadata.name,
            "blockDeviceRef": {"kind": "VirtualDisk", "name": name},
        },
    }

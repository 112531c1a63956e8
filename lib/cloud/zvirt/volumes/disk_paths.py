"""IDs and paths of disks, and of requests for them. Pure."""

import uuid

from lib.cloud.zvirt import api_paths

DISKS = "disks"
REFERENCE_PREFIX = "pvc-"
"""Names of the volumes of claims: nothing else shows that a disk is the reference's.

Source: kubernetes-csi/external-provisioner, --volume-name-prefix."""
_NAMESPACE = uuid.UUID("0f0a3f4e-5d0b-4c0c-9a75-2f2b0f6d9c61")


def is_id(text: str) -> bool:
    """Report whether an engine could have given out this ID."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def disk_id(cluster: str, name: str) -> str:
    """Return the ID of the disk of a volume, by which a repeated request is known."""
    return str(uuid.uuid5(_NAMESPACE, f"{len(cluster)}/{cluster}/{name}"))


def creation(disk: str) -> str:
    """Return the correlation ID of the requests that create a disk."""
    return f"create-{disk}"


def resizing(disk: str) -> str:
    """Return the correlation ID of the requests that resize a disk."""
    return f"resize-{disk}"


def path(disk: str) -> str:
    """Return the path of a disk."""
    return f"{DISKS}/{disk}"


def attachments_path(vm: str) -> str:
    """Return the path of the attachments of a VM."""
    return f"vms/{vm}/diskattachments"


def attachment_path(vm: str, disk: str) -> str:
    """Return the path of an attachment: its ID is that of the disk."""
    return f"{attachments_path(vm)}/{disk}"


def search_terms(disk: str, name: str) -> tuple[str, str]:
    """Return what a search finds the disk of a volume by, or that of the reference."""
    return f"id={disk}", f"name={api_paths.quoted(name)}"

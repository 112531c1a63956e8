"""Names, labels and annotations of the parent's objects of a machine: pure.

Source: deckhouse modules/030-cloud-provider-dvp, images/dvp-common/api and
images/capdvp-controller-manager (names, labels, annotations of orphans).
"""

import hashlib
import re
from collections.abc import Iterator

DISK_LABEL = "virtualDiskName"
"""The reference finds disks by this label; its value is their name."""
MACHINE_ANNOTATION = "mooring.io/machine"
"""Namespace and name of the machine object, "namespace/name"; ours."""
SECRET_TYPE = "provisioning.virtualization.deckhouse.io/cloud-init"  # noqa: S105
SECRET_KEY = "userData"  # noqa: S105
ZONE = "topology.kubernetes.io/zone"
"""Label of the parent's nodes; dvp-ccm reads the zone of a Node from this selector."""
PROVIDER = "dvp://"
ORPHANED_VM = "dvp.deckhouse.io/orphaned-vm"
ORPHANED_AT = "dvp.deckhouse.io/orphaned-vm-timestamp"
_ORPHANED_DISK = "dvp.deckhouse.io/orphaned-disk-"
NAME_MAX = 63
"""Characters of the name of a VM, and of the value of a label.

Source: deckhouse/virtualization, validators of VirtualMachine."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ADDITIONAL = re.compile(r"additional-disk-[0-9]{1,2}")


def provider_id(name: str) -> str:
    """Return the provider ID of a VM."""
    return f"{PROVIDER}{name}"


def secret(machine: str) -> str:
    """Return the name of the Secret with the bootstrap data."""
    return f"cloud-init-{machine}"


def boot_disk(machine: str) -> str:
    """Return the name of the boot disk."""
    return f"{machine}-boot"


def additional_disk(machine: str, number: int) -> str:
    """Return the name of an additional disk. number: from 0."""
    return f"{machine}-additional-disk-{number}"


def is_disk_of(machine: str, disk: str) -> bool:
    """Report whether a name is that of a disk of the machine."""
    rest = disk.removeprefix(f"{machine}-")
    is_additional = rest != disk and _ADDITIONAL.fullmatch(rest) is not None
    return disk == boot_disk(machine) or is_additional


def longest(machine: str, additional_disks: int) -> int:
    """Return how many characters a machine's name may have.

    Names of disks are values of a label.
    """
    disks = [boot_disk(machine)]
    if additional_disks:
        disks.append(additional_disk(machine, additional_disks - 1))
    return NAME_MAX - max(len(disk) - len(machine) for disk in disks)


def is_name(text: str) -> bool:
    """Report whether a text can be the name of a VM and of its host."""
    return _NAME.fullmatch(text) is not None


def orphaned_disk(disk: str) -> str:
    """Return the key of the annotation for a disk that could not be deleted."""
    digest = hashlib.sha1(disk.encode(), usedforsecurity=False).hexdigest()
    return f"{_ORPHANED_DISK}{digest[:8]}"


def disks(machine: str, additional_disks: int) -> Iterator[str]:
    """Yield the names of all disks, the boot disk first."""
    yield boot_disk(machine)
    for number in range(additional_disks):
        yield additional_disk(machine, number)

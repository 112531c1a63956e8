"""How a node finds the disk of a volume, without credentials of the parent: pure.

Imported by csi-node, too: no client, no kinds of the parent's objects.

Source: deckhouse/virtualization images/virtualization-artifact/pkg/controller/kvbuilder
(kvvm_utils.go): the serial of each disk; deckhouse dvp-csi-driver: name of the driver.
"""

import hashlib
import re

DRIVER = "csi.dvp.deckhouse.io"
DISK_UID = "mooring.io/virtual-disk-uid"
"""Key of the publish context by which csi-controller names the disk to the node."""
DEVICES_MAX = 16
"""Block devices of a VM, static and hot-plugged.

Source: deckhouse/virtualization, admission of VirtualMachines and attachments."""
_SERIAL = re.compile(r"[0-9a-f]{20}(?:[0-9a-f]{12})?")
"""virtio keeps the first 20 characters."""


def of_uid(uid: str) -> str:
    """Return the serial of the disk of a VirtualDisk or VirtualImage: MD5 in hex."""
    return hashlib.md5(uid.encode()).hexdigest()  # noqa: S324 - DVP's


def is_device(serial: str) -> bool:
    """Report whether a serial is that of a VirtualDisk or image.

    That of a disk for cloud-init, which is not limited, is not.
    """
    return _SERIAL.fullmatch(serial) is not None

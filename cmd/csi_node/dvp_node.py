"""A node of DVP: a virtual machine of a parent cluster of Kubernetes.

Source: Deckhouse dvp-csi-driver and virtualization: the driver's name; the node's id is
the name of its Node; 16 disks per machine, one of which is the root disk; the serial of
a disk is the MD5 of the UID of its VirtualDisk, of which the volume's id is the name.
"""

import hashlib
from collections.abc import Mapping

from lib.csi import node_driver, node_flags
from lib.process import config, flags

DRIVER = "csi.dvp.deckhouse.io"
DISK_UID = "mooring.io/virtual-disk-uid"
"""Key of the publish context by which csi-controller names the disk to the node."""
VOLUMES_MAX = 15


def judge(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    """Return what is wrong with the flags: the name of the node is required."""
    if values[node_flags.NODE_NAME]:
        return ()
    return (config.not_set("--node-name", "the name of the Node"),)


def program(
    name: str, version: str, values: flags.Values
) -> node_driver.NodeDriverProgram:
    """Return the node plugin for DVP; it has no zones."""
    place = node_driver.NodePlace(values[node_flags.NODE_NAME], "")

    return node_driver.NodeDriverProgram(
        name,
        version,
        DRIVER,
        "",
        serial,
        lambda needs_zone: place,
        volumes_max=VOLUMES_MAX,
    )


def serial(volume_id: str, publish_context: Mapping[str, str]) -> str:
    """Return the serial of a disk, empty where the context has no UID.

    Requests that need no disk (unpublish, unstage, expand, statistics) have no context.
    """
    del volume_id
    uid = publish_context.get(DISK_UID, "")
    return hashlib.md5(uid.encode()).hexdigest() if uid else ""  # noqa: S324 - DVP's

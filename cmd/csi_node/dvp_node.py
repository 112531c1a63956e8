"""A node of DVP: a virtual machine of a parent cluster of Kubernetes.

It has no credentials of the parent: csi-controller names the disk of a volume in the
publish context, and the limit follows from the disks of the machine.

Source: Deckhouse dvp-csi-driver: the node's id is the name of its Node.
"""

from collections.abc import Mapping

from lib.cloud.dvp.volumes import disk_serial
from lib.csi import node_driver, node_flags
from lib.kernel.model import Disk
from lib.process import config, flags

DRIVER = disk_serial.DRIVER
DISK_UID = disk_serial.DISK_UID


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
        slots=node_driver.DeviceSlots(disk_serial.DEVICES_MAX, takes_slot),
    )


def takes_slot(disk: Disk) -> bool:
    """Report whether a disk is one of the limited devices of a machine."""
    return disk_serial.is_device(disk.serial)


def serial(volume_id: str, publish_context: Mapping[str, str]) -> str:
    """Return the serial of a disk, empty where the context has no UID.

    Requests that need no disk (unpublish, unstage, expand, statistics) have no context.
    """
    del volume_id
    uid = publish_context.get(DISK_UID, "")
    return disk_serial.of_uid(uid) if uid else ""

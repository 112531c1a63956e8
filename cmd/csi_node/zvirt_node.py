"""A node of zVirt (oVirt Engine): a virtual machine with the id of its firmware.

Source: openshift/ovirt-csi-driver: the driver's name; the node's id is systemUUID of
the Node, which a kubelet reads from DMI; the serial of a disk is its id.
"""

import pathlib
from collections.abc import Mapping

from lib.csi import node, node_driver, node_flags
from lib.kernel import dmi
from lib.process import flags

DRIVER = "csi.ovirt.org"


def program(
    name: str, version: str, values: flags.Values
) -> node_driver.NodeDriverProgram:
    """Return the node plugin for zVirt; it has no zones."""
    sys = pathlib.Path(values[node_flags.SYS])

    def place(needs_zone: bool) -> node_driver.NodePlace:
        del needs_zone
        machine_id = dmi.product_uuid(sys)
        if not machine_id:
            text = f"identity of the node: {sys / dmi.PATH}: no UUID"
            raise node.IdentityUnknown(text)
        return node_driver.NodePlace(machine_id, "")

    return node_driver.NodeDriverProgram(name, version, DRIVER, "", serial, place)


def serial(volume_id: str, publish_context: Mapping[str, str]) -> str:
    """Return the serial of a disk: Engine sets it to the disk's id."""
    del publish_context
    return volume_id

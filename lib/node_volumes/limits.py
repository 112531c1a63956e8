"""How many volumes can be attached to a node. Pure."""

from collections.abc import Collection, Sequence

from lib.kernel.model import DeviceNumber, Disk, Mount, is_below

MOST = {"vd": 26, "sd": 256}
"""Disks of a bus, by the first letters of their names: virtio-blk takes a PCI slot for
each; virtio-scsi has 256 targets.

Source: libvirt, "PCI topology and hotplug"; VIRTIO 1.2, 5.6.6 (SCSI host device).
"""
_OF_POD = "/volumes/kubernetes.io~csi/"


def of_bus(disks: Sequence[Disk], managed: Collection[DeviceNumber]) -> int:
    """Return the capacity of the bus minus its disks that this driver does not manage.

    The bus is that of most disks; at least one volume is offered. managed: numbers of
    disks that this driver has staged or published.
    """
    counts = {bus: [d for d in disks if d.name.startswith(bus)] for bus in MOST}
    bus = max(MOST, key=lambda name: len(counts[name]))
    further = sum(disk.number not in managed for disk in counts[bus])
    return max(MOST[bus] - further, 1)


def managed(mounts: Sequence[Mount], kubelet: str, driver: str) -> set[DeviceNumber]:
    """Return the numbers of the disks that a driver has staged.

    mounts: as the snapshot has them. The disk of a raw block volume has no mount below
    the driver's folder and is not counted: the limit is then too low, never too high.
    """
    own = f"{kubelet}/plugins/kubernetes.io/csi/{driver}"
    return {mount.number for mount in mounts if is_below(mount.target, own)}


def of_slots(
    most: int, devices: Sequence[Disk], managed: Collection[DeviceNumber]
) -> int:
    """Return the slots of a machine minus those of devices that are not managed.

    At least one volume is offered. most: slots. devices: disks that take one each.
    """
    return max(most - sum(disk.number not in managed for disk in devices), 1)


def published(mounts: Sequence[Mount], kubelet: str) -> set[DeviceNumber]:
    """Return the numbers of the disks that some CSI driver has mounted for pods.

    Also without staging, as reference drivers do.

    Source: kubernetes pkg/volume/csi (csi_util.go): paths of volumes of pods.
    """
    pods = f"{kubelet}/pods"
    return {
        mount.number
        for mount in mounts
        if is_below(mount.target, pods) and _OF_POD in mount.target
    }

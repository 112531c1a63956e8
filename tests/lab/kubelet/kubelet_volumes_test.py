"""The life of volumes on a real node: written, expanded, raw, read-only, shared."""

import functools
import pathlib

import psutil

from lib.lab.daemons import csi_node
from lib.lab.kube import kube_objects
from lib.lab.run import processes
from lib.lab.storage import storage_node, volume_client
from tests.harness.node import volume_users

GIB = 2**30
_SUPER_BLOCK = (1024, 1024)
_MAGIC = slice(56, 58)
_INODE_SIZE = slice(88, 90)
"""Source: Linux Documentation/filesystems/ext4, super block: s_magic, s_inode_size."""
PERIOD_S = 10
"""The least that Kubernetes allows. Source: kubernetes pkg/apis/storage/validation."""
KINDS = ("ext4", "xfs", "btrfs", "block", "group")
GROUP = {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000}


def create(user: volume_users.VolumeUser, claim: str, pod: str) -> None:
    """Create a pod for a claim of one of the kinds."""
    security = GROUP if claim == "group" else None
    user.pod(pod, claim, is_block=claim == "block", security=security)


def test_the_node_is_registered(
    user: volume_users.VolumeUser, storage_settings: storage_node.StorageNodeSettings
) -> None:
    """CSINode shows id, zone and limit; csi-node has a mount namespace of its own."""

    def driver() -> kube_objects.Json | None:
        info = user.objects.get(kube_objects.CSI_NODE, storage_settings.name) or {
            "spec": {}
        }
        drivers = info["spec"].get("drivers") or []
        return next(
            (driver_ for driver_ in drivers if driver_["name"] == csi_node.DRIVER), None
        )

    user.until("CSINode has the driver", driver)
    registered = driver()
    assert registered is not None
    assert registered["nodeID"] == storage_settings.instance_id
    assert registered["topologyKeys"] == [csi_node.ZONE_KEY]
    assert registered["allocatable"]["count"] > 0
    node = user.objects.get(kube_objects.NODE, storage_settings.name)
    assert node is not None
    assert node["metadata"]["labels"][csi_node.ZONE_KEY] == storage_settings.zone
    user.note("nodeID", registered["nodeID"])
    user.note("zone", storage_settings.zone)
    user.note("attach limit", registered["allocatable"]["count"])
    namespaces = set()
    for name in (csi_node.NAME, "kubelet"):
        process = processes.find(user.node.where, name)
        assert isinstance(process, psutil.Process)
        namespaces.add(pathlib.Path(f"/proc/{process.pid}/ns/mnt").readlink())
    assert len(namespaces) == 2
    print(user.table())


def test_the_attach_limit_follows_the_disks_of_others(
    user: volume_users.VolumeUser, storage_settings: storage_node.StorageNodeSettings
) -> None:
    """The kubelet asks anew, for the API server keeps the period of the CSIDriver."""
    spec = {"nodeAllocatableUpdatePeriodSeconds": PERIOD_S}
    driver = user.objects.get(kube_objects.CSI_DRIVER, csi_node.DRIVER)
    assert driver is not None
    assert driver["spec"]["nodeAllocatableUpdatePeriodSeconds"] == 60
    user.objects.patch(kube_objects.CSI_DRIVER, csi_node.DRIVER, spec=spec)

    def limit() -> int:
        info = user.objects.get(kube_objects.CSI_NODE, storage_settings.name) or {
            "spec": {}
        }
        drivers = info["spec"].get("drivers") or []
        counts = [driver["allocatable"]["count"] for driver in drivers]
        return int(counts[0]) if counts else 0

    before = limit()
    disk = user.node.machine.sys / "block/vdz"
    disk.mkdir()
    for name, text in (("dev", "254:400"), ("size", "2048"), ("serial", "another")):
        (disk / name).write_text(f"{text}\n")
    user.until("CSINode has a lower limit", lambda: limit() == before - 1)
    for file in list(disk.iterdir()):
        file.unlink()
    disk.rmdir()
    print(user.table())


def test_volumes_are_written_expanded_and_kept(user: volume_users.VolumeUser) -> None:
    """Each kind of volume, by two pods one after the other."""
    for kind in KINDS:
        storage_class = kind if kind in volume_client.CLASSES else "xfs"
        user.claim(kind, storage_class, is_block=kind == "block")
        create(user, kind, f"{kind}-1")
    for kind in KINDS:
        what = f"{kind}: the first pod has written"
        user.until(what, functools.partial(user.has_written, f"{kind}-1"))
    disk = user.disks.disks[user.volume("ext4")[1]]
    block = disk.read(*_SUPER_BLOCK)
    shown = f"{disk.name}, {len(block)} bytes: {block[:128].hex()}"
    assert block[_MAGIC] == b"\x53\xef", f"{shown}; then {disk.read(*_SUPER_BLOCK)!r}"
    inode_bytes = int.from_bytes(block[_INODE_SIZE], "little")
    user.note("ext4: bytes of an inode, by mooring.io/mkfs-options", inode_bytes)
    assert inode_bytes == 512

    for kind in ("xfs", "btrfs", "block"):
        user.expand(kind, 2)
    for kind in ("xfs", "btrfs"):
        what = f"{kind}: expanded while mounted"
        user.until(what, functools.partial(user.has_bytes, kind, 19 * GIB // 10))
    for kind in ("xfs", "btrfs", "block"):
        what = f"{kind}: the claim shows the new size"
        user.until(what, functools.partial(user.has_capacity, kind, "2Gi"))

    user.delete(*(f"{kind}-1" for kind in KINDS))
    for kind in KINDS:
        create(user, kind, f"{kind}-2")
    for kind in KINDS:
        what = f"{kind}: the second pod has written"
        user.until(what, functools.partial(user.has_written, f"{kind}-2"))
        assert user.lines(f"{kind}-2") == [f"{kind}-1", "written"]
    user.delete(*(f"{kind}-2" for kind in KINDS))
    user.pod("reader", "ext4", is_read_only=True)
    user.until("read-only: the pod ended", lambda: user.phase("reader") == "Failed")
    *kept, error = user.lines("reader")
    assert kept == ["ext4-1", "ext4-2"]
    assert error == f"open {volume_client.FILE}: read-only file system"
    user.delete("reader")
    print(user.table())


def test_one_pod_at_a_time_has_a_volume(user: volume_users.VolumeUser) -> None:
    """ReadWriteOncePod: the second pod waits for the end of the first."""
    user.claim("alone", mode="ReadWriteOncePod")
    user.pod("alone-1", "alone")
    user.until("the first pod has written", lambda: user.has_written("alone-1"))
    user.pod("alone-2", "alone")

    def refused() -> bool:
        return any("ReadWriteOncePod" in text for text in user.events("alone-2"))

    user.until("the second pod is not scheduled", refused)
    assert user.phase("alone-2") == "Pending"
    user.delete("alone-1")
    user.until("the second pod has written", lambda: user.has_written("alone-2"))
    assert user.lines("alone-2") == ["alone-1", "written"]
    user.delete("alone-2")
    print(user.table())

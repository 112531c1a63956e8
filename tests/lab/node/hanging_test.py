"""A disk that hangs blocks the calls of its own volume and no others.

The disks are loop devices on a FUSE file system that stops answering: csi-node, mkfs,
mount and umount wait in the kernel, where no signal ends them.
"""

import concurrent.futures
import os
import pathlib
import time
from collections.abc import Iterator, Mapping

import pytest

from lib.csi.spec import csi_pb2
from lib.lab import errors
from lib.lab.run import waiting
from lib.lab.storage import loop_disks
from tests.harness.node import hanging_disks, node_plugins
from tests.harness.node.node_plugins import MountedVolume, NodePluginProcess

MIB = 2**20
HANGING = ("unstage: umount", "stage: fsck, mount", "stage: mkfs", "stage: read")
"""Where the call of each volume hangs."""
UMOUNT, MOUNT, MKFS, READ = range(4)


def volume_id(number: int) -> str:
    return f"{number:08}-2222-3333-4444-555555555555"


@pytest.fixture()
def plugin(
    machine: loop_disks.Machine,
    tools: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NodePluginProcess]:
    """Run the packaged csi-node; a node whose disks hang has an identity."""
    if reason := hanging_disks.unavailable():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("h")
    with node_plugins.ours(machine, tools, folder) as plugin:
        plugin.start()
        yield plugin


def code(error: errors.LabError) -> str:
    """Return the code of a failed call."""
    return next((each for each in ("ABORTED", "UNAVAILABLE") if each in str(error)), "")


def live(volume: MountedVolume, plugin: NodePluginProcess) -> None:
    """Stage, publish, measure, expand in vain and unmount a volume."""
    volume.mount(plugin)
    assert volume.total_bytes(plugin) > 0
    volume.unmount(plugin)


def test_a_hanging_disk_blocks_its_own_volume_only(
    plugin: NodePluginProcess,
    machine: loop_disks.Machine,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ids = [volume_id(number) for number in range(len(HANGING))]
    hung = [MountedVolume(id_, "ext4", machine.kubelet) for id_ in ids]
    other = MountedVolume(volume_id(9), "ext4", machine.kubelet)
    machine.plug(other.id[:20], 64 * MIB)
    fuse = tmp_path_factory.mktemp("fuse")
    with (
        hanging_disks.plugged(machine, fuse, ids) as disks,
        concurrent.futures.ThreadPoolExecutor(len(ids)) as pool,
    ):
        live(hung[MOUNT], plugin)
        hung[UMOUNT].mount(plugin)
        (pathlib.Path(hung[UMOUNT].target) / "data").write_text("kept")
        disks.hold("writes")
        calls = {
            UMOUNT: pool.submit(hung[UMOUNT].unmount, plugin),
            MOUNT: pool.submit(hung[MOUNT].stage, plugin),
            MKFS: pool.submit(hung[MKFS].stage, plugin),
        }
        for number in calls:
            disks.wait_until_held(number)
        disks.hold("all")
        calls[READ] = pool.submit(hung[READ].stage, plugin)
        disks.wait_until_held(READ)
        try:
            second = {number: again(hung[number], plugin) for number in calls}
            for _ in range(3):
                live(other, plugin)
            info = csi_pb2.NodeGetInfoResponse
            known = plugin.call("GetInfo", csi_pb2.NodeGetInfoRequest(), info)
            under_way = [number for number, call in calls.items() if not call.done()]
        finally:
            disks.hold("go")
        for call in calls.values():
            call.result(node_plugins.CALL_S)
        print(f"{'call that hangs':20} {'second call':12} other volumes  afterwards")
        for number, name in enumerate(HANGING):
            print(f"{name:20} {second[number]:12} 3 of 3         completed")
        assert known.node_id == node_plugins.SERVER
        assert sorted(under_way) == [UMOUNT, MOUNT, MKFS, READ]
        assert set(second.values()) == {"ABORTED"}
        hung[UMOUNT].mount(plugin)
        assert (hung[UMOUNT].target / "data").read_text() == "kept"
        for volume in hung:
            volume.unmount(plugin)
    assert plugin.process is not None
    assert plugin.process.poll() is None
    assert not os.path.ismount(hung[UMOUNT].staging)


def test_mkfs_that_hangs_outlives_a_killed_csi_node(
    plugin: NodePluginProcess,
    machine: loop_disks.Machine,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The next process serves other volumes, and formats nothing a second time."""
    hung = MountedVolume(volume_id(0), "ext4", machine.kubelet)
    other = MountedVolume(volume_id(9), "ext4", machine.kubelet)
    machine.plug(other.id[:20], 64 * MIB)
    fuse = tmp_path_factory.mktemp("fuse")
    with (
        hanging_disks.plugged(machine, fuse, [hung.id]) as disks,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        disks.hold("writes")
        call = pool.submit(hung.stage, plugin)
        disks.wait_until_held(0)
        try:
            plugin.kill()
            plugin.start()
            live(other, plugin)
            code_while = again(hung, plugin)
        finally:
            disks.hold("go")
        with pytest.raises(errors.LabError, match="UNAVAILABLE"):
            call.result(node_plugins.CALL_S)
        waiting.until("mkfs has finished", lambda: again(hung, plugin) == "OK")
        live(hung, plugin)
        formats = plugin.log.read_text().count('"operation": "MakeFileSystem"')
    print(f"while mkfs hangs: {code_while}; then: OK; mkfs ended {formats} times")
    assert code_while == "ABORTED"
    assert formats == 1  # of the other volume: that of this one outlived its starter


def test_a_disk_that_hangs_when_asked_for_its_serial_stops_no_other(
    plugin: NodePluginProcess, machine: loop_disks.Machine
) -> None:
    """csi-node starts beside it, and its own volume can be unmounted.

    On virtio-blk each read of the file "serial" is a request to the disk; here it is a
    FIFO to which nothing writes.
    """
    hung = MountedVolume(volume_id(0), "ext4", machine.kubelet)
    other = MountedVolume(volume_id(9), "ext4", machine.kubelet)
    disk = machine.plug(hung.id[:20], 64 * MIB)
    machine.plug(other.id[:20], 64 * MIB)
    hung.mount(plugin)
    machine.silence(disk)
    rows = {"it hangs": _round(plugin, other)}
    plugin.kill()
    plugin.start()
    rows["csi-node is started again"] = _round(plugin, other)
    info = csi_pb2.NodeGetInfoResponse
    known = plugin.call("GetInfo", csi_pb2.NodeGetInfoRequest(), info)
    began = time.monotonic()
    hung.unmount(plugin)
    rows["its own volume is unmounted"] = time.monotonic() - began
    machine.show(disk, hung.id[:20])
    live(hung, plugin)
    for name, seconds in rows.items():
        print(f"{name:30} {seconds:5.1f} s")
    assert known.node_id == node_plugins.SERVER
    assert max(rows.values()) < ROUND_S


ROUND_S = 10.0
"""The life of a volume beside a disk that hangs: 2.2 s more at the first call."""


def _round(plugin: NodePluginProcess, volume: MountedVolume) -> float:
    """Return how long the life of a volume takes."""
    began = time.monotonic()
    live(volume, plugin)
    return time.monotonic() - began


def again(volume: MountedVolume, plugin: NodePluginProcess) -> str:
    """Repeat the call for a volume of which one is under way; return its code."""
    try:
        volume.stage(plugin)
    except errors.LabError as error:
        return code(error)
    return "OK"

"""Volumes are staged and published on a real kernel; a kill at any step loses nothing.

Each scenario runs on loop devices in a mount namespace of this process.
"""

import dataclasses
import fcntl
import hashlib
import os
import pathlib
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest

from lib.kernel.fake import killing
from lib.kernel.linux import commands
from lib.kernel.linux import kernel as linux_kernel
from lib.kernel.model import EXT, ContentKind, Mount, top_mount
from lib.lab.storage import loop_disks
from lib.node_volumes import stats
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import (
    NodeExpand,
    NodePublish,
    NodeUnpublish,
    NodeVolume,
    Request,
    Snapshot,
    Stage,
    Unstage,
)
from tests.harness import testing
from tests.harness.node import tracing

MIB = 2**20
SIZE = 320 * MIB
GROWN = 448 * MIB
ID = "11111111-2222-3333-4444-555555555555"
VOLUME = NodeVolume(ID, ID)
LINK = f"virtio-{ID[:20]}"
FS_TYPES = ("ext3", "ext4", "xfs", "btrfs")
PATIENCE_S = 180.0
_SHUT_DOWN = 0x8004587D
"""Source: Linux fs/xfs/libxfs/xfs_fs.h, XFS_IOC_GOINGDOWN; ext4 has the same."""

_RESERVED_AT = 1024 + 8
"""Source: Linux Documentation/filesystems/ext4, super block, s_r_blocks_count_lo."""


class Node:
    """A machine with the volume's disk, and the flow on it."""

    def __init__(self, machine: loop_disks.Machine, env: Mapping[str, str]) -> None:
        self.machine = machine
        self.runner = commands.Commands(env)
        self.kernel = linux_kernel.LinuxKernel(self.runner, machine.dev, machine.sys)
        self.disk = machine.plug(ID[:20], SIZE, LINK)
        self.staging = str(machine.kubelet / "staging/globalmount")
        self.target = str(machine.kubelet / "pods/1/mount")
        self.second = str(machine.kubelet / "pods/2/mount")
        self.device = str(machine.kubelet / "publish/pvc-1/1")

    def settle(self, request: Request, left_s: float = PATIENCE_S) -> Snapshot:
        return NodeVolumesFlow(self.kernel).settle(request, lambda: left_s)

    def stage(self, fs_type: str = "") -> Stage:
        return Stage(VOLUME, self.staging, fs_type)

    def publish(self, target: str = "") -> NodePublish:
        return NodePublish(VOLUME, self.staging, target or self.target)

    def failure(self, request: Request, left_s: float = PATIENCE_S) -> CallFailed:
        with pytest.raises(CallFailed) as caught:
            self.settle(request, left_s)
        print(caught.value)
        return caught.value

    def mount(self, target: str) -> Mount | None:
        return top_mount(self.kernel.mounts(), target)

    def count(self, request: Request) -> int:
        """Settle; return how many child processes that took."""
        before = self.runner.started
        self.settle(request)
        return self.runner.started - before

    def mounted(self) -> list[tuple[str, str, bool]]:
        """Return target, type and access of each mount that a test has made."""
        root = str(self.machine.kubelet)
        return [
            (mount.target.removeprefix(root), mount.fs_type, mount.is_read_only)
            for mount in self.kernel.mounts()
            if mount.target.startswith(root)
        ]


@pytest.fixture()
def make_node(
    machine: loop_disks.Machine, tools: Mapping[str, str]
) -> Callable[[], Node]:
    return lambda: Node(machine, tools)


@pytest.fixture()
def node(make_node: Callable[[], Node]) -> Node:
    return make_node()


@pytest.mark.parametrize("fs_type", FS_TYPES)
def test_the_life_of_a_volume(node: Node, fs_type: str) -> None:
    """And its child processes: 3 to stage what is formatted, 1 to publish."""
    stage = node.stage(fs_type)
    node.settle(stage)
    node.settle(stage)
    node.settle(node.publish())
    (pathlib.Path(node.target) / "data").write_text("kept")
    read_only = dataclasses.replace(node.publish(node.second), is_read_only=True)
    node.settle(read_only)
    assert (pathlib.Path(node.second) / "data").read_text() == "kept"
    with pytest.raises(OSError, match="Read-only"):
        (pathlib.Path(node.second) / "more").touch()
    for target in (node.target, node.second, node.target):
        node.settle(NodeUnpublish(VOLUME, target))
    node.settle(Unstage(VOLUME, node.staging))
    node.settle(Unstage(VOLUME, node.staging))
    assert node.mounted() == []
    counts = {"stage": node.count(stage), "publish": node.count(node.publish())}
    before = node.runner.started
    observed = stats.read(node.kernel, ID, node.target)
    counts["stats"] = node.runner.started - before
    counts |= {"again": node.count(stage) + node.count(node.publish())}
    print(f"{fs_type}: child processes {counts}")
    assert counts["stage"] <= 3
    assert counts["publish"] <= 1
    assert (counts["stats"], counts["again"]) == (0, 0)
    assert observed.problem == ""
    assert observed.usage is not None
    assert SIZE // 2 < observed.usage.total_bytes <= SIZE
    if fs_type in EXT:
        assert node.disk.read(_RESERVED_AT, 4) == bytes(4), "blocks reserved for root"
    assert (pathlib.Path(node.target) / "data").read_text() == "kept"


def test_a_raw_disk_is_published_written_and_unpublished(node: Node) -> None:
    node.settle(dataclasses.replace(node.stage(), is_block=True))
    publish = dataclasses.replace(node.publish(node.device), is_block=True)
    assert node.count(publish) == 1
    assert node.count(publish) == 0
    alone = dataclasses.replace(publish, is_exclusive=True)
    node.settle(alone)
    with pytest.raises(CallFailed, match=f"published at {node.device} already"):
        node.settle(dataclasses.replace(alone, target_path=f"{node.device}-2"))
    with open(node.device, "r+b") as device:
        device.write(b"raw data")
    assert node.disk.read(0, 8) == b"raw data"
    assert stats.read(node.kernel, ID, node.device).size_bytes == SIZE
    node.disk.grow(GROWN)
    node.settle(NodeExpand(VOLUME, node.device, GROWN))
    assert stats.read(node.kernel, ID, node.device).size_bytes == GROWN
    node.settle(NodeUnpublish(VOLUME, node.device))
    assert not pathlib.Path(node.device).exists()
    assert node.mounted() == []


@pytest.mark.parametrize("fs_type", ["xfs", "btrfs"])
def test_file_systems_are_expanded_mounted_and_when_staged(
    node: Node, fs_type: str
) -> None:
    """ext4 needs CAP_SYS_RESOURCE for this, which a machine may lack."""
    node.settle(node.stage(fs_type))
    node.settle(node.publish())
    timer = threading.Timer(0.5, node.disk.grow, (GROWN,))
    timer.start()
    node.settle(NodeExpand(VOLUME, node.target, GROWN))
    timer.join()
    usage = stats.read(node.kernel, ID, node.target).usage
    assert usage is not None
    assert usage.total_bytes > SIZE
    node.settle(NodeUnpublish(VOLUME, node.target))
    node.settle(Unstage(VOLUME, node.staging))
    node.disk.grow(GROWN + 64 * MIB)
    node.settle(node.stage(fs_type))
    again = stats.read(node.kernel, ID, node.staging).usage
    assert again is not None
    assert again.total_bytes > usage.total_bytes


KILL_POINTS = testing.by_tier(5, 40)
LAST_WRITES = testing.by_tier(8, 24)
"""mkfs makes the superblock valid with one of its last writes."""


@pytest.mark.parametrize("fs_type", testing.by_tier(FS_TYPES[1:], FS_TYPES))
def test_mkfs_killed_at_any_write_is_completed_by_the_next_stage(
    make_node: Callable[[], Node], tools: Mapping[str, str], fs_type: str
) -> None:
    if not tracing.supported():
        pytest.skip("system calls of this architecture are not known")
    node = make_node()
    command = linux_kernel.MKFS[fs_type]
    writes = tracing.run([*command, str(node.machine.dev / node.disk.name)], tools, -1)
    assert writes > 20
    spread = {(writes - 1) * n // (KILL_POINTS - 1) for n in range(KILL_POINTS)}
    kinds = set()
    last = range(writes - 2, writes - LAST_WRITES, -2)
    for at in sorted(spread | set(last)):
        node.disk.wipe(SIZE)
        device = str(node.machine.dev / node.disk.name)
        # The number of writes depends a little on the random UUID.
        assert tracing.run([*command, device], tools, at) in (at, at - 1, at - 2)
        content = node.kernel.probe(device)
        node.settle(node.stage(fs_type))
        mount = node.mount(node.staging)
        assert mount is not None
        assert mount.fs_type == fs_type
        (pathlib.Path(node.staging) / "data").write_text("kept")
        node.settle(Unstage(VOLUME, node.staging))
        print(f"{fs_type:6} killed at write {at:5} of {writes}: {content.kind.value}")
        kinds.add(content.kind)
    assert ContentKind.OTHER not in kinds
    assert kinds & {ContentKind.BLANK, ContentKind.INTERRUPTED}


SIGNATURES: Mapping[str, tuple[tuple[int, bytes], ...]] = {
    "gpt": ((512, b"EFI PART"),),
    "dos partitions": ((446, b"\x80" + bytes(3) + b"\x83"), (510, b"\x55\xaa")),
    "LVM": ((512, b"LABELONE"), (536, b"LVM2 001")),
    "LUKS": ((0, b"LUKS\xba\xbe\0\1"),),
    "LUKS2, second header": ((0x4000, b"SKUL\xba\xbe"),),
    "md 1.2": ((4096, b"\xfc\x4e\x2b\xa9"),),
    "swap": ((4086, b"SWAPSPACE2"),),
}


@pytest.mark.parametrize("what", SIGNATURES)
def test_a_disk_with_anything_on_it_is_never_formatted(node: Node, what: str) -> None:
    for offset, data in SIGNATURES[what]:
        node.disk.write(offset, data)
    before = hashlib.sha256(node.disk.read(0, 4 * MIB)).hexdigest()
    assert node.failure(node.stage("ext4")).reason is FailureReason.CONTENT
    assert hashlib.sha256(node.disk.read(0, 4 * MIB)).hexdigest() == before
    assert node.mounted() == []


def test_a_corrupt_file_system_is_neither_mounted_nor_formatted(node: Node) -> None:
    node.settle(node.stage("ext4"))
    node.settle(Unstage(VOLUME, node.staging))
    group_descriptors = 4096
    node.disk.write(group_descriptors, b"\xff" * 4096)
    for at in range(8 * MIB, 64 * MIB, MIB):
        node.disk.write(at, b"\xff" * 4096)
    before = node.disk.read(1024, 512)
    refused = node.failure(node.stage("ext4"))
    assert refused.reason in (FailureReason.CONTENT, FailureReason.FAILED)
    assert node.disk.read(1024 + 56, 2) == before[56:58]
    assert node.mounted() == []


def replugged(node: Node) -> None:
    """Unplug the disk and plug it in under another name."""
    old = node.disk
    node.machine.unplug(old)
    node.disk = node.machine.plug_again(old, ID[:20], LINK)
    assert node.disk.name != old.name


def test_a_disk_with_input_errors_is_not_formatted(node: Node) -> None:
    node.settle(node.stage("xfs"))
    node.settle(Unstage(VOLUME, node.staging))
    node.disk.wipe(SIZE)
    node.disk.truncate(0)
    refused = node.failure(node.stage("xfs"))
    assert refused.reason is FailureReason.FAILED
    assert "Input/output error" in refused.message
    assert node.mounted() == []


def test_a_disk_that_returned_under_another_name(node: Node) -> None:
    node.settle(node.stage("ext4"))
    node.settle(node.publish())
    replugged(node)
    before = node.mounted()
    assert node.failure(node.stage("ext4")).reason is FailureReason.UNCERTAIN
    assert node.failure(node.publish(node.second)).reason is FailureReason.NOT_STAGED
    assert "disappeared" in stats.read(node.kernel, ID, node.target).problem
    assert node.mounted() == before
    node.settle(NodeUnpublish(VOLUME, node.target))
    node.settle(node.stage("ext4"))
    mount = node.mount(node.staging)
    assert mount is not None
    assert mount.source.endswith(node.disk.name)


def test_a_disk_that_is_plugged_late_is_found_by_its_event(node: Node) -> None:
    old = node.disk
    node.machine.unplug(old)
    timer = threading.Timer(
        0.5, lambda: setattr(node, "disk", node.machine.plug(ID, SIZE, LINK))
    )
    timer.start()
    node.settle(node.stage("xfs"))
    timer.join()
    refused = node.failure(
        Stage(NodeVolume("absent", "absent-volume-serial"), f"{node.staging}2"), 0.0
    )
    assert refused.reason is FailureReason.TIMED_OUT
    assert f"serial {ID}" in refused.message


@pytest.mark.parametrize("fs_type", ["ext4", "xfs"])
def test_the_condition_shows_a_file_system_that_has_shut_down(
    node: Node, fs_type: str
) -> None:
    node.settle(node.stage(fs_type))
    node.settle(node.publish())
    assert stats.read(node.kernel, ID, node.target).problem == ""
    folder = os.open(node.staging, os.O_RDONLY)
    fcntl.ioctl(folder, _SHUT_DOWN, struct.pack("<I", 2))
    os.close(folder)
    assert "has shut down" in stats.read(node.kernel, ID, node.target).problem
    node.settle(NodeUnpublish(VOLUME, node.target))
    node.settle(Unstage(VOLUME, node.staging))
    assert node.mounted() == []
    node.settle(node.stage(fs_type))
    assert stats.read(node.kernel, ID, node.staging).problem == ""


def fill(folder: str) -> None:
    """Write more than the disk holds."""
    for number in range(SIZE // MIB):
        with open(f"{folder}/{number}", "wb", buffering=0) as file:
            file.write(bytes(MIB))
            os.fsync(file.fileno())


def test_the_condition_shows_a_file_system_that_an_error_made_read_only(
    node: Node,
) -> None:
    stage = dataclasses.replace(node.stage("ext4"), mount_flags=("errors=remount-ro",))
    node.settle(stage)
    node.settle(node.publish())
    # ext4's own means to play an error. Source: Linux, Documentation/filesystems/ext4.
    subprocess.run(["mount", "-o", "remount,abort", node.staging], check=True)
    observed = stats.read(node.kernel, ID, node.target)
    print(observed)
    assert "became read-only" in observed.problem or "has shut down" in observed.problem
    node.settle(NodeUnpublish(VOLUME, node.target))
    node.settle(Unstage(VOLUME, node.staging))


def test_a_full_file_system_is_published_and_shows_no_space(node: Node) -> None:
    node.settle(node.stage("ext4"))
    node.settle(node.publish())
    with pytest.raises(OSError, match="No space"):
        fill(node.target)
    node.settle(node.publish(node.second))
    usage = stats.read(node.kernel, ID, node.second).usage
    assert usage is not None
    assert usage.available_bytes < MIB


def prepared(node: Node, before: Sequence[Request]) -> None:
    for request in before:
        node.settle(request)


def scenarios(node: Node) -> Mapping[str, tuple[Sequence[Request], Request]]:
    stage, publish = node.stage("xfs"), node.publish()
    read_only = dataclasses.replace(publish, is_read_only=True)
    block = dataclasses.replace(node.publish(node.device), is_block=True)
    return {
        "stage": ((), stage),
        "publish": ((stage,), publish),
        "publish read-only": ((stage,), read_only),
        "publish a raw disk": ((), block),
        "unpublish": ((stage, publish), NodeUnpublish(VOLUME, node.target)),
        "unstage": ((stage,), Unstage(VOLUME, node.staging)),
        "expand": ((stage, publish), NodeExpand(VOLUME, node.target, GROWN)),
    }


NAMES = (
    "stage",
    "publish",
    "publish read-only",
    "publish a raw disk",
    "unpublish",
    "unstage",
    "expand",
)


@pytest.mark.parametrize("name", NAMES)
def test_step_by_result(
    tools: Mapping[str, str], tmp_path: pathlib.Path, name: str
) -> None:
    """A process is killed before or after each change; the same call completes it."""

    def run(folder: str, at: int, is_after: bool) -> tuple[list[str], object]:
        place = tmp_path / folder
        place.mkdir()
        with loop_disks.machine(place) as machine:
            node = Node(machine, tools)
            before, request = scenarios(node)[name]
            prepared(node, before)
            if name == "expand":
                node.disk.grow(GROWN)
            kernel, changes = killing.killed_at(node.kernel, at, is_after)
            if at < 0:
                NodeVolumesFlow(kernel).settle(request, lambda: PATIENCE_S)
            else:
                with pytest.raises(killing.Killed):
                    NodeVolumesFlow(kernel).settle(request, lambda: PATIENCE_S)
                node.settle(request)
            return list(changes), node.mounted()

    changes, expected = run("whole", -1, False)
    assert changes
    for at, change in enumerate(changes):
        for is_after in (False, True):
            moment = "after" if is_after else "before"
            _, mounted = run(f"{moment}{at}", at, is_after)
            completed = mounted == expected
            print(f"{name:20} {moment:6} {change:18} completed={completed}")
            assert completed

"""Readers of several nodes on a real kernel: two loop devices over one file.

Each device stands for the disk as one node has it. What is on the disk is compared
byte by byte: nothing that the readers do may change it.
"""

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Mapping

import pytest

from lib.kernel.linux import commands
from lib.kernel.linux import kernel as linux_kernel
from lib.lab.storage import loop_disks
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import (
    NodeExpand,
    NodePublish,
    NodeUnpublish,
    NodeVolume,
    Request,
    Stage,
    Unstage,
)

MIB = 2**20
SIZE = 320 * MIB
IDS = (
    "aaaaaaaa-2222-3333-4444-555555555555",
    "bbbbbbbb-2222-3333-4444-555555555555",
)
FS_TYPES = ("ext2", "ext3", "ext4", "xfs", "btrfs")


class Nodes:
    """Two nodes with one disk: of one kernel, but with a device of their own each."""

    def __init__(self, machine: loop_disks.Machine, env: Mapping[str, str]) -> None:
        self.machine = machine
        self.kernel = linux_kernel.LinuxKernel(
            commands.Commands(env), machine.dev, machine.sys
        )
        self.disk = machine.plug(IDS[0], SIZE)
        self.devices = [self.disk, machine.plug_again(self.disk, IDS[1])]

    def stage(self, number: int, fs_type: str = "") -> Stage:
        volume = NodeVolume(IDS[number], IDS[number])
        return Stage(volume, self.path(number, "staging/globalmount"), fs_type)

    def publish(self, number: int) -> NodePublish:
        stage = self.stage(number)
        target = self.path(number, "pods/1/mount")
        return NodePublish(stage.volume, stage.staging_path, target)

    def path(self, number: int, name: str) -> str:
        return str(self.machine.kubelet / f"node-{number}" / name)

    def settle(self, *requests: Request) -> None:
        for request in requests:
            NodeVolumesFlow(self.kernel).settle(request, lambda: 60.0)

    def failure(self, request: Request) -> CallFailed:
        with pytest.raises(CallFailed) as caught:
            self.settle(request)
        print(caught.value)
        return caught.value

    def content(self) -> str:
        """Return a digest of what is on the disk."""
        digest = hashlib.sha256()
        for offset in range(0, SIZE, 8 * MIB):
            digest.update(self.disk.read(offset, 8 * MIB))
        return digest.hexdigest()

    def write(self, fs_type: str) -> None:
        """Write a file with one writer, as a pod does, and unmount."""
        stage, publish = self.stage(0, fs_type), self.publish(0)
        self.settle(stage, publish)
        (pathlib.Path(publish.target_path) / "data").write_text("kept")
        self.settle(NodeUnpublish(stage.volume, publish.target_path))
        self.settle(Unstage(stage.volume, stage.staging_path))

    def read(self, number: int) -> str:
        return (pathlib.Path(self.publish(number).target_path) / "data").read_text()


def for_readers(stage: Stage) -> Stage:
    return dataclasses.replace(stage, is_for_readers=True)


@pytest.fixture()
def nodes(machine: loop_disks.Machine, tools: Mapping[str, str]) -> Nodes:
    return Nodes(machine, tools)


@pytest.mark.parametrize("fs_type", FS_TYPES)
def test_two_nodes_read_what_one_wrote_and_change_nothing(
    nodes: Nodes, fs_type: str
) -> None:
    nodes.write(fs_type)
    before = nodes.content()
    for number in (0, 1):
        nodes.settle(for_readers(nodes.stage(number)), nodes.publish(number))
    for number in (0, 1):
        assert nodes.read(number) == "kept"
        stage, publish = nodes.stage(number), nodes.publish(number)
        with pytest.raises(OSError, match="Read-only"):
            (pathlib.Path(publish.target_path) / "more").write_text("no")
        nodes.settle(NodeExpand(stage.volume, stage.staging_path, is_for_readers=True))
        nodes.settle(NodeUnpublish(stage.volume, publish.target_path))
        nodes.settle(Unstage(stage.volume, stage.staging_path))
    assert nodes.content() == before


@pytest.mark.parametrize("fs_type", ["ext3", "ext4", "xfs", "btrfs"])
def test_a_disk_that_another_node_writes_is_refused(nodes: Nodes, fs_type: str) -> None:
    """And so is what is left of it when that node dies: its journal is needed."""
    stage, publish = nodes.stage(0, fs_type), nodes.publish(0)
    nodes.settle(stage, publish)
    _write_without_end(pathlib.Path(publish.target_path))
    failure = nodes.failure(for_readers(nodes.stage(1)))
    assert failure.reason is FailureReason.CONTENT
    copy = pathlib.Path(nodes.path(0, "copy"))
    with copy.open("wb") as target:
        for offset in range(0, SIZE, 8 * MIB):
            target.write(nodes.disk.read(offset, 8 * MIB))
    nodes.settle(NodeUnpublish(stage.volume, publish.target_path))
    nodes.settle(Unstage(stage.volume, stage.staging_path))
    nodes.machine.unplug(nodes.devices[1])
    nodes.machine.plug_file(copy, IDS[1])
    before = _digest(copy)
    failure = nodes.failure(for_readers(nodes.stage(1)))
    assert failure.reason is FailureReason.CONTENT
    assert "ReadWriteOnce" in failure.message
    assert _digest(copy) == before
    # The remedy that the message names: one writer recovers the journal.
    stage = nodes.stage(1)
    nodes.settle(stage, Unstage(stage.volume, stage.staging_path), for_readers(stage))


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_without_end(folder: pathlib.Path) -> None:
    """Write so that the journal holds what the file system lacks."""
    for number in range(3):
        path = folder / f"file-{number}"
        path.write_text("new" * 1000)
        for _ in range(2):
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
            os.write(descriptor, b"more")
            os.fsync(descriptor)
            os.close(descriptor)


@pytest.mark.parametrize("fs_type", ["", *FS_TYPES])
def test_a_blank_disk_stays_blank(nodes: Nodes, fs_type: str) -> None:
    before = nodes.content()
    for number in (0, 1):
        failure = nodes.failure(for_readers(nodes.stage(number, fs_type)))
        assert failure.reason is FailureReason.CONTENT
    assert nodes.content() == before


def test_a_file_system_is_not_grown_for_readers(nodes: Nodes) -> None:
    nodes.write("ext4")
    for device in nodes.devices:
        device.grow(SIZE + 128 * MIB)
    before = nodes.content()
    stage = for_readers(nodes.stage(1))
    nodes.settle(stage)
    expand = NodeExpand(stage.volume, stage.staging_path, is_for_readers=True)
    assert nodes.failure(expand).reason is FailureReason.CONTENT
    assert nodes.content() == before

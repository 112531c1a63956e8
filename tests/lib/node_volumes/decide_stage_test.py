"""Volumes for readers of several nodes: nothing that csi-node does writes to the disk.

A table of access, file system, content of the disk and call, on two fake nodes that
have the same disk; tests/lab/node/readers_test.py has it on a real kernel.
"""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.kernel.fake.kernel import FakeDisk, FakeKernel
from lib.kernel.model import BLANK, Check, Content, ContentKind
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import (
    NodeExpand,
    NodePublish,
    NodeVolume,
    Request,
    Snapshot,
    Stage,
)

GIB = 2**30
ID = "11111111-2222-3333-4444-555555555555"
VOLUME = NodeVolume(ID, ID)
STAGING = "/kubelet/plugins/kubernetes.io/csi/driver/1/globalmount"
TARGET = "/kubelet/pods/1/volumes/kubernetes.io~csi/pvc-1/mount"
WRITE = Stage(VOLUME, STAGING)
READ = dataclasses.replace(WRITE, is_for_readers=True)
PUBLISH = NodePublish(VOLUME, STAGING, TARGET, is_read_only=True)
EXPAND = NodeExpand(VOLUME, STAGING, is_for_readers=True)
UNLOADED = {
    "ext2": set(),
    "ext3": {"noload"},
    "ext4": {"noload"},
    "xfs": {"norecovery"},
    "btrfs": {"rescue=nologreplay"},
}
"""The option with which a read-only mount does not recover the journal."""


class Node(Protocol):
    kernel: FakeKernel
    disk: FakeDisk

    def settle(self, request: Request) -> Snapshot: ...


MakeNode = Callable[..., Node]


def fs(type_: str, size_bytes: int = GIB) -> Content:
    return Content(ContentKind.FILE_SYSTEM, type_, size_bytes)


def second(node: Node) -> NodeVolumesFlow:
    """Return another node that has the same disk."""
    kernel = FakeKernel()
    kernel.make_directory("/kubelet")
    kernel.machine_disks.append(node.disk)
    return NodeVolumesFlow(kernel)


def settled(flow: NodeVolumesFlow, *requests: Request) -> CallFailed | None:
    """Return the failure of the first request that fails."""
    for request in requests:
        try:
            flow.settle(request, lambda: 0.0)
        except CallFailed as failure:
            return failure
    return None


@pytest.mark.parametrize("fs_type", UNLOADED)
def test_readers_of_several_nodes_write_nothing(
    make_node: MakeNode, fs_type: str
) -> None:
    """No fsck, no growth of a file system that is smaller than its disk, no journal."""
    node = make_node(fs(fs_type, GIB // 2))
    nodes = [NodeVolumesFlow(node.kernel), second(node)]
    for flow in nodes:
        assert settled(flow, READ, READ, PUBLISH, PUBLISH) is None
    for flow in nodes:
        failure = settled(flow, EXPAND)
        assert failure is not None
        assert failure.reason is FailureReason.CONTENT
        staged, published = flow.kernel.mounts()
        assert staged.is_read_only
        assert published.is_read_only
        assert UNLOADED[fs_type] <= staged.super_options
    assert node.disk.writes == []
    assert node.disk.content.size_bytes == GIB // 2


INTERRUPTED = Content(ContentKind.INTERRUPTED, "xfs")


@pytest.mark.parametrize("fs_type", ["", *UNLOADED])
@pytest.mark.parametrize("content", [BLANK, INTERRUPTED], ids=["blank", "interrupted"])
def test_no_disk_is_formatted_for_readers(
    make_node: MakeNode, fs_type: str, content: Content
) -> None:
    node = make_node(content)
    stage = dataclasses.replace(READ, fs_type=fs_type)
    for flow in (NodeVolumesFlow(node.kernel), second(node)):
        failure = settled(flow, stage)
        assert failure is not None
        assert failure.reason is FailureReason.CONTENT
        assert "ReadWriteOnce" in failure.message
        assert "clone" in failure.message
        assert flow.kernel.mounts() == ()
    assert node.disk.writes == []


@pytest.mark.parametrize("fs_type", ["ext3", "ext4", "xfs", "btrfs"])
@pytest.mark.parametrize("cause", ["a node writes to it", "a node crashed"])
def test_a_journal_is_not_recovered_for_readers(
    make_node: MakeNode, fs_type: str, cause: str
) -> None:
    node = make_node(fs(fs_type))
    if cause == "a node crashed":
        node.disk.is_dirty = True
    else:
        node.settle(WRITE)
    writes = list(node.disk.writes)
    failure = settled(second(node), READ)
    assert failure is not None
    assert failure.reason is FailureReason.CONTENT
    assert "journal" in failure.message
    assert "ReadWriteOnce" in failure.message
    assert node.disk.writes == writes


def test_errors_that_fsck_would_find_do_not_keep_readers_away(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("ext4"))
    node.disk.check = Check.UNCORRECTED
    assert settled(NodeVolumesFlow(node.kernel), READ) is None


def test_what_one_writer_left_is_read_by_several_nodes(make_node: MakeNode) -> None:
    """The usual way: written with ReadWriteOnce, then read."""
    node = make_node()
    node.settle(WRITE)
    node.kernel.unmount(STAGING)
    writes = list(node.disk.writes)
    for flow in (NodeVolumesFlow(node.kernel), second(node)):
        assert settled(flow, READ, PUBLISH) is None
    assert node.disk.writes == writes


def test_a_writable_staging_mount_serves_no_readers(make_node: MakeNode) -> None:
    """As another driver, or an older release, left it."""
    node = make_node(fs("ext4"))
    node.settle(WRITE)
    for path, reason in (
        (STAGING, FailureReason.INCOMPATIBLE),
        (f"{STAGING}2", FailureReason.CONTENT),
    ):
        stage = dataclasses.replace(READ, staging_path=path)
        failure = settled(NodeVolumesFlow(node.kernel), stage)
        assert failure is not None
        assert failure.reason is reason


def test_a_writable_mount_is_not_grown_for_readers(make_node: MakeNode) -> None:
    node = make_node(fs("ext4"))
    node.settle(WRITE)
    node.disk.content = fs("ext4", GIB // 2)
    failure = settled(NodeVolumesFlow(node.kernel), EXPAND)
    assert failure is not None
    assert failure.reason is FailureReason.CONTENT
    assert "expand" not in node.disk.writes


def test_a_mount_option_of_the_volume_does_not_make_it_writable(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("xfs"))
    stage = dataclasses.replace(READ, mount_flags=("rw", "noatime", "norecovery"))
    assert settled(NodeVolumesFlow(node.kernel), stage) is None
    (staged,) = node.kernel.mounts()
    assert staged.is_read_only
    assert "noatime" in staged.options
    assert node.disk.writes == []


@pytest.mark.parametrize("content", [BLANK, fs("ext4"), INTERRUPTED])
def test_a_raw_disk_for_readers_is_not_touched(
    make_node: MakeNode, content: Content
) -> None:
    node = make_node(content)
    stage = dataclasses.replace(READ, is_block=True)
    publish = dataclasses.replace(PUBLISH, is_block=True)
    assert settled(NodeVolumesFlow(node.kernel), stage, publish) is None
    assert node.disk.writes == []

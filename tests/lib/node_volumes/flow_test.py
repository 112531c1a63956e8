"""Each request takes the steps that its snapshot requires, and no other."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from lib.kernel import errors
from lib.kernel.fake.kernel import FakeDisk, FakeKernel
from lib.kernel.model import BLANK, Check, Content, ContentKind, EntryKind, top_mount
from lib.node_volumes import act, observe
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.model import (
    MakeFileSystem,
    NodeExpand,
    NodePublish,
    NodeUnpublish,
    NodeVolume,
    Request,
    Snapshot,
    Stage,
    Unstage,
)

GIB = 2**30
ID = "11111111-2222-3333-4444-555555555555"
VOLUME = NodeVolume(ID, ID)
STAGING = "/kubelet/plugins/kubernetes.io/csi/driver/1/globalmount"
TARGET = "/kubelet/pods/1/volumes/kubernetes.io~csi/pvc-1/mount"
SECOND = "/kubelet/pods/2/volumes/kubernetes.io~csi/pvc-1/mount"
DEVICE = "/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/1"

STAGE = Stage(VOLUME, STAGING)
STAGE_XFS = Stage(VOLUME, STAGING, "xfs")
STAGE_RO = Stage(VOLUME, STAGING, mount_flags=("ro", "noload"))
STAGE_BLOCK = Stage(VOLUME, STAGING, is_block=True)
PUBLISH = NodePublish(VOLUME, STAGING, TARGET)
PUBLISH_RO = NodePublish(VOLUME, STAGING, TARGET, is_read_only=True)
PUBLISH_BLOCK = NodePublish(VOLUME, STAGING, DEVICE, is_block=True)
UNPUBLISH = NodeUnpublish(VOLUME, TARGET)
UNSTAGE = Unstage(VOLUME, STAGING)


class Node(Protocol):
    kernel: FakeKernel
    disk: FakeDisk
    waits: int

    def settle(self, request: Request) -> Snapshot: ...

    def actions(self, request: Request) -> list[str]: ...

    def state(self) -> tuple[object, ...]: ...


MakeNode = Callable[..., Node]


def fs(type: str, size_bytes: int = GIB) -> Content:
    return Content(ContentKind.FILE_SYSTEM, type, size_bytes)


PREPARE = "MakeDirectory"
STAGED = (PREPARE, "MountDisk")


@pytest.mark.parametrize(
    ("content", "before", "request_", "expected"),
    [
        pytest.param(
            BLANK,
            (),
            STAGE,
            [PREPARE, "MakeFileSystem", "MountDisk"],
            id="a blank disk is formatted and mounted",
        ),
        pytest.param(
            fs("ext4"),
            (),
            STAGE,
            [PREPARE, "CheckFileSystem", "MountDisk"],
            id="ext4 is checked and mounted",
        ),
        pytest.param(
            fs("ext3"),
            (),
            Stage(VOLUME, STAGING, "ext4"),
            [PREPARE, "CheckFileSystem", "MountDisk"],
            id="ext3 serves a request for ext4",
        ),
        pytest.param(
            fs("ext2"),
            (),
            Stage(VOLUME, STAGING, "ext2"),
            [PREPARE, "CheckFileSystem", "MountDisk"],
            id="ext2 of the reference",
        ),
        pytest.param(
            BLANK,
            (),
            Stage(VOLUME, STAGING, "ext2"),
            [PREPARE, "MakeFileSystem", "MountDisk"],
            id="a blank disk is formatted as ext2",
        ),
        pytest.param(
            fs("xfs"), (), STAGE_XFS, [*STAGED], id="xfs is mounted without fsck"
        ),
        pytest.param(fs("btrfs"), (), STAGE, [*STAGED], id="no type requested"),
        pytest.param(
            fs("xfs", GIB // 2),
            (),
            STAGE_XFS,
            [*STAGED, "ExpandFileSystem"],
            id="a clone on a larger disk is expanded",
        ),
        pytest.param(
            Content(ContentKind.INTERRUPTED, "xfs"),
            (),
            STAGE_XFS,
            [PREPARE, "MakeFileSystem", "MountDisk"],
            id="an interrupted mkfs is completed",
        ),
        pytest.param(fs("ext4"), (STAGE,), STAGE, [], id="staged twice"),
        pytest.param(BLANK, (), STAGE_BLOCK, [], id="a raw disk is staged by itself"),
        pytest.param(fs("ext4"), (STAGE,), PUBLISH, [PREPARE, "Bind"], id="published"),
        pytest.param(fs("ext4"), (STAGE, PUBLISH), PUBLISH, [], id="published twice"),
        pytest.param(
            fs("ext4"),
            (STAGE, PUBLISH),
            dataclasses.replace(PUBLISH, target_path=SECOND),
            [PREPARE, "Bind"],
            id="published at a second target",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE,),
            PUBLISH_RO,
            [PREPARE, "Bind", "RemountReadOnly"],
            id="published read-only",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE_RO,),
            PUBLISH,
            [PREPARE, "Bind"],
            id="published below a read-only staging mount",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE_RO,),
            PUBLISH_RO,
            [PREPARE, "Bind"],
            id="published read-only below a read-only staging mount",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE_RO, PUBLISH_RO),
            PUBLISH,
            [],
            id="a read-only staging mount is read-only for each request",
        ),
        pytest.param(
            BLANK,
            (STAGE_BLOCK,),
            dataclasses.replace(PUBLISH_BLOCK, is_read_only=True),
            [PREPARE, "MakeFile", "Bind", "RemountReadOnly"],
            id="a raw disk is bound read-only",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE, PUBLISH),
            PUBLISH_RO,
            ["RemountReadOnly"],
            id="a half-done read-only bind is completed",
        ),
        pytest.param(
            BLANK,
            (STAGE_BLOCK,),
            PUBLISH_BLOCK,
            [PREPARE, "MakeFile", "Bind"],
            id="a raw disk is bound to a file",
        ),
        pytest.param(
            BLANK, (PUBLISH_BLOCK,), PUBLISH_BLOCK, [], id="a raw disk, twice"
        ),
        pytest.param(
            fs("ext4"), (STAGE, PUBLISH), UNPUBLISH, ["Unmount", "Remove"], id="undone"
        ),
        pytest.param(fs("ext4"), (STAGE,), UNPUBLISH, [], id="unpublished twice"),
        pytest.param(
            BLANK,
            (PUBLISH_BLOCK,),
            NodeUnpublish(VOLUME, DEVICE),
            ["Unmount", "Remove"],
            id="a raw disk is unpublished",
        ),
        pytest.param(
            fs("ext4"), (STAGE,), UNSTAGE, ["Unmount", "Remove"], id="unstaged"
        ),
        pytest.param(fs("ext4"), (), UNSTAGE, [], id="unstaged twice"),
        pytest.param(
            fs("xfs"),
            (STAGE_XFS, PUBLISH),
            NodeExpand(VOLUME, TARGET),
            [],
            id="nothing to expand",
        ),
    ],
)
def test_steps(
    make_node: MakeNode,
    content: Content,
    before: Sequence[Request],
    request_: Request,
    expected: list[str],
) -> None:
    node = make_node(content)
    for request in before:
        node.settle(request)
    assert node.actions(request_) == expected
    state = node.state()
    assert node.actions(request_) == []
    assert node.state() == state


def test_a_published_file_system_is_expanded_when_the_disk_has_grown(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("xfs"))
    for request in (STAGE_XFS, PUBLISH):
        node.settle(request)
    node.kernel.sizes["vdb"] = 2 * GIB
    expand = NodeExpand(VOLUME, TARGET, 2 * GIB)
    assert node.actions(expand) == ["RescanDisk", "ExpandFileSystem"]
    assert node.disk.content.size_bytes == 2 * GIB
    assert node.actions(expand) == []


def test_a_read_only_published_file_system_is_expanded_by_its_staging_mount(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("ext4", GIB // 2), GIB // 2)
    for request in (STAGE, PUBLISH_RO):
        node.settle(request)
    node.kernel.sizes["vdb"] = GIB
    expand = NodeExpand(VOLUME, TARGET, GIB)
    assert node.actions(expand) == ["RescanDisk", "ExpandFileSystem"]


def failure(node: Node, request: Request) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        node.settle(request)
    print(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("content", "before", "request_", "reason", "text"),
    [
        pytest.param(
            Content(ContentKind.OTHER, "LVM2_member"),
            (),
            STAGE,
            FailureReason.CONTENT,
            f'volume "{ID}": /dev/vdb: contains LVM2_member, requested a file system:'
            " must be blank or match; not changed",
            id="a disk with something on it",
        ),
        pytest.param(
            fs("xfs"),
            (),
            Stage(VOLUME, STAGING, "ext4"),
            FailureReason.CONTENT,
            f'volume "{ID}": /dev/vdb: contains xfs, requested fs_type "ext4":'
            " must be blank or match; not changed",
            id="another file system",
        ),
        pytest.param(
            fs("ext4"),
            (),
            Stage(VOLUME, STAGING, "ext3"),
            FailureReason.CONTENT,
            f'volume "{ID}": /dev/vdb: contains ext4, requested fs_type "ext3":'
            " must be blank or match; not changed",
            id="ext4 does not serve a request for ext3",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE,),
            STAGE_XFS,
            FailureReason.INCOMPATIBLE,
            f'volume "{ID}": staged with ext4, requested xfs',
            id="staged in another way",
        ),
        pytest.param(
            fs("ext4"),
            (),
            PUBLISH,
            FailureReason.NOT_STAGED,
            f'volume "{ID}": not staged: nothing is mounted at {STAGING}',
            id="not staged",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE, PUBLISH_RO),
            PUBLISH,
            FailureReason.INCOMPATIBLE,
            f"{TARGET}: published read-only, requested read-write",
            id="published in another way",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE, PUBLISH),
            NodePublish(VOLUME, STAGING, SECOND, is_exclusive=True),
            FailureReason.NOT_STAGED,
            f'volume "{ID}": published at {TARGET} already; its access mode allows one'
            " target",
            id="published twice with an exclusive access mode",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE_BLOCK, PUBLISH_BLOCK),
            NodePublish(VOLUME, STAGING, SECOND, is_block=True, is_exclusive=True),
            FailureReason.NOT_STAGED,
            f'volume "{ID}": published at {DEVICE} already; its access mode allows one'
            " target",
            id="a raw disk published twice with an exclusive access mode",
        ),
        pytest.param(
            fs("ext4"),
            (),
            NodeExpand(VOLUME, TARGET),
            FailureReason.NOT_FOUND,
            f'volume_path: invalid value "{TARGET}": volume is not there',
            id="expanded without being published",
        ),
        pytest.param(
            fs("ext4"),
            (STAGE,),
            NodeExpand(VOLUME, STAGING, 2 * GIB),
            FailureReason.TIMED_OUT,
            f"capacity_range.required_bytes: invalid value {2 * GIB}: must be at most"
            f" the {GIB} bytes of /dev/vdb, once it has grown",
            id="the disk does not grow",
        ),
    ],
)
def test_failures(
    make_node: MakeNode,
    content: Content,
    before: Sequence[Request],
    request_: Request,
    reason: FailureReason,
    text: str,
) -> None:
    node = make_node(content)
    for request in before:
        node.settle(request)
    assert failure(node, request_).reason is reason
    assert failure(node, request_).message == text
    assert node.disk.content == content


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        pytest.param(EntryKind.FILE, STAGE, id="staging path is a file"),
        pytest.param(EntryKind.SYMLINK, STAGE, id="staging path is a link"),
        pytest.param(EntryKind.SYMLINK, UNSTAGE, id="unstaging path is a link"),
        pytest.param(EntryKind.FILE, PUBLISH, id="target is a file"),
        pytest.param(EntryKind.SYMLINK, PUBLISH, id="target is a link"),
        pytest.param(EntryKind.DIRECTORY, PUBLISH_BLOCK, id="target is a directory"),
        pytest.param(EntryKind.SYMLINK, PUBLISH_BLOCK, id="device target is a link"),
        pytest.param(EntryKind.SYMLINK, UNPUBLISH, id="unpublishing a link"),
    ],
)
def test_a_path_of_another_kind_is_refused_and_stays(
    make_node: MakeNode, kind: EntryKind, request_: Request
) -> None:
    node = make_node(fs("ext4"))
    path = observe.own_path(request_)
    if isinstance(request_, NodePublish):
        node.settle(STAGE)
    node.kernel.put(path, kind)
    refused = failure(node, request_)
    assert refused.reason is FailureReason.INVALID
    assert f'invalid value "{path}": is a {kind.value}, must be' in refused.message
    assert node.kernel.entry(path).kind is kind


def test_a_missing_disk_is_named_with_what_was_searched_and_present(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("ext4"))
    node.kernel.unplug(node.disk)
    refused = failure(node, STAGE)
    assert refused.reason is FailureReason.TIMED_OUT
    assert "virtio-11111111-2222-3333-4" in refused.message
    assert "wwn-0x11111111222233334444555555555555" in refused.message
    assert "present: vda (serial root-disk-serial)" in refused.message
    assert node.kernel.calls.count("rescan_hosts") >= 2


@pytest.mark.parametrize("place", ["late", "hidden"])
def test_a_disk_that_appears_late_is_found(make_node: MakeNode, place: str) -> None:
    node = make_node(fs("xfs"))
    node.kernel.machine_disks.remove(node.disk)
    getattr(node.kernel, place).append(node.disk)
    assert node.actions(STAGE_XFS) == [*STAGED]


def test_two_disks_with_the_serial_are_an_error(make_node: MakeNode) -> None:
    node = make_node()
    node.kernel.plug("vdc", ID, GIB)
    refused = failure(node, STAGE)
    assert refused.reason is FailureReason.FAILED
    assert "several match: vdb, vdc; must be one" in refused.message


def another_serial(node: Node) -> None:
    node.disk.disk = dataclasses.replace(node.disk.disk, serial="99999999-2222-3333-4")


def another_disk(node: Node) -> None:
    """The name belongs to a disk that was plugged in its place."""
    node.kernel.unplug(node.disk)
    node.kernel.plug("vdb", ID[:20], GIB)


def another_size(node: Node) -> None:
    node.disk.disk = dataclasses.replace(node.disk.disk, size_bytes=2 * GIB)


def second_disk(node: Node) -> None:
    node.kernel.plug("vdc", ID, GIB)


def unplugged(node: Node) -> None:
    node.kernel.unplug(node.disk)


@pytest.mark.parametrize(
    "change", [another_serial, another_disk, another_size, second_disk, unplugged]
)
def test_the_disk_is_identified_again_immediately_before_mkfs(
    make_node: MakeNode, change: Callable[[Node], None]
) -> None:
    node = make_node()
    action = MakeFileSystem(node.disk.disk, "ext4", ())
    change(node)
    with pytest.raises(CallFailed, match="not formatted") as caught:
        act.act(node.kernel, action, VOLUME)
    assert caught.value.reason is FailureReason.UNCERTAIN
    assert "make_file_system" not in node.kernel.calls


def test_a_link_to_a_disk_with_another_serial_does_not_count(
    make_node: MakeNode,
) -> None:
    node = make_node()
    other = dataclasses.replace(node.disk.disk, serial="99999999-2222-3333-4")
    node.disk.disk = other
    assert failure(node, STAGE).reason is FailureReason.TIMED_OUT
    assert node.disk.content == BLANK


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        pytest.param(Check.CLEAN, None, id="clean"),
        pytest.param(Check.CORRECTED, None, id="corrected"),
        pytest.param(Check.INCONCLUSIVE, None, id="fsck itself failed"),
        pytest.param(Check.UNCORRECTED, FailureReason.CONTENT, id="errors are left"),
    ],
)
def test_fsck_decides_whether_a_file_system_is_mounted(
    make_node: MakeNode, check: Check, reason: FailureReason | None
) -> None:
    node = make_node(fs("ext4"))
    node.disk.check = check
    if reason is None:
        assert node.actions(STAGE)[-1] == "MountDisk"
        return
    assert failure(node, STAGE).reason is reason
    assert top_mount(node.kernel.mounts(), STAGING) is None


def replugged(node: Node) -> FakeDisk:
    """Unplug the disk; return the same under another name and number."""
    node.kernel.unplug(node.disk)
    content = node.disk.content
    disk = node.kernel.plug("vdz", ID[:20], GIB, content)
    disk.uuid = node.disk.uuid
    return disk


def test_a_staging_mount_of_a_disk_that_returned_elsewhere_is_repaired(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("xfs"))
    node.settle(STAGE_XFS)
    disk = replugged(node)
    assert node.actions(STAGE_XFS) == ["Unmount", "MountDisk"]
    mount = top_mount(node.kernel.mounts(), STAGING)
    assert mount is not None
    assert mount.number == disk.disk.number


def test_a_staging_mount_in_use_is_not_repaired(make_node: MakeNode) -> None:
    node = make_node(fs("xfs"))
    node.settle(STAGE_XFS)
    node.settle(PUBLISH)
    replugged(node)
    before = node.kernel.mounts()
    refused = failure(node, STAGE_XFS)
    assert refused.reason is FailureReason.UNCERTAIN
    assert f"in use at {TARGET}" in refused.message
    assert failure(node, PUBLISH).reason is FailureReason.NOT_STAGED
    assert node.kernel.mounts() == before
    assert node.actions(UNPUBLISH) == ["Unmount", "Remove"]
    assert node.actions(STAGE_XFS) == ["Unmount", "MountDisk"]
    assert node.actions(PUBLISH) == [PREPARE, "Bind"]


def test_a_file_system_that_has_shut_down_is_mounted_again_when_unused(
    make_node: MakeNode,
) -> None:
    node = make_node(fs("xfs"))
    node.settle(STAGE_XFS)
    node.disk.has_shut_down = True
    # The fake's file system does not recover: it is mounted once more, and no longer.
    refused = failure(node, STAGE_XFS)
    assert refused.reason is FailureReason.UNCERTAIN
    assert "has shut down again, after it was mounted" in refused.message
    assert node.kernel.calls.count("unmount") == 1
    node.disk.has_shut_down = False
    assert node.actions(STAGE_XFS) == []


@pytest.mark.parametrize(
    ("error", "at", "reason"),
    [
        pytest.param(
            errors.Busy("x"), "probe", FailureReason.PENDING, id="disk in use"
        ),
        pytest.param(
            errors.BadDisk("x"), "probe", FailureReason.FAILED, id="I/O error"
        ),
        pytest.param(
            errors.Failed("x"),
            "make_file_system",
            FailureReason.FAILED,
            id="mkfs fails",
        ),
        pytest.param(
            errors.Missing("x"), "make_file_system", FailureReason.FAILED, id="no mkfs"
        ),
        pytest.param(
            errors.Failed("x"), "mount", FailureReason.FAILED, id="mount fails"
        ),
        pytest.param(
            errors.TimedOut("x"), "mount", FailureReason.TIMED_OUT, id="mount hangs"
        ),
        pytest.param(
            errors.Stuck("x"), "mount", FailureReason.PENDING, id="mount is stuck"
        ),
        pytest.param(
            errors.Failed("x"),
            "expand",
            FailureReason.UNCERTAIN,
            id="after the mount no reason is final",
        ),
    ],
)
def test_errors_of_the_kernel(
    make_node: MakeNode, error: errors.KernelError, at: str, reason: FailureReason
) -> None:
    content = fs("xfs", GIB // 2) if at in ("expand", "mount") else BLANK
    node = make_node(content)
    node.kernel.errors_next[at] = error
    assert failure(node, STAGE_XFS).reason is reason
    node.settle(STAGE_XFS)
    assert node.disk.content == fs("xfs")


def _silent(make_node: MakeNode, *before: Request) -> Node:
    """Return a node beside whose volume another disk hangs."""
    node = make_node(fs("ext4"))
    for request in before:
        node.settle(request)
    node.kernel.plug("vdc", "another-volume-serial", GIB).is_silent = True
    node.kernel.calls.clear()
    return node


@pytest.mark.parametrize(
    ("before", "request_"),
    [
        pytest.param((STAGE, PUBLISH), UNPUBLISH, id="unpublish"),
        pytest.param((STAGE,), UNSTAGE, id="unstage"),
        pytest.param(
            (STAGE_BLOCK, PUBLISH_BLOCK),
            NodeUnpublish(VOLUME, DEVICE),
            id="unpublish a raw disk",
        ),
    ],
)
def test_what_is_unmounted_needs_no_disk(
    make_node: MakeNode, before: Sequence[Request], request_: Request
) -> None:
    node = _silent(make_node, *before)
    node.disk.is_silent = True
    node.settle(request_)
    assert "disks" not in node.kernel.calls
    assert "links" not in node.kernel.calls


def test_a_disk_that_does_not_answer_is_no_volume(make_node: MakeNode) -> None:
    """Not even with a link of udev, which may be that of the disk before it."""
    node = make_node(fs("ext4"))
    node.disk.is_silent = True
    with pytest.raises(CallFailed) as caught:
        node.settle(STAGE)
    assert caught.value.reason is FailureReason.TIMED_OUT
    assert "vdb (does not answer)" in caught.value.message
    assert "probe" not in node.kernel.calls


def test_a_staged_disk_that_does_not_answer_is_kept(make_node: MakeNode) -> None:
    node = make_node(fs("ext4"))
    node.settle(STAGE)
    node.settle(PUBLISH)
    node.disk.is_silent = True
    mounts = node.kernel.mounts()
    with pytest.raises(CallFailed) as caught:
        node.settle(PUBLISH)
    assert caught.value.reason is FailureReason.UNCERTAIN
    assert node.kernel.mounts() == mounts

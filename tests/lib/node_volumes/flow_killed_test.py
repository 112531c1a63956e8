"""A process killed before or after any step: the same call, repeated, completes it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from lib.kernel.fake import killing
from lib.kernel.fake.kernel import FakeDisk, FakeKernel
from lib.kernel.model import BLANK, Content, ContentKind
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

GIB = 2**30
ID = "11111111-2222-3333-4444-555555555555"
VOLUME = NodeVolume(ID, ID)
STAGING = "/kubelet/staging/globalmount"
TARGET = "/kubelet/pods/1/mount"
DEVICE = "/kubelet/publish/pvc-1/1"
STAGE = Stage(VOLUME, STAGING, "xfs")
PUBLISH = NodePublish(VOLUME, STAGING, TARGET)
CLONE = Content(ContentKind.FILE_SYSTEM, "xfs", GIB // 2)
EXT = Content(ContentKind.FILE_SYSTEM, "ext4", GIB)


class Node(Protocol):
    kernel: FakeKernel
    disk: FakeDisk

    def settle(self, request: Request) -> Snapshot: ...

    def state(self) -> tuple[object, ...]: ...


MakeNode = Callable[..., Node]


SCENARIOS: dict[str, tuple[Content, Sequence[Request], Request]] = {
    "stage a blank disk": (BLANK, (), STAGE),
    "stage a clone on a larger disk": (CLONE, (), STAGE),
    "stage ext4": (EXT, (), Stage(VOLUME, STAGING)),
    "publish": (EXT, (Stage(VOLUME, STAGING),), PUBLISH),
    "publish a raw disk": (
        BLANK,
        (),
        NodePublish(VOLUME, STAGING, DEVICE, is_block=True),
    ),
    "unpublish": (CLONE, (STAGE, PUBLISH), NodeUnpublish(VOLUME, TARGET)),
    "unstage": (CLONE, (STAGE,), Unstage(VOLUME, STAGING)),
    "expand": (CLONE, (STAGE, PUBLISH), NodeExpand(VOLUME, TARGET, 2 * GIB)),
}


def prepared(make_node: MakeNode, content: Content, before: Sequence[Request]) -> Node:
    node = make_node(content)
    for request in before:
        node.settle(request)
    node.kernel.sizes["vdb"] = 2 * GIB
    return node


def forever() -> float:
    return 60.0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_step_by_result(make_node: MakeNode, scenario: str) -> None:
    content, before, request = SCENARIOS[scenario]
    whole = prepared(make_node, content, before)
    kernel, changes = killing.killed_at(whole.kernel, -1, is_after=False)
    NodeVolumesFlow(kernel).settle(request, forever)
    assert changes
    formats = whole.kernel.calls.count("make_file_system")
    for at, change in enumerate(changes):
        for is_after in (False, True):
            node = prepared(make_node, content, before)
            kernel, _ = killing.killed_at(node.kernel, at, is_after)
            with pytest.raises(killing.Killed):
                NodeVolumesFlow(kernel).settle(request, forever)
            node.settle(request)
            same = node.state() == whole.state()
            repeated = node.kernel.calls.count("make_file_system") - formats
            moment = "after" if is_after else "before"
            print(f"{scenario:32} {moment:6} {change:18} completed={same}")
            assert same
            # A kill before the format counts the attempt, not the effect.
            assert repeated == 0

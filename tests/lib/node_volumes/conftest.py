"""A node in memory, with one volume's disk."""

import dataclasses
from collections.abc import Callable

import pytest

from lib.kernel.fake.kernel import FakeDisk, FakeKernel
from lib.kernel.model import BLANK, Content
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import Action, NodeVolume, Request, Snapshot

GIB = 2**30
ID = "11111111-2222-3333-4444-555555555555"


@dataclasses.dataclass
class Node:
    """A node; waits of its callers end after `waits` polls."""

    kernel: FakeKernel
    disk: FakeDisk
    waits: int = 5

    volume: NodeVolume = dataclasses.field(default_factory=lambda: NodeVolume(ID, ID))

    def settle(self, request: Request) -> Snapshot:
        left = iter(range(self.waits, -1, -1))
        return NodeVolumesFlow(self.kernel).settle(
            request, lambda: float(next(left, 0))
        )

    def actions(self, request: Request) -> list[str]:
        """Settle a request; return the names of its actions."""
        done: list[str] = []

        def note(volume_id: str, action: Action, seconds: float) -> None:
            assert volume_id == self.volume.id
            assert seconds >= 0
            done.append(type(action).__name__)

        left = iter(range(self.waits, -1, -1))
        flow = NodeVolumesFlow(self.kernel, on_action=note)
        flow.settle(request, lambda: float(next(left, 0)))
        return done

    def state(self) -> tuple[object, ...]:
        """Return everything that a caller can observe."""
        mounts = tuple(self.kernel.mounts())
        return mounts, self.disk.content, self.kernel.entries()


MakeNode = Callable[..., Node]


@pytest.fixture()
def make_node() -> MakeNode:
    """Return a function that makes a node whose disk has some content."""

    def make(content: Content = BLANK, size_bytes: int = GIB) -> Node:
        kernel = FakeKernel()
        kernel.make_directory("/kubelet")
        kernel.plug("vda", "root-disk-serial", GIB)
        disk = kernel.plug("vdb", ID[:20], size_bytes, content)
        disk.links = (("by-id", f"virtio-{ID[:20]}"),)
        kernel.calls.clear()
        return Node(kernel, disk)

    return make

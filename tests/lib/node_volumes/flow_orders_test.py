"""Any order of RPCs, faults and kills: no data lost, no mount remains."""

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from lib.kernel import errors
from lib.kernel.fake import killing
from lib.kernel.fake.kernel import FakeKernel
from lib.kernel.model import BLANK, Content, ContentKind, top_mount
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import (
    MakeFileSystem,
    NodeExpand,
    NodePublish,
    NodeUnpublish,
    NodeVolume,
    Request,
    Stage,
    Unstage,
)

GIB = 2**30
ID = "11111111-2222-3333-4444-555555555555"
VOLUME = NodeVolume(ID, ID)
STAGING = "/kubelet/staging/globalmount"
TARGETS = ("/kubelet/pods/1/mount", "/kubelet/pods/2/mount")
FS_TYPES = ("ext4", "xfs", "btrfs")
FAULTS = ("probe", "make_file_system", "mount", "bind", "unmount", "remove")


class Orders(stateful.RuleBasedStateMachine):
    """One volume on one node; the disk may be unplugged and return."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = FakeKernel()
        self.kernel.make_directory("/kubelet")
        self.disk = self.kernel.plug("vdb", ID, GIB)
        self.plugged = 1
        self.formats = 0
        self.kill: tuple[int, bool] | None = None

    @stateful.initialize(fs_type=st.sampled_from(("", *FS_TYPES)))
    def begin(self, fs_type: str) -> None:
        """Begin mostly with a staged volume, else with a blank disk."""
        if fs_type:
            assert self._settle(Stage(VOLUME, STAGING, fs_type)) is None

    def _settle(self, request: Request) -> CallFailed | None:
        """Carry out a call; one that is killed is repeated."""
        if self.kill is not None:
            kernel, _ = killing.killed_at(self.kernel, *self.kill)
            self.kill = None
            try:
                return self._try(NodeVolumesFlow(kernel, on_action=self._note), request)
            except killing.Killed:
                pass
        return self._try(NodeVolumesFlow(self.kernel, on_action=self._note), request)

    def _note(self, volume_id: str, action: object, seconds: float) -> None:
        del volume_id, seconds
        self.formats += isinstance(action, MakeFileSystem)

    def _try(self, flow: NodeVolumesFlow, request: Request) -> CallFailed | None:
        left = iter((2.0, 1.0))
        had = self.disk.content
        try:
            flow.settle(request, lambda: next(left, 0.0))
        except CallFailed as failure:
            return failure
        finally:
            # Whatever happens, what was on the disk stays.
            if had.kind is ContentKind.FILE_SYSTEM:
                assert self.disk.content.type == had.type
        return None

    @stateful.rule(fs_type=st.sampled_from(FS_TYPES))
    def stage(self, fs_type: str) -> None:
        failure = self._settle(Stage(VOLUME, STAGING, fs_type))
        mount = top_mount(self.kernel.mounts(), STAGING)
        if failure is None:
            assert mount is not None
            assert self.disk.content.type == fs_type
        else:
            assert failure.reason is not FailureReason.NOT_STAGED

    @stateful.rule(
        path=st.sampled_from(TARGETS),
        is_read_only=st.booleans(),
        is_single=st.booleans(),
    )
    def publish(self, path: str, is_read_only: bool, is_single: bool) -> None:
        staged = top_mount(self.kernel.mounts(), STAGING)
        request = NodePublish(VOLUME, STAGING, path, False, is_read_only, is_single)
        failure = self._settle(request)
        mount = top_mount(self.kernel.mounts(), path)
        if staged is None:
            assert failure is not None
            assert failure.reason is FailureReason.NOT_STAGED
        if failure is None:
            assert mount is not None
            assert mount.is_read_only is is_read_only
            assert sum(m.target == path for m in self.kernel.mounts()) == 1

    @stateful.rule(path=st.sampled_from(TARGETS))
    def unpublish(self, path: str) -> None:
        if self._settle(NodeUnpublish(VOLUME, path)) is None:
            assert top_mount(self.kernel.mounts(), path) is None
            assert path not in self.kernel.entries()

    @stateful.rule()
    def unstage(self) -> None:
        if self._settle(Unstage(VOLUME, STAGING)) is None:
            assert top_mount(self.kernel.mounts(), STAGING) is None

    @stateful.rule(path=st.sampled_from((STAGING, *TARGETS)), gib=st.integers(0, 3))
    def expand(self, path: str, gib: int) -> None:
        self.kernel.sizes[self.disk.disk.name] = max(
            gib * GIB, self.disk.disk.size_bytes
        )
        failure = self._settle(NodeExpand(VOLUME, path, gib * GIB))
        if failure is None:
            assert self.disk.disk.size_bytes >= gib * GIB
            assert self.disk.content.size_bytes == self.disk.disk.size_bytes

    @stateful.rule(at=st.integers(0, 4), is_after=st.booleans())
    def kill_next(self, at: int, is_after: bool) -> None:
        self.kill = (at, is_after)

    @stateful.rule(method=st.sampled_from(FAULTS), hangs=st.booleans())
    def fail_next(self, method: str, hangs: bool) -> None:
        error = errors.TimedOut("hangs") if hangs else errors.Failed("fails")
        self.kernel.errors_next[method] = error

    @stateful.precondition(lambda self: self.disk.content == BLANK)
    @stateful.rule(fs_type=st.sampled_from(("xfs", "btrfs")))
    def interrupt_mkfs(self, fs_type: str) -> None:
        if top_mount(self.kernel.mounts(), STAGING) is None:
            self.disk.content = Content(ContentKind.INTERRUPTED, fs_type)

    @stateful.precondition(lambda self: self.plugged < 6)
    @stateful.rule()
    def replug(self) -> None:
        """Unplug the disk; it returns under another name and number."""
        self.kernel.unplug(self.disk)
        self.plugged += 1
        name = f"vd{'bcdefghi'[self.plugged]}"
        size_bytes = self.disk.disk.size_bytes
        returned = self.kernel.plug(name, ID, size_bytes, self.disk.content)
        returned.uuid = self.disk.uuid
        self.disk = returned

    @stateful.invariant()
    def formatted_once(self) -> None:
        assert self.formats <= 1

    def teardown(self) -> None:
        """Clean up as the kubelet does: nothing is left."""
        self.kernel.errors_next.clear()
        self.kill = None
        for target in TARGETS:
            assert self._settle(NodeUnpublish(VOLUME, target)) is None
        assert self._settle(Unstage(VOLUME, STAGING)) is None
        assert self.kernel.mounts() == ()
        fs_type = self.disk.content.type
        assert self._settle(Stage(VOLUME, STAGING, fs_type)) is None


Orders.TestCase.settings = hypothesis.settings(
    max_examples=100, stateful_step_count=25, deadline=None, derandomize=True
)
TestOrders = Orders.TestCase

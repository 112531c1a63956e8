"""The node service checks requests, and answers with the codes of the specification."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lib.csi import node, node_service, server
from lib.csi.spec import csi_pb2
from lib.kernel.fake.kernel import FakeDisk, FakeKernel
from lib.kernel.model import DeviceNumber
from lib.node_volumes.call_failures import FailureReason
from lib.node_volumes.flow import NodeVolumesFlow
from lib.volumes import callers
from lib.volumes.csi_codes import Code, RefusedCall

GIB = 2**30
ID = "11111111-2222-3333-4444-555555555555"
STAGING, TARGET, BLOCK = "/k/staging", "/k/pods/mount", "/k/publish/pvc"
Mode = csi_pb2.VolumeCapability.AccessMode


def capability(
    fs_type: str = "xfs",
    mode: Mode.Mode = Mode.SINGLE_NODE_WRITER,
    is_block: bool = False,
) -> csi_pb2.VolumeCapability:
    kind = csi_pb2.VolumeCapability
    access = Mode(mode=mode)
    if is_block:
        return kind(block=kind.BlockVolume(), access_mode=access)
    return kind(mount=kind.MountVolume(fs_type=fs_type), access_mode=access)


def stage(**fields: Any) -> csi_pb2.NodeStageVolumeRequest:
    default: dict[str, Any] = {
        "volume_id": ID,
        "staging_target_path": STAGING,
        "volume_capability": capability(),
    }
    return csi_pb2.NodeStageVolumeRequest(**{**default, **fields})


def publish(**fields: Any) -> csi_pb2.NodePublishVolumeRequest:
    default: dict[str, Any] = {
        "volume_id": ID,
        "staging_target_path": STAGING,
        "target_path": TARGET,
        "volume_capability": capability(),
    }
    return csi_pb2.NodePublishVolumeRequest(**{**default, **fields})


def unknown() -> node.NodeInfo:
    raise node.IdentityUnknown("configDrive: not found")


class Plugin:
    def __init__(self, kubelet: str = "/k") -> None:
        self.kernel = FakeKernel()
        self.kernel.make_directory("/k")
        self.disk: FakeDisk = self.kernel.plug("vdb", ID, GIB)
        self.info = node.NodeInfo("node-1", {"zone": "a"}, 25)
        settings = node.NodeServiceSettings(
            lambda id, _: id, lambda: self.info, kubelet
        )
        self.node = node.NodeService(NodeVolumesFlow(self.kernel), settings)


@pytest.fixture()
def plugin() -> Plugin:
    return Plugin()


def call(seconds: float = 0.5) -> callers.Caller:
    return callers.Caller(time.monotonic() + seconds)


def refused(rpc: Callable[..., object], request: object) -> RefusedCall:
    with pytest.raises(RefusedCall) as caught:
        rpc(request, call())
    print(caught.value)
    return caught.value


def test_every_reason_has_a_code() -> None:
    assert set(node.CODES) == set(FailureReason)
    uncertain = {
        FailureReason.UNCERTAIN,
        FailureReason.TIMED_OUT,
        FailureReason.PENDING,
    }
    not_final = {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.ABORTED}
    for reason, code in node.CODES.items():
        assert (reason in uncertain) == (code in not_final), reason


def test_the_service_has_every_method_of_the_specification(plugin: Plugin) -> None:
    service = node_service.node(plugin.node)
    known = csi_pb2.DESCRIPTOR.services_by_name["Node"].methods
    assert set(service.methods) == {method.name for method in known}
    assert isinstance(service, server.RpcService)


def test_the_life_of_a_volume(plugin: Plugin) -> None:
    of = plugin.node
    for _ in range(2):
        of.stage(stage(), call())
        of.publish(publish(), call())
    answer = of.get_stats(
        csi_pb2.NodeGetVolumeStatsRequest(volume_id=ID, volume_path=TARGET), call()
    )
    assert [usage.total for usage in answer.usage] == [GIB, GIB // 16384]
    assert not answer.volume_condition.abnormal
    plugin.kernel.sizes["vdb"] = 2 * GIB
    request = csi_pb2.NodeExpandVolumeRequest(
        volume_id=ID,
        volume_path=TARGET,
        capacity_range=csi_pb2.CapacityRange(required_bytes=2 * GIB),
    )
    assert of.expand(request, call()).capacity_bytes == 2 * GIB
    for _ in range(2):
        of.unpublish(
            csi_pb2.NodeUnpublishVolumeRequest(volume_id=ID, target_path=TARGET), call()
        )
        of.unstage(
            csi_pb2.NodeUnstageVolumeRequest(volume_id=ID, staging_target_path=STAGING),
            call(),
        )
    assert plugin.kernel.mounts() == ()


def test_a_volume_that_was_mounted_without_staging(plugin: Plugin) -> None:
    """As ovirt-csi-driver leaves it: the device at the pod's path, nothing staged."""
    kernel = plugin.kernel
    kernel.make_directory(TARGET)
    kernel.make_file_system(plugin.disk.disk.path, "ext4", ())
    kernel.mount(plugin.disk.disk.path, TARGET, "ext4", ())
    measured = csi_pb2.NodeGetVolumeStatsRequest(volume_id=ID, volume_path=TARGET)
    assert plugin.node.get_stats(measured, call()).usage[0].total == GIB
    kernel.sizes["vdb"] = 2 * GIB
    larger = csi_pb2.NodeExpandVolumeRequest(
        volume_id=ID,
        volume_path=TARGET,
        capacity_range=csi_pb2.CapacityRange(required_bytes=2 * GIB),
    )
    assert plugin.node.expand(larger, call()).capacity_bytes == 2 * GIB
    end = csi_pb2.NodeUnpublishVolumeRequest(volume_id=ID, target_path=TARGET)
    for _ in range(2):
        plugin.node.unpublish(end, call())
    unstaged = csi_pb2.NodeUnstageVolumeRequest(
        volume_id=ID, staging_target_path=STAGING
    )
    plugin.node.unstage(unstaged, call())
    assert kernel.mounts() == ()


def test_a_raw_block_volume(plugin: Plugin) -> None:
    block = capability(is_block=True)
    plugin.node.stage(stage(volume_capability=block), call())
    plugin.node.publish(publish(volume_capability=block, target_path=BLOCK), call())
    answer = plugin.node.get_stats(
        csi_pb2.NodeGetVolumeStatsRequest(volume_id=ID, volume_path=BLOCK), call()
    )
    assert [(usage.total, usage.used) for usage in answer.usage] == [(GIB, 0)]
    request = csi_pb2.NodeExpandVolumeRequest(volume_id=ID, volume_path=BLOCK)
    assert plugin.node.expand(request, call()).capacity_bytes == GIB
    assert plugin.kernel.entry(BLOCK).number == DeviceNumber(254, 16)


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (stage(volume_id=""), Code.INVALID_ARGUMENT, "volume_id: not set"),
        (
            stage(staging_target_path=""),
            Code.INVALID_ARGUMENT,
            "staging_target_path: not set",
        ),
        (
            stage(staging_target_path="k"),
            Code.INVALID_ARGUMENT,
            'staging_target_path: invalid value "k": must be an absolute path',
        ),
        (
            stage(staging_target_path="/k/../etc"),
            Code.INVALID_ARGUMENT,
            'staging_target_path: invalid value "/k/../etc": must be below /k',
        ),
        (stage(volume_capability=None), Code.INVALID_ARGUMENT, "access_type"),
        (
            stage(volume_capability=capability("vfat")),
            Code.INVALID_ARGUMENT,
            'fs_type: unsupported value "vfat": must be one of ext4, ext3, ext2, xfs,'
            " btrfs",
        ),
        (
            stage(volume_context={"mooring.io/mkfs-options": "-d /etc"}),
            Code.INVALID_ARGUMENT,
            "mooring.io/mkfs-options: mkfs.xfs -d: invalid value",
        ),
        (
            stage(volume_capability=capability(mode=Mode.MULTI_NODE_MULTI_WRITER)),
            Code.INVALID_ARGUMENT,
            "MULTI_NODE_MULTI_WRITER",
        ),
        (
            stage(volume_id="absent-volume-with-an-id"),
            Code.DEADLINE_EXCEEDED,
            "not found: searched for virtio-absent-volume-with-a",
        ),
        (publish(target_path=""), Code.INVALID_ARGUMENT, "target_path: not set"),
        (publish(), Code.FAILED_PRECONDITION, "not staged"),
        (
            publish(staging_target_path=""),
            Code.FAILED_PRECONDITION,
            "staging_target_path: not set",
        ),
        (
            publish(volume_context={"csi.storage.k8s.io/ephemeral": "true"}),
            Code.UNIMPLEMENTED,
            "ephemeral",
        ),
    ],
)
def test_refusals(plugin: Plugin, request_: object, code: Code, text: str) -> None:
    is_stage = isinstance(request_, csi_pb2.NodeStageVolumeRequest)
    rpc = plugin.node.stage if is_stage else plugin.node.publish
    answer = refused(rpc, request_)
    assert answer.code is code
    assert text in answer.message
    assert plugin.kernel.mounts() == ()


def test_statistics_of_an_absent_path_and_a_limit_below_the_size(
    plugin: Plugin,
) -> None:
    for path in ("/k/absent", "some/path", "/elsewhere"):
        stats = csi_pb2.NodeGetVolumeStatsRequest(volume_id=ID, volume_path=path)
        assert refused(plugin.node.get_stats, stats).code is Code.NOT_FOUND
    stats.ClearField("volume_path")
    assert refused(plugin.node.get_stats, stats).code is Code.INVALID_ARGUMENT
    expand = csi_pb2.NodeExpandVolumeRequest(
        volume_id=ID,
        volume_path="/k/absent",
        capacity_range=csi_pb2.CapacityRange(required_bytes=2, limit_bytes=1),
    )
    assert refused(plugin.node.expand, expand).code is Code.OUT_OF_RANGE
    expand.ClearField("capacity_range")
    assert refused(plugin.node.expand, expand).code is Code.NOT_FOUND


def test_read_only_access_and_an_exclusive_writer(plugin: Plugin) -> None:
    plugin.node.stage(stage(), call())
    reader = capability(mode=Mode.SINGLE_NODE_READER_ONLY)
    plugin.node.publish(publish(volume_capability=reader), call())
    assert plugin.kernel.mounts()[-1].is_read_only
    exclusive = capability(mode=Mode.SINGLE_NODE_SINGLE_WRITER)
    second = publish(volume_capability=exclusive, target_path="/k/pods/2")
    assert refused(plugin.node.publish, second).code is Code.FAILED_PRECONDITION
    several = capability(mode=Mode.SINGLE_NODE_MULTI_WRITER)
    plugin.node.publish(
        publish(volume_capability=several, target_path="/k/pods/2"), call()
    )


def test_the_node_is_reported_and_never_guessed(plugin: Plugin) -> None:
    answer = plugin.node.get_info(csi_pb2.NodeGetInfoRequest(), call())
    assert (answer.node_id, answer.max_volumes_per_node) == ("node-1", 25)
    assert dict(answer.accessible_topology.segments) == {"zone": "a"}
    settings = node.NodeServiceSettings(lambda id, _: id, unknown)
    nameless = node.NodeService(NodeVolumesFlow(plugin.kernel), settings)
    failed = refused(nameless.get_info, csi_pb2.NodeGetInfoRequest())
    assert (failed.code, failed.message) == (Code.UNAVAILABLE, "configDrive: not found")


class SlowKernel(FakeKernel):
    """Mounts only when it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_mounting, self.may_mount = threading.Event(), threading.Event()

    def mount(self, device: str, target: str, fs_type: str, options: object) -> None:
        self.is_mounting.set()
        assert self.may_mount.wait(180)
        super().mount(device, target, fs_type, ())


def test_a_second_call_for_a_volume_is_aborted_and_others_go_on() -> None:
    kernel = SlowKernel()
    kernel.make_directory("/k")
    kernel.plug("vdb", ID, GIB)
    settings = node.NodeServiceSettings(lambda id, _: id, unknown)
    of = node.NodeService(NodeVolumesFlow(kernel), settings)
    thread = threading.Thread(target=of.stage, args=(stage(), call(180)))
    thread.start()
    assert kernel.is_mounting.wait(180)
    assert refused(of.stage, stage()).code is Code.ABORTED
    unstage = csi_pb2.NodeUnstageVolumeRequest(
        volume_id="another-volume-with-an-id", staging_target_path="/k/other"
    )
    of.unstage(unstage, call())
    kernel.may_mount.set()
    thread.join(180)
    of.stage(stage(), call())
    assert len(kernel.mounts()) == 1

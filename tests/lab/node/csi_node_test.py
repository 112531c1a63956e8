"""csi-node as it is packaged: registered, and killed."""

import dataclasses
import lzma
import pathlib
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import grpc
import psutil
import pytest
from google.protobuf import message

from lib.csi.spec import csi_pb2
from lib.csi.spec import pluginregistration_pb2 as registration_pb2
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.run import waiting
from lib.lab.storage import loop_disks
from tests.harness.csi import csi_wire

M = TypeVar("M", bound=message.Message)

MIB = 2**20
SIZE = 320 * MIB
ID = "11111111-2222-3333-4444-555555555555"
SERVER = "83679162-1378-4288-a2d4-70e13ec132aa"
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"
STAGED = "plugins/kubernetes.io/csi/cinder.csi.openstack.org/1/globalmount"
PUBLISHED = "pods/1/volumes/kubernetes.io~csi/pvc-1/mount"
"""Source: kubernetes pkg/volume/csi (csi_attacher.go, makeDeviceMountPath)."""
IMAGE = pathlib.Path("tests/lib/cloud/openstack/instance_metadata/images/iso.img.xz")
CALL_S = 180.0
_INFO = "/pluginregistration.Registration/GetInfo"


@dataclasses.dataclass
class Daemon:
    """csi-node as a process on a machine of loop disks."""

    machine: loop_disks.Machine
    folder: pathlib.Path
    env: Mapping[str, str]
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def endpoint(self) -> pathlib.Path:
        return self.folder / "csi.sock"

    @property
    def registration(self) -> pathlib.Path:
        return self.folder / "reg.sock"

    @property
    def staging(self) -> str:
        return str(self.machine.kubelet / STAGED)

    @property
    def target(self) -> str:
        return str(self.machine.kubelet / PUBLISHED)

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    *pexes.command(pexes.beside("csi-node")),
                    f"--endpoint=unix://{self.endpoint}",
                    f"--registration-socket={self.registration}",
                    "--kubelet-registration-path=/k/csi.sock",
                    f"--dev-root={self.machine.dev}",
                    f"--sys-root={self.machine.sys}",
                    f"--kubelet-directory={self.machine.kubelet}",
                    f"--http-endpoint=127.0.0.1:{self.port}",
                    "--metadata-address=http://127.0.0.1:9",
                    "--nodeid=ignored",
                    "--logging-format=json",
                ],
                env=dict(self.env),
                stdout=log,
                stderr=log,
            )
        waiting.until("csi-node answers", self._answers)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()[-3000:]
        try:
            request, kind = csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse
            self.call("Identity/Probe", request, kind, timeout_s=5.0)
        except grpc.RpcError:
            return False
        return True

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def call(
        self,
        method: str,
        request: message.Message,
        kind: type[M],
        timeout_s: float = CALL_S,
    ) -> M:
        caller = csi_wire.Caller(self.endpoint)
        try:
            return caller(method, request, kind, timeout_s)
        finally:
            caller.close()

    def stage(self) -> None:
        request = csi_pb2.NodeStageVolumeRequest(
            volume_id=ID, staging_target_path=self.staging, volume_capability=mount()
        )
        self.call("Node/NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)

    def publish(self) -> None:
        request = csi_pb2.NodePublishVolumeRequest(
            volume_id=ID,
            staging_target_path=self.staging,
            target_path=self.target,
            volume_capability=mount(),
        )
        kind = csi_pb2.NodePublishVolumeResponse
        self.call("Node/NodePublishVolume", request, kind)

    def remove(self) -> None:
        self.call(
            "Node/NodeUnpublishVolume",
            csi_pb2.NodeUnpublishVolumeRequest(volume_id=ID, target_path=self.target),
            csi_pb2.NodeUnpublishVolumeResponse,
        )
        self.call(
            "Node/NodeUnstageVolume",
            csi_pb2.NodeUnstageVolumeRequest(
                volume_id=ID, staging_target_path=self.staging
            ),
            csi_pb2.NodeUnstageVolumeResponse,
        )

    def get(self, path: str) -> str:
        address = f"http://127.0.0.1:{self.port}/{path}"
        with urllib.request.urlopen(address, timeout=CALL_S) as answer:
            body: bytes = answer.read()
        return body.decode()

    def mounts(self) -> list[str]:
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        targets = [line.split(" ")[4] for line in lines]
        root = str(self.machine.kubelet)
        return [t.removeprefix(root) for t in targets if t.startswith(root)]


def mount() -> csi_pb2.VolumeCapability:
    kind = csi_pb2.VolumeCapability
    mode = kind.AccessMode.SINGLE_NODE_WRITER
    return kind(
        mount=kind.MountVolume(fs_type="xfs"), access_mode=kind.AccessMode(mode=mode)
    )


@pytest.fixture(scope="session")
def where() -> places.Places:
    """Return places without a slot: csi-node uses sockets, and one free port."""
    return places.default()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture()
def daemon(
    machine: loop_disks.Machine,
    tools: Mapping[str, str],
    where: places.Places,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Daemon]:
    drive = lzma.decompress(IMAGE.read_bytes())
    loop = machine.plug("", (len(drive) + MIB) // MIB * MIB)
    loop.write(0, drive)
    folder = tmp_path_factory.mktemp("n")
    env = {**tools, **pexes.environment(where)}
    daemon = Daemon(machine, folder, env, free_port())
    daemon.start()
    yield daemon
    daemon.kill()


def test_it_registers_and_reports_the_node(daemon: Daemon) -> None:
    """Identity and zone come from a config drive that is not mounted."""
    daemon.kill()
    began = time.monotonic()
    daemon.start()
    with grpc.insecure_channel(f"unix://{daemon.registration}") as channel:
        method = channel.unary_unary(
            _INFO,
            registration_pb2.InfoRequest.SerializeToString,
            registration_pb2.PluginInfo.FromString,
        )
        request = registration_pb2.InfoRequest()
        registered = method(request, timeout=CALL_S, wait_for_ready=True)
    print(f"seconds until the kubelet is answered: {time.monotonic() - began:.1f}")
    assert registered.name == "cinder.csi.openstack.org"
    assert registered.endpoint == "/k/csi.sock"
    kind = csi_pb2.NodeGetInfoResponse
    info = daemon.call("Node/NodeGetInfo", csi_pb2.NodeGetInfoRequest(), kind)
    assert info.node_id == SERVER
    assert dict(info.accessible_topology.segments) == {ZONE_KEY: "Zone-A"}
    assert info.max_volumes_per_node > 0
    assert daemon.get("healthz") == "ok"
    body = daemon.get("metrics")
    assert "csi_plugin_operations_seconds" in body
    assert "mooring_orphaned_mounts 0.0" in body
    assert daemon.process is not None
    rss = psutil.Process(daemon.process.pid).memory_info().rss
    print(f"resident memory with --http-endpoint: {rss / MIB:.0f} MiB")
    assert '"--nodeid"' in daemon.log()


def test_killed_at_any_moment_it_goes_on_with_the_same_call(daemon: Daemon) -> None:
    """SIGKILL during the first calls of a volume, then between stage and publish."""
    daemon.machine.plug(ID[:20], SIZE, f"virtio-{ID[:20]}")
    for number in range(20):
        thread = threading.Thread(target=ignoring(daemon), daemon=True)
        thread.start()
        time.sleep(0.06 * (number % 10))
        daemon.kill()
        daemon.start()
        # A call that was not sent before the kill reaches the new process.
        thread.join(CALL_S + 10)
        assert not thread.is_alive()
    daemon.stage()
    daemon.kill()
    daemon.start()
    daemon.publish()
    (pathlib.Path(daemon.target) / "data").write_text("kept")
    daemon.kill()
    daemon.start()
    assert (pathlib.Path(daemon.target) / "data").read_text() == "kept"
    for _ in range(2):
        daemon.remove()
    assert daemon.mounts() == []
    daemon.stage()
    assert (pathlib.Path(daemon.staging) / "data").read_text() == "kept"
    daemon.remove()
    formats = daemon.log().count('"operation": "MakeFileSystem"')
    print(f"mkfs finished {formats} times")
    assert formats <= 1


def test_orphaned_mounts_are_reported_and_stay(daemon: Daemon) -> None:
    """Metric and log name mounts of a disk that disappeared before the start."""
    disk = daemon.machine.plug(ID[:20], SIZE, f"virtio-{ID[:20]}")
    daemon.stage()
    daemon.publish()
    daemon.kill()
    daemon.machine.unplug(disk)
    before = daemon.mounts()
    daemon.start()
    assert "mooring_orphaned_mounts 2.0" in daemon.get("metrics")
    reported = [line for line in daemon.log().splitlines() if "orphaned mount" in line]
    print("\n".join(reported))
    for target in (daemon.staging, daemon.target):
        assert any(target in line and disk.name in line for line in reported)
    assert len(reported) == 2
    assert daemon.mounts() == before
    daemon.remove()
    assert daemon.mounts() == []


def ignoring(daemon: Daemon) -> Callable[[], None]:
    """Return a call of stage that may be cut off."""

    def run() -> None:
        try:
            daemon.stage()
        except grpc.RpcError as error:
            print(f"cut off: {error.code()}")

    return run

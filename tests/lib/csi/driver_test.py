"""The plugin from its start to its end, over a socket, with a fake cloud behind it."""

from __future__ import annotations

import io
import threading
import time
import urllib.request
from typing import TYPE_CHECKING

import grpc
import prometheus_client
import pytest

from lib.cloud import protocol
from lib.cloud.fake import volumes as fake
from lib.cloud.volumes import Feature
from lib.csi import driver, options
from lib.csi.spec import csi_pb2 as pb
from lib.daemon import counting, reopening
from lib.process import config, logs

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from google.protobuf import message

PATIENCE_S = 20.0


class Clouds:
    """Opens a new fake cloud each time its files change."""

    def __init__(self) -> None:
        self.opened: list[fake.FakeVolumes] = []
        self.is_changed = threading.Event()
        self.is_broken = False

    def open(self, calls: counting.CloudMetrics) -> reopening.Opened:
        calls.observe("authenticate", "ok", 0.1)
        if self.is_broken:
            raise config.ConfigError(["[Global] auth-url is empty"])
        self.opened.append(fake.FakeVolumes(time.monotonic, operation_s=0.01))
        cloud = protocol.Cloud("fake", volumes=self.opened[-1])
        return reopening.Opened(cloud, self._changed, ("colour is not known",))

    def _changed(self) -> bool:
        was = self.is_changed.is_set()
        self.is_changed.clear()
        return was


class Running:
    """A plugin in a thread, and a client."""

    def __init__(self, folder: pathlib.Path, http: tuple[str, int] | None) -> None:
        self.clouds = Clouds()
        self.stop = threading.Event()
        self.exit: list[int] = []
        self.socket = folder / "csi.sock"
        program = driver.DriverProgram(
            "csi-test",
            "1",
            "fake",
            "fake.example",
            frozenset(Feature),
            {"": self.clouds.open},
            "zone",
            reference=counting.Reference(
                "fake", lambda operation: operation.replace(" ", "_")
            ),
        )
        expected = options.DriverOptions(
            endpoint=f"unix://{self.socket}",
            cloud_configs=(),
            cloud_names=("",),
            cluster="c",
            has_zones=True,
            http=http,
            has_controller=True,
            reads_claims=False,
            kubeconfig="",
            master="",
            user_agents=(),
            max_writes=1000,
        )
        registry = prometheus_client.CollectorRegistry()
        # Long ago: right after its start a process waits before it creates anything.
        times = driver.PluginTimes(grace_s=0.2, started=time.monotonic() - 3600)
        self.plugin = driver.Plugin(program, expected, registry, self.stop, times)
        self.thread = threading.Thread(
            target=lambda: self.exit.append(self.plugin.run({}))
        )

    def call(self, name: str, request: message.Message) -> bytes:
        # A call that comes before the socket is there tries again soon.
        soon = (("grpc.initial_reconnect_backoff_ms", 20),)
        with grpc.insecure_channel(f"unix:{self.socket}", soon) as channel:
            method: grpc.UnaryUnaryMultiCallable[message.Message, bytes]
            method = channel.unary_unary(
                name,
                request_serializer=lambda message_: message_.SerializeToString(),
                response_deserializer=bytes,
            )
            return method(request, timeout=PATIENCE_S, wait_for_ready=True)

    def create(self, name: str) -> pb.Volume:
        mode = pb.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER")
        capability = pb.VolumeCapability(
            block=pb.VolumeCapability.BlockVolume(), access_mode=mode
        )
        request = pb.CreateVolumeRequest(name=name, volume_capabilities=[capability])
        raw = self.call("/csi.v1.Controller/CreateVolume", request)
        return pb.CreateVolumeResponse.FromString(raw).volume


@pytest.fixture()
def running(tmp_path: pathlib.Path) -> Iterator[Running]:
    plugin = Running(tmp_path, None)
    plugin.thread.start()
    yield plugin
    plugin.stop.set()
    plugin.thread.join(PATIENCE_S)


def test_what_is_odd_in_the_files_is_told_once(tmp_path: pathlib.Path) -> None:
    log = io.StringIO()
    logs.configure(logs.LogSettings("test", format=logs.JSON, out=log))
    plugin = Running(tmp_path, None)
    plugin.thread.start()
    plugin.create("pvc-1")
    plugin.stop.set()
    plugin.thread.join(PATIENCE_S)
    assert log.getvalue().count("colour is not known") == 1


def test_calls_reach_the_cloud_and_the_end_is_in_order(running: Running) -> None:
    raw = running.call("/csi.v1.Identity/GetPluginInfo", pb.GetPluginInfoRequest())
    assert pb.GetPluginInfoResponse.FromString(raw).name == "fake.example"
    created = running.create("pvc-1")
    assert [volume.id for volume in running.clouds.opened[0].volumes()] == [
        created.volume_id
    ]
    running.stop.set()
    running.thread.join(PATIENCE_S)
    assert running.exit == [0]


def test_a_call_under_way_at_the_end_is_cancelled_after_its_grace(
    running: Running,
) -> None:
    running.create("pvc-1")
    running.clouds.opened[0].faults.stuck.add("create")
    ended: list[grpc.StatusCode] = []

    def hang() -> None:
        with pytest.raises(grpc.RpcError) as raised:
            running.create("pvc-2")
        ended.append(raised.value.code())

    caller = threading.Thread(target=hang)
    caller.start()
    while len(running.clouds.opened[0].volumes()) < 2:
        threading.Event().wait(0.01)
    running.stop.set()
    running.thread.join(PATIENCE_S)
    caller.join(PATIENCE_S)
    assert running.exit == [0]
    assert len(ended) == 1


def test_health_and_metrics_are_served_by_plain_http(tmp_path: pathlib.Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    plugin = Running(tmp_path, ("127.0.0.1", port))
    plugin.thread.start()
    plugin.create("pvc-1")
    url = f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(f"{url}/healthz", timeout=PATIENCE_S) as answer:
        assert answer.read() == b"ok"
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_S) as answer:
        shown = answer.read().decode()
    plugin.stop.set()
    plugin.thread.join(PATIENCE_S)
    method = 'method_name="/csi.v1.Controller/CreateVolume"'
    assert method in shown
    assert 'fake_api_requests_total{request="authenticate"} 1.0' in shown
    assert 'mooring_cloud_requests_total{operation="authenticate",outcome="ok"' in shown


def test_what_can_not_be_opened_is_told_and_nothing_is_served(
    tmp_path: pathlib.Path,
) -> None:
    plugin = Running(tmp_path, None)
    plugin.clouds.is_broken = True
    with pytest.raises(config.ConfigError, match="auth-url"):
        plugin.plugin.run({})
    assert not plugin.socket.exists()

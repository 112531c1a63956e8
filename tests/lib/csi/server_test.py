"""The gRPC edge: deadlines, cancellation, limits, what it logs, what it counts."""

from __future__ import annotations

import dataclasses
import json
import socket
import threading
import time
from io import StringIO
from typing import TYPE_CHECKING

import grpc
import prometheus_client
import pytest

from lib.csi import server
from lib.csi.spec import csi_pb2 as pb
from lib.process import config, logs
from lib.volumes import callers
from lib.volumes.csi_codes import Code, RefusedCall

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterator

    from google.protobuf import message

    Answer = grpc._CallFuture[bytes]

DEADLINE = 10.0


class Methods:
    """A controller whose deletions do as they are told."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.go = threading.Event()
        self.cancelled = threading.Semaphore(0)
        self.left_s: list[float] = []
        self.act: Callable[[callers.Caller], None] = lambda call: None

    def delete(
        self, request: pb.DeleteVolumeRequest, call: callers.Caller
    ) -> pb.DeleteVolumeResponse:
        del request
        self.left_s.append(call.deadline - time.monotonic())
        self.began.release()
        self.act(call)
        return pb.DeleteVolumeResponse()

    def probe(self, request: pb.ProbeRequest, call: callers.Caller) -> pb.ProbeResponse:
        del request, call
        return pb.ProbeResponse()

    def wait(self, call: callers.Caller) -> None:
        """Wait until let go of, or until nobody waits any more."""
        condition = threading.Condition()
        effects = callers.CallEffects()
        try:
            with condition:
                while not self.go.is_set():
                    now = time.monotonic()
                    call.wait(condition, now + 0.05 if call else now, effects)
        except RefusedCall:
            self.cancelled.release()
            raise


def _bytes(request: message.Message) -> bytes:
    return request.SerializeToString()


@dataclasses.dataclass
class Served:
    """A running server, its methods, and a client."""

    methods: Methods
    channel: grpc.Channel
    registry: prometheus_client.CollectorRegistry
    log: StringIO

    def call(
        self, name: str, request: message.Message, timeout: float | None = DEADLINE
    ) -> Answer:
        method: grpc.UnaryUnaryMultiCallable[message.Message, bytes]
        method = self.channel.unary_unary(
            name, request_serializer=_bytes, response_deserializer=bytes
        )
        return method.future(request, timeout=timeout)

    def delete(self, timeout: float | None = DEADLINE, **fields: object) -> Answer:
        request = pb.DeleteVolumeRequest(**fields)  # type: ignore[arg-type]
        return self.call("/csi.v1.Controller/DeleteVolume", request, timeout)

    def probe(self) -> Answer:
        return self.call("/csi.v1.Identity/Probe", pb.ProbeRequest())

    def entries(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture()
def served(tmp_path: pathlib.Path) -> Iterator[Served]:
    log = StringIO()
    logs.configure(logs.LogSettings("test", 4, format=logs.JSON, out=log))
    methods = Methods()
    registry = prometheus_client.CollectorRegistry()
    endpoint = f"unix://{tmp_path}/csi.sock"
    controller = server.RpcService(
        "csi.v1.Controller",
        {
            "DeleteVolume": methods.delete,
            "ControllerGetCapabilities": lambda request, call: (
                pb.ControllerGetCapabilitiesResponse()
            ),
        },
        may_wait=True,
        immediate=frozenset({"ControllerGetCapabilities"}),
    )
    identity = server.RpcService(
        "csi.v1.Identity", {"Probe": methods.probe}, quiet=frozenset({"Probe"})
    )
    metrics = server.RpcMetrics("driver.example", registry)
    rpcs = server.RpcServer(endpoint, (controller, identity), metrics, waiting=8)
    rpcs.start()
    with grpc.insecure_channel(f"unix:{tmp_path}/csi.sock") as channel:
        yield Served(methods, channel, registry, log)
    methods.go.set()
    rpcs.stop(1)


def _code(answer: Answer) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError):
        answer.result(DEADLINE)
    code: grpc.StatusCode = answer.code()
    return code


def test_a_call_knows_its_deadline_and_has_one_even_if_none_is_named(
    served: Served,
) -> None:
    served.delete(volume_id="v").result(DEADLINE)
    served.delete(timeout=None, volume_id="v").result(DEADLINE)
    named, unnamed = served.methods.left_s
    assert 8 < named < DEADLINE
    assert 170 < unnamed <= server.DEFAULT_DEADLINE_S


def test_a_refusal_arrives_with_its_code_and_message(served: Served) -> None:
    def refuse(call: callers.Caller) -> None:
        del call
        raise RefusedCall(
            Code.FAILED_PRECONDITION, "volume_id: conflict: detach it first"
        )

    served.methods.act = refuse
    answer = served.delete(volume_id="v")
    assert _code(answer) is grpc.StatusCode.FAILED_PRECONDITION
    assert answer.details() == "volume_id: conflict: detach it first"


def test_a_bug_is_internal_and_only_the_log_says_which(served: Served) -> None:
    def break_down(call: callers.Caller) -> None:
        del call
        raise KeyError("inner life")

    served.methods.act = break_down
    answer = served.delete(volume_id="v")
    assert _code(answer) is grpc.StatusCode.INTERNAL
    assert "inner life" not in answer.details()
    broken = [
        entry for entry in served.entries() if entry["msg"] == "unexpected error in RPC"
    ]
    assert len(broken) == 1
    assert "inner life" in str(broken[0]["stacktrace"])


def test_what_is_not_offered_is_unimplemented(served: Served) -> None:
    request = pb.CreateSnapshotRequest(name="s", source_volume_id="v")
    answer = served.call("/csi.v1.Controller/CreateSnapshot", request)
    assert _code(answer) is grpc.StatusCode.UNIMPLEMENTED
    assert "CreateSnapshot is not supported" in answer.details()


def test_a_cancelled_call_wakes_its_wait(served: Served) -> None:
    served.methods.act = served.methods.wait
    answer = served.delete(volume_id="v")
    assert served.methods.began.acquire(timeout=DEADLINE)
    answer.cancel()
    assert served.methods.cancelled.acquire(timeout=DEADLINE)


def test_a_caller_whose_time_is_over_is_told_before_it_hangs_up(
    served: Served,
) -> None:
    """Our own answer arrives, not the client library's."""
    served.methods.act = served.methods.wait
    answer = served.delete(timeout=2, volume_id="v")
    assert _code(answer) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert answer.details() == "deadline exceeded"


def test_too_many_calls_are_refused_while_probes_are_answered(served: Served) -> None:
    served.methods.act = served.methods.wait
    inside = [served.delete(volume_id=str(number)) for number in range(8)]
    for _ in inside:
        assert served.methods.began.acquire(timeout=DEADLINE)
    refused = served.delete(volume_id="one more")
    # RESOURCE_EXHAUSTED would be final for external-provisioner: the volume would leak.
    assert _code(refused) is grpc.StatusCode.UNAVAILABLE
    assert "8 calls are in progress" in refused.details()
    served.probe().result(DEADLINE)
    offers = pb.ControllerGetCapabilitiesRequest()
    name = "/csi.v1.Controller/ControllerGetCapabilities"
    served.call(name, offers).result(DEADLINE)
    assert served.registry.get_sample_value("mooring_csi_plugin_calls_waiting") == 8
    served.methods.go.set()
    for item in inside:
        item.result(DEADLINE)
    served.delete(volume_id="one more").result(DEADLINE)


def test_a_call_is_logged_without_its_secrets(served: Served) -> None:
    secrets = {"cloud": "hidden-cloud", "password": "hunter2"}
    served.delete(volume_id="v-1", secrets=secrets).result(DEADLINE)
    served.probe().result(DEADLINE)
    deleted, probed = served.entries()
    assert deleted["msg"] == "rpc answered"
    assert deleted["level"] == "info"
    assert deleted["method"] == "DeleteVolume"
    assert deleted["volume_id"] == "v-1"
    assert deleted["code"] == "OK"
    assert "duration_s" in deleted
    assert probed["level"] == "debug"
    assert "hunter2" not in served.log.getvalue()
    assert "hidden-cloud" not in served.log.getvalue()


def test_calls_are_counted_by_method_and_code(served: Served) -> None:
    """Codes are written as Go writes them, as csi-lib-utils does."""

    def refuse(call: callers.Caller) -> None:
        del call
        raise RefusedCall(Code.FAILED_PRECONDITION, "attached")

    served.delete(volume_id="v").result(DEADLINE)
    served.methods.act = refuse
    _code(served.delete(volume_id="v"))
    for code in ("OK", "FailedPrecondition"):
        labels = {
            "driver_name": "driver.example",
            "method_name": "/csi.v1.Controller/DeleteVolume",
            "grpc_status_code": code,
        }
        name = "csi_plugin_operations_seconds_count"
        assert served.registry.get_sample_value(name, labels) == 1


@pytest.mark.parametrize(
    "endpoint",
    ["", "csi.sock", "unix://", "http://a", "tcp://", "unix:///no/such/dir/s"],
)
def test_an_endpoint_that_can_not_be_listened_on_is_told(endpoint: str) -> None:
    metrics = server.RpcMetrics("d", prometheus_client.CollectorRegistry())
    with pytest.raises(config.ConfigError, match="--endpoint: .*must be "):
        server.RpcServer(endpoint, (), metrics)


def test_a_path_is_absolute_as_with_the_reference(tmp_path: pathlib.Path) -> None:
    """Its own manifests say unix://csi/csi.sock and mean /csi/csi.sock."""
    metrics = server.RpcMetrics("d", prometheus_client.CollectorRegistry())
    rpcs = server.RpcServer(f"unix:/{tmp_path}/csi.sock", (), metrics)
    rpcs.start()
    assert (tmp_path / "csi.sock").is_socket()
    rpcs.stop(0)


def test_a_tcp_port_without_host_is_listened_on_everywhere() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metrics = server.RpcMetrics("d", prometheus_client.CollectorRegistry())
    rpcs = server.RpcServer(f"tcp://:{port}", (), metrics)
    rpcs.start()
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE):
        pass
    rpcs.stop(0)


def test_a_socket_that_was_left_behind_is_replaced(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "csi.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    metrics = server.RpcMetrics("d", prometheus_client.CollectorRegistry())
    rpcs = server.RpcServer(f"unix://{path}", (), metrics)
    rpcs.start()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    rpcs.stop(0)

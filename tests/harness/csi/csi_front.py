"""A gRPC entrance to a CSI driver at which calls are recorded and answered at will.

Sidecars connect to it in place of the driver: what they do after a code is seen in the
calls that follow. csi-sanity, which expects one driver, finds controller and node here.
"""

import concurrent.futures
import contextlib
import dataclasses
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import grpc

from lib.csi.spec import csi_pb2

THREADS = 64
FORWARD_S = 3600.0
_NODE = "/csi.v1.Node/"
CLAIM_NAME = "csi.storage.k8s.io/pvc/name"
"""A parameter of CreateVolume. Source: external-provisioner --extra-create-metadata."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """How the calls of one method about one thing are answered.

    code: gRPC's. is_carried_out: the driver carries the call out nevertheless.
    """

    code: grpc.StatusCode
    is_carried_out: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class CsiCall:
    """One call, answered. method: without its service. subject: see `subject`."""

    method: str
    subject: str
    code: str


class CsiFront:
    """Runs for as long as its block lasts. Safe for many threads.

    faults: by method and subject; change them at will.
    """

    def __init__(self, driver: pathlib.Path, node: pathlib.Path | None = None) -> None:
        """driver: its socket. node: of the node service, where that is another one."""
        self.faults: dict[tuple[str, str], Fault] = {}
        self._driver = driver
        self._node = node or driver
        self._lock = threading.Lock()
        self._calls: list[CsiCall] = []

    @contextlib.contextmanager
    def opened(self, address: pathlib.Path) -> Iterator["CsiFront"]:
        """Serve at a socket."""
        pool = concurrent.futures.ThreadPoolExecutor(THREADS, "csi-front")
        server = grpc.server(pool)
        with (
            grpc.insecure_channel(f"unix://{self._driver}") as driver,
            grpc.insecure_channel(f"unix://{self._node}") as node,
        ):
            server.add_generic_rpc_handlers((_Handlers(self, driver, node),))
            server.add_insecure_port(f"unix://{address}")
            server.start()
            try:
                yield self
            finally:
                server.stop(0).wait()
                pool.shutdown(wait=False, cancel_futures=True)

    def codes(self, method: str, subject: str) -> list[str]:
        """Return the codes that the calls of a method about a thing ended with."""
        with self._lock:
            calls = [call for call in self._calls if call.method == method]
        return [call.code for call in calls if call.subject == subject]

    def record(self, call: CsiCall) -> None:
        """Record a call that has been answered."""
        with self._lock:
            self._calls.append(call)


def subject(method: str, request: bytes) -> str:
    """Return what a call is about: a claim's name for CreateVolume, else an ID."""
    if method == "CreateVolume":
        parsed = csi_pb2.CreateVolumeRequest.FromString(request)
        return parsed.parameters.get(CLAIM_NAME, parsed.name)
    parse = _PARSERS.get(method)
    return "" if parse is None else parse(request).volume_id


class _OfVolume(Protocol):
    """A request about one volume."""

    volume_id: str


_PARSERS: Mapping[str, Callable[[bytes], _OfVolume]] = {
    "DeleteVolume": csi_pb2.DeleteVolumeRequest.FromString,
    "ControllerPublishVolume": csi_pb2.ControllerPublishVolumeRequest.FromString,
    "ControllerUnpublishVolume": csi_pb2.ControllerUnpublishVolumeRequest.FromString,
    "ControllerExpandVolume": csi_pb2.ControllerExpandVolumeRequest.FromString,
}


class _Handlers(grpc.GenericRpcHandler):
    """Passes every method on, as bytes."""

    def __init__(
        self, front: CsiFront, driver: grpc.Channel, node: grpc.Channel
    ) -> None:
        self._front = front
        self._driver = driver
        self._node = node

    def service(
        self, details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        path = str(details.method)
        channel = self._node if path.startswith(_NODE) else self._driver
        forward: grpc.UnaryUnaryMultiCallable[bytes, bytes]
        forward = channel.unary_unary(
            path, request_serializer=_same, response_deserializer=_same
        )
        method = path.rpartition("/")[2]
        return grpc.unary_unary_rpc_method_handler(
            self._answering(method, forward),
            request_deserializer=_same,
            response_serializer=_same,
        )

    def _answering(
        self, method: str, forward: "grpc.UnaryUnaryMultiCallable[bytes, bytes]"
    ) -> Callable[[bytes, grpc.ServicerContext], bytes]:
        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            about = subject(method, request)
            code, details, body = self._answer(
                self._front.faults.get((method, about)),
                lambda: _forwarded(forward, request, context.time_remaining()),
            )
            self._front.record(CsiCall(method, about, code.name))
            if code is not grpc.StatusCode.OK:
                context.abort(code, details)
            return body

        return answer

    @staticmethod
    def _answer(
        fault: Fault | None, forward: Callable[[], tuple[grpc.StatusCode, str, bytes]]
    ) -> tuple[grpc.StatusCode, str, bytes]:
        answer = (grpc.StatusCode.OK, "", b"")
        if fault is None or fault.is_carried_out:
            answer = forward()
        if fault is None:
            return answer
        return fault.code, "a fault of the test", b""


def _forwarded(
    forward: "grpc.UnaryUnaryMultiCallable[bytes, bytes]",
    request: bytes,
    timeout_s: float | None,
) -> tuple[grpc.StatusCode, str, bytes]:
    # A caller without a deadline has one in gRPC that no call may be given.
    limit_s = FORWARD_S if timeout_s is None else min(timeout_s, FORWARD_S)
    call = forward.future(request, timeout=limit_s)
    code = call.code()  # waits
    body = call.result() if code is grpc.StatusCode.OK else b""
    return code, call.details() or "", body


def _same(value: bytes) -> bytes:
    return value

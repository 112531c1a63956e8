"""CSI spoken from the other side: a caller, and the node service that csi-sanity needs.

csi-node is not there yet. What csi-sanity's controller specs want of it is one answer:
which node this is.
"""

import concurrent.futures
import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import grpc
from google.protobuf import message

from lib.csi.spec import csi_pb2

_PACKAGE = "csi.v1"
_FILE = csi_pb2.DESCRIPTOR

M = TypeVar("M", bound=message.Message)


class Caller:
    """Calls a CSI driver at a socket. Safe for many threads."""

    def __init__(self, address: pathlib.Path) -> None:
        self._channel = grpc.insecure_channel(f"unix://{address}")

    def __call__(
        self, method: str, request: message.Message, kind: type[M], timeout_s: float
    ) -> M:
        """Call "Controller/CreateVolume" or the like.

        Raises:
            grpc.RpcError: with the driver's code and details.
        """
        call: grpc.UnaryUnaryMultiCallable[message.Message, M]
        call = self._channel.unary_unary(
            f"/{_PACKAGE}.{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=kind.FromString,
        )
        return call(request, timeout=timeout_s, wait_for_ready=True)

    def close(self) -> None:
        """End the connection."""
        self._channel.close()


@contextlib.contextmanager
def node(
    address: pathlib.Path, info: csi_pb2.NodeGetInfoResponse, driver: pathlib.Path
) -> Iterator[None]:
    """Be a node's plugin while the block lasts: its info, and the driver's identity.

    address: where to listen. driver: the socket of the driver, which answers for the
    identity service.
    """
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4, "csi-node"))
    caller = Caller(driver)
    identity = _FILE.services_by_name["Identity"]
    forwarded = {
        method.name: _handler(
            getattr(csi_pb2, method.input_type.name),
            _forward(caller, method.name, getattr(csi_pb2, method.output_type.name)),
        )
        for method in identity.methods
    }
    # csi-sanity tidies up by unpublishing what it never published.
    answers: dict[str, message.Message] = {
        "NodeGetInfo": info,
        "NodeGetCapabilities": csi_pb2.NodeGetCapabilitiesResponse(),
        "NodeUnpublishVolume": csi_pb2.NodeUnpublishVolumeResponse(),
        "NodeUnstageVolume": csi_pb2.NodeUnstageVolumeResponse(),
    }
    own = {
        name: _handler(getattr(csi_pb2, f"{name}Request"), _always(answer))
        for name, answer in answers.items()
    }
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(f"{_PACKAGE}.Identity", forwarded),
            grpc.method_handlers_generic_handler(f"{_PACKAGE}.Node", own),
        )
    )
    server.add_insecure_port(f"unix://{address}")
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()
        caller.close()


def _forward(
    caller: Caller, name: str, kind: type[message.Message]
) -> Callable[[message.Message], message.Message]:
    return lambda request: caller(f"Identity/{name}", request, kind, 10)


def _always(answer: message.Message) -> Callable[[message.Message], message.Message]:
    return lambda request: answer


def _handler(
    kind: type[message.Message], answer: Callable[[message.Message], message.Message]
) -> "grpc.RpcMethodHandler[message.Message, message.Message]":
    return grpc.unary_unary_rpc_method_handler(
        lambda request, context: answer(request),
        request_deserializer=kind.FromString,
        response_serializer=lambda one: one.SerializeToString(),
    )

"""A caller of CSI, as sidecars and the kubelet are."""

import pathlib
from typing import TypeVar

import grpc
from google.protobuf import message

_PACKAGE = "csi.v1"

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
            request_serializer=lambda body: body.SerializeToString(),
            response_deserializer=kind.FromString,
        )
        return call(request, timeout=timeout_s, wait_for_ready=True)

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

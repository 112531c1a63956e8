"""Registers the driver with the kubelet, by a socket that the kubelet watches.

A kubelet that starts finds the socket again. A socket that is deleted, as by a cleaned
folder, is created again; the socket of a killed process is replaced.

Source: kubernetes pkg/kubelet/pluginmanager; kubernetes-csi/node-driver-registrar.
"""

import contextlib
import os
import pathlib
import threading
from concurrent import futures

import grpc
from google.protobuf import message

from lib.csi.spec import pluginregistration_pb2
from lib.process import config, logs, unix_sockets

_SERVICE = "pluginregistration.Registration"
_TYPE = "CSIPlugin"
_VERSIONS = ("1.0.0",)
"""Of CSI, as the registrar reports them. Source: kubernetes pkg/volume/csi
(csi_plugin.go, ValidatePlugin)."""
CHECK_S = 5.0
_GRACE_S = 1.0


class Registration:
    """Serves the registration API on a socket, from `run` to its stop."""

    def __init__(self, driver: str, endpoint: str, socket: str) -> None:
        """Check the path. endpoint: path of the CSI socket, as the kubelet sees it.

        Raises:
            ConfigError: the path cannot hold a socket.
        """
        self._driver = driver
        self._endpoint = endpoint
        self._socket = pathlib.Path(socket)
        self._log = logs.get(__name__)
        self.is_registered = False
        if reason := unix_sockets.unusable(self._socket):
            problem = config.FieldProblem("--registration-socket", socket, reason)
            raise config.ConfigError([problem])

    def run(self, stop: threading.Event) -> None:
        """Serve until stopped; check the socket every five seconds."""
        while not stop.is_set():
            server = self._serve()
            if server is None:
                stop.wait(CHECK_S)
                continue
            inode = _inode(self._socket)
            while inode is not None and _inode(self._socket) == inode:
                if stop.wait(CHECK_S):
                    break
            else:
                self._log.warning("registration socket disappeared")
            # gRPC deletes the path of its socket, also of one that replaced it.
            server.stop(_GRACE_S).wait(_GRACE_S + 1)
        with contextlib.suppress(FileNotFoundError):
            self._socket.unlink()

    def _serve(self) -> grpc.Server | None:
        if unix_sockets.is_served(self._socket):
            text = "another process serves the registration socket"
            self._log.warning(text, socket=str(self._socket))
            return None
        with contextlib.suppress(OSError):
            if self._socket.is_socket():
                self._socket.unlink()
        pool = futures.ThreadPoolExecutor(2, thread_name_prefix="registration")
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((self._handlers(),))
        try:
            server.add_insecure_port(f"unix:{self._socket}")
        except RuntimeError as error:
            pool.shutdown()
            self._log.warning("cannot serve the registration socket", err=str(error))
            return None
        server.start()
        self._log.info("waiting for the kubelet", socket=str(self._socket))
        return server

    def _handlers(self) -> grpc.GenericRpcHandler:
        pb = pluginregistration_pb2
        return grpc.method_handlers_generic_handler(
            _SERVICE,
            {
                "GetInfo": grpc.unary_unary_rpc_method_handler(
                    self._info, pb.InfoRequest.FromString, _bytes
                ),
                "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                    self._note, pb.RegistrationStatus.FromString, _bytes
                ),
            },
        )

    def _info(
        self, request: message.Message, context: grpc.ServicerContext
    ) -> message.Message:
        del request, context
        return pluginregistration_pb2.PluginInfo(
            type=_TYPE,
            name=self._driver,
            endpoint=self._endpoint,
            supported_versions=_VERSIONS,
        )

    def _note(
        self,
        request: pluginregistration_pb2.RegistrationStatus,
        context: grpc.ServicerContext,
    ) -> message.Message:
        del context
        self.is_registered = request.plugin_registered
        if request.plugin_registered:
            self._log.info("registered with the kubelet")
        else:
            self._log.error("the kubelet rejected the registration", err=request.error)
        return pluginregistration_pb2.RegistrationStatusResponse()


def _bytes(answer: message.Message) -> bytes:
    return answer.SerializeToString()


def _inode(path: pathlib.Path) -> int | None:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None

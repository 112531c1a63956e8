"""The gRPC server: calls the method of each RPC, and logs and counts its result.

Rules: every call has a deadline; cancelling a call wakes its threads; the number of
waiting calls is limited, but never for the identity service; an unexpected error is
INTERNAL, with details in the log alone. Requests are never logged: they hold secrets.
"""

import contextlib
import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import NoReturn

import grpc
import prometheus_client
from google.protobuf import message, message_factory

from lib.csi import grpc_status
from lib.csi.spec import csi_pb2
from lib.process import config, logs, unix_sockets
from lib.volumes import callers
from lib.volumes.csi_codes import Code, RefusedCall

POOL = 256
WAITING = 200
"""Threads, and the maximum number of calls among them that can wait for the cloud."""
DEFAULT_DEADLINE_S = 180.0
"""For callers without a deadline. Source: the reference's sidecars, --timeout."""
LONGEST_S = 86400.0
"""A deadline that is further away is treated as none."""
MARGIN_S = 0.5
"""Reserve before a caller's deadline for the answer; at most a tenth of the time."""
_BUCKETS_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600)
"""Source: kubernetes-csi/csi-lib-utils metrics, with smaller and larger ones added."""
_GO = {"OK": "OK", "CANCELLED": "Canceled"}
"""Codes that Go does not write in camel case."""
_LOGGED = ("volume_id", "node_id", "name", "source_volume_id")
"""Fields of requests that are logged. None of them may hold a secret."""

Rpc = Callable[..., message.Message]
"""Receives the request's message and the Caller; raises RefusedCall."""


@dataclasses.dataclass(frozen=True, slots=True)
class RpcService:
    """One service: its methods by their names in csi.proto.

    may_wait: its calls count against WAITING, but those of the methods in immediate,
    which never call the cloud. quiet: methods whose success is logged at debug level
    only.
    """

    name: str
    methods: Mapping[str, Rpc]
    may_wait: bool = False
    quiet: frozenset[str] = frozenset()
    immediate: frozenset[str] = frozenset()


class RpcMetrics:
    """Metrics of RPCs.

    Source: kubernetes-csi/csi-lib-utils metrics: csi_plugin_operations_seconds.
    """

    def __init__(
        self, driver: str, registry: prometheus_client.CollectorRegistry
    ) -> None:
        self._driver = driver
        self._seconds = prometheus_client.Histogram(
            "csi_plugin_operations_seconds",
            "Seconds an RPC took.",
            ("driver_name", "method_name", "grpc_status_code"),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._waiting = prometheus_client.Gauge(
            "mooring_csi_plugin_calls_waiting",
            "RPCs under way that may wait for the cloud.",
            registry=registry,
        )

    def ended(self, method: str, code: str, seconds: float) -> None:
        """Count an RPC. code: gRPC's name."""
        shown = _GO.get(code) or "".join(map(str.capitalize, code.split("_")))
        self._seconds.labels(self._driver, method, shown).observe(seconds)

    def waits(self, by: int) -> None:
        """Count calls that begin or end."""
        self._waiting.inc(by)


class _Gate:
    """Limit of the number of waiting calls."""

    def __init__(self, most: int, metrics: RpcMetrics) -> None:
        self._most = most
        self._metrics = metrics
        self._lock = threading.Lock()
        self._inside = 0

    @contextlib.contextmanager
    def pass_through(self, counts: bool) -> Iterator[None]:
        if not counts:
            yield
            return
        with self._lock:
            if self._inside >= self._most:
                text = f"{self._inside} calls are in progress, the maximum"
                raise RefusedCall(Code.UNAVAILABLE, f"{text}; retry later")
            self._inside += 1
        self._metrics.waits(1)
        try:
            yield
        finally:
            self._metrics.waits(-1)
            with self._lock:
                self._inside -= 1


class _Handler:
    """Handler of one method: deadline, limit, errors, log and metrics."""

    def __init__(
        self, service: RpcService, method: str, gate: _Gate, metrics: RpcMetrics
    ) -> None:
        self._service = service
        self._rpc = service.methods.get(method)
        self._may_wait = service.may_wait and method not in service.immediate
        self._method = method
        self._full_name = f"/{service.name}/{method}"
        self._gate = gate
        self._metrics = metrics
        self._log = logs.get(__name__)

    def __call__(
        self, request: message.Message, context: grpc.ServicerContext
    ) -> message.Message:
        began = time.monotonic()
        call = callers.Caller(began + _patience_s(context.time_remaining()))
        try:
            if not context.add_callback(call.cancel):
                call.cancel()
            with self._gate.pass_through(self._may_wait):
                answer = self._answer(request, call)
        except RefusedCall as refused:
            self._note(request, refused.code.value, began, refused.message)
            _end(context, refused)
        except Exception as error:
            self._log.error(
                "unexpected error in RPC", method=self._method, exc_info=error
            )
            self._note(request, Code.INTERNAL.value, began, "")
            text = "unexpected error; see the log of the driver"
            _end(context, RefusedCall(Code.INTERNAL, text))
        self._note(request, "OK", began, "")
        return answer

    def _answer(
        self, request: message.Message, call: callers.Caller
    ) -> message.Message:
        if self._rpc is None:
            text = f"{self._method} is not supported; read the capabilities first"
            raise RefusedCall(Code.UNIMPLEMENTED, text)
        return self._rpc(request, call)

    def _note(
        self, request: message.Message, code: str, began: float, why: str
    ) -> None:
        duration_s = time.monotonic() - began
        self._metrics.ended(self._full_name, code, duration_s)
        entry: dict[str, object] = {
            "method": self._method,
            "code": code,
            "duration_s": round(duration_s, 3),
        }
        for field in request.DESCRIPTOR.fields:
            if field.name in _LOGGED and (value := getattr(request, field.name)):
                entry[field.name] = value
        if why:
            entry["reason"] = why
        if code != "OK":
            self._log.warning("rpc refused", **entry)
        elif self._method in self._service.quiet:
            self._log.debug("rpc answered", **entry)
        else:
            self._log.info("rpc answered", **entry)


def _patience_s(left_s: float | None) -> float:
    # Without a deadline gRPC returns a time of very many years.
    if left_s is None or left_s > LONGEST_S:
        return DEFAULT_DEADLINE_S
    return max(left_s - min(MARGIN_S, left_s / 10), 0.0)


def _end(context: grpc.ServicerContext, refused: RefusedCall) -> NoReturn:
    context.abort(grpc_status.STATUS[refused.code], refused.message)
    raise AssertionError("abort did not raise")


class RpcServer:
    """Serves some services on one endpoint, from `start` to `stop`."""

    def __init__(
        self,
        endpoint: str,
        services: tuple[RpcService, ...],
        metrics: RpcMetrics,
        waiting: int = WAITING,
    ) -> None:
        """Listen on the endpoint; nothing is answered before `start`.

        Raises:
            ConfigError: the endpoint is invalid, or can't be listened on.
        """
        target = check_endpoint(endpoint)
        if target.startswith(_UNIX):
            pathlib.Path(target.removeprefix(_UNIX)).unlink(missing_ok=True)
        gate = _Gate(waiting, metrics)
        self._pool = futures.ThreadPoolExecutor(POOL, thread_name_prefix="rpc")
        self._server = grpc.server(self._pool, options=[("grpc.so_reuseport", 0)])
        for service in services:
            self._server.add_generic_rpc_handlers((_handlers(service, gate, metrics),))
        try:
            self._server.add_insecure_port(target)
        except RuntimeError as error:
            self._pool.shutdown()
            expected = "a socket that can be created, or a free port of this host"
            problem = config.required("--endpoint", endpoint, expected)
            raise config.ConfigError([problem]) from error

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """Refuse new calls, and wait for running calls. grace_s: at most, in s."""
        self._server.stop(grace_s).wait(grace_s + 1)
        self._pool.shutdown(wait=False, cancel_futures=True)


_UNIX = "unix:"


def _handlers(
    service: RpcService, gate: _Gate, metrics: RpcMetrics
) -> grpc.GenericRpcHandler:
    short = service.name.rpartition(".")[2]
    methods = {}
    for method in csi_pb2.DESCRIPTOR.services_by_name[short].methods:
        request = message_factory.GetMessageClass(method.input_type)
        methods[method.name] = grpc.unary_unary_rpc_method_handler(
            _Handler(service, method.name, gate, metrics),
            request_deserializer=request.FromString,
            response_serializer=_bytes,
        )
    return grpc.method_handlers_generic_handler(service.name, methods)


def _bytes(answer: message.Message) -> bytes:
    return answer.SerializeToString()


def _target(endpoint: str) -> str:
    """Return gRPC's target of "unix://path" or "tcp://host:port".

    A path is absolute, also where it does not begin with a slash. No host means all
    addresses.

    Source: kubernetes/cloud-provider-openstack pkg/csi/cinder (ParseEndpoint, serve).
    """
    scheme, _, rest = endpoint.partition("://")
    if scheme.lower() == "tcp" and rest:
        return f"[::]{rest}" if rest.startswith(":") else rest
    path = rest.strip("/")
    if scheme.lower() != "unix" or not path:
        expected = "unix:///path/of/a/socket or tcp://host:port"
        problem = config.required("--endpoint", endpoint, expected)
        raise config.ConfigError([problem])
    return f"unix:{pathlib.Path('/', path)}"


def check_endpoint(endpoint: str) -> str:
    """Return gRPC's target of an endpoint on which a server can listen.

    Raises:
        ConfigError: it is malformed, or its path cannot hold a socket.
    """
    target = _target(endpoint)
    if target.startswith(_UNIX):
        path = pathlib.Path(target.removeprefix(_UNIX))
        if reason := unix_sockets.unusable(path):
            problem = config.FieldProblem("--endpoint", endpoint, reason)
            raise config.ConfigError([problem])
    return target

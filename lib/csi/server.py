"""The gRPC server: hands each RPC to its method, and says how it ended.

Rules: every call has a deadline; a call that is cancelled wakes whatever it waits on;
so many calls may wait and no more, and the identity service is answered all the same;
an answer that is no refusal of ours is INTERNAL, and told in the log alone. Requests
are never logged: they hold secrets.
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
"""Threads, and how many of them calls may hold that can wait for the cloud."""
PATIENCE_S = 180.0
"""For a caller that names no deadline. Source: the reference's sidecars, --timeout."""
LONGEST_S = 86400.0
"""A deadline that is further away is none."""
MARGIN_S = 0.5
"""Before a caller's deadline, so that our answer arrives; at most a tenth of it."""
_BUCKETS_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600)
"""Source: kubernetes-csi/csi-lib-utils metrics, with smaller and larger ones added."""
_GO = {"OK": "OK", "CANCELLED": "Canceled"}
"""Codes that Go writes otherwise than in camel case."""
_TOLD = ("volume_id", "node_id", "name", "source_volume_id")
"""Fields of requests that the log shows. None of them may hold a secret."""

Rpc = Callable[..., message.Message]
"""Takes the request's message and the Call; raises Refused."""


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
    """Counts RPCs.

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
            "csi_plugin_calls_waiting",
            "RPCs under way that may wait for the cloud.",
            registry=registry,
        )

    def ended(self, method: str, code: str, seconds: float) -> None:
        """Count one. code: gRPC's name."""
        shown = _GO.get(code) or "".join(map(str.capitalize, code.split("_")))
        self._seconds.labels(self._driver, method, shown).observe(seconds)

    def waits(self, by: int) -> None:
        """Count calls that begin or end."""
        self._waiting.inc(by)


class _Gate:
    """Lets so many calls in, and no more."""

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
                text = f"{self._inside} calls are under way, the most there may be"
                raise RefusedCall(Code.UNAVAILABLE, f"{text}; try again later")
            self._inside += 1
        self._metrics.waits(1)
        try:
            yield
        finally:
            self._metrics.waits(-1)
            with self._lock:
                self._inside -= 1


class _Handler:
    """One method at the edge: everything that is not its own business."""

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
            self._log.error("rpc broke", method=self._method, exc_info=error)
            self._note(request, Code.INTERNAL.value, began, "")
            text = "the driver failed; its log says how"
            _end(context, RefusedCall(Code.INTERNAL, text))
        self._note(request, "OK", began, "")
        return answer

    def _answer(
        self, request: message.Message, call: callers.Caller
    ) -> message.Message:
        if self._rpc is None:
            text = f"{self._method} is not offered; ask for the capabilities first"
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
            if field.name in _TOLD and (value := getattr(request, field.name)):
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
    # Without a deadline gRPC gives a time of very many years.
    if left_s is None or left_s > LONGEST_S:
        return PATIENCE_S
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
            ConfigError: it is no endpoint, or can't be listened on.
        """
        target = _target(endpoint)
        gate = _Gate(waiting, metrics)
        self._pool = futures.ThreadPoolExecutor(POOL, thread_name_prefix="rpc")
        self._server = grpc.server(self._pool, options=[("grpc.so_reuseport", 0)])
        for service in services:
            self._server.add_generic_rpc_handlers((_handlers(service, gate, metrics),))
        try:
            self._server.add_insecure_port(target)
        except RuntimeError as error:
            self._pool.shutdown()
            wanted = "a socket that can be made, or a free port of this host"
            problem = config.FieldProblem("--endpoint", endpoint, wanted)
            raise config.ConfigError([problem]) from error

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """Take no more calls, and give those under way so many seconds."""
        self._server.stop(grace_s).wait(grace_s + 1)
        self._pool.shutdown(wait=False, cancel_futures=True)


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
    """Read "unix://path" or "tcp://host:port" as gRPC's target.

    A path is absolute, also where it does not begin with a slash; a socket that a
    killed process left there is removed. No host means all addresses.

    Source: kubernetes/cloud-provider-openstack pkg/csi/cinder (ParseEndpoint, serve).
    """
    scheme, _, rest = endpoint.partition("://")
    if scheme.lower() == "tcp" and rest:
        return f"[::]{rest}" if rest.startswith(":") else rest
    path = rest.strip("/")
    if scheme.lower() != "unix" or not path:
        wanted = "unix:///path/of/a/socket or tcp://host:port"
        problem = config.FieldProblem("--endpoint", endpoint or None, wanted)
        raise config.ConfigError([problem])
    socket = pathlib.Path("/", path)
    if reason := unix_sockets.unusable(socket):
        raise config.ConfigError([config.FieldProblem("--endpoint", endpoint, reason)])
    socket.unlink(missing_ok=True)
    return f"unix:{socket}"

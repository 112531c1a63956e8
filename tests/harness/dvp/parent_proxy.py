"""A proxy in front of the API server of a parent that answers some requests itself.

It is plain HTTP on loopback, so that it sees requests; towards the parent it is TLS.
Watches pass as streams.
"""

import contextlib
import http.client
import http.server
import json
import pathlib
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lib.lab.run import ports
from tests.harness.faults.fault_proxy import Answer, Fault, Request, none

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
"""Source: RFC 9110, 7.6.1: headers of one connection, not of the message."""
_FORWARD_S = 600.0
WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})


class ParentProxy:
    """Runs until `close`. fault: answers a request, or returns None: it passes."""

    def __init__(self, target: int, ca: pathlib.Path) -> None:
        """target: port of the API server on loopback. ca: file of its certificate."""
        self.fault: Fault = none
        self.context = ssl.create_default_context(cafile=str(ca))
        self.target = target
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._watches: set[http.client.HTTPConnection] = set()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = http.server.ThreadingHTTPServer((ports.LOOPBACK, 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        ).start()

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return self._server.server_port

    def close(self) -> None:
        """End; what hangs is left behind."""
        self._server.shutdown()
        self.cut()
        self._server.server_close()

    def requests(self) -> tuple[Request, ...]:
        """Return all requests so far, in their order."""
        with self._lock:
            return tuple(self._requests)

    def answer(self, request: Request) -> Answer | None:
        """Note a request; return the answer of the fault, if it has one."""
        with self._lock:
            self._requests.append(request)
        return self.fault(request)

    @contextlib.contextmanager
    def answering(self, fault: Fault) -> Iterator[None]:
        """Have requests answered by a fault while the block runs."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = none

    @contextlib.contextmanager
    def watching(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """Have `cut` end the stream of a connection while the block runs."""
        with self._lock:
            self._watches.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._watches.discard(connection)

    def cut(self) -> None:
        """End all watches: their clients open new ones."""
        with self._lock:
            streams = tuple(self._watches)
        for connection in streams:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(2)

    def ask(self, path: str, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the answer of the API server itself to a read."""
        connection = self.open()
        try:
            connection.request("GET", path, headers=dict(headers))
            document: Mapping[str, Any] = json.loads(connection.getresponse().read())
            return document
        finally:
            connection.close()

    def open(self) -> http.client.HTTPSConnection:
        """Open a connection to the API server."""
        return http.client.HTTPSConnection(
            ports.LOOPBACK, self.target, timeout=_FORWARD_S, context=self.context
        )


def is_watch(request: Request) -> bool:
    """Report whether a request opens a watch."""
    return "watch" in urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)


def is_list(request: Request) -> bool:
    """Report whether a request is a list of objects."""
    parts = urllib.parse.urlsplit(request.path)
    has_limit = "limit" in urllib.parse.parse_qs(parts.query)
    return request.method == "GET" and has_limit and not is_watch(request)


def refusal(
    code: int, reason: str, message: str, retry_after_s: int | None = None
) -> Answer:
    """Return a Status as an API server writes it."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    headers = {"Content-Type": "application/json"}
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    return Answer(code, headers, json.dumps(body).encode())


class ConflictAtEachWrite:
    """Refuses the first attempt of each write; refused: what it refused."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer | None:
        """Answer a request; see `Fault`."""
        if request.method not in WRITES:
            return None
        # Creations of one kind differ only in their bodies.
        what = f"{request.method} {urllib.parse.urlsplit(request.path).path}"
        with self._lock:
            if what in self.refused:
                return None
            self.refused.append(what)
        return refusal(409, "Conflict", "the object has been modified")


def method_and_kind(what: str) -> tuple[str, str]:
    """Return the method and the plural of the kind of what was refused."""
    method, _, path = what.partition(" ")
    parts = path.split("/namespaces/")[-1].split("/")
    return method, parts[1]


def throttled(request: Request) -> Answer:
    """Answer every request with 429."""
    del request
    return refusal(429, "TooManyRequests", "please try again later", 1)


def slow(seconds: float) -> Callable[[Request], None]:
    """Return a fault that delays every request."""

    def wait(request: Request) -> None:
        del request
        time.sleep(seconds)

    return wait


def empty_lists(proxy: ParentProxy) -> Fault:
    """Return a fault that answers each list as if there were no object.

    Watches end with "too old", so that clients list again.
    """

    def answer(request: Request) -> Answer | None:
        if is_watch(request):
            return refusal(410, "Expired", "too old resource version")
        if not is_list(request):
            return None
        document = dict(proxy.ask(request.path, request.headers))
        if "items" not in document:
            return None
        document["items"] = []
        document["metadata"] = {**document["metadata"], "continue": ""}
        document["metadata"].pop("remainingItemCount", None)
        headers = {"Content-Type": "application/json"}
        return Answer(200, headers, json.dumps(document).encode())

    return answer


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it headers and body are two packets, and the second waits for 40 ms.
    wbufsize = -1
    proxy: ParentProxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, time.monotonic())
        answer = self.proxy.answer(request)
        try:
            if answer is not None:
                self._write(answer)
            else:
                self._forward(request, body)
        except (OSError, http.client.HTTPException):
            self.close_connection = True

    def _forward(self, request: Request, body: bytes) -> None:
        kept = {k: v for k, v in request.headers.items() if k not in _HOP}
        connection = self.proxy.open()
        try:
            connection.request(request.method, request.path, body or None, kept)
            got = connection.getresponse()
            headers = {k: v for k, v in got.getheaders() if k.lower() not in _HOP}
            if is_watch(request) and got.status == 200:
                with self.proxy.watching(connection):
                    self._stream(got, headers)
            else:
                self._write(Answer(got.status, headers, got.read()))
        finally:
            connection.close()

    def _write(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        self.wfile.flush()

    def _stream(
        self, got: http.client.HTTPResponse, headers: Mapping[str, str]
    ) -> None:
        self.send_response_only(got.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while data := got.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 # its names

    def handle(self) -> None:
        """Serve one connection; see the base class."""
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
        del format, args

"""A proxy in front of one HTTP service: counts, and answers wrongly at will.

It passes the Host header on, so that links in the answers lead through it again.
"""

import contextlib
import dataclasses
import http.client
import http.server
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.lab.run import ports

FORWARD_S = 600.0
"""Time-out of the service: longer than those of clients, which are tested."""
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
"""Source: RFC 9110, 7.6.1: headers of one connection, not of the message."""


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One request as it came. headers: names in lower case. at: monotonic seconds."""

    method: str
    path: str
    headers: Mapping[str, str]
    at: float


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What the client is given."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Fault = Callable[[Request], Answer | None]
"""An answer instead of the service's; None lets the request pass. It may take time."""


def none(request: Request) -> Answer | None:
    """Return None: every request passes."""
    del request
    return None


class Proxy:
    """Runs from `start` to `close`. Safe to use from several threads.

    fault: asked about every request; change it at will.
    """

    def __init__(self, target: int) -> None:
        """target: the service's port on loopback."""
        self.fault: Fault = none
        self._target = target
        self._lock = threading.Lock()
        self._answered: list[tuple[Request, int]] = []
        self._requests: list[Request] = []
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = http.server.ThreadingHTTPServer((ports.LOOPBACK, 0), handler)
        self._server.daemon_threads = True
        # A request that hangs with the service must not hold the end up.
        self._server.block_on_close = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return self._server.server_port

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """End; what hangs is left behind."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def requests(self) -> tuple[Request, ...]:
        """Return all that came, in their order."""
        with self._lock:
            return tuple(self._requests)

    def answered(self) -> tuple[tuple[Request, int], ...]:
        """Return what was answered, with the status, in the order of the answers."""
        with self._lock:
            return tuple(self._answered)

    def answer(self, request: Request, body: bytes) -> Answer:
        """Answer one request, by the fault or by the service."""
        with self._lock:
            self._requests.append(request)
        answer = self.fault(request) or self._forward(request, body)
        with self._lock:
            self._answered.append((request, answer.status))
        return answer

    def _forward(self, request: Request, body: bytes) -> Answer:
        connection = http.client.HTTPConnection(
            ports.LOOPBACK, self._target, timeout=FORWARD_S
        )
        kept = {k: v for k, v in request.headers.items() if k not in _HOP}
        try:
            connection.request(request.method, request.path, body or None, kept)
            got = connection.getresponse()
            headers = {k: v for k, v in got.getheaders() if k.lower() not in _HOP}
            return Answer(got.status, headers, got.read())
        except (OSError, http.client.HTTPException):
            return Answer(http.HTTPStatus.BAD_GATEWAY, {}, b"")
        finally:
            connection.close()


@contextlib.contextmanager
def answering(proxies: Collection[Proxy], fault: Fault) -> Iterator[None]:
    """Have proxies answer by a fault while the block runs."""
    for proxy in proxies:
        proxy.fault = fault
    try:
        yield
    finally:
        for proxy in proxies:
            proxy.fault = none


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it headers and body are two packets, and the second waits for 40 ms.
    wbufsize = -1
    proxy: Proxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, time.monotonic())
        answer = self.proxy.answer(request, body)
        try:
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # nobody waits for it any more

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 # its names

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        del format, args

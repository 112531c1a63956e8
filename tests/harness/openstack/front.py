"""An entrance to the lab's cloud at which calls are counted, changed and refused.

Who logs in through it is shown a catalogue in which every service stands behind it, so
that a client knows no other way. The services themselves notice nothing.
"""

import contextlib
import dataclasses
import http.client
import http.server
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from lib.lab import places
from lib.lab.openstack import layout

TIMEOUT_S = 60.0
_OWN_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call that came through.

    size_bytes: of the answer's body. at, ended: when it came, and when its answer was
    there, by the monotonic clock.
    """

    service: str
    method: str
    path: str
    status: int
    size_bytes: int
    at: float
    ended: float


Headers = dict[str, str]
Before = Callable[[str, str, Headers], str]
"""Takes service, path and headers of a call, which it may change; returns the path."""


Came = Callable[[str, str, str], None]
"""Callback for a call: service, method and path. It may take its time."""


def _unnoticed(service: str, method: str, path: str) -> None:
    del service, method, path


Refuse = Callable[[str, str, str], int]
"""Takes service, method and path of a call; returns a status to refuse it, or 0."""


def _accepted(service: str, method: str, path: str) -> int:
    del service, method, path
    return 0


Forge = Callable[[str, str, str, int, bytes], tuple[int, bytes]]
"""Takes service, method, path, status and body of an answer; returns what is sent."""


def _genuine(
    service: str, method: str, path: str, status: int, body: bytes
) -> tuple[int, bytes]:
    del service, method, path
    return status, body


Pace = Callable[[str, str, str], float]
"""Takes service, method and path of a call; returns the bytes of its body that are sent
in a second, or 0.0: all at once."""


def _fast(service: str, method: str, path: str) -> float:
    del service, method, path
    return 0.0


def _unchanged(service: str, path: str, headers: Headers) -> str:
    del service, headers
    return path


class Front:
    """One entrance. Safe for many threads.

    down: services that are refused: the connection ends without an answer. came: told
    of each call before it continues or is refused, whatever becomes of who asked.
    before: see `Before`. refuse: see `Refuse`. forge: see `Forge`. pace: see `Pace`.
    calls: all that came so far.
    """

    def __init__(self, upstream: Mapping[str, int]) -> None:
        """upstream: ports of the services."""
        self.down: set[str] = set()
        self.came: Came = _unnoticed
        self.before: Before = _unchanged
        self.refuse: Refuse = _accepted
        self.forge: Forge = _genuine
        self.pace: Pace = _fast
        self.calls: list[Call] = []
        self._upstream = upstream
        self._servers = {name: _Server(name, self) for name in upstream}

    def url(self, service: str, path: str = "") -> str:
        """Return the address of a service behind the entrance."""
        return f"http://127.0.0.1:{self._servers[service].server_address[1]}{path}"

    @contextlib.contextmanager
    def opened(self) -> Iterator["Front"]:
        """Serve for as long as the block lasts."""
        threads = [
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            for server in self._servers.values()
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            for server in self._servers.values():
                server.shutdown()
                server.server_close()

    def forward(
        self, service: str, request: http.server.BaseHTTPRequestHandler, body: bytes
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Send it to the service; return its answer, and the body to forward."""
        came = time.monotonic()
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _OWN_HEADERS
        }
        path = self.before(service, request.path, headers)
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._upstream[service], timeout=TIMEOUT_S
        )
        with contextlib.closing(connection):
            connection.request(request.command, path, body or None, headers)
            answer = connection.getresponse()
            text = answer.read()
        if service == layout.KEYSTONE:
            text = self._behind(text)
        ended = time.monotonic()
        self.calls.append(
            Call(service, request.command, path, answer.status, len(text), came, ended)
        )
        return answer, text

    def note_refused(self, service: str, method: str, path: str, status: int) -> None:
        """Count a call that was refused here."""
        at = time.monotonic()
        self.calls.append(Call(service, method, path, status, 0, at, at))

    def _behind(self, text: bytes) -> bytes:
        """Put our addresses in the place of the services' own."""
        for name, port in self._upstream.items():
            own = f"127.0.0.1:{port}".encode()
            proxied = self.url(name).removeprefix("http://").encode()
            text = text.replace(own + b"/", proxied + b"/").replace(
                own + b'"', proxied + b'"'
            )
        return text


def of(where: places.Places) -> Front:
    """Create an entrance to the cloud of a lab."""
    return Front({name: layout.ports(where)[name] for name in layout.SERVICES})


class _Server(http.server.ThreadingHTTPServer):
    """One service's side of the entrance, on a port that the system chooses."""

    daemon_threads = True

    def __init__(self, service: str, front: Front) -> None:
        self.service = service
        self.front = front
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Passes requests on."""

    server: _Server
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """Serve until the client has closed the connection, for any reason."""
        with contextlib.suppress(OSError):
            super().handle()

    def handle_one_request(self) -> None:
        """Read one request, and answer it or hang up."""
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        front, service = self.server.front, self.server.service
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        front.came(service, self.command, self.path)
        if service in front.down:
            self.close_connection = True
            return
        if status := front.refuse(service, self.command, self.path):
            front.note_refused(service, self.command, self.path, status)
            self._refuse(status)
            return
        try:
            self._answer(*front.forward(service, self, body))
        except OSError:
            # The service does not answer, or who asked has gone.
            self.close_connection = True

    def _refuse(self, status: int) -> None:
        text = b'{"NeutronError": {"type": "Forced", "message": "forced"}}'
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _answer(self, answer: http.client.HTTPResponse, text: bytes) -> None:
        front, call = self.server.front, (self.server.service, self.command, self.path)
        status, text = front.forge(*call, answer.status, text)
        self.send_response_only(status)
        for name, value in answer.getheaders():
            if name.lower() not in _OWN_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        rate = front.pace(*call)
        for at in range(0, len(text), 1) if rate else ():
            self.wfile.write(text[at : at + 1])
            time.sleep(1 / rate)
        if not rate:
            self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

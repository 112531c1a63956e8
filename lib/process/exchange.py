"""One connection: requests in, replies out, each within a time and a size.

Rules: no wait is without a deadline, and a deadline covers the whole request head or
reply, not one byte of it. The body of a request is read only for the paths that take a
body, up to a size.
"""

import dataclasses
import enum
import http
import http.server
import io
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import structlog

PROBE_PATHS = ("/healthz", "/readyz", "/livez")
"""Always allowed unless a flag names others.

Source: k8s.io/apiserver DelegatingAuthorizationOptions."""

TEXT = "text/plain; charset=utf-8"
_LINE_BYTES_MAX = 16 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much.

    handshake_s, request_s (reading the head; writing the reply), idle_s (between two
    requests on one connection): seconds. connections_max: open at the same time; the
    one idle for longest is closed for a new one. head_bytes_max: request line and
    headers. body_bytes_max: of a request to a path that takes a body.
    """

    handshake_s: float = 10.0
    request_s: float = 10.0
    idle_s: float = 90.0
    connections_max: int = 128
    head_bytes_max: int = 64 * 1024
    body_bytes_max: int = 64 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Peer:
    """Whom the client's certificate names, signed by an authority of ours.

    Source: k8s.io/apiserver authentication/request/x509, CommonNameUserConversion: the
    common name is the user, each organization a group.
    """

    name: str
    groups: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """Request. query: values by name. headers: by lower-case name.

    peer: None when the client has shown no certificate. body: of a POST to a path that
    takes a body, else empty.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]]
    headers: Mapping[str, str] = dataclasses.field(repr=False)
    peer: Peer | None = None
    body: bytes = dataclasses.field(default=b"", repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """What is answered."""

    body: bytes = b""
    status: int = 200
    content_type: str = TEXT


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPaths:
    """Paths that are served without authorization. Without leading slashes.

    Source: k8s.io/apiserver authorization/path, NewAuthorizer.
    """

    exact: frozenset[str]
    prefixes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> "OpenPaths":
        """Parse paths, with or without leading slash; a trailing * matches any rest.

        Raises:
            ValueError: a * is not at the end; its text is the pattern.
        """
        bare = [pattern.removeprefix("/") for pattern in patterns]
        for pattern in bare:
            if "*" in pattern[:-1]:
                raise ValueError(pattern)
        return cls(
            frozenset(pattern for pattern in bare if not pattern.endswith("*")),
            tuple(pattern[:-1] for pattern in bare if pattern.endswith("*")),
        )

    def matches(self, path: str) -> bool:
        """Report whether a request's path is open."""
        bare = path.removeprefix("/")
        return bare in self.exact or bare.startswith(self.prefixes)


PROBES = OpenPaths.parse(PROBE_PATHS)


class Decision(enum.Enum):
    """The authorizer's answer to a request."""

    ALLOW = "allow"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    OVERLOADED = "overloaded"
    """Too many others are being authorized; a later request may succeed."""


_REFUSALS = {
    Decision.UNAUTHENTICATED: http.HTTPStatus.UNAUTHORIZED,
    Decision.FORBIDDEN: http.HTTPStatus.FORBIDDEN,
    Decision.OVERLOADED: http.HTTPStatus.TOO_MANY_REQUESTS,
}

Handler = Callable[[Request], Reply]
Authorize = Callable[[Request], Decision]
"""Judges a request before it is answered."""


def everybody(request: Request) -> Decision:
    """Allow every request: what is served holds no secret."""
    del request
    return Decision.ALLOW


@dataclasses.dataclass(frozen=True, slots=True)
class HttpRoutes:
    """Handlers by exact path, and the authorization of their callers.

    open_paths: served without a call of `authorize`. posts: handlers of POST requests
    with a body, by exact path; it is read before `authorize` is called.
    """

    handlers: Mapping[str, Handler]
    authorize: Authorize
    open_paths: OpenPaths = PROBES
    posts: Mapping[str, Handler] = dataclasses.field(default_factory=dict)

    def answer(self, request: Request) -> Reply:
        """Answer one request; never raises.

        This is the edge at which a handler's errors end: logged once, answered 500.
        """
        try:
            return self._judge(request) or self._handle(request)
        except Exception as error:
            log = structlog.stdlib.get_logger()
            log.error("unexpected error in request", path=request.path, exc_info=error)
            return _plain(http.HTTPStatus.INTERNAL_SERVER_ERROR)

    def _judge(self, request: Request) -> Reply | None:
        if self.open_paths.matches(request.path):
            return None
        status = _REFUSALS.get(self.authorize(request))
        return None if status is None else _plain(status)

    def _handle(self, request: Request) -> Reply:
        by_method = {"GET": self.handlers, "HEAD": self.handlers, "POST": self.posts}
        handler = by_method.get(request.method, {}).get(request.path)
        if handler is not None:
            return handler(request)
        is_known = request.path in self.handlers or request.path in self.posts
        status = http.HTTPStatus.METHOD_NOT_ALLOWED if is_known else _NOT_FOUND
        return _plain(status)


_NOT_FOUND = http.HTTPStatus.NOT_FOUND


def _plain(status: http.HTTPStatus) -> Reply:
    return Reply(f"{status.phrase}\n".encode(), status)


def _peer(sock: socket.socket) -> Peer | None:
    """Read the certificate that the handshake has verified, if there was one."""
    shown = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
    subject = cast(
        tuple[tuple[tuple[str, str], ...], ...], (shown or {}).get("subject", ())
    )
    fields = [field for part in subject for field in part]
    names = [value for key, value in fields if key == "commonName"]
    groups = tuple(value for key, value in fields if key == "organizationName")
    return Peer(names[-1], groups) if names and names[-1] else None


class _TooLong(OSError):
    """The request head is larger than allowed."""


class _Timed(io.RawIOBase):
    """A socket whose reads and writes all end by one deadline."""

    def __init__(self, sock: socket.socket, limits: Limits) -> None:
        super().__init__()
        self._socket = sock
        self._limits = limits
        self._until = 0.0
        self._bytes_left = 0

    def begin(self, seconds: float, body_bytes: int = 0) -> None:
        """Allow these seconds, and a whole request head or body, from now on."""
        self._until = time.monotonic() + seconds
        self._bytes_left = max(self._limits.head_bytes_max, body_bytes)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def _arm(self) -> None:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._socket.settimeout(left_s)

    # io hands memoryviews to these two; the parent's wider type has no public name.
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._bytes_left <= 0:
            raise _TooLong
        self._arm()
        count = self._socket.recv_into(buffer)
        self._bytes_left -= count
        return count

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self._arm()
        return self._socket.send(data)


class Exchange(http.server.BaseHTTPRequestHandler):
    """Parses requests with the standard library and answers them by `HttpRoutes`.

    set_busy: called with True while the answer is written; otherwise the connection
    may be cut to make room.
    """

    protocol_version = "HTTP/1.1"

    def __init__(
        self,
        sock: socket.socket,
        routes: HttpRoutes,
        limits: Limits,
        set_busy: Callable[[bool], None],
    ) -> None:
        # The parent's __init__ wants a socketserver; it only calls these three.
        self.connection = sock
        self._peer = _peer(sock)
        self._routes = routes
        self._limits = limits
        self._set_busy = set_busy
        self._wait_s = limits.request_s
        self._timed = _Timed(sock, limits)
        raw: io.RawIOBase = self._timed
        self.rfile = io.BufferedReader(raw)
        self.wfile = io.BufferedWriter(raw)
        self.client_address = ("", 0)
        self.close_connection = True

    def handle_one_request(self) -> None:
        """Answer one request; a time-out or a malformed request ends it."""
        try:
            self._timed.begin(self._wait_s)
            self._wait_s = self._limits.idle_s
            if self._read_head():
                self._answer()
            self._timed.begin(self._limits.request_s)
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _read_head(self) -> bool:
        self.raw_requestline = self.rfile.readline(_LINE_BYTES_MAX + 1)
        if not self.raw_requestline:
            self.close_connection = True
            return False
        if len(self.raw_requestline) > _LINE_BYTES_MAX:
            self.requestline = self.request_version = self.command = ""
            self.send_error(http.HTTPStatus.REQUEST_URI_TOO_LONG)
            return False
        return self.parse_request()

    def _answer(self) -> None:
        path, _, query_text = self.path.partition("?")
        query = urllib.parse.parse_qs(query_text, keep_blank_values=True)
        body = self._body(path)
        request = Request(
            self.command,
            path,
            {name: tuple(values) for name, values in query.items()},
            {name.lower(): value for name, value in self.headers.items()},
            self._peer,
            body if isinstance(body, bytes) else b"",
        )
        if isinstance(body, http.HTTPStatus):
            reply = _plain(body)
        else:
            self._set_busy(True)
            reply = self._routes.answer(request)
            self._set_busy(False)
        if not request.body and self._has_body():
            self.close_connection = True  # the body stays unread
        self.send_response_only(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache, private")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if request.method != "HEAD":
            self._timed.begin(self._limits.request_s)
            self.wfile.write(reply.body)

    def _has_body(self) -> bool:
        has_length = self.headers.get("content-length", "0") != "0"
        return has_length or "transfer-encoding" in self.headers

    def _body(self, path: str) -> bytes | http.HTTPStatus:
        """Return the body of a request that takes one, empty for any other.

        A body without length, or a longer one than allowed, is refused unread.
        """
        if self.command != "POST" or path not in self._routes.posts:
            return b""
        text = self.headers.get("content-length", "")
        if not text.isdecimal():
            return http.HTTPStatus.LENGTH_REQUIRED
        length = int(text) if len(text) < 12 else self._limits.body_bytes_max + 1
        if length > self._limits.body_bytes_max:
            return http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        self._timed.begin(self._limits.request_s, length)
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the body ended early")
        return body

    def version_string(self) -> str:
        """Name no versions to strangers."""
        return "mooring"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes and scrapes would fill the log."""

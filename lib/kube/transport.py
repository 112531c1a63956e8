"""One HTTP exchange with the API server, from connecting to the body's last byte.

Rules: only `exchange` opens a response and only it ends one. A connection goes back to
its pool when the body was read to its end, and is closed otherwise.
"""

import collections
import contextlib
import dataclasses
import http.client
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping

import urllib3

from lib.kube import errors
from lib.process import broken_connections, outgoing

Observer = Callable[[str, str, int, float], None]
"""Called with each exchange: method, plural of the resource ("" for others), HTTP
status (0 for no answer), seconds until the answer."""

_BROKEN = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)
_CHUNK_BYTES = 1 << 18
_LEAST_S = 0.001
"""Of a time-out, which can't be none at all."""


@dataclasses.dataclass(frozen=True, slots=True)
class HttpCall:
    """One request. url: whole, with its query; it never holds a secret."""

    method: str
    path: str
    url: str
    headers: Mapping[str, str] = dataclasses.field(repr=False)
    body: bytes | None = dataclasses.field(default=None, repr=False)

    @property
    def operation(self) -> str:
        """What errors call it."""
        return f"{self.method} {self.path}"

    @property
    def server(self) -> str:
        """The server as the user configured it, such as https://127.0.0.1:6443."""
        parts = urllib.parse.urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@contextlib.contextmanager
def exchange(
    pool: urllib3.PoolManager, call: HttpCall, deadline: float
) -> Iterator[urllib3.BaseHTTPResponse]:
    """Send a request and return the answer, whatever its status, with its body unread.

    deadline: of the monotonic clock, for the first byte of the body; see `read_all`.
    The API server has no more time for a write, and refuses one that it gets later.

    Raises:
        Unavailable: there was no answer.
    """
    headers = dict(call.headers)
    if call.body is not None:
        headers["Content-Length"] = str(len(call.body))
    left_s = max(deadline - time.monotonic(), _LEAST_S)
    server = call.server
    with outgoing.to(server, left_s), translated(call.operation, server):
        response = pool.request(
            call.method,
            call.url if call.method == "GET" else _limited(call.url, left_s),
            body=None if call.body is None else _in_time(call.body, deadline),
            headers=headers,
            timeout=urllib3.Timeout(total=left_s),
            retries=False,
            redirect=False,
            preload_content=False,
        )
    try:
        yield response
    finally:
        # Neither does anything to a response whose body was read to its end.
        response.close()
        response.release_conn()


def _limited(url: str, left_s: float) -> str:
    """Add the time that the API server has, from the head of the request on.

    This process may be stopped between the check of `_in_time` and the body, which
    the server then refuses. Source: k8s.io/apiserver, WithRequestDeadline.
    """
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}timeout={int(left_s * 1000)}ms"


def _in_time(body: bytes, deadline: float) -> Iterator[bytes]:
    """Yield the body, unless its time has run out since the head was sent.

    A process may be stopped at any point, and a request without its body is none.

    Raises:
        TimeoutError: it has; the server gets nothing that it could carry out.
    """
    if time.monotonic() >= deadline:
        raise TimeoutError
    yield body


@contextlib.contextmanager
def translated(operation: str, server: str = "") -> Iterator[None]:
    """Raise Unavailable for a broken connection, with server and cause.

    server: where the connection leads; empty once it was open.
    """
    try:
        yield
    except _BROKEN as error:
        what = broken_connections.reason(error)
        message = f"{server}: {what}" if server else what
        raise errors.Unavailable(message, operation=operation) from error


def read_all(
    response: urllib3.BaseHTTPResponse, operation: str, deadline: float
) -> bytes:
    """Read the body; a server that drips is given no more time than one that stalls.

    deadline: of the monotonic clock.

    Raises:
        Unavailable: the deadline has passed, or the body is incomplete.
    """
    parts: list[bytes] = []
    with translated(operation):
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            set_read_timeout(response, left)
            chunk = response.read1(_CHUNK_BYTES)
            if not chunk:
                return b"".join(parts)
            parts.append(chunk)


def set_read_timeout(response: urllib3.BaseHTTPResponse, timeout_s: float) -> None:
    """Change how long the next read may wait.

    Without effect when the server closes the connection after this answer: its socket
    is out of reach then, and the time-out of the request stays.
    """
    sock = getattr(response.connection, "sock", None)
    if sock is not None:
        sock.settimeout(timeout_s)


class BodyLines:
    """The lines of an endless body; one thread iterates, any may abort."""

    def __init__(self, response: urllib3.BaseHTTPResponse, operation: str) -> None:
        self._response = response
        self._operation = operation
        self._ready: collections.deque[bytes] = collections.deque()
        self._begun: list[bytes] = []
        self._aborted = False

    def __iter__(self) -> "BodyLines":
        return self

    def __next__(self) -> bytes:
        """Wait for the next line; the end of the body or an abort ends the loop.

        Raises:
            Unavailable: the server was silent for too long, or closed the connection.
        """
        while not self._ready:
            chunk = self._read()
            if not chunk:
                raise StopIteration
            *ended, rest = chunk.split(b"\n")
            for end in ended:
                self._ready.append(b"".join((*self._begun, end)))
                self._begun.clear()
            if rest:
                self._begun.append(rest)
        return self._ready.popleft()

    def _read(self) -> bytes:
        try:
            with translated(self._operation):
                return b"" if self._aborted else self._response.read1(_CHUNK_BYTES)
        except errors.Unavailable:
            if self._aborted:
                return b""
            raise

    def abort(self) -> None:
        """End the loop of the thread that iterates, also one that waits right now."""
        self._aborted = True
        # Refused once the body has ended, and then there is nothing to abort.
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()


@contextlib.contextmanager
def observed(
    observer: Observer | None, method: str, plural: str
) -> Iterator[Callable[[int], None]]:
    """Yield a function that reports a status, and how long it took, once."""
    began = time.monotonic()
    reported = 0

    def answered(status: int) -> None:
        nonlocal reported
        reported = status

    try:
        yield answered
    finally:
        if observer is not None:
            observer(method, plural, reported, time.monotonic() - began)

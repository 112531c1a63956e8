"""Proxy of a parent's API server that loses responses and rejects requests.

It terminates TLS with a certificate of the parent's authority and forwards credentials.
Responses of watches are forwarded without a buffer.
"""

import contextlib
import dataclasses
import datetime
import http.client
import http.server
import json
import pathlib
import ssl
import threading
from collections.abc import Callable, Collection, Iterator

import yaml

from lib.lab import places
from lib.lab.kube import kube_files, pki
from lib.lab.run import ports

FORWARD_S = 600.0
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
"""Headers of one connection, not of the message. Source: RFC 9110, 7.6.1."""
_NAME = "losing-parent"


@dataclasses.dataclass(frozen=True, slots=True)
class Sent:
    """Request of a client."""

    method: str
    path: str

    @property
    def plural(self) -> str:
        """Return the plural of the kind in a namespace; empty: the path has none."""
        parts = self.path.partition("?")[0].split("/")
        return parts[parts.index("namespaces") + 2] if "namespaces" in parts else ""

    @property
    def is_write(self) -> bool:
        """Report whether the request is a write."""
        return self.method != "GET"


Rule = Callable[[Sent], bool]


def never(sent: Sent) -> bool:
    """Return False for every request."""
    del sent
    return False


class LosingParent:
    """Proxy that serves while its block runs; see `losing` and `rejecting`.

    where: of the parent.
    """

    def __init__(self, where: places.Places) -> None:
        self.target = where.port("apiserver")
        self.trust = ssl.create_default_context(
            cafile=kube_files.certificates(where) / "ca.crt"
        )
        self.is_lost: Rule = never
        self.is_rejected: Rule = never
        self.lost: list[Sent] = []
        self.rejected: list[Sent] = []
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = http.server.ThreadingHTTPServer((ports.LOOPBACK, 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.socket = _identity(where).wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        """Return the URL of the proxy."""
        return f"https://{ports.LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> "LosingParent":
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop; requests in progress are not awaited."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def kubeconfig(self, source: pathlib.Path) -> pathlib.Path:
        """Write a kubeconfig of the parent again, for this proxy; return its file."""
        document = yaml.safe_load(source.read_text())
        document["clusters"][0]["cluster"]["server"] = self.url
        target = source.with_suffix(f".{_NAME}")
        target.write_text(yaml.safe_dump(document))
        return target

    @contextlib.contextmanager
    def losing(self, is_lost: Rule) -> Iterator[list[Sent]]:
        """Forward matching requests, and close the connection without a response.

        Yields the list of these requests, which grows.
        """
        self.lost = []
        self.is_lost = is_lost
        try:
            yield self.lost
        finally:
            self.is_lost = never

    @contextlib.contextmanager
    def rejecting(self, is_rejected: Rule) -> Iterator[list[Sent]]:
        """Return 409 for matching requests, which are not forwarded.

        Yields the list of these requests, which grows.
        """
        self.rejected = []
        self.is_rejected = is_rejected
        try:
            yield self.rejected
        finally:
            self.is_rejected = never


def first_creates(*plurals: str) -> Rule:
    """Return a rule that matches the first create of each kind."""
    return _first(lambda sent: (sent.method == "POST" and sent.plural) or "", plurals)


def first_writes() -> Rule:
    """Return a rule that matches the first write of each kind to each object."""

    def of(sent: Sent) -> str:
        path = sent.path.partition("?")[0]
        return f"{sent.method} {path}" if sent.is_write else ""

    return _first(of)


def _first(key: Callable[[Sent], str], only: Collection[str] = ()) -> Rule:
    """Return a rule that matches the first request with each key, if it has one."""
    known: set[str] = set()
    lock = threading.Lock()

    def is_first(sent: Sent) -> bool:
        name = key(sent)
        with lock:
            if not name or name in known or (only and name not in only):
                return False
            known.add(name)
            return True

    return is_first


def _identity(where: places.Places) -> ssl.SSLContext:
    now = datetime.datetime.now(datetime.UTC)
    kube_files.issued(where, _NAME, pki.Subject(_NAME, names=(ports.LOOPBACK,)), now)
    folder = kube_files.certificates(where)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{_NAME}.crt", folder / f"{_NAME}.key")
    return context


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    proxy: LosingParent

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent = Sent(self.command, self.path)
        if self.proxy.is_rejected(sent):
            self.proxy.rejected.append(sent)
            self._reject()
            return
        is_lost = self.proxy.is_lost(sent)
        kept = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        connection = http.client.HTTPSConnection(
            ports.LOOPBACK,
            self.proxy.target,
            timeout=FORWARD_S,
            context=self.proxy.trust,
        )
        try:
            connection.request(self.command, self.path, body or None, kept)
            answer = connection.getresponse()
            if is_lost:
                answer.read()
                self.proxy.lost.append(sent)
                self.close_connection = True
            else:
                self._forward(answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()

    def _forward(self, answer: http.client.HTTPResponse) -> None:
        """Forward a response in chunks, each as soon as it arrives."""
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # A watch without events sends no chunk for long.
        self.wfile.flush()
        while part := answer.read1(1 << 16):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _reject(self) -> None:
        """Return the error of an API server for an object that was changed."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "the object has been modified; please apply your changes to the"
            " latest version and try again",
            "reason": "Conflict",
            "code": int(http.HTTPStatus.CONFLICT),
        }
        body = json.dumps(status).encode()
        self.send_response_only(http.HTTPStatus.CONFLICT)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 # its names

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        del format, args

"""The simulated engine as a program: HTTPS on loopback, and a control socket.

State, certificates and the password are in one folder; a second start serves the same
objects. Tokens are lost by a restart, as those of an engine.
"""

import contextlib
import dataclasses
import datetime
import http.server
import json
import pathlib
import secrets
import signal
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping

from lib.lab.kube import pki
from lib.lab.run import ports
from lib.lab.zvirt import control, routes, seed, service
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import Records
from lib.lab.zvirt.sso import SingleSignOn

CONTROL = "control.sock"
PASSWORD = "password"  # noqa: S105 # name of a file
REQUESTS = "requests.jsonl"
CA = "ca.crt"
_IDLE_S = 120.0
_SILENT_S = 600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Authority:
    """The authority of an engine, and its certificate."""

    ca: pki.Pair
    server: pki.Pair


def authority(folder: pathlib.Path) -> Authority:
    """Return the certificates of a folder; they are created at the first call."""
    now = datetime.datetime.now(datetime.UTC)
    ca = pki.kept(folder, "ca")
    if ca is None:
        ca = pki.authority("zvirt-engine lab", now)
        pki.keep(folder, "ca", ca)
    pair = pki.kept(folder, "server")
    if pair is None:
        names = (ports.LOOPBACK, "localhost")
        pair = pki.issue(ca, pki.Subject("zvirt-engine", names=names), now)
        pki.keep(folder, "server", pair)
    return Authority(ca, pair)


def password(folder: pathlib.Path) -> str:
    """Return the password of the administrator; created at the first call."""
    file = folder / PASSWORD
    if not file.exists():
        # Long: Ansible replaces each occurrence of it in every value.
        pki.write_secret(file, secrets.token_urlsafe(24).encode())
    return file.read_text()


class _Server(http.server.ThreadingHTTPServer):
    """daemon_threads: connections that stay open do not delay the end."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, served: service.Service
    ) -> None:
        super().__init__(address, _Handler)
        self.context, self.served = context, served
        self._open: set[socket.socket] = set()

    def server_close(self) -> None:
        """Close the listener and all connections, as a process that exits."""
        super().server_close()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def finish_request(
        self,
        request: socket.socket | tuple[bytes, socket.socket],
        client_address: object,
    ) -> None:
        """Begin TLS in the thread of the connection."""
        if not isinstance(request, socket.socket):
            return
        request.settimeout(_IDLE_S)
        with contextlib.suppress(OSError):
            tls = self.context.wrap_socket(request, server_side=True)
            self._open.add(tls)
            try:
                _Handler(tls, client_address, self)
            finally:
                self._open.discard(tls)
                tls.close()


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "Apache"
    sys_version = ""
    wbufsize = -1
    """A response is one write: otherwise each waits 40 ms for an acknowledgement."""
    server: _Server

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length", "0") or "0")
        body = self.rfile.read(length) if length else self._chunks()
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.served.handle(self.command, self.path, headers, body)
        if reply is None:
            threading.Event().wait(_SILENT_S)
            self.close_connection = True
            return
        if reply.broken:
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.body or reply.status != http.HTTPStatus.NOT_FOUND:
            self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _chunks(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return b""
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _handle  # noqa: N815

    def handle_expect_100(self) -> bool:
        """Accept Expect: 201-created, which is not that of HTTP."""
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the service records requests."""
        del format, args


@contextlib.contextmanager
def serving(
    served: service.Service, certificates: Authority, port: int = 0
) -> Iterator[int]:
    """Serve for as long as the block lasts; return the port.

    port: 0 for a free one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with _files(certificates.server) as (certificate, key):
        context.load_cert_chain(certificate, key)
    with _Server((ports.LOOPBACK, port), context, served) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def _files(pair: pki.Pair) -> Iterator[tuple[str, str]]:
    """Write a pair to files, which the ssl module requires."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pki.keep(folder, "pair", pair)
        yield str(folder / "pair.crt"), str(folder / "pair.key")


def open_service(folder: pathlib.Path) -> tuple[service.Service, Authority]:
    """Open the engine of a folder; a new one has the objects of `seed`."""
    folder.mkdir(parents=True, exist_ok=True)
    certificates = authority(folder)
    engine = Engine(Records(folder / "engine.db"), routes.TIMED)
    if engine.records.is_empty():
        seed.fill(engine)
    sso = SingleSignOn(engine, {seed.USER: password(folder)})
    log = (folder / REQUESTS).open("a", buffering=1)

    def record(logged: service.LoggedRequest) -> None:
        log.write(json.dumps(dataclasses.asdict(logged)) + "\n")

    served = service.Service(
        engine, sso, ca=certificates.ca.certificate, on_request=record
    )
    return served, certificates


def main() -> None:
    """Run as a process. Its arguments are --folder=FOLDER and --port=PORT."""
    words: Mapping[str, str] = dict(
        word.removeprefix("--").split("=", 1) for word in sys.argv[1:]
    )
    folder = pathlib.Path(words["folder"])
    served, certificates = open_service(folder)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    with (
        serving(served, certificates, int(words["port"])) as port,
        control.listening(folder / CONTROL, served),
    ):
        sys.stdout.write(f"serving on port {port}\n")
        sys.stdout.flush()
        stop.wait()


if __name__ == "__main__":
    main()

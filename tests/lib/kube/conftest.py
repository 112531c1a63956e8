"""A small HTTP server that stands in for kube-apiserver."""

import collections
import contextlib
import dataclasses
import datetime
import http.server
import ipaddress
import pathlib
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lib.kube import client, errors, kube_config, objects
from lib.kube.fake import api

TOKEN = "s3cret-token"


@dataclasses.dataclass(frozen=True)
class Request:
    """One request that came in."""

    command: str
    path: str
    headers: Mapping[str, str]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers from a FakeApi, or as the test's script says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stand: "StandIn"
    body = b""

    def setup(self) -> None:
        super().setup()
        self.stand.connections += 1

    def log_message(self, format: str, *args: object) -> None:
        del format, args

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        if len(self.body) < length:
            return  # it broke off: an API server carries nothing out either
        headers = dict(self.headers.items())
        self.stand.requests.append(Request(self.command, self.path, headers))
        with contextlib.suppress(OSError):
            if self.stand.script:
                self.stand.script.popleft()(self)
            else:
                self.from_fake()

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, message: str, **headers: str) -> None:
        body = {"kind": "Status", "message": message, "code": status}
        self.send(status, msgspec.json.encode(body), **headers)

    def stall(self) -> None:
        self.stand.ended.wait(30)
        self.drop()

    def drop(self) -> None:
        self.close_connection = True

    def from_fake(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        try:
            if query.get("watch"):
                self._watch(url.path, query)
                return
            body = self.stand.fake.request(
                self.command,
                url.path,
                query=query,
                body=self.body or None,
                content_type=self.headers.get("Content-Type") or client.JSON,
                timeout_s=30,
            )
            self.send(200, body)
        except errors.KubeError as error:
            status = {"message": error.message, "reason": error.reason}
            self.send(error.status, msgspec.json.encode(status))

    def _watch(self, path: str, query: dict[str, str]) -> None:
        opened = self.stand.fake.stream(
            path, query, connect_timeout_s=5, read_timeout_s=60
        )
        with opened as lines:
            self.begin_chunks()
            try:
                for line in lines:
                    if self.stand.is_silent:
                        self.stand.ended.wait(60)
                        return
                    self.chunk(line + b"\n")
            except errors.Unavailable:
                self.drop()
                return
        self.chunk(b"")

    def begin_chunks(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class Quiet(http.server.ThreadingHTTPServer):
    """Says nothing of clients that break off."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address


class StandIn:
    """The server. script: what to do with the next requests, before the fake is asked.

    is_silent: watches that are open, or will be, send nothing more.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.fake = api.FakeApi()
        self.requests: list[Request] = []
        self.connections = 0
        self.script: collections.deque[Callable[[Handler], None]] = collections.deque()
        self.is_silent = False
        self.ended = threading.Event()
        methods = ("GET", "POST", "PUT", "PATCH", "DELETE")
        answers = {f"do_{method}": Handler.answer for method in methods}
        handler = type("Bound", (Handler,), {"stand": self, **answers})
        self._http = Quiet(("127.0.0.1", 0), handler)
        if context is not None:
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()

    def count(self, method: str) -> int:
        return sum(request.command == method for request in self.requests)

    def close(self) -> None:
        self.ended.set()
        self.fake.break_watches()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)


@pytest.fixture()
def server() -> Iterator[StandIn]:
    stand = StandIn()
    yield stand
    stand.close()


@pytest.fixture()
def tls_server(tmp_path: pathlib.Path) -> Iterator[StandIn]:
    """A server with a certificate of its own, in tmp_path/ca.pem."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stand-in")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (tmp_path / "ca.pem").write_bytes(pem)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "server.pem").write_bytes(pem + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    stand = StandIn(context)
    yield stand
    stand.close()


WriteKubeconfig = Callable[..., pathlib.Path]


@pytest.fixture()
def kubeconfig(tmp_path: pathlib.Path) -> WriteKubeconfig:
    """Return a function that writes a kubeconfig with these fields."""

    def write(
        server: str,
        user: dict[str, object] | None = None,
        cluster: dict[str, object] | None = None,
    ) -> pathlib.Path:
        user = {"token": TOKEN} if user is None else user
        whole = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": server, **(cluster or {})}}
            ],
            "users": [{"name": "u", "user": user}],
        }
        path = tmp_path / "kubeconfig"
        path.write_bytes(msgspec.yaml.encode(whole))
        return path

    return write


Connect = Callable[..., client.KubeClient]


@pytest.fixture()
def connect(kubeconfig: WriteKubeconfig) -> Connect:
    """Return a function that makes a client of a server."""

    def make(
        url: str,
        user: dict[str, object] | None = None,
        cluster: dict[str, object] | None = None,
        **more: object,
    ) -> client.KubeClient:
        path = kubeconfig(url, user, cluster)
        loaded = kube_config.load(str(path), env={})
        more = {"rng": lambda: 0.0, **more}
        return client.KubeClient(loaded, user_agent="test/1", **more)  # type: ignore[arg-type] # named by each test

    return make


@pytest.fixture()
def fake() -> api.FakeApi:
    return api.FakeApi()


class Thing(msgspec.Struct, frozen=True):
    """An object of which the metadata matters, and one field."""

    metadata: objects.ObjectMeta
    spec: dict[str, object] = {}


@pytest.fixture()
def thing() -> type[Thing]:
    return Thing


@pytest.fixture(autouse=True)
def log() -> Iterator[list[dict[str, object]]]:
    """Yield the list of entries logged so far."""
    with structlog.testing.capture_logs() as entries:
        yield entries  # type: ignore[misc] # a MutableMapping of the same

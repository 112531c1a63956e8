"""Accounts and CA certificates of private sources of charts."""

import base64
import contextlib
import datetime
import http.server
import ipaddress
import json
import pathlib
import ssl
import threading
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lib.helm import cache, errors, model, policy, source_access, sources
from lib.helm.source_access import SourceAccess

HOST = "charts.example.com"
PAIR = ("robot", "pa55:word")
AUTH = base64.b64encode(":".join(PAIR).encode()).decode()


def write(folder: pathlib.Path, **auths: dict[str, str]) -> SourceAccess:
    """Write accounts as a mounted Secret has them."""
    text = json.dumps({"auths": auths})
    (folder / source_access.ACCOUNTS).write_text(text)
    return SourceAccess(folder)


@pytest.mark.parametrize(
    ("host", "account", "url", "expected"),
    [
        pytest.param(HOST, {"auth": AUTH}, f"https://{HOST}/x", PAIR, id="its host"),
        pytest.param(
            f"https://{HOST}/v1/", {"auth": AUTH}, f"https://{HOST}", PAIR, id="a URL"
        ),
        pytest.param(
            HOST,
            {"username": "robot", "password": "pa55:word"},
            f"https://{HOST.upper()}/x",
            PAIR,
            id="user and password",
        ),
        pytest.param(HOST, {"auth": AUTH}, f"http://{HOST}/x", None, id="without TLS"),
        pytest.param(
            HOST, {"auth": AUTH}, "https://example.com/x", None, id="another host"
        ),
        pytest.param(
            HOST, {"auth": AUTH}, f"https://{HOST}:8443/x", None, id="another port"
        ),
        pytest.param(HOST, {"auth": "?"}, f"https://{HOST}/x", None, id="not base64"),
        pytest.param(HOST, {}, f"https://{HOST}/x", None, id="without an account"),
    ],
)
def test_an_account_is_sent_to_its_host_only(
    tmp_path: pathlib.Path,
    host: str,
    account: dict[str, str],
    url: str,
    expected: tuple[str, str] | None,
) -> None:
    assert write(tmp_path, **{host: account}).account(url) == expected


def test_without_a_folder_sources_are_read_anonymously(tmp_path: pathlib.Path) -> None:
    for access in (SourceAccess(), SourceAccess(tmp_path)):
        assert access.account(f"https://{HOST}") is None
        assert access.authority() is True


def certificate(folder: pathlib.Path) -> pathlib.Path:
    """Write a certificate for loopback, and its key; return the file of both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / source_access.AUTHORITY).write_bytes(signed.public_bytes(pem))
    file = folder / "server.pem"
    file.write_bytes(private + signed.public_bytes(pem))
    return file


@contextlib.contextmanager
def serving(file: pathlib.Path, challenge: str) -> Iterator[tuple[str, list[str]]]:
    """Serve 401 without an account, else 404; yield host and what was sent."""
    sent: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the standard library names it
            account = self.headers.get("Authorization", "")
            sent.append(f"{self.path.partition('?')[0]} {account}")
            if self.path.startswith("/token"):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"token": "t"}')
                return
            self.send_response(404 if account else 401)
            self.send_header("WWW-Authenticate", challenge.format(port=port))
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"127.0.0.1:{port}", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_private_repository_gets_the_account(tmp_path: pathlib.Path) -> None:
    with serving(certificate(tmp_path), "Basic") as (host, sent):
        access = write(tmp_path, **{host: {"auth": AUTH}})
        opened = sources.open_source(f"https://{host}/x", policy.TRUSTED, access)
        with pytest.raises(errors.SourceUnreachable, match="404") as caught:
            opened.newest("keystone")
    assert sent == [f"/x/index.yaml Basic {AUTH}"]
    assert "pa55" not in str(caught.value)


def test_a_certificate_of_another_authority_is_refused(tmp_path: pathlib.Path) -> None:
    with serving(certificate(tmp_path), "Basic") as (host, sent):
        charts = cache.Charts(tmp_path / "cache")
        with pytest.raises(errors.SourceUnreachable, match="certificate"):
            charts.get(f"https://{host}/x", model.Pin("keystone", "1.0.0", None))
    assert sent == []

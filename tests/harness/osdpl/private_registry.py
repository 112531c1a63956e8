"""A private registry over TLS: 401 and a challenge, a token service, then content.

Source: distribution.github.io/distribution/spec/auth/token; RFC 7617 for Basic. It
listens at 0.0.0.0, which is this host and no loopback address: registries on loopback
are asked by plain HTTP.
"""

import base64
import contextlib
import datetime
import http.server
import ipaddress
import pathlib
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "0.0.0.0"  # noqa: S104 # see above
REALM = "https://{host}/token?account=x"
Content = Callable[[str], tuple[int, Mapping[str, str], bytes]]
"""Status, headers and body of a path."""


def write_certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Write an authority that is the server, too; return its file, and with the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name[:64])])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    names = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", HOST)]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    authority, server = folder / "ca.crt", folder / "server.pem"
    authority.write_bytes(signed.public_bytes(pem))
    server.write_bytes(private + signed.public_bytes(pem))
    return authority, server


@contextlib.contextmanager
def serving(
    file: pathlib.Path,
    accounts: Mapping[str, str],
    content: Content,
    scheme: str = "Bearer",
    issued: bytes = b'{"token": "t0ken"}',
) -> Iterator[tuple[str, list[str]]]:
    """Serve content to accounts only; yield host and port, and what was sent.

    file: certificate and key. accounts: passwords by user. scheme: of the challenge.
    issued: answer of the token service.
    """
    sent: list[str] = []
    basic = {
        "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        for user, password in accounts.items()
    }
    accepted = basic if scheme.lower() == "basic" else {"Bearer t0ken"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the standard library names it
            account = self.headers.get("Authorization", "")
            parts = urllib.parse.urlsplit(self.path)
            sent.append(f"{parts.path} {account.partition(' ')[0]}".strip())
            if parts.path == "/token":
                is_known = account in basic
                self._answer(*((200, {}, issued) if is_known else (401, {}, b"{}")))
            elif account not in accepted:
                realm = REALM.format(host=host)
                words = f'{scheme} realm="{realm}",service="test",scope="pull"'
                self._answer(401, {"WWW-Authenticate": words}, b"{}")
            else:
                self._answer(*content(self.path))

        do_HEAD = do_GET  # noqa: N815

        def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    host = f"{HOST}:{server.server_address[1]}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield host, sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""Clients authenticate by certificate: real TLS, on loopback."""

import contextlib
import datetime
import http.client
import pathlib
import socket
import ssl
from collections.abc import Callable, Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid

from lib.process import certificates, config, exchange, serving, tls

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
CUT = "(?i)alert|reset|closed|broken|EOF"
"""What a client hears of a refused handshake depends on how far it has come."""


class Authority:
    """Signs certificates for clients."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, name)])
        self.pem = self._signed(self._name, self._key, is_ca=True)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_ca: bool
    ) -> bytes:
        limits = x509.BasicConstraints(ca=is_ca, path_length=None)
        use = x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - DAY)
            .not_valid_after(NOW + DAY)
            .add_extension(limits, critical=True)
        )
        if not is_ca:
            builder = builder.add_extension(use, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)

    def issue(self, folder: pathlib.Path, name: str, *groups: str) -> pathlib.Path:
        """Return the file of a new certificate and its key; name: may be empty."""
        key = ec.generate_private_key(ec.SECP256R1())
        fields = [(oid.NameOID.ORGANIZATION_NAME, group) for group in groups]
        fields += [(oid.NameOID.COMMON_NAME, name)] if name else []
        subject = x509.Name([x509.NameAttribute(*field) for field in fields])
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file = folder / f"client-{name}.pem"
        file.write_bytes(self._signed(subject, key, is_ca=False) + secret)
        return file


def who(request: exchange.Request) -> exchange.Reply:
    peer = request.peer
    text = "nobody" if peer is None else f"{peer.name} of {','.join(peer.groups)}"
    return exchange.Reply(text.encode())


def anybody(request: exchange.Request) -> exchange.Decision:
    del request
    return exchange.Decision.ALLOW


Ask = Callable[..., str]


@pytest.fixture()
def authorities(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "ca.pem"


@pytest.fixture()
def ask(authorities: pathlib.Path) -> Iterator[Ask]:
    """Yield a function that asks a server who we are; own: our certificate's file."""
    pair = certificates.self_signed(["localhost", "127.0.0.1"], NOW)
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    certificate = tls.InMemory(pair, clients=tls.Clients(authorities))
    routes = exchange.HttpRoutes({"/who": who}, anybody)
    server = serving.HttpServer(listener, certificate, routes)

    def send(own: pathlib.Path | None = None) -> str:
        context = ssl.create_default_context(cadata=pair.certificate.decode())
        if own is not None:
            context.load_cert_chain(own)
        connection = http.client.HTTPSConnection(
            "localhost", port, context=context, timeout=10
        )
        with contextlib.closing(connection):
            connection.request("GET", "/who")
            return connection.getresponse().read().decode()

    server.start()
    yield send
    server.stop()


@pytest.fixture()
def authority(authorities: pathlib.Path) -> Authority:
    own_authority = Authority("ours")
    authorities.write_bytes(own_authority.pem)
    return own_authority


def test_a_client_is_who_its_certificate_says(
    authority: Authority, ask: Ask, tmp_path: pathlib.Path
) -> None:
    """The common name is the user, each organization a group; else no user."""
    assert ask(authority.issue(tmp_path, "alice", "ops", "dev")) == "alice of ops,dev"
    assert ask(authority.issue(tmp_path, "bob")) == "bob of "
    assert ask(authority.issue(tmp_path, "", "ops")) == "nobody"
    assert ask() == "nobody"


@pytest.mark.usefixtures("authority")
def test_a_certificate_of_somebody_else_is_refused(
    ask: Ask, tmp_path: pathlib.Path
) -> None:
    """A certificate of an unknown authority is rejected, whatever its name."""
    stranger = Authority("ours").issue(tmp_path, "alice", "system:masters")
    with pytest.raises(OSError, match=CUT):
        ask(stranger)
    assert ask() == "nobody"


def test_new_authorities_replace_the_old_ones(
    authority: Authority, ask: Ask, authorities: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The file is read again; what only the old one signed counts no more."""
    old = authority.issue(tmp_path, "alice")
    assert ask(old) == "alice of "
    authorities.write_text("nonsense")
    assert ask(old) == "alice of ", "a broken file leaves the former in place"
    new = Authority("new")
    authorities.write_bytes(new.pem)
    assert ask(new.issue(tmp_path, "carol")) == "carol of "
    with pytest.raises(OSError, match=CUT):
        ask(old)


@pytest.mark.parametrize("content", [None, "", "nonsense"])
def test_a_file_that_can_not_be_used_at_the_start_is_a_config_error(
    authorities: pathlib.Path, content: str | None
) -> None:
    """The message names flag, file and what would be right."""
    if content is not None:
        authorities.write_text(content)
    with pytest.raises(
        config.ConfigError, match=r"--client-ca-file: .*ca\.pem.*(PEM|no such file)"
    ):
        tls.Clients(authorities)

"""The lab's certificates and kubeconfigs.

Keys are EC P-256: made in a millisecond and accepted by every program of Kubernetes.
Nothing here is fit for anything but a lab: ten years, no revocation, keys on disk.
"""

import base64
import dataclasses
import datetime
import ipaddress
import os
import pathlib
import tempfile

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid

_LIFE = datetime.timedelta(days=3650)
# A clock that is a little behind must not find its new certificate not yet valid.
_SLACK = datetime.timedelta(hours=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """Who a certificate is for. organization: a group, to Kubernetes.

    names: DNS names and addresses under which it serves, if it does.
    """

    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """How a kubeconfig proves who it is: by a certificate or by a token."""

    pair: Pair | None = None
    token: str = dataclasses.field(default="", repr=False)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _name(subject: Subject) -> x509.Name:
    parts = [x509.NameAttribute(oid.NameOID.COMMON_NAME, subject.common_name)]
    if subject.organization:
        organization = x509.NameAttribute(
            oid.NameOID.ORGANIZATION_NAME, subject.organization
        )
        parts.insert(0, organization)
    return x509.Name(parts)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _begin(
    subject: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + _LIFE)
    )


def authority(common_name: str, now: datetime.datetime) -> Pair:
    """Create a certificate authority of its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(Subject(common_name))
    certificate = (
        _begin(name, key.public_key(), now)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def issue(signer: Pair, subject: Subject, now: datetime.datetime) -> Pair:
    """Create a certificate for clients and servers, signed by an authority."""
    issuer = x509.load_pem_x509_certificate(signer.certificate)
    signing = serialization.load_pem_private_key(signer.key, password=None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise TypeError("an authority of the lab has an EC key")
    key = ec.generate_private_key(ec.SECP256R1())
    both = [
        oid.ExtendedKeyUsageOID.CLIENT_AUTH,
        oid.ExtendedKeyUsageOID.SERVER_AUTH,
    ]
    builder = (
        _begin(_name(subject), key.public_key(), now)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
    )
    if subject.names:
        names = x509.SubjectAlternativeName([_alternative(n) for n in subject.names])
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(signing, hashes.SHA256())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def key_pair() -> tuple[bytes, bytes]:
    """Create a bare key: private and public, PEM (for signing tokens)."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _pem(key), public


def kubeconfig(
    server: str, authority_certificate: bytes, who: Credentials, namespace: str = ""
) -> str:
    """Write a kubeconfig with everything inside.

    server: URL of the API server. namespace: the default one, if any.

    Source: Kubernetes client-go, clientcmd/api/v1 Config.
    """
    user: dict[str, str] = {"token": who.token} if who.token else {}
    if who.pair is not None:
        user["client-certificate-data"] = _base64(who.pair.certificate)
        user["client-key-data"] = _base64(who.pair.key)
    cluster = {
        "server": server,
        "certificate-authority-data": _base64(authority_certificate),
    }
    context = {"cluster": "lab", "user": "lab"}
    if namespace:
        context["namespace"] = namespace
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": user}],
            "contexts": [{"name": "lab", "context": context}],
        },
        sort_keys=False,
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write_secret(file: pathlib.Path, content: bytes) -> None:
    """Write a file that only its owner reads; it appears complete or not at all.

    Several threads may write the same file.
    """
    # Created for its owner alone, under a name of its own.
    descriptor, part = tempfile.mkstemp(".new", f".{file.name}.", file.parent)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
    os.replace(part, file)


def kept(folder: pathlib.Path, name: str) -> Pair | None:
    """Read NAME.crt and NAME.key of a folder; None unless both are there."""
    try:
        certificate = (folder / f"{name}.crt").read_bytes()
        return Pair(certificate, (folder / f"{name}.key").read_bytes())
    except FileNotFoundError:
        return None


def keep(folder: pathlib.Path, name: str, pair: Pair) -> None:
    """Write NAME.key and NAME.crt; the certificate last, as it says both are there."""
    write_secret(folder / f"{name}.key", pair.key)
    write_secret(folder / f"{name}.crt", pair.certificate)

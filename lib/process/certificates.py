"""Serving certificates: self-signed, or signed by an authority of our own."""

import dataclasses
import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import exceptions, x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import oid

VALID_FOR = datetime.timedelta(days=3650)
"""Longer than any process runs: it is never renewed."""
_CLOCK_SKEW = datetime.timedelta(hours=1)


_PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclasses.dataclass(frozen=True, slots=True)
class CertificatePair:
    """Certificate chain and private key, both PEM."""

    certificate: bytes
    key: bytes = dataclasses.field(repr=False)


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def self_signed(
    names: Sequence[str],
    now: datetime.datetime,
    valid_for: datetime.timedelta = VALID_FOR,
    *,
    is_rsa: bool = False,
) -> CertificatePair:
    """Create a certificate for DNS names and IP addresses, the first on top.

    is_rsa: with a key for RSA of 2,048 bits, in place of EC P-256.

    Raises:
        ValueError: no name is given.
    """
    if not names:
        raise ValueError("a certificate needs a name")
    key: _PrivateKey = ec.generate_private_key(ec.SECP256R1())
    if is_rsa:
        key = rsa.generate_private_key(65537, 2048)
    common = f"{names[0][:48]}@{int(now.timestamp())}"
    certificate = (
        _begin(common, common, key, now, valid_for)
        .add_extension(_names(names), critical=False)
        .add_extension(_AUTHORITY, critical=True)
        .add_extension(_SERVER, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def authority(
    name: str, now: datetime.datetime, valid_for: datetime.timedelta = VALID_FOR
) -> CertificatePair:
    """Create the certificate (EC P-256) and key of an authority.

    The common name gets the time, in seconds since the epoch: two authorities of one
    name that are trusted at the same time differ in it.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    common = f"{name[:48]}@{int(now.timestamp())}"
    certificate = (
        _begin(common, common, key, now, valid_for)
        .add_extension(_AUTHORITY, critical=True)
        .add_extension(_key_id(key), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue(
    signer: CertificatePair,
    names: Sequence[str],
    now: datetime.datetime,
    valid_for: datetime.timedelta,
) -> CertificatePair:
    """Create a serving certificate, signed by an authority of `authority`.

    Raises:
        ValueError: the authority cannot be read, or no name is given.
    """
    if not names:
        raise ValueError("a certificate needs a name")
    issuer = x509.load_pem_x509_certificate(signer.certificate)
    signing = serialization.load_pem_private_key(signer.key, password=None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of an authority is an EC key")
    key = ec.generate_private_key(ec.SECP256R1())
    (common,) = issuer.subject.get_attributes_for_oid(oid.NameOID.COMMON_NAME)
    certificate = (
        _begin(names[0][:64], str(common.value), key, now, valid_for)
        .add_extension(_names(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_SERVER, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
        .sign(signing, hashes.SHA256())
    )
    return _pair(certificate, key)


def is_pair(pair: CertificatePair) -> bool:
    """Report whether key and certificate can be read and belong together."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
    except (ValueError, TypeError):
        return False
    return bool(certificate.public_key() == key.public_key())


def is_issued_by(certificate: bytes, signer: bytes) -> bool:
    """Report whether an authority has signed a certificate; both PEM.

    Raises:
        ValueError: one of them cannot be read.
    """
    issued = x509.load_pem_x509_certificate(certificate)
    issuer = x509.load_pem_x509_certificate(signer)
    try:
        issued.verify_directly_issued_by(issuer)
    except (exceptions.InvalidSignature, TypeError, ValueError):
        return False
    return True


def split(bundle: bytes) -> tuple[bytes, ...]:
    """Return each certificate of a PEM bundle.

    Raises:
        ValueError: it holds none, or one cannot be read.
    """
    return tuple(
        certificate.public_bytes(serialization.Encoding.PEM)
        for certificate in x509.load_pem_x509_certificates(bundle)
    )


def life(certificate: bytes) -> tuple[datetime.datetime, datetime.datetime]:
    """Return from when to when a certificate is valid, in UTC.

    Raises:
        ValueError: it cannot be read.
    """
    parsed = x509.load_pem_x509_certificate(certificate)
    return parsed.not_valid_before_utc, parsed.not_valid_after_utc


def names_of(certificate: bytes) -> frozenset[str]:
    """Return the DNS names and addresses that a certificate is for.

    Raises:
        ValueError: it cannot be read.
    """
    parsed = x509.load_pem_x509_certificate(certificate)
    try:
        extension = parsed.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(name.value) for name in extension.value)


_AUTHORITY = x509.BasicConstraints(ca=True, path_length=None)
_SERVER = x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.SERVER_AUTH])


def _begin(
    subject: str,
    issuer: str,
    key: _PrivateKey,
    now: datetime.datetime,
    valid_for: datetime.timedelta,
) -> x509.CertificateBuilder:
    """Return what all certificates have; subject, issuer: common names."""
    return (
        x509.CertificateBuilder()
        .subject_name(_common(subject))
        .issuer_name(_common(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + valid_for)
    )


def _common(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, name)])


def _names(names: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_name(name) for name in names])


def _key_id(key: _PrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _pair(certificate: x509.Certificate, key: _PrivateKey) -> CertificatePair:
    return CertificatePair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )

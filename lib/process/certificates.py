"""A serving certificate that vouches for itself, for those who bring none."""

import dataclasses
import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid

VALID_FOR = datetime.timedelta(days=3650)
"""Longer than any process lives: nobody renews it."""
_CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
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
) -> Pair:
    """Make a certificate (EC P-256) for DNS names and IP addresses, the first on top.

    Raises:
        ValueError: no name is given.
    """
    if not names:
        raise ValueError("a certificate needs a name")
    key = ec.generate_private_key(ec.SECP256R1())
    common = f"{names[0][:48]}@{int(now.timestamp())}"
    subject = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, common)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + valid_for)
        .add_extension(
            x509.SubjectAlternativeName([_name(name) for name in names]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )

"""Our own serving certificate."""

import datetime
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from lib.process import certificates

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def test_it_carries_every_name_and_address() -> None:
    pair = certificates.self_signed(["a.b", "127.0.0.1", "::1"], NOW)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["a.b"]
    assert names.value.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    ]


def test_it_is_p256_and_valid_around_now() -> None:
    pair = certificates.self_signed(["x" * 200], NOW)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc


def test_without_a_name_there_is_none() -> None:
    with pytest.raises(ValueError, match="name"):
        certificates.self_signed([], NOW)


def test_the_key_is_not_in_the_text_form() -> None:
    assert "PRIVATE" not in repr(certificates.self_signed(["a"], NOW))

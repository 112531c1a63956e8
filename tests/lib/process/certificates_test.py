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


YEAR = datetime.timedelta(days=365)


def test_an_authority_issues_a_certificate_for_names() -> None:
    signer = certificates.authority("ours", NOW)
    pair = certificates.issue(signer, ["a.svc", "127.0.0.1"], NOW, YEAR)
    assert certificates.is_pair(pair)
    assert certificates.is_issued_by(pair.certificate, signer.certificate)
    assert certificates.names_of(pair.certificate) == {"a.svc", "127.0.0.1"}
    begins, ends = certificates.life(pair.certificate)
    assert begins < NOW < ends == NOW + YEAR
    own = x509.load_pem_x509_certificate(pair.certificate)
    basic = own.extensions.get_extension_for_class(x509.BasicConstraints)
    assert not basic.value.ca


def test_another_authority_has_not_issued_it() -> None:
    first = certificates.authority("ours", NOW)
    same_name = certificates.authority("ours", NOW)
    later = certificates.authority("ours", NOW + YEAR)
    pair = certificates.issue(first, ["a"], NOW, YEAR)
    for other in (same_name, later, certificates.self_signed(["a"], NOW)):
        assert not certificates.is_issued_by(pair.certificate, other.certificate)
    bundle = later.certificate + first.certificate
    assert certificates.split(bundle) == (later.certificate, first.certificate)


def test_what_does_not_match_or_cannot_be_read_is_no_pair() -> None:
    first, second = (certificates.authority("ours", NOW) for _ in range(2))
    rows = {
        "a pair": (first.certificate, first.key, True),
        "another key": (first.certificate, second.key, False),
        "no key": (first.certificate, b"", False),
        "no certificate": (b"", first.key, False),
        "a certificate as key": (first.certificate, first.certificate, False),
        "a key as certificate": (first.key, first.key, False),
        "half": (first.certificate[:100], first.key, False),
    }
    for name, (certificate, key, expected) in rows.items():
        fits = certificates.is_pair(certificates.CertificatePair(certificate, key))
        print(f"{name:24} {fits}")
        assert fits is expected, name


def test_an_authority_that_cannot_sign_is_refused() -> None:
    pair = certificates.authority("ours", NOW)
    with pytest.raises(ValueError, match="PEM"):
        certificates.issue(
            certificates.CertificatePair(b"", pair.key), ["a"], NOW, YEAR
        )
    with pytest.raises(ValueError, match="name"):
        certificates.issue(pair, [], NOW, YEAR)

"""The formats that schemas name hold for what is right, and for nothing else."""

import datetime

import pytest

from lib.discovery import formats
from lib.process import certificates

ED25519 = "AAAAC3NzaC1lZDI1NTE5AAAAIGtpdmVraXZla2l2ZWtpdmVraXZla2l2ZWtpdmVraXZl"
ROWS = [
    ("http-url", "https://keystone.example:5000/v3", True),
    ("http-url", "keystone.example:5000", False),
    ("http-url", "https://", False),
    ("http-url", "https://[::1", False),
    ("ipv4-address", "192.0.2.1", True),
    ("ipv4-address", "192.0.2.256", False),
    ("ipv4-network", "192.168.0.0/16", True),
    ("ipv4-network", "0.0.0.0/0", True),
    ("ipv4-network", "192.168.0.1/16", False),
    ("ipv4-network", "192.168.0.0", False),
    ("ipv4-network", "192.168.0.0/255.255.0.0", False),
    ("ipv4-network", "192.168.0.0/16\n", False),
    ("ipv4-network", "2001:db8::/32", False),
    ("network", "192.0.2.1/24", True),
    ("network", "2001:db8::/32", True),
    ("network", "192.0.2.1", False),
    ("network", "anywhere", False),
    ("pem-certificates", "no certificate", False),
    ("pem-certificates", "", False),
    ("ssh-public-key", f"ssh-ed25519 {ED25519}", True),
    ("ssh-public-key", f"ssh-ed25519 {ED25519} me@here now\n", True),
    ("ssh-public-key", f"ssh-rsa {ED25519}", False),
    ("ssh-public-key", "ssh-ed25519 AAAA", False),
    ("ssh-public-key", "ssh-ed25519 ....", False),
    ("ssh-public-key", "ssh-ed25519", False),
    ("ssh-public-key", f"ssh-ed25519 {ED25519}\nssh-ed25519 {ED25519}", False),
    ("ssh-public-key", "-----BEGIN OPENSSH PRIVATE KEY-----", False),
]


@pytest.mark.parametrize(("name", "text", "holds"), ROWS)
def test_formats(name: str, text: str, holds: bool) -> None:
    """Each row is a text that is, or is not, of the format."""
    assert formats.checker().conforms(text, name) is holds


def test_each_format_has_rows() -> None:
    """A format that joins needs rows."""
    assert {row[0] for row in ROWS} == set(formats.checker().checkers)


def test_a_real_certificate_is_one() -> None:
    """With words around it, as in the bundles of distributions."""
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    pem = certificates.self_signed(["keystone.example"], now).certificate.decode()
    assert formats.is_pem(f"# Keystone\n{pem}\n# again\n{pem}")
    assert not formats.is_pem(pem.replace("MII", "???"))


def test_what_is_no_text_is_not_judged_here() -> None:
    """`type` tells that it is no text."""
    assert formats.checker().conforms(7, "http-url")

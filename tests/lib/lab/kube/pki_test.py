import base64
import concurrent.futures
import datetime
import ipaddress
import pathlib
import stat

import pytest
import yaml
from cryptography import x509
from cryptography.x509 import oid, verification

from lib.lab.kube import pki

NOW = datetime.datetime(2026, 5, 17, 12, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(days=3000)


@pytest.fixture()
def authority() -> pki.Pair:
    return pki.authority("lab ca", NOW)


def store(authority: pki.Pair) -> verification.Store:
    return verification.Store([x509.load_pem_x509_certificate(authority.certificate)])


def test_server_certificate_is_trusted_by_its_authority(authority: pki.Pair) -> None:
    """A client that trusts the authority accepts the server, years later too."""
    subject = pki.Subject("apiserver", names=("localhost", "127.0.0.1"))
    pair = pki.issue(authority, subject, NOW)
    leaf = x509.load_pem_x509_certificate(pair.certificate)
    for name in (
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ):
        verifier = verification.PolicyBuilder().store(store(authority)).time(LATER)
        chain = verifier.build_server_verifier(name).verify(leaf, [])
        assert chain[0] == leaf


def test_certificate_of_another_authority_is_refused(authority: pki.Pair) -> None:
    """Two labs don't trust each other's certificates."""
    other = pki.authority("lab ca", NOW)
    leaf = x509.load_pem_x509_certificate(
        pki.issue(other, pki.Subject("a", names=("localhost",)), NOW).certificate
    )
    verifier = verification.PolicyBuilder().store(store(authority)).time(NOW)
    with pytest.raises(verification.VerificationError):
        verifier.build_server_verifier(x509.DNSName("localhost")).verify(leaf, [])


def test_client_certificate_names_user_and_group(authority: pki.Pair) -> None:
    """Kubernetes reads the user from the common name, the group from organization."""
    subject = pki.Subject("admin", "system:masters")
    leaf = x509.load_pem_x509_certificate(
        pki.issue(authority, subject, NOW).certificate
    )
    assert leaf.subject.rfc4514_string() == "CN=admin,O=system:masters"
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert oid.ExtendedKeyUsageOID.CLIENT_AUTH in usage


def test_slow_clock_accepts_a_new_certificate(authority: pki.Pair) -> None:
    """A certificate is valid a little before it was made."""
    leaf = x509.load_pem_x509_certificate(authority.certificate)
    assert leaf.not_valid_before_utc < NOW - datetime.timedelta(minutes=30)


def test_kubeconfig_holds_all_that_a_client_needs(authority: pki.Pair) -> None:
    """The file works wherever it is copied to."""
    text = pki.kubeconfig(
        "https://127.0.0.1:6443",
        authority.certificate,
        pki.Credentials(authority),
        "cloud",
    )
    read = yaml.safe_load(text)
    cluster = read["clusters"][0]["cluster"]
    user = read["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert (
        base64.b64decode(cluster["certificate-authority-data"]) == authority.certificate
    )
    assert base64.b64decode(user["client-key-data"]) == authority.key
    assert read["contexts"][0]["context"]["namespace"] == "cloud"
    assert read["current-context"] == read["contexts"][0]["name"]


def test_kubeconfig_with_a_token_has_no_certificate(authority: pki.Pair) -> None:
    """Whoever has a token is nobody else by accident."""
    text = pki.kubeconfig(
        "https://x", authority.certificate, pki.Credentials(token="t")
    )
    assert yaml.safe_load(text)["users"][0]["user"] == {"token": "t"}


def test_secrets_are_their_owners_alone(
    tmp_path: pathlib.Path, authority: pki.Pair
) -> None:
    """A key is readable by nobody else, not even while it is being replaced."""
    (tmp_path / "ca.key").write_text("old and open")
    (tmp_path / "ca.key").chmod(0o644)
    pki.keep(tmp_path, "ca", authority)
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ca.crt", "ca.key"]
    assert pki.kept(tmp_path, "ca") == authority


def test_many_threads_write_one_secret(tmp_path: pathlib.Path) -> None:
    """Steps of a lab that start in parallel write the same cloud's file."""
    file = tmp_path / "clouds.yaml"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: pki.write_secret(file, b"x" * 5000), range(200)))
    assert [path.name for path in tmp_path.iterdir()] == ["clouds.yaml"]
    assert file.read_bytes() == b"x" * 5000
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_secrets_are_not_shown(authority: pki.Pair) -> None:
    """A key or token that ends up in a message is hidden there."""
    shown = repr((authority, pki.Credentials(authority, "s3cret")))
    assert "PRIVATE KEY" not in shown
    assert "s3cret" not in shown


def test_half_a_pair_is_none(tmp_path: pathlib.Path, authority: pki.Pair) -> None:
    """A certificate whose key was lost is made again."""
    pki.keep(tmp_path, "ca", authority)
    (tmp_path / "ca.key").unlink()
    assert pki.kept(tmp_path, "ca") is None

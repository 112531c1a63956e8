"""Versions and cipher suites by the names of Go, as real TLS servers offer them."""

import datetime
import socket
import ssl
import threading

import pytest

from lib.process import certificates, config, tls, tls_policy
from lib.process.tls_policy import TlsPolicy

NOW = datetime.datetime.now(datetime.UTC)
TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
ECDSA_GCM = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
RSA_GCM = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


def shaken(
    policy: TlsPolicy, highest: ssl.TLSVersion = TLS13, offered: str = "DEFAULT"
) -> tuple[str, str] | None:
    """Return version and cipher of a handshake; None: there was none.

    highest, offered: version and suites of the client.
    """
    pair = certificates.self_signed(("localhost",), NOW, is_rsa=policy.needs_rsa)
    server = tls.InMemory(pair, policy=policy).context()
    client = ssl.create_default_context(cadata=pair.certificate.decode())
    client.maximum_version = highest
    client.set_ciphers(offered)
    client_end, server_end = socket.socketpair()

    def accept() -> None:
        try:
            with server.wrap_socket(server_end, server_side=True) as connection:
                connection.recv(1)
        except OSError:
            server_end.close()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        with client.wrap_socket(client_end, server_hostname="localhost") as connection:
            cipher = connection.cipher()
            return (connection.version() or "", cipher[0] if cipher else "")
    except OSError:
        return None
    finally:
        client_end.close()
        thread.join()


def test_without_flags_both_versions_are_served() -> None:
    assert shaken(tls_policy.of("", ()), TLS12) is not None
    assert shaken(tls_policy.of("", ()), TLS13) is not None


@pytest.mark.parametrize("version", ["VersionTLS10", "VersionTLS11", "VersionTLS12"])
def test_tls_1_2_is_the_least(version: str) -> None:
    policy = tls_policy.of(version, ())
    assert policy.minimum is TLS12
    assert (shaken(policy, TLS12) or ("",))[0] == "TLSv1.2"


def test_a_client_of_tls_1_2_is_refused_above_it() -> None:
    policy = tls_policy.of("VersionTLS13", (ECDSA_GCM,))
    assert shaken(policy, TLS12) is None
    assert (shaken(policy, TLS13) or ("",))[0] == "TLSv1.3"


@pytest.mark.parametrize(
    ("suite", "openssl"),
    [
        (ECDSA_GCM, "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (RSA_GCM, "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256"),
    ],
)
def test_only_the_named_suites_are_offered(suite: str, openssl: str) -> None:
    """The certificate that is kept in memory has a key that the suite can use."""
    policy = tls_policy.of("", (suite,))
    assert shaken(policy, TLS12) == ("TLSv1.2", openssl)
    others = f"DEFAULT:!{openssl}"
    assert shaken(policy, TLS12, others) is None


@pytest.mark.parametrize(
    "suites",
    [
        ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
        ("TLS_RSA_WITH_RC4_128_SHA",),
        ("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
    ],
)
def test_without_a_suite_of_tls_1_2_only_1_3_is_served(suites: tuple[str, ...]) -> None:
    policy = tls_policy.of("VersionTLS12", suites)
    assert shaken(policy, TLS12) is None
    assert (shaken(policy, TLS13) or ("",))[0] == "TLSv1.3"


@pytest.mark.parametrize("suite", tls_policy.SUITES)
def test_openssl_has_each_suite_that_is_offered(suite: str) -> None:
    policy = tls_policy.of("", (suite,))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    policy.apply(context)
    names = {cipher["name"] for cipher in context.get_ciphers()}
    assert names >= set(policy.ciphers)


def test_blanks_and_repetitions_do_not_count() -> None:
    policy = tls_policy.of("", (f" {ECDSA_GCM}", "", ECDSA_GCM))
    assert policy.ciphers == ("ECDHE-ECDSA-AES128-GCM-SHA256",)


@pytest.mark.parametrize(
    ("version", "suites", "fields"),
    [
        ("TLS1.2", (), ["--tls-min-version"]),
        ("VersionTLS14", (), ["--tls-min-version"]),
        ("versiontls12", (), ["--tls-min-version"]),
        ("", ("ECDHE-RSA-AES128-GCM-SHA256",), ["--tls-cipher-suites"]),
        ("", ("TLS_FAKE", ECDSA_GCM, "TLS_NULL"), ["--tls-cipher-suites"] * 2),
        ("x", ("y",), ["--tls-min-version", "--tls-cipher-suites"]),
    ],
)
def test_unknown_names_are_named_with_their_flag(
    version: str, suites: tuple[str, ...], fields: list[str]
) -> None:
    with pytest.raises(config.ConfigError) as caught:
        tls_policy.of(version, suites)
    problems = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in problems] == fields
    assert all("must be one of " in line for line in problems)

"""The certificate with which a daemon serves its secure port."""

import platform

from lib.process import certificates, serving, tls
from lib.process.clock import utc_now
from lib.process.tls_policy import TlsPolicy


def check(files: tuple[str, str], authorities: str = "") -> None:
    """Check the files of a certificate; parameters: see `choose`.

    Raises:
        ConfigError: they cannot be used.
    """
    if all(files) or authorities:
        choose(files, authorities)


def choose(
    files: tuple[str, str], authorities: str = "", policy: TlsPolicy = tls.DEFAULT
) -> serving.Certificate:
    """Return the certificate of two files, or a self-signed one in memory.

    files: of the certificate and of its private key; both empty: none given.
    authorities: file of those that sign certificates of clients; empty: none.
    policy: versions and cipher suites.
    """
    clients = tls.Clients(authorities) if authorities else None
    if any(files):
        return tls.FromFiles(*files, clients=clients, policy=policy)
    names = (platform.node(), "localhost", "127.0.0.1")
    pair = certificates.self_signed(names, utc_now(), is_rsa=policy.needs_rsa)
    return tls.InMemory(pair, clients, policy)

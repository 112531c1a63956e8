"""Versions and cipher suites that a TLS server offers, by the names of Go's crypto/tls.

Source: k8s.io/component-base cli/flag, ciphersuites_flag.go; RFC 5246, RFC 8446.
"""

import dataclasses
import ssl
from collections.abc import Iterable, Mapping

from lib.process import config

MIN_VERSION, CIPHER_SUITES = "--tls-min-version", "--tls-cipher-suites"
VERSIONS: Mapping[str, ssl.TLSVersion] = {
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""TLS 1.0 and 1.1 are never served."""

_OF_TLS13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""All are offered with TLS 1.3, as in Go, which has no choice among them either."""
_REMOVED = (
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
)
"""Known to Go; OpenSSL 3 is built without RC4 and 3DES."""
_KEY_EXCHANGES = {
    "TLS_RSA_WITH_": "",
    "TLS_ECDHE_ECDSA_WITH_": "ECDHE-ECDSA-",
    "TLS_ECDHE_RSA_WITH_": "ECDHE-RSA-",
}
_CIPHERS = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
}
_OPENSSL = {
    f"{exchange}{cipher}": f"{prefix}{name}"
    for exchange, prefix in _KEY_EXCHANGES.items()
    for cipher, name in _CIPHERS.items()
    if prefix or "CHACHA20" not in cipher
}
SUITES = (*_OF_TLS13, *_OPENSSL, *_REMOVED)
"""All names that the flag accepts."""


@dataclasses.dataclass(frozen=True, slots=True)
class TlsPolicy:
    """What a server offers. ciphers: of TLS 1.2, by OpenSSL's names; empty: default."""

    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()

    @property
    def needs_rsa(self) -> bool:
        """Whether the chosen suites of TLS 1.2 work with an RSA key only."""
        return bool(self.ciphers) and not any("ECDSA" in name for name in self.ciphers)

    def apply(self, context: ssl.SSLContext) -> None:
        """Restrict a context to this policy."""
        context.minimum_version = self.minimum
        if self.ciphers:
            context.set_ciphers(":".join(self.ciphers))


def of(version: str, suites: Iterable[str]) -> TlsPolicy:
    """Return the policy of the two flags; both may be empty.

    Without a suite that TLS 1.2 can use, only TLS 1.3 is offered.

    Raises:
        ConfigError: with every name that is not known.
    """
    names = [name.strip() for name in suites if name.strip()]
    config.require(problems(version, names))
    minimum = VERSIONS.get(version, ssl.TLSVersion.TLSv1_2)
    ciphers = tuple(dict.fromkeys(_OPENSSL[name] for name in names if name in _OPENSSL))
    if names and not ciphers:
        minimum = ssl.TLSVersion.TLSv1_3
    return TlsPolicy(minimum, ciphers)


def problems(version: str, suites: Iterable[str]) -> list[config.FieldProblem]:
    """Return what is wrong with the two flags."""
    wrong: list[config.FieldProblem] = []
    if version and version not in VERSIONS:
        expected = f"one of {', '.join(VERSIONS)}"
        wrong.append(config.FieldProblem(MIN_VERSION, version, expected))
    for name in dict.fromkeys(suites):
        if name not in SUITES:
            expected = f"one of {', '.join(sorted(SUITES))}"
            wrong.append(config.FieldProblem(CIPHER_SUITES, name, expected))
    return wrong

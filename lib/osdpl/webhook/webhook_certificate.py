"""The certificate of the webhook, and its renewal. Pure.

Rules: the API server trusts an authority before a certificate of it is served: an
authority is published first, together with the previous one, and issues the certificate
later. Unusable certificates are replaced immediately.
"""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence

from lib.process import certificates

AUTHORITY_FOR = datetime.timedelta(days=3650)
CERTIFICATE_FOR = datetime.timedelta(days=365)
LEFT_MIN = 1 / 3
"""Renewed when less of its life is left. Source: cert-manager's default."""

BUNDLE, AUTHORITY_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Keys of the Secret. Source: cert-manager; kubernetes.io/tls."""


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """Content of the Secret, all PEM. bundle: the newest authority first."""

    bundle: bytes
    authority_key: bytes = dataclasses.field(repr=False)
    serving: certificates.CertificatePair

    @classmethod
    def parse(cls, data: Mapping[str, bytes]) -> "Held":
        """Return the content of a Secret's data; what is absent is empty."""
        pair = certificates.CertificatePair(
            data.get(CERTIFICATE, b""), data.get(KEY, b"")
        )
        return cls(data.get(BUNDLE, b""), data.get(AUTHORITY_KEY, b""), pair)

    def data(self) -> Mapping[str, bytes]:
        """Return the data of the Secret."""
        return {
            BUNDLE: self.bundle,
            AUTHORITY_KEY: self.authority_key,
            CERTIFICATE: self.serving.certificate,
            KEY: self.serving.key,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """Desired content of the Secret. why: it differs from the present; empty: equal."""

    held: Held
    why: str = ""


def step(
    held: Held | None,
    published: Sequence[bytes],
    names: Sequence[str],
    now: datetime.datetime,
) -> Step:
    """Return the desired content of the Secret.

    held: its content; None: no Secret. published: the authorities that the API
    server trusts, of each webhook that is configured. names: under which it is served.
    """
    if held is None:
        return Step(_new(names, now), "no Secret")
    if why := _unusable(held):
        return Step(_new(names, now), why)
    newest, *older = certificates.split(held.bundle)
    kept = [authority for authority in older if certificates.life(authority)[1] > now]
    if is_due(newest, now):
        # The certificate stays: the API server does not trust the new one yet.
        created = certificates.authority(names[0], now, AUTHORITY_FOR)
        bundle = b"".join((created.certificate, newest, *kept))
        renewed = dataclasses.replace(held, bundle=bundle, authority_key=created.key)
        return Step(renewed, "the authority ends soon")
    if len(kept) < len(older):
        bundle = b"".join((newest, *kept))
        return Step(dataclasses.replace(held, bundle=bundle), "an authority has ended")
    if why := _replaced(held, newest, names, now):
        is_trusted = all(newest in bundle for bundle in published)
        is_over = certificates.life(held.serving.certificate)[1] <= now
        if is_trusted or is_over:
            return Step(
                dataclasses.replace(held, serving=_issue(held, names, now)), why
            )
    return Step(held)


def is_due(certificate: bytes, now: datetime.datetime) -> bool:
    """Report whether less than a third of a certificate's life is left.

    Raises:
        ValueError: it cannot be read.
    """
    begins, ends = certificates.life(certificate)
    return (ends - now) < (ends - begins) * LEFT_MIN


def _new(names: Sequence[str], now: datetime.datetime) -> Held:
    created = certificates.authority(names[0], now, AUTHORITY_FOR)
    serving = certificates.issue(created, names, now, CERTIFICATE_FOR)
    return Held(created.certificate, created.key, serving)


def _issue(
    held: Held, names: Sequence[str], now: datetime.datetime
) -> certificates.CertificatePair:
    signer = certificates.CertificatePair(held.bundle, held.authority_key)
    return certificates.issue(signer, names, now, CERTIFICATE_FOR)


def _unusable(held: Held) -> str:
    """Return why nothing of it can be kept; empty: it can."""
    try:
        bundle = certificates.split(held.bundle)
        certificates.life(held.serving.certificate)
    except ValueError:
        return "a certificate cannot be read"
    if not certificates.is_pair(
        certificates.CertificatePair(bundle[0], held.authority_key)
    ):
        return "the authority and its key do not match"
    if not certificates.is_pair(held.serving):
        return "the certificate and its key do not match"
    leaf = held.serving.certificate
    if not any(certificates.is_issued_by(leaf, authority) for authority in bundle):
        return "no authority in it has signed the certificate"
    return ""


def _replaced(
    held: Held, newest: bytes, names: Sequence[str], now: datetime.datetime
) -> str:
    """Return why the certificate has to be replaced; empty: it need not."""
    leaf = held.serving.certificate
    if not certificates.is_issued_by(leaf, newest):
        return "a newer authority exists"
    if certificates.names_of(leaf) != frozenset(names):
        return "it is for other names"
    return "it ends soon" if is_due(leaf, now) else ""

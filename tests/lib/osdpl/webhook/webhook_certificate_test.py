"""When the certificate of the webhook is created, renewed and replaced."""

import dataclasses
import datetime
import os
from collections.abc import Sequence

import pytest

from lib.osdpl.webhook import webhook_certificate
from lib.osdpl.webhook.webhook_certificate import Held
from lib.process import certificates

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
NAMES = ("webhook.openstack.svc", "127.0.0.1")
DAY = datetime.timedelta(days=1)


def held(
    authority_days: float = 0, certificate_days: float = 0, names: Sequence[str] = NAMES
) -> Held:
    """Return what was created so many days ago."""
    signer = certificates.authority(
        "ours", NOW - authority_days * DAY, webhook_certificate.AUTHORITY_FOR
    )
    serving = certificates.issue(
        signer, names, NOW - certificate_days * DAY, webhook_certificate.CERTIFICATE_FOR
    )
    return Held(signer.certificate, signer.key, serving)


def rotated() -> Held:
    """Return what is held after a new authority was created, the second step."""
    before = held()
    created = certificates.authority("ours", NOW)
    bundle = created.certificate + before.bundle
    return dataclasses.replace(before, bundle=bundle, authority_key=created.key)


FRESH, ROTATED, OTHER = held(), rotated(), held()
AGED = held(0, 300)
OVER = dataclasses.replace(ROTATED, serving=OTHER.serving)


@dataclasses.dataclass(frozen=True)
class Row:
    """published: of each webhook. kept: what stays of bundle and serving pair."""

    name: str
    held: Held | None
    published: tuple[bytes, ...]
    why: str
    kept: tuple[str, ...] = ()


ALL, NOTHING = ("bundle", "serving"), ()
ROWS = (
    Row("no Secret", None, (b"",), "no Secret"),
    Row("fresh", FRESH, (FRESH.bundle,), "", ALL),
    Row("fresh, not published yet", FRESH, (b"",), "", ALL),
    Row("certificate ends soon", AGED, (AGED.bundle,), "it ends soon", ("bundle",)),
    Row("no webhook is configured", AGED, (), "it ends soon", ("bundle",)),
    Row("authority is not published yet", AGED, (b"",), "", ALL),
    Row("one of two is not", AGED, (AGED.bundle, b""), "", ALL),
    Row(
        "certificate is over",
        dataclasses.replace(held(400, 366)),
        (b"",),
        "it ends soon",
        ("bundle",),
    ),
    Row(
        "authority ends soon",
        held(2500, 10),
        (b"",),
        "the authority ends soon",
        ("serving",),
    ),
    Row(
        "an old authority has ended",
        dataclasses.replace(FRESH, bundle=FRESH.bundle + held(4000).bundle),
        (FRESH.bundle,),
        "an authority has ended",
        ("serving",),
    ),
    Row("new authority is not published yet", ROTATED, (FRESH.bundle,), "", ALL),
    Row(
        "new authority is published",
        ROTATED,
        (ROTATED.bundle,),
        "a newer authority exists",
        ("bundle",),
    ),
    Row(
        "other names",
        held(names=("another.svc",)),
        (),
        "it is for other names",
        ("bundle",),
    ),
    Row(
        "certificate of another authority",
        dataclasses.replace(FRESH, serving=OTHER.serving),
        (FRESH.bundle,),
        "no authority in it has signed the certificate",
    ),
    Row(
        "key of another certificate",
        dataclasses.replace(
            FRESH,
            serving=certificates.CertificatePair(
                FRESH.serving.certificate, OTHER.serving.key
            ),
        ),
        (FRESH.bundle,),
        "the certificate and its key do not match",
    ),
    Row(
        "key of another authority",
        dataclasses.replace(FRESH, authority_key=OTHER.authority_key),
        (FRESH.bundle,),
        "the authority and its key do not match",
    ),
    Row("empty Secret", Held.parse({}), (), "a certificate cannot be read"),
    Row(
        "no PEM",
        dataclasses.replace(FRESH, bundle=b"\xff\x00"),
        (),
        "a certificate cannot be read",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_step(row: Row) -> None:
    observed = webhook_certificate.step(row.held, row.published, NAMES, NOW)
    after = observed.held
    kept = []
    if row.held is not None:
        is_kept = {
            "bundle": row.held.bundle == after.bundle,
            "serving": row.held.serving == after.serving,
        }
        kept = [name for name, same in is_kept.items() if same]
    print(f"{row.name:36} {observed.why:44} keeps {', '.join(kept) or 'nothing'}")
    assert (observed.why, tuple(kept)) == (row.why, row.kept)
    newest, *older = certificates.split(after.bundle)
    signers = [newest, *older]
    assert any(certificates.is_issued_by(after.serving.certificate, x) for x in signers)
    assert certificates.is_pair(after.serving)
    assert certificates.is_pair(
        certificates.CertificatePair(newest, after.authority_key)
    )
    assert Held.parse(after.data()) == after
    assert "PRIVATE" not in repr(after)


IS_LONG = os.environ.get("MOORING_TIER") == "long"


@pytest.mark.parametrize("days", [1, 7] if IS_LONG else [7])
def test_ten_years_of_renewals_never_serve_what_is_not_trusted(days: int) -> None:
    """What is published follows one step later, as the API server may lag."""
    state: Held | None = None
    published: tuple[bytes, ...] = (b"",)
    renewals: dict[str, int] = {}
    for day in range(0, 12 * 365, days):
        now = NOW + day * DAY
        observed = webhook_certificate.step(state, published, NAMES, now)
        if state is not None:
            served = observed.held.serving.certificate
            trusted = certificates.split(published[0])
            assert any(certificates.is_issued_by(served, item) for item in trusted)
            assert certificates.life(served)[1] > now
        if observed.why:
            renewals[observed.why] = renewals.get(observed.why, 0) + 1
        state = observed.held
        if not observed.why or published == (b"",):
            published = (state.bundle,)
    print(renewals)
    assert renewals["no Secret"] == 1
    assert renewals["the authority ends soon"] == 1
    assert renewals["a newer authority exists"] == 1
    assert renewals["it ends soon"] in range(15, 19)
    assert renewals["an authority has ended"] == 1
    assert state is not None
    assert len(certificates.split(state.bundle)) == 1

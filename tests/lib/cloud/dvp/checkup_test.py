import base64
import datetime
import json

import pytest

from lib.cloud.dvp import checkup


def token(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer header.{body}.signature"


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (token({"exp": 1_800_000_000}), datetime.datetime(2027, 1, 15, 8)),
        (token({"exp": 1_800_000_000.5}), datetime.datetime(2027, 1, 15, 8)),
        (token({"exp": 1e12}), None),
        (token({"exp": 1e20}), None),
        (token({}), None),
        (token(["exp"]), None),
        ("Bearer opaque", None),
        ("Bearer a.!!.c", None),
        ("Bearer a.\u00e9.c", None),
        ("", None),
    ],
)
def test_the_token_says_when_it_expires(
    authorization: str, expected: datetime.datetime | None
) -> None:
    """One that is no JWT, or has no such claim, does not say."""
    expires_at = checkup.expiry(authorization)
    if expected is None:
        assert expires_at is None
    else:
        assert expires_at is not None
        assert expires_at.replace(tzinfo=None, microsecond=0) == expected

"""Every client reads Retry-After with the same bounds."""

import pytest

from lib.kube import errors as kube_errors
from lib.process import retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0", None),
        (" 0 ", None),
        ("1", 1.0),
        ("300", 300.0),
        ("86400", 300.0),
        ("9" * 400, 300.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", None),
        ("Thu, 01 Jan 1970 00:00:01 GMT", None),
        ("Thu, 01 Jan 1970 07:00:10 GMT", 300.0),
        ("Thu, 99 Jan 1970 07:00:10 GMT", None),
        ("soon", None),
        ("-3", None),
        ("٣", None),
        ("", None),
    ],
)
def test_both_forms_are_read_within_bounds(
    header: str | None, seconds: float | None
) -> None:
    """Seconds and dates, at the 10th second of the epoch; from 1 to 300 seconds."""
    assert retry_after.seconds(header, 10.0) == seconds


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("86400", b"", 300.0),
        ("0", b"", None),
        ("Thu, 01 Jan 2099 00:00:00 GMT", b"", None),
        (None, b'{"details": {"retryAfterSeconds": 99999}}', 300.0),
        (None, b'{"details": {"retryAfterSeconds": 0}}', None),
        (None, b'{"details": {"retryAfterSeconds": -5}}', None),
        (None, b'{"details": {"retryAfterSeconds": 4}}', 4.0),
    ],
)
def test_the_api_server_is_bounded_alike(
    header: str | None, body: bytes, seconds: float | None
) -> None:
    """In the header and in the Status object."""
    error = kube_errors.of_response(429, body, header, operation="GET /api")
    assert error.retry_after_s == seconds

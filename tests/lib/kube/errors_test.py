import msgspec
import pytest

from lib.kube import errors


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (408, "", errors.Unavailable),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.Unavailable),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
        (415, "UnsupportedMediaType", errors.KubeError),
        (302, "", errors.KubeError),
    ],
)
def test_each_status_means_one_error(
    status: int, reason: str, kind: type[errors.KubeError]
) -> None:
    """The answer's status and reason choose exactly one class."""
    body = msgspec.json.encode({"message": "why", "reason": reason, "code": status})
    error = errors.of_response(status, body, None, operation="GET /x")
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "why")
    assert str(error) == "GET /x: why"


@pytest.mark.parametrize(
    "body", [b"<html>password=hunter2</html>", b"", b"[1]", b"\xff\xfe"]
)
def test_a_body_that_is_no_status_is_never_quoted(body: bytes) -> None:
    """What a proxy or another server wrote stays out of the message."""
    error = errors.of_response(502, body, None, operation="GET /x")
    assert error.message == "HTTP status 502"


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", None, 7.0),
        (None, {"retryAfterSeconds": 3}, 3.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None, None),
        (None, None, None),
    ],
)
def test_the_wait_is_the_servers(
    header: str | None, details: dict[str, int] | None, seconds: float | None
) -> None:
    """retry_after_s comes from the header, else from the Status."""
    body = msgspec.json.encode({"message": "slow down", "details": details})
    error = errors.of_response(429, body, header, operation="GET /x")
    assert error.retry_after_s == seconds

"""Each native failure has exactly one meaning."""

import keystoneauth1.exceptions
import pytest

from lib.cloud import errors
from lib.cloud.openstack import failures

EXPECTED = {
    400: errors.InvalidRequest,
    401: errors.Unauthenticated,
    402: errors.Forbidden,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.Unsupported,
    406: errors.Unsupported,
    407: errors.Unauthenticated,
    408: errors.Unavailable,
    409: errors.Busy,
    410: errors.NotFound,
    413: errors.QuotaExceeded,
    421: errors.Unavailable,
    423: errors.Busy,
    425: errors.Unavailable,
    429: errors.Unavailable,
    498: errors.Unavailable,
    501: errors.Unsupported,
}


@pytest.mark.parametrize("status", range(300, 600))
def test_every_status_has_its_meaning(status: int) -> None:
    """Statuses as listed; other 4xx are our fault, all the rest the cloud's."""
    default = errors.InvalidRequest if 400 <= status < 500 else errors.Unavailable
    assert failures.from_status(status, False) is EXPECTED.get(status, default)


def test_413_with_a_time_is_throttling() -> None:
    """Nova answers 413 both over quota and over rate; only the latter has a time."""
    assert failures.from_status(413, True) is errors.Unavailable


def native_classes() -> list[type[Exception]]:
    """Give every error class that keystoneauth1 offers."""
    offered = vars(keystoneauth1.exceptions).values()
    return [
        kind
        for kind in offered
        if isinstance(kind, type)
        and issubclass(kind, keystoneauth1.exceptions.ClientException)
    ]


@pytest.mark.parametrize("kind", native_classes())
def test_every_class_of_the_library_is_mapped_and_never_to_absence(
    kind: type[keystoneauth1.exceptions.ClientException],
) -> None:
    """No failure below a call may look like "the thing is not there"."""
    error = kind.__new__(kind)
    meaning, message = failures.from_native(error)
    allowed = (errors.Unavailable, errors.Unauthenticated, errors.Forbidden)
    assert meaning in allowed
    assert message


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (keystoneauth1.exceptions.ConnectTimeout("x"), errors.Unavailable),
        (keystoneauth1.exceptions.ConnectFailure("x"), errors.Unavailable),
        (keystoneauth1.exceptions.SSLError("x"), errors.Unavailable),
        (
            keystoneauth1.exceptions.UnknownConnectionError("x", OSError()),
            errors.Unavailable,
        ),
        (keystoneauth1.exceptions.EmptyCatalog("x"), errors.Unavailable),
        (keystoneauth1.exceptions.DiscoveryFailure("x"), errors.Unavailable),
        (keystoneauth1.exceptions.Unauthorized("x"), errors.Unauthenticated),
        (keystoneauth1.exceptions.Forbidden("x"), errors.Forbidden),
        (keystoneauth1.exceptions.NotFound("x"), errors.Unavailable),
        (keystoneauth1.exceptions.ServiceUnavailable("x"), errors.Unavailable),
        (keystoneauth1.exceptions.AuthorizationFailure("x"), errors.Unauthenticated),
        (keystoneauth1.exceptions.MissingAuthPlugin("x"), errors.Unauthenticated),
        (OSError("x"), errors.Unavailable),
    ],
)
def test_failures_below_a_call_have_their_meaning(
    error: keystoneauth1.exceptions.ClientException | OSError,
    meaning: type[errors.CloudError],
) -> None:
    """Connection, TLS, catalogue, versions and log-in each have one class."""
    assert failures.from_native(error)[0] is meaning


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(
    header: str | None, seconds: float | None
) -> None:
    """Seconds and dates count, at the 10th second of the epoch; nonsense does not."""
    assert failures.retry_after_s(header, 10.0) == seconds


def test_a_status_without_a_name_is_still_described() -> None:
    """498 is no standard status."""
    assert failures.describe(498) == "the cloud answered 498"
    assert failures.describe(503) == "the cloud answered 503 Service Unavailable"

"""Each native failure has exactly one meaning."""

import keystoneauth1.exceptions
import pytest

from lib.cloud import errors
from lib.cloud.openstack.http import failures

ABSENT = {404, 410}
"""Source: RFC 9110, 15.5.5 and 15.5.11: Not Found and Gone."""
CREDENTIALS = {401, 407}
"""Source: RFC 9110, 11: the two challenges for credentials."""
LATER = {408, 421, 425, 429, 498}
"""Source: RFC 9110, RFC 8470 (425) and RFC 6585 (429): the same request may be sent
again; 498 is what gophercloud takes for throttling beside 429."""
BUSY = {409, 423}
"""Source: OpenStack API-SIG, HTTP response codes; RFC 4918 (423)."""


@pytest.mark.parametrize("status", range(300, 600))
def test_only_404_and_410_say_that_a_thing_is_absent(status: int) -> None:
    """A Node may be deleted for an absence: no other answer may look like one."""
    is_absent = failures.from_status(status, False) is errors.NotFound
    assert is_absent is (status in ABSENT)


@pytest.mark.parametrize("status", range(300, 600))
def test_who_may_be_asked_again_soon(status: int) -> None:
    """Servers that fail or throttle heal; a request that is wrong does not."""
    retry = failures.from_status(status, False).retry
    heals = status in LATER or status < 400 or (status >= 500 and status != 501)
    assert (retry is errors.Retry.BACKOFF) is heals
    assert (retry is errors.Retry.SHORT) is (status in BUSY)


@pytest.mark.parametrize("status", range(300, 600))
def test_refused_credentials_are_told_from_missing_rights(status: int) -> None:
    """The one is the operator's Secret, the other a role in Keystone."""
    meaning = failures.from_status(status, False)
    assert (meaning is errors.Unauthenticated) is (status in CREDENTIALS)
    assert (meaning is errors.Forbidden) is (status in {402, 403})


def test_413_with_a_time_is_throttling() -> None:
    """Nova answers 413 both over quota and over rate; only the latter has a time."""
    assert failures.from_status(413, True) is errors.Unavailable


def native_classes() -> list[type[Exception]]:
    """Return every error class that keystoneauth1 offers."""
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


def test_a_status_without_a_name_is_still_described() -> None:
    """498 is no standard status."""
    assert failures.describe(498) == "the cloud answered 498"
    assert failures.describe(503) == "the cloud answered 503 Service Unavailable"

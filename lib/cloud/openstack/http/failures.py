"""From native failures to the closed set of `lib.cloud.errors`: one table each."""

import http

import keystoneauth1.exceptions

from lib.cloud import errors
from lib.process import broken_connections

_STATUS: dict[int, type[errors.CloudError]] = {
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
"""Source: OpenStack API-SIG guideline "HTTP response codes"; 413 is Nova's and
Cinder's answer over quota; 498 is sent by rate limiters (gophercloud)."""


_LOGIN_STATUS: dict[int, tuple[type[errors.CloudError], str]] = {
    401: (errors.Unauthenticated, "Keystone refuses the credentials"),
    403: (errors.Forbidden, "Keystone forbids the authentication"),
}


class AnswerTooLong(keystoneauth1.exceptions.ConnectFailure):
    """The answer is longer than any that this process reads."""


NATIVE: tuple[tuple[type[Exception], tuple[type[errors.CloudError], str]], ...] = (
    (
        keystoneauth1.exceptions.ConnectTimeout,
        (errors.Unavailable, "the cloud did not answer in time"),
    ),
    (
        keystoneauth1.exceptions.SSLError,
        (errors.Unavailable, "the cloud's TLS certificate is not accepted"),
    ),
    (AnswerTooLong, (errors.Unavailable, "the cloud's answer is too long")),
    (
        keystoneauth1.exceptions.ConnectionError,
        (errors.Unavailable, "the cloud can't be reached"),
    ),
    (
        keystoneauth1.exceptions.CatalogException,
        (errors.Unavailable, "the service is not in the catalogue"),
    ),
    (
        keystoneauth1.exceptions.DiscoveryFailure,
        (errors.Unavailable, "the service does not say its versions"),
    ),
    (
        keystoneauth1.exceptions.InvalidResponse,
        (errors.Unavailable, "Keystone's answer can't be read"),
    ),
    (
        keystoneauth1.exceptions.AuthorizationFailure,
        (errors.Unauthenticated, "authentication failed"),
    ),
    (
        keystoneauth1.exceptions.AuthPluginException,
        (errors.Unauthenticated, "the credentials are not complete"),
    ),
    (OSError, (errors.Unavailable, "a certificate file can't be read")),
)
"""Failures of keystoneauth1 and of the system; the first that fits counts."""


def from_status(status: int, has_retry_after: bool) -> type[errors.CloudError]:
    """Return what an HTTP status other than success means.

    has_retry_after: the answer names a time; 413 is throttling then.
    """
    if status == 413 and has_retry_after:
        return errors.Unavailable
    if status in _STATUS:
        return _STATUS[status]
    return errors.InvalidRequest if 400 <= status < 500 else errors.Unavailable


def describe(status: int) -> str:
    """Return the status in words; the body stays out of every message."""
    try:
        return f"the cloud answered {status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return f"the cloud answered {status}"


def from_native(
    error: keystoneauth1.exceptions.ClientException | OSError,
) -> tuple[type[errors.CloudError], str]:
    """Return what a failure of the library means: the class, and a safe message.

    Such a failure comes from below the call: connection, token, catalogue, version
    document. It never reports that a thing is absent, even when Keystone answers 404.
    """
    if isinstance(error, keystoneauth1.exceptions.HttpError):
        unspecific = (errors.Unavailable, f"log-in: {describe(error.http_status)}")
        return _LOGIN_STATUS.get(error.http_status, unspecific)
    for native, (kind, text) in NATIVE:
        if isinstance(error, native):
            return kind, _located(text, error)
    return errors.Unavailable, f"the call failed ({type(error).__name__})"


def _located(text: str, error: Exception) -> str:
    """Append server and cause of a broken connection; other texts stay as they are.

    keystoneauth1's own message is not used: it quotes the URL with its query.
    """
    is_broken = isinstance(error, keystoneauth1.exceptions.ConnectionError)
    if not is_broken or isinstance(error, AnswerTooLong):
        return text
    origin = broken_connections.origin(error)
    is_late = isinstance(error, keystoneauth1.exceptions.ConnectTimeout)
    cause = "" if is_late else broken_connections.reason(error)
    return ": ".join(filter(None, (text, origin, cause)))

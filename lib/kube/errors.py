"""The closed set of errors of the API server.

Messages are the server's own Status message, never another body; they hold no
credentials.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from lib.kube import objects
from lib.process import decoding, retry_after


class KubeError(Exception):
    """Base of all; subclasses add nothing but meaning.

    operation: what was tried ("GET /api/v1/nodes"). status: the HTTP status, 0 when
    there was no answer. reason: the Status reason ("Conflict"). retry_after_s: seconds
    the server asked to wait, None when it did not say. about: plural and name of the
    object that the server names ("nodes/n1"); empty when it names none, as when it does
    not serve the kind.

    retry: class of its retry, see lib/reconcile/failure.py. That of Forbidden is the
    queue's backoff: the permissions of a chart may be applied a moment after its pods.
    """

    retry: ClassVar[str] = "backoff"

    def __init__(  # noqa: PLR0913 # facts of one failure, by keyword
        self,
        message: str,
        *,
        operation: str,
        status: int = 0,
        reason: str = "",
        retry_after_s: float | None = None,
        about: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.about = about

    def __str__(self) -> str:
        return f"{self.operation}: {self.message}"


class NotFound(KubeError):
    """The object, or its kind, is absent."""


class Conflict(KubeError):
    """The object is no longer what the write was based upon."""

    retry = "short"


class AlreadyExists(KubeError):
    """The name is taken."""


class Gone(KubeError):
    """The resource version or continue token is too old: list again."""


class Forbidden(KubeError):
    """We are known, and not allowed to."""


class Unauthorized(KubeError):
    """Our credentials are not accepted."""


class Invalid(KubeError):
    """The request or object is malformed; only another request helps."""

    retry = "never"


class Unavailable(KubeError):
    """Throttled, broken, or no answer in time; a write may have been carried out."""


class NotLeader(KubeError):
    """We don't hold the lease any more; nothing was sent."""


_NOT_DENIED = (NotFound, Conflict, AlreadyExists, Gone, Unauthorized)
"""They end by reading again, or concern all requests of the process."""
_BY_STATUS: Mapping[int, type[KubeError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Unavailable,
}
_BY_REASON: Mapping[str, type[KubeError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Gone,
}
"""Reasons that are more precise than the status.

Source: k8s.io/apimachinery meta/v1 StatusReason.
"""


def of_status(
    status: objects.Status,
    *,
    operation: str,
    http_status: int = 0,
    retry_after_s: float | None = None,
) -> KubeError:
    """Return the error that a Status means; the HTTP status precedes its own code."""
    code = http_status or status.code
    kind = _BY_REASON.get(status.reason) or _BY_STATUS.get(code)
    if kind is None:
        kind = Unavailable if code >= 500 else KubeError
    if retry_after_s is None and status.details:
        retry_after_s = retry_after.bounded(status.details.retry_after_seconds)
    details = status.details
    return kind(
        status.message or f"HTTP status {code}",
        operation=operation,
        status=code,
        reason=status.reason,
        retry_after_s=retry_after_s,
        about=f"{details.kind}/{details.name}" if details and details.name else "",
    )


def of_response(
    http_status: int, body: bytes, pause: str | None, *, operation: str
) -> KubeError:
    """Return the error that an HTTP response means.

    pause: the value of the Retry-After header. The API server sends seconds; a date,
    as only a proxy would send it, is ignored.
    """
    try:
        status = decoding.decode(body, objects.Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = objects.Status()
    return of_status(
        status,
        operation=operation,
        http_status=http_status,
        retry_after_s=retry_after.seconds(pause, now=float("inf")),
    )


def is_denied(error: Exception) -> bool:
    """Report whether a write will be rejected again, whatever is retried.

    By RBAC, by an admission webhook or policy, which choose the status themselves, or
    by a webhook that does not answer: InternalError, "failed calling webhook".
    """
    if not isinstance(error, KubeError) or isinstance(error, _NOT_DENIED):
        return False
    is_refused = 400 <= error.status < 500 and error.status not in (408, 429)
    return is_refused or error.reason == "InternalError"

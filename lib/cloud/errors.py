"""The closed set of errors of a cloud.

Each class shows its meaning, whether a retry can help, and the reason that conditions
and Events carry. The native error is always chained. Messages never hold secrets or
response bodies.
"""

import enum
from typing import ClassVar


class Retry(enum.StrEnum):
    """When trying again may help; lib/reconcile/failure.py decides by it."""

    NEVER = "never"
    """Only a changed spec helps."""
    SHORT = "short"
    """Seconds: an expected wait, which is no failure."""
    BACKOFF = "backoff"
    """The queue's own backoff."""
    SLOW = "slow"
    """A minute at least: an administrator must act, though not on the spec."""
    FACT = "fact"
    """No error to a flow at all: decide treats it as a fact."""


class CloudError(Exception):
    """Base of all; subclasses add nothing but data.

    operation: what was tried, verb-noun ("list servers"). resource: the id or name it
    was tried on. request_id: the cloud's own id of the failed request.
    was_rejected: the request was certainly not carried out; otherwise, after
    Unavailable, the outcome is unknown.
    """

    retry: ClassVar[Retry] = Retry.BACKOFF
    reason: ClassVar[str] = "CloudError"

    def __init__(  # noqa: PLR0913 -- facts of one failure, by keyword
        self,
        message: str,
        *,
        operation: str,
        resource: str = "",
        request_id: str = "",
        retry_after_s: float | None = None,
        was_rejected: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.resource = resource
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        self.was_rejected = was_rejected

    @property
    def summary(self) -> str:
        """What went wrong, the same each time it does: for Events and conditions."""
        about = f" {self.resource}" if self.resource else ""
        return f"{self.operation}{about}: {self.message}"

    def __str__(self) -> str:
        tail = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.summary}{tail}"


class NotFound(CloudError):
    """The id is absent."""

    retry = Retry.FACT
    reason = "NotFound"


class AlreadyExists(CloudError):
    """The name is taken by something incompatible."""

    retry = Retry.NEVER
    reason = "NameTaken"


class Ambiguous(CloudError):
    """Several things match where one must."""

    retry = Retry.NEVER
    reason = "AmbiguousMatch"


class InvalidRequest(CloudError):
    """The cloud rejects the spec."""

    retry = Retry.NEVER
    reason = "InvalidConfiguration"


class OutOfRange(CloudError):
    """A size beyond the limits."""

    retry = Retry.NEVER
    reason = "InvalidConfiguration"


class AttachedElsewhere(CloudError):
    """A volume is held by another instance."""

    retry = Retry.SLOW
    reason = "VolumeInUse"


class InUse(CloudError):
    """The state of an object forbids it until that state is changed from outside.

    A volume that has snapshots can't be deleted, for example.
    """

    retry = Retry.SLOW
    reason = "VolumeInUse"


class Unplaceable(CloudError):
    """The zones that were asked for can't hold it; others may."""

    retry = Retry.SLOW
    reason = "NoCapacity"


class Busy(CloudError):
    """Another operation is in flight, or the thing is locked."""

    retry = Retry.SHORT
    reason = "OperationInProgress"


class QuotaExceeded(CloudError):
    """The project's quota is used up; it may free up without a spec change."""

    retry = Retry.SLOW
    reason = "QuotaExceeded"


class LimitReached(CloudError):
    """A per-instance limit is reached."""

    retry = Retry.SLOW
    reason = "QuotaExceeded"


class Unauthenticated(CloudError):
    """The credentials are not accepted."""

    retry = Retry.SLOW
    reason = "CredentialsRejected"


class Forbidden(CloudError):
    """The credentials are accepted, the operation is not."""

    retry = Retry.SLOW
    reason = "CredentialsRejected"


class Unavailable(CloudError):
    """Time-out, 5xx or throttling; retry_after_s when the cloud named a time."""

    retry = Retry.BACKOFF
    reason = "CloudUnavailable"


class NotCredible(Unavailable):
    """More objects are absent at the same time than is plausible."""

    reason = "MassAbsence"


class Unsupported(CloudError):
    """The provider lacks it."""

    retry = Retry.NEVER
    reason = "Unsupported"

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
    Unavailable, the outcome is unknown. remedy: what ends it, as a clause, where the
    class knows it less well; empty: a retry, or nothing that a person can do.
    """

    retry: ClassVar[Retry] = Retry.BACKOFF
    reason: ClassVar[str] = "CloudError"
    usual_remedy: ClassVar[str] = ""

    def __init__(  # noqa: PLR0913 -- facts of one failure, by keyword
        self,
        message: str,
        *,
        operation: str,
        resource: str = "",
        request_id: str = "",
        retry_after_s: float | None = None,
        was_rejected: bool = False,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.resource = resource
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        self.was_rejected = was_rejected
        self.remedy = self.usual_remedy if remedy is None else remedy

    @property
    def advice(self) -> str:
        """The summary with the remedy: for the owner of the object."""
        is_given = not self.remedy or self.remedy in self.message
        return self.summary if is_given else f"{self.summary}; {self.remedy}"

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
    usual_remedy = "delete or rename the object that has the name"


class Ambiguous(CloudError):
    """Several things match where one must."""

    retry = Retry.NEVER
    reason = "AmbiguousMatch"
    usual_remedy = "rename all of them but one"


class InvalidRequest(CloudError):
    """The cloud rejects the spec."""

    retry = Retry.NEVER
    reason = "InvalidConfiguration"
    usual_remedy = "correct the annotation or setting that asks for it"


class OutOfRange(CloudError):
    """A size beyond the limits."""

    retry = Retry.NEVER
    reason = "InvalidConfiguration"
    usual_remedy = "correct the annotation or setting that asks for it"


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
    usual_remedy = "raise the quota of the project, or delete what is not used"


class LimitReached(CloudError):
    """A per-instance limit is reached."""

    retry = Retry.SLOW
    reason = "QuotaExceeded"
    usual_remedy = "raise the limit, or delete what is not used"


class Unauthenticated(CloudError):
    """The credentials are not accepted."""

    retry = Retry.SLOW
    reason = "CredentialsRejected"
    usual_remedy = "correct the credentials"


class Forbidden(CloudError):
    """The credentials are accepted, the operation is not."""

    retry = Retry.SLOW
    reason = "CredentialsRejected"
    usual_remedy = "check the roles of the credentials in the project"


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
    usual_remedy = (
        "remove the annotation or setting that asks for it, or use a version or"
        " provider that has it"
    )

"""Why a call is refused, and with which of the codes that CSI allows.

Names of codes are gRPC's. Source: CSI specification 1.12.0, "Error Scheme" and the
tables of errors of each RPC.
"""

import enum
from collections.abc import Mapping

from lib.cloud import errors
from lib.process import config


class Code(enum.Enum):
    """The codes that a call may end with, by gRPC's names."""

    CANCELLED = "CANCELLED"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    UNAUTHENTICATED = "UNAUTHENTICATED"


NOT_FINAL = frozenset(
    {Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE, Code.ABORTED}
)
"""Codes after which external-provisioner knows that a volume may be in creation.

After any other code, and once the claim is deleted, it never requests that name again.

Source: kubernetes-csi/external-provisioner pkg/controller (checkError)."""


class RefusedCall(Exception):
    """The request of a call is refused. The message holds no secret."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.value}: {self.message}"


def invalid(field: str, value: object, required: str) -> str:
    """Return the message about an invalid value of a field of a request.

    required: read after "must be".
    """
    return f"{field}: {config.rejected(str(value), required)}"


def not_found(field: str, kind: str, name: str) -> RefusedCall:
    """Return the refusal of a request that names an object which does not exist."""
    return RefusedCall(
        Code.NOT_FOUND, f"{field}: {kind} {config.quoted(name)} not found"
    )


CODES: Mapping[type[errors.CloudError], Code] = {
    errors.NotFound: Code.NOT_FOUND,
    errors.AlreadyExists: Code.ALREADY_EXISTS,
    errors.Ambiguous: Code.INTERNAL,
    errors.InvalidRequest: Code.INVALID_ARGUMENT,
    errors.OutOfRange: Code.OUT_OF_RANGE,
    errors.AttachedElsewhere: Code.FAILED_PRECONDITION,
    errors.InUse: Code.FAILED_PRECONDITION,
    errors.Unplaceable: Code.RESOURCE_EXHAUSTED,
    errors.Busy: Code.ABORTED,
    errors.QuotaExceeded: Code.RESOURCE_EXHAUSTED,
    errors.LimitReached: Code.RESOURCE_EXHAUSTED,
    errors.Unauthenticated: Code.UNAUTHENTICATED,
    errors.Forbidden: Code.PERMISSION_DENIED,
    errors.Unavailable: Code.UNAVAILABLE,
    errors.NotCredible: Code.UNAVAILABLE,
    errors.Unsupported: Code.UNIMPLEMENTED,
}
"""What each refusal of a cloud means to a caller of CSI: the whole taxonomy."""


def from_cloud(error: errors.CloudError) -> RefusedCall:
    """Turn a cloud's refusal into ours; the caller chains the original."""
    return RefusedCall(CODES.get(type(error), Code.INTERNAL), str(error))


def not_final(refused: RefusedCall) -> RefusedCall:
    """Return the refusal with a code that keeps external-provisioner trying."""
    if refused.code in NOT_FINAL:
        return refused
    return RefusedCall(Code.UNAVAILABLE, refused.message)

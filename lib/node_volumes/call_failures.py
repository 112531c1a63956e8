"""Why a call fails. The edge of CSI translates reasons to codes."""

import enum
from collections.abc import Mapping

from lib.kernel import errors


class FailureReason(enum.Enum):
    """The closed list of reasons.

    After UNCERTAIN, TIMED_OUT and PENDING the kubelet assumes that the volume may be
    mounted, and unstages it before it is detached; after all others it does not.

    Source: kubernetes pkg/volume/csi (csi_client.go, isFinalError).
    """

    INVALID = "invalid request"
    NOT_FOUND = "not found"
    NOT_STAGED = "not staged"
    INCOMPATIBLE = "published in another way"
    CONTENT = "content of the disk"
    OUT_OF_RANGE = "out of range"
    FAILED = "failed"
    UNCERTAIN = "outcome unknown"
    TIMED_OUT = "timed out"
    PENDING = "operation pending"


class CallFailed(Exception):
    """The call ends without its result. The message is fit to be shown."""

    def __init__(self, reason: FailureReason, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"


_REASONS: Mapping[type[errors.KernelError], FailureReason] = {
    errors.Busy: FailureReason.PENDING,
    errors.Stuck: FailureReason.PENDING,
    errors.TimedOut: FailureReason.TIMED_OUT,
    errors.NotFound: FailureReason.UNCERTAIN,
    errors.BadDisk: FailureReason.FAILED,
    errors.Missing: FailureReason.FAILED,
    errors.Failed: FailureReason.FAILED,
}


def from_kernel(
    error: errors.KernelError, is_mounted: bool, message: str
) -> CallFailed:
    """Return the failure that an error of the kernel means; the caller chains it.

    is_mounted: the volume is mounted already, so that no final reason may be returned.
    message: names the volume beside the error.
    """
    reason = _REASONS.get(type(error), FailureReason.FAILED)
    if is_mounted and reason is FailureReason.FAILED:
        reason = FailureReason.UNCERTAIN
    return CallFailed(reason, message)

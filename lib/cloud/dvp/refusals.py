"""From the parent's refusals to those of clouds: pure."""

from lib.cloud import errors
from lib.kube import errors as kube_errors

_QUOTA = "exceeded quota"
"""Source: k8s.io/apiserver plugin/pkg/admission/resourcequota: an HTTP status 403."""
_DENIED = "denied"
"""Source: k8s.io/apiserver admission webhooks and policies: "... denied the request"
and "... denied request", an HTTP status 403."""
_SIZING = "sizing policy of VirtualMachineClass"
"""Source: deckhouse/virtualization pkg/controller/service (size_policy_service.go,
errors.go): "does not match the ..." and "does not match any ..."."""
_KINDS: tuple[tuple[type[kube_errors.KubeError], type[errors.CloudError]], ...] = (
    (kube_errors.AlreadyExists, errors.AlreadyExists),
    (kube_errors.Conflict, errors.Busy),
    (kube_errors.Unauthorized, errors.Unauthenticated),
    (kube_errors.Invalid, errors.InvalidRequest),
    (kube_errors.Unavailable, errors.Unavailable),
)


class SizingRejected(errors.InvalidRequest):
    """The class allows no VM of this size: another spec, or another class, helps."""

    reason = "SizingPolicyNotMatched"


def is_missing(error: kube_errors.NotFound, plural: str, name: str) -> bool:
    """Report whether the parent reports that this object, and nothing else, is absent.

    Where it does not serve the kind at all, or the namespace is missing at a write, its
    answer has the same status.
    """
    return error.about == f"{plural}/{name}"


def error(
    refusal: kube_errors.KubeError, operation: str, plural: str, name: str
) -> errors.CloudError:
    """Return what a refusal of the parent means. name: empty for a list."""
    kind, message = _meaning(refusal, plural, name)
    return kind(
        message,
        operation=operation,
        resource=name,
        retry_after_s=refusal.retry_after_s,
        was_rejected=400 <= refusal.status < 500 and refusal.status != 408,
    )


def _meaning(
    refusal: kube_errors.KubeError, plural: str, name: str
) -> tuple[type[errors.CloudError], str]:
    match refusal:
        case kube_errors.NotFound():
            return _not_found(refusal, plural, name)
        case kube_errors.Forbidden():
            return _forbidden(refusal.message), refusal.message
    kinds = (kind for native, kind in _KINDS if isinstance(refusal, native))
    return next(kinds, errors.Unavailable), refusal.message


def _not_found(
    refusal: kube_errors.NotFound, plural: str, name: str
) -> tuple[type[errors.CloudError], str]:
    if is_missing(refusal, plural, name):
        return errors.NotFound, refusal.message
    if refusal.about:
        return errors.Unavailable, f"missing in the parent: {refusal.message}"
    text = f"the parent does not serve {plural}: {refusal.message}"
    return errors.Unavailable, text


def _forbidden(message: str) -> type[errors.CloudError]:
    if _QUOTA in message:
        return errors.QuotaExceeded
    if _DENIED not in message:
        return errors.Forbidden
    return SizingRejected if _SIZING in message else errors.InvalidRequest

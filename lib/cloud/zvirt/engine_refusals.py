"""What a refused request means: status first, text second. Pure.

Texts are those of the engine's own messages in English (`Accept-Language: en`). A
text that no row contains decides nothing: then the status alone does.

Source: ovirt-engine, AppErrors.properties; mapping of statuses by its REST API.
"""

import json
import re
from collections.abc import Mapping
from xml.etree import ElementTree

from lib.cloud import errors
from lib.process import config

Kind = type[errors.CloudError]
_TEXTS: tuple[tuple[str, Kind], ...] = (
    ("name is already in use", errors.AlreadyExists),
    ("name already exists", errors.AlreadyExists),
    ("already attached to VM", errors.AlreadyExists),
    ("not shareable and is already attached", errors.AttachedElsewhere),
    ("VM is locked", errors.Busy),
    ("disks are locked", errors.Busy),
    ("is locked. Please try again", errors.Busy),
    ("Image is locked", errors.Busy),
    ("disk image is being copied", errors.Busy),
    ("Related operation is currently in progress", errors.Busy),
    ("asynchronous running tasks", errors.Busy),
    ("VM status is illegal", errors.Busy),
    ("Failed to hot-plug disk", errors.Busy),
    ("VM is not running", errors.InUse),
    ("VM is running", errors.InUse),
    ("VM is suspended", errors.InUse),
    ("VMs is not down", errors.InUse),
    ("Delete protection is enabled", errors.InUse),
    ("Disk is Illegal", errors.InUse),
    ("plugged to a running VM", errors.InUse),
    ("It is used by VMs", errors.InUse),
    ("Storage Domain's status is", errors.InUse),
    ("Storage Domain is inaccessible", errors.InUse),
    ("Low disk space on", errors.Unplaceable),
    ("no host that satisfies", errors.Unplaceable),
    ("no available running Hosts", errors.Unplaceable),
    ("quota", errors.QuotaExceeded),
    ("without at least one bootable disk", errors.InvalidRequest),
    ("already marked as boot", errors.InvalidRequest),
    ("with detaching disks", errors.InvalidRequest),
    ("Only one of cloud-init", errors.InvalidRequest),
    ("incompatible with the storage domain type", errors.InvalidRequest),
    ("Physical Memory Guaranteed cannot exceed", errors.InvalidRequest),
    ("must be larger than the current disk size", errors.InvalidRequest),
)
"""Also for a status of 400: it wins where a refusal has several messages."""
_BY_TEXT = (400, 409)
_STATUSES: Mapping[int, Kind] = {
    400: errors.InvalidRequest,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    405: errors.InvalidRequest,
    406: errors.InvalidRequest,
    409: errors.Busy,
    413: errors.InvalidRequest,
    415: errors.InvalidRequest,
}
_HTML = re.compile(rb"<\s*(?:!doctype\s+html|html)\b", re.I)
LOCKED = "locked"


def error(
    status: int,
    body: bytes,
    operation: str,
    resource: str = "",
    *,
    retry_after_s: float | None = None,
    request_id: str = "",
) -> errors.CloudError:
    """Return what a response that is no success means."""
    text = fault(body)
    kind = classify(status, text, is_fault=text is not None)
    if text is not None:
        message = config.shown(text)
    elif is_html(body):
        message = f"status {status} with a web page: a gateway, or not an engine"
    else:
        message = f"status {status} without a reason"
    return kind(
        message,
        operation=operation,
        resource=resource,
        retry_after_s=retry_after_s,
        request_id=request_id,
        was_rejected=400 <= status < 500 and status != 408,
    )


def is_down(status: int, body: bytes) -> bool:
    """Report whether a response shows that the engine as a whole does not serve.

    An internal error with a fault is about one request: it must not stop the others.
    """
    return status == 429 or (status >= 500 and fault(body) is None)


def classify(status: int, text: str | None, *, is_fault: bool) -> Kind:
    """Return the class of a refusal. text: of its fault; None if there is none.

    A missing object that a request refers to is a fault with status 404; without a
    fault, 404 reports nothing (`client.EngineClient.get`).
    """
    if status == 404:
        return errors.InvalidRequest if is_fault else errors.Unavailable
    if status in _BY_TEXT and text:
        lowered = text.lower()
        for part, kind in _TEXTS:
            if part.lower() in lowered:
                return kind
    if status >= 500 or status not in _STATUSES:
        return errors.Unavailable
    if status == 400 and not is_fault:
        return errors.Unavailable  # of a gateway: the engine's have a fault
    return _STATUSES[status]


def fault(body: bytes) -> str | None:
    """Return the text of a fault, also within an action; None if it is none."""
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 # libexpat limits expansion
    except (ElementTree.ParseError, ValueError):
        return None
    element = root if root.tag == "fault" else root.find("fault")
    if element is None:
        return None
    reason = (element.findtext("reason") or "").strip()
    detail = (element.findtext("detail") or "").strip().strip("[]")
    return f"{reason}: {detail}" if reason and detail else reason or detail


def is_html(body: bytes) -> bool:
    """Report whether a body is a web page."""
    return _HTML.search(body[:1000]) is not None


def sign_on(status: int, body: bytes) -> errors.CloudError:
    """Return what a refused request for a token means.

    Source: ovirt-engine, SsoConstants and SsoService: status 400 with error_code and
    error, or by OpenID Connect error and error_description.
    """
    code, text = _sign_on_error(body)
    operation = "authenticate"
    if code == "access_denied":
        is_locked = LOCKED in text.lower()
        what = "the account is disabled or locked" if is_locked else "rejected"
        message = f"user and password: {what}"
        return errors.Unauthenticated(message, operation=operation, was_rejected=True)
    if code and code != "server_error" and 400 <= status < 500:
        message = f"the single sign-on refuses: {config.shown(code)}"
        return errors.Unauthenticated(message, operation=operation, was_rejected=True)
    if is_html(body):
        message = f"status {status} with a web page: a gateway, or not an engine"
    else:
        message = f"status {status} from the single sign-on"
    return errors.Unavailable(message, operation=operation)


def _sign_on_error(body: bytes) -> tuple[str, str]:
    try:
        document = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(document, dict):
        return "", ""
    code = document.get("error_code")
    if isinstance(code, str):
        return code, str(document.get("error", ""))
    return str(document.get("error", "")), str(document.get("error_description", ""))

"""Answers of services: read, decoded, and distinguished from those of a proxy.

Of a body only the service's own explanation of a refusal enters a message: shortened,
on one line, and without credentials.
"""

import dataclasses
import email.utils
import re
import urllib.parse
from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from lib.cloud import errors
from lib.cloud.openstack import native
from lib.cloud.openstack.http import failures
from lib.process import decoding, redaction, retry_after

T = TypeVar("T")
EXPLANATION_MAX = 300
"""Characters of what a service says, in one message."""
_EXPLAINED = frozenset(
    {400, 402, 403, 404, 405, 406, 409, 410, 412, 413, 422, 423, 501}
)
"""Statuses of a service's own refusals; others come from proxies and limiters."""
_REQUEST = re.compile(r"\s*\(?(request[- ]id:?\s*)?req-[0-9a-f-]{36}\)?", re.IGNORECASE)
_REQUEST_ID = ("x-openstack-request-id", "x-compute-request-id")
_NOT_FOUND_KEYS: Mapping[str, frozenset[str]] = {
    "compute": frozenset({"itemNotFound"}),
    "block-storage": frozenset({"itemNotFound"}),
    "network": frozenset({"NeutronError"}),
    "load-balancer": frozenset({"faultstring"}),
    "key-manager": frozenset({"code", "title", "description"}),
}
"""Keys that the body of a service's own 404 has, by the service's catalogue type.

Gateways answer 404 as well, among others with the keys "type", "title" and "status"
of RFC 9457. A service that is missing here never reports absence.

Source: nova and cinder api/openstack/wsgi Fault; neutron api/v2/resource; wsme
(Octavia) FaultException; barbican api/controllers error_handler."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """One answer. request_id: empty without one."""

    status: int
    body: bytes
    request_id: str
    retry_after_s: float | None

    @property
    def is_success(self) -> bool:
        """True when the service did what it was asked."""
        return 200 <= self.status < 300

    def error(
        self,
        kind: type[errors.CloudError],
        message: str,
        operation: str,
        resource: str,
        remedy: str | None = None,
    ) -> errors.CloudError:
        """Convert it to an error, with all that it contains beside its status."""
        return kind(
            message,
            operation=operation,
            resource=resource,
            request_id=self.request_id,
            retry_after_s=self.retry_after_s,
            was_rejected=self.status < 500 and self.status != 408,
            remedy=remedy,
        )

    def failure(
        self,
        operation: str,
        resource: str,
        service: str,
        secrets: Collection[str] = (),
    ) -> errors.CloudError:
        """Return the error that the status means. service: its catalogue type.

        secrets: texts that must not be shown.
        """
        # Over quota Cinder adds a pause of 0 s, which is read as no pause.
        kind = failures.from_status(self.status, self.retry_after_s is not None)
        message = failures.describe(self.status)
        if kind is errors.NotFound and not _is_from_service(service, self.body):
            # A proxy's 404, or that of a wrong URL, says nothing about the thing.
            kind, message = errors.Unavailable, f"{message}, but not from the service"
        elif self.status in _EXPLAINED and (why := explanation(self.body, secrets)):
            message = f"{message}: {why}"
        if kind is errors.Forbidden:
            message = f"{message}; {kind.usual_remedy}"
        return self.error(kind, message, operation, resource)


def explanation(body: bytes, secrets: Collection[str] = ()) -> str:
    """Return what a service says about a refusal; empty: not in its own form.

    Without numbers of requests, so that it is the same for each retry.
    """
    try:
        document = decoding.decode(body, dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    texts = (
        document.get("faultstring"),
        *(part.get("message") for part in document.values() if isinstance(part, dict)),
        document.get("description"),
    )
    text = next((text for text in texts if isinstance(text, str) and text), "")
    for secret in secrets:
        text = text.replace(secret, redaction.REDACTED)
    text = _REQUEST.sub("", redaction.scrub(text))
    text = "".join(c if c.isprintable() else " " for c in text)
    text = " ".join(text.split()).strip(" .")
    return text if len(text) <= EXPLANATION_MAX else f"{text[:EXPLANATION_MAX]}..."


def read(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Answer:
    """Read an answer. headers: letter case aside. now: seconds since the epoch."""
    after_s = retry_after.seconds(headers.get("Retry-After"), now)
    ids = [headers[name] for name in _REQUEST_ID if name in headers]
    return Answer(status, body, ids[0] if ids else "", after_s)


def skew_s(headers: Mapping[str, str], now: float) -> float:
    """Return how far the service's clock is ahead of ours; 0 where it is not reported.

    Source: RFC 9110, 6.6.1 (Date), which has whole seconds.
    """
    try:
        at = email.utils.parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return 0.0
    return at.timestamp() - now


def _is_from_service(service: str, body: bytes) -> bool:
    """Report whether the body of a 404 is the one that this service writes."""
    try:
        document = decoding.decode(body, dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    keys = _NOT_FOUND_KEYS.get(service)
    return keys is not None and keys <= document.keys()


def decode(body: bytes, kind: type[T], operation: str, resource: str) -> T:
    """Decode a body. operation, resource: for the error.

    Raises:
        Unavailable: it is no such thing.
    """
    try:
        return decoding.decode(body, kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = "the answer is not what the service promises"
        raise errors.Unavailable(
            message, operation=operation, resource=resource
        ) from None


def next_marker(page: native.Page[object], operation: str) -> str:
    """Return the marker of the page after this one; empty after the last page.

    Raises:
        Unavailable: a link to the next page lacks its marker: the list would look
            complete without being so.
    """
    for link in page.links:
        if link.rel == "next":
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(link.href).query)
            if marker := query.get("marker", [""])[-1]:
                return marker
            message = "the link to the next page of the list has no marker"
            raise errors.Unavailable(message, operation=operation)
    return ""

"""What services answer: read, decoded, and told from what a proxy says.

Bodies stay out of every message.
"""

import dataclasses
import urllib.parse
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lib.cloud import errors
from lib.cloud.openstack import failures, native
from lib.process import decoding

T = TypeVar("T")
_REQUEST_ID = ("x-openstack-request-id", "x-compute-request-id")
_ERROR_KEYS = ("itemNotFound", "NeutronError", "faultstring", "title")
"""Of Nova and Cinder, of Neutron, of Octavia, of Barbican."""


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
        self, kind: type[errors.CloudError], message: str, operation: str, resource: str
    ) -> errors.CloudError:
        """Make an error of it, with all that it says beside its status."""
        return kind(
            message,
            operation=operation,
            resource=resource,
            request_id=self.request_id,
            retry_after_s=self.retry_after_s,
        )

    def failure(self, operation: str, resource: str) -> errors.CloudError:
        """Say what its status means."""
        # Over quota Cinder adds a time of 0 s, which is none.
        kind = failures.from_status(self.status, bool(self.retry_after_s))
        message = failures.describe(self.status)
        if kind is errors.NotFound and not _is_from_service(self.body):
            # A proxy's 404, or that of a wrong URL, says nothing about the thing.
            kind, message = errors.Unavailable, f"{message}, but not from the service"
        return self.error(kind, message, operation, resource)


def read(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Answer:
    """Read an answer. headers: letter case aside. now: seconds since the epoch."""
    after_s = failures.retry_after_s(headers.get("Retry-After"), now)
    ids = [headers[name] for name in _REQUEST_ID if name in headers]
    return Answer(status, body, ids[0] if ids else "", after_s)


def _is_from_service(body: bytes) -> bool:
    """Say whether an error's body is JSON as the services write it."""
    try:
        told = decoding.decode(body, dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return any(key in told for key in _ERROR_KEYS)


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


def next_marker(page: native.Page[object]) -> str:
    """Give the marker of the page after this one; empty after the last."""
    for link in page.links:
        if link.rel == "next":
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(link.href).query)
            return query.get("marker", [""])[-1]
    return ""

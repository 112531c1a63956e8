"""Reads the metadata service: link-local, without proxy and without credentials."""

import http.client
import urllib.parse
from collections.abc import Callable

from lib.cloud.openstack.instance_metadata import document
from lib.process import bounded_answers

ADDRESS = "http://169.254.169.254"
"""Source: OpenStack Nova, "Metadata service"."""
TIMEOUT_S = 2.0
ATTEMPTS = 3
PAUSE_S = 1.0
_BODY_BYTES_MAX = 4 * 2**20


def read(address: str, pause: Callable[[float], object]) -> bytes:
    """Return meta_data.json; `pause` waits between attempts.

    Raises:
        ValueError: the address is malformed, or the service did not deliver it; the
            message has the last reason.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f'metadata service "{address}": must be http://host[:port]')
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(PAUSE_S)
        try:
            return _get(parts.hostname, parts.port or 80, parts.path.rstrip("/"))
        except (OSError, http.client.HTTPException, _Refused) as error:
            reason = str(error) or type(error).__name__
    raise ValueError(f"metadata service {address}: {reason}")


class _Refused(Exception):
    """The service answered with another code than 200."""


def _get(host: str, port: int, prefix: str) -> bytes:
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    connection.response_class = bounded_answers.BoundedResponse
    try:
        connection.request("GET", f"{prefix}/{'/'.join(document.PATH)}")
        response = connection.getresponse()
        body = response.read(_BODY_BYTES_MAX)
        if response.status != http.client.OK:
            raise _Refused(f"HTTP {response.status}")
        return body
    finally:
        connection.close()

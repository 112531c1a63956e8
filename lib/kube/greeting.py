"""What an API server reports without authentication: its version and its time."""

import dataclasses
import datetime
import email.utils
import time

import msgspec

from lib.kube import errors, kube_config, transport
from lib.process import decoding

_PATH = "/version"


@dataclasses.dataclass(frozen=True, slots=True)
class Greeting:
    """The first answer of an API server.

    version: such as "v1.36.3"; empty when only known users may see it. at: its time of
    day, in whole seconds; None without a Date header.
    """

    version: str
    at: datetime.datetime | None


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


def ask(configuration: kube_config.Configuration, timeout_s: float) -> Greeting:
    """Ask without credentials, on a connection of its own; any answer will do.

    Raises:
        KubeError: there was none in time.
    """
    deadline = time.monotonic() + timeout_s
    headers = {"Accept": "application/json"}
    call = transport.HttpCall("GET", _PATH, configuration.host + _PATH, headers)
    pool = configuration.pool(1)
    with transport.exchange(pool, call, deadline) as response:
        body = transport.read_all(response, call.operation, deadline)
        if response.status >= 500:
            raise errors.of_response(
                response.status, body, None, operation=call.operation
            )
        return Greeting(_version(body), _date(response.headers.get("Date", "")))


def _version(body: bytes) -> str:
    try:
        return decoding.decode(body, _Version).git_version
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _date(header: str) -> datetime.datetime | None:
    """Parse a Date header, which is always in GMT.

    Source: RFC 9110, 6.6.1.
    """
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    return at.astimezone(datetime.UTC) if at.tzinfo else at.replace(tzinfo=datetime.UTC)

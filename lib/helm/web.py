"""HTTP for chart sources: bounded in time and size."""

import dataclasses
import time
from collections.abc import Mapping

import requests

from lib.helm import errors

CONNECT_S = 10.0
READ_S = 30.0
"""Longest silence within an answer."""
TOTAL_S = 120.0
CHUNK = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes = dataclasses.field(repr=False)


def get(url: str, limit: int, headers: Mapping[str, str] | None = None) -> Answer:
    """Send a GET and read the body, up to `limit` bytes.

    Redirects are followed; Authorization is not sent on to another host.

    Raises:
        SourceUnreachable: there is no whole answer in time.
    """
    deadline = time.monotonic() + TOTAL_S
    try:
        with requests.get(
            url, headers=headers, timeout=(CONNECT_S, READ_S), stream=True
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(CHUNK):
                body += chunk
                if len(body) > limit:
                    raise errors.SourceUnreachable(
                        f"GET {url}: the answer is larger than {limit} bytes"
                    )
                if time.monotonic() > deadline:
                    raise errors.SourceUnreachable(
                        f"GET {url}: not read within {TOTAL_S:.0f} s"
                    )
            return Answer(response.status_code, response.headers, bytes(body))
    except (requests.RequestException, OSError, ValueError) as error:
        # The error's own text repeats the address and names Python objects.
        raise errors.SourceUnreachable(f"GET {url}: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "the TLS certificate is not accepted"
    if isinstance(error, requests.ConnectionError):
        return "cannot connect"
    return type(error).__name__


def require_ok(answer: Answer, url: str) -> bytes:
    """Return the body of a successful answer.

    Raises:
        SourceUnreachable: the status is another than 200.
    """
    if answer.status != 200:
        raise errors.SourceUnreachable(f"GET {url}: HTTP status {answer.status}")
    return answer.body

"""HTTP for chart sources: bounded in time and size."""

import dataclasses
import pathlib
import socket
import time
from collections.abc import Mapping
from typing import Any

import requests
import requests.adapters
import urllib3

from lib.helm import errors, policy
from lib.helm.source_access import ANONYMOUS, SourceAccess

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


class Reader:
    """Reads for one source. allows_local: addresses of this host and link-local ones.

    access: accounts of private sources. Safe for threads.
    """

    def __init__(self, *, allows_local: bool, access: SourceAccess = ANONYMOUS) -> None:
        self._allows_local = allows_local
        self.access = access

    def get(
        self,
        url: str,
        limit: int,
        headers: Mapping[str, str] | None = None,
        account: tuple[str, str] | None = None,
    ) -> Answer:
        """Send a GET and read the body, up to `limit` bytes. account: by HTTP Basic.

        Redirects are followed; Authorization is not sent on to another host.

        Raises:
            SourceInvalid: it leads to an address that is not allowed.
            SourceUnreachable: there is no whole answer in time.
        """
        deadline = time.monotonic() + TOTAL_S
        try:
            with requests.Session() as http:
                self._prepare(http)
                with http.get(
                    url,
                    headers=headers,
                    auth=account or _unchanged,
                    timeout=(CONNECT_S, READ_S),
                    stream=True,
                ) as response:
                    return _read(response, url, limit, deadline)
        except _LocalAddress as error:
            raise errors.SourceInvalid(
                f"GET {url}: leads to the loopback or link-local address"
                f" {error.address}: must be an allowed source"
            ) from error
        except (requests.RequestException, OSError, ValueError) as error:
            # The error's own text repeats the address and names Python objects.
            raise errors.SourceUnreachable(f"GET {url}: {_cause(error)}") from error

    def _prepare(self, http: requests.Session) -> None:
        """Add the authority of private sources, and the check of addresses."""
        authority = self.access.authority()
        adapter = _Trusting if self._allows_local else _RemoteOnly
        for scheme in ("http://", "https://"):
            http.mount(scheme, adapter(authority))


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Return the request: without it a .netrc would replace its Authorization."""
    return request


def _read(response: requests.Response, url: str, limit: int, deadline: float) -> Answer:
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


class _LocalAddress(Exception):
    """A name, or a redirect, led to an address that is not allowed."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


def _require_remote(connected: socket.socket) -> socket.socket:
    """Check the address that a name led to, before anything is sent to it."""
    address = str(connected.getpeername()[0])
    if policy.is_local(address):
        connected.close()
        raise _LocalAddress(address)
    return connected


class _HttpConnection(urllib3.connection.HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _require_remote(super()._new_conn())


class _HttpsConnection(urllib3.connection.HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _require_remote(super()._new_conn())


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class _Trusting(requests.adapters.HTTPAdapter):
    """Trusts an authority beside those that requests adds, also through a proxy."""

    def __init__(self, authority: pathlib.Path | None) -> None:
        self._context = None
        if authority is not None:
            self._context = urllib3.util.ssl_.create_urllib3_context()
            try:
                self._context.load_verify_locations(authority)
            except OSError:
                raise errors.SourceInvalid(
                    f"authority of chart sources: {authority.name}: must be"
                    " certificates in PEM"
                ) from None
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= self._trust()
        super().init_poolmanager(*args, **kwargs)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        kwargs |= self._trust()
        return super().proxy_manager_for(*args, **kwargs)

    def _trust(self) -> Mapping[str, Any]:
        return {"ssl_context": self._context} if self._context else {}


class _RemoteOnly(_Trusting):
    """Connects to addresses of other hosts only, in each hop of a redirect.

    A proxy may be local; it resolves names in its own network, so only an address
    that is written as such is checked.
    """

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        pools = {"http": _HttpPool, "https": _HttpsPool}
        self.poolmanager.pool_classes_by_scheme = pools

    def send(
        self, request: requests.PreparedRequest, *args: Any, **kwargs: Any
    ) -> requests.Response:
        policy.require_remote(request.url or "")
        return super().send(request, *args, **kwargs)


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

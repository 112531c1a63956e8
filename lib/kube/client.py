"""The API server over HTTP, in bytes.

Rules: every call is bounded by a time-out of its caller's. Nothing is sent twice but a
GET that failed on the way (once), and a request that was refused with 401 (once, with
credentials read again).
"""

import contextlib
import dataclasses
import random
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import structlog
import urllib3

from lib.kube import errors, kube_config, resources, transport
from lib.kube.resources import Resource

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

RETRY_PAUSE_S = 0.2
"""Mean pause before the one retry of a GET."""
CHECK_EVERY_S = 1.0
"""Seconds between two checks of the configuration's files."""
RELOAD_EVERY_S = 10.0
"""Seconds between two reloads, however many answers say 401."""


class WatchLines(Protocol):
    """Lines of a watch; one thread iterates, any thread may abort."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield itself."""
        ...

    def __next__(self) -> bytes:
        """Wait for the next line.

        Raises:
            Unavailable: the server was silent for too long, or closed the connection.
        """
        ...

    def abort(self) -> None:
        """End the loop of the thread that iterates."""
        ...


class Api(Protocol):
    """What flows may ask of an API server; bodies and answers are JSON.

    Every method raises KubeError (lib/kube/errors.py), and nothing else, when the
    server refuses or can't be reached in time. Times in seconds. An implementation
    writes `request` and `stream` and inherits the rest, so that nothing goes past them.
    """

    def request(  # noqa: PLR0913 # keyword only, the parts of an HTTP request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float,
    ) -> bytes:
        """Send one request; return the body of the answer."""
        ...

    def read(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        timeout_s: float,
    ) -> bytes:
        """Return one object."""
        return self.request("GET", resource.path(namespace, name), timeout_s=timeout_s)

    def list_page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        query: Mapping[str, str],
        timeout_s: float,
    ) -> bytes:
        """Return one page of a list; `query` holds limit, continue and selectors."""
        path = resource.path(namespace)
        return self.request("GET", path, query=query, timeout_s=timeout_s)

    def create(  # keyword only
        self,
        resource: Resource,
        body: bytes,
        namespace: str | None = None,
        *,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """Create an object; return it as it is now."""
        path = resource.path(namespace)
        return self.request("POST", path, query=query, body=body, timeout_s=timeout_s)

    def patch(  # noqa: PLR0913 # keyword only
        self,
        resource: Resource,
        name: str,
        body: bytes,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        content_type: str = MERGE_PATCH,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """Change an object; return it as it is now.

        For APPLY_PATCH the query holds fieldManager and force.
        """
        return self.request(
            "PATCH",
            resource.path(namespace, name, subresource),
            query=query,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
        )

    def delete(  # keyword only
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        body: bytes | None = None,
        timeout_s: float,
    ) -> None:
        """Delete an object; body: DeleteOptions with preconditions."""
        path = resource.path(namespace, name)
        self.request("DELETE", path, body=body, timeout_s=timeout_s)

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> AbstractContextManager[WatchLines]:
        """Open a watch; its connection ends with the block.

        connect_timeout_s bounds connecting, and then the wait for the first byte of
        the answer. read_timeout_s is the longest silence between two lines.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Session:
    """One configuration with its connections."""

    configuration: kube_config.Configuration
    pool: urllib3.PoolManager


class KubeClient(Api):
    """The real API server. Safe for use by several threads.

    pool_size: connections kept open, at least as many as threads that call. observer:
    called for each exchange. rng: numbers in [0, 1) for the jitter. clock: monotonic
    seconds, for the time of the next check of the configuration.
    """

    def __init__(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        configuration: kube_config.Configuration,
        *,
        user_agent: str,
        pool_size: int = 64,
        observer: transport.Observer | None = None,
        rng: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._user_agent = user_agent
        self._pool_size = pool_size
        self._observer = observer
        self._rng = rng
        self._session = _Session(configuration, configuration.pool(pool_size))
        self._renewing = threading.Lock()
        self._renewal: threading.Thread | None = None
        self._check_at = clock() + CHECK_EVERY_S
        self._refused_at = float("-inf")
        self._log = structlog.stdlib.get_logger()

    @property
    def host(self) -> str:
        """URL of the API server that is in use."""
        return self._session.configuration.host

    def request(  # noqa: PLR0913 # keyword only, the parts of an HTTP request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float,
    ) -> bytes:
        """See `Api.request`; a GET that failed on the way is sent a second time."""
        deadline = time.monotonic() + timeout_s
        headers = {"Content-Type": content_type} if body is not None else {}
        call = transport.HttpCall(method, path, _target(path, query), headers, body)
        try:
            return self._fetch(call, deadline)
        except errors.Unavailable as error:
            pause_s = RETRY_PAUSE_S * (0.5 + self._rng())
            is_throttled = error.retry_after_s is not None or error.status == 429
            in_time = time.monotonic() + pause_s < deadline
            if method != "GET" or is_throttled or not in_time:
                raise
        time.sleep(pause_s)
        return self._fetch(call, deadline)

    def _fetch(self, call: transport.HttpCall, deadline: float) -> bytes:
        with self._answer(call, deadline) as response:
            return transport.read_all(response, call.operation, deadline)

    @contextlib.contextmanager
    def _answer(
        self, call: transport.HttpCall, deadline: float
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Yield a successful answer; one refused with 401 is asked for once more."""
        session = self._current()
        try:
            response, ending = self._begin(session, call, deadline)
        except errors.Unauthorized:
            renewed = self._after_refusal(session, deadline)
            if renewed is session:
                raise
            response, ending = self._begin(renewed, call, deadline)
        with ending:
            yield response

    def _begin(
        self, session: _Session, call: transport.HttpCall, deadline: float
    ) -> tuple[urllib3.BaseHTTPResponse, contextlib.ExitStack]:
        """Send; return the answer, and what ends it. A refusal is raised."""
        plural = resources.parse(call.path).plural
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            # Also of a process that was stopped meanwhile: what it may do has ended.
            raise errors.Unavailable("not sent: no time left", operation=call.operation)
        with contextlib.ExitStack() as stack:
            with transport.observed(self._observer, call.method, plural) as answered:
                authorized = self._authorized(session, call)
                opened = transport.exchange(session.pool, authorized, deadline)
                response = stack.enter_context(opened)
                answered(response.status)
            if not 200 <= response.status < 300:
                raise _refusal(response, call.operation, deadline)
            return response, stack.pop_all()

    def _authorized(
        self, session: _Session, call: transport.HttpCall
    ) -> transport.HttpCall:
        headers = {**call.headers, "Accept": JSON, "User-Agent": self._user_agent}
        authorization = session.configuration.authorization
        if authorization is not None:
            headers["Authorization"] = authorization
        url = session.configuration.host + call.url
        return dataclasses.replace(call, url=url, headers=headers)

    def _current(self) -> _Session:
        """Return the session, and have it renewed once its configuration is stale.

        The caller does not wait for that: what is stale still works for a while, and
        an exec plug-in may take longer than the caller has.
        """
        now = self._clock()
        if now >= self._check_at:
            self._check_at = now + CHECK_EVERY_S
            if self._session.configuration.is_stale(time.time()):
                self._check_at = now + RELOAD_EVERY_S
                with self._renewing:
                    self._renew()
        return self._session

    def _after_refusal(self, refused: _Session, deadline: float) -> _Session:
        """Return another session than the refused one, if there is one in time."""
        with self._renewing:
            if self._session is not refused:
                return self._session
            now = self._clock()
            if now - self._refused_at >= RELOAD_EVERY_S:
                self._refused_at = now
                self._renew()
            renewal = self._renewal
        if renewal is not None:
            renewal.join(max(deadline - time.monotonic(), 0))
        return self._session

    def _renew(self) -> None:
        """Begin to read the configuration again, unless that is in progress."""
        if self._renewal is None or not self._renewal.is_alive():
            self._renewal = threading.Thread(
                target=self._reload, daemon=True, name="credentials"
            )
            self._renewal.start()

    def _reload(self) -> None:
        """Read the configuration again; if that fails, the old one stays in use."""
        try:
            configuration = self._session.configuration.reload()
            pool = configuration.pool(self._pool_size)
        except errors.KubeError as error:
            self._log.warning("cannot reload the credentials", error=str(error))
            return
        self._session = _Session(configuration, pool)

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Iterator[WatchLines]:
        """See `Api.stream`."""
        call = transport.HttpCall("GET", path, _target(path, query), {})
        deadline = time.monotonic() + connect_timeout_s
        with self._answer(call, deadline) as response:
            transport.set_read_timeout(response, read_timeout_s)
            yield transport.BodyLines(response, call.operation)


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urllib.parse.urlencode(query)}" if query else path


def _refusal(
    response: urllib3.BaseHTTPResponse, operation: str, deadline: float
) -> errors.KubeError:
    body = transport.read_all(response, operation, deadline)
    retry_after = response.headers.get("Retry-After")
    return errors.of_response(response.status, body, retry_after, operation=operation)

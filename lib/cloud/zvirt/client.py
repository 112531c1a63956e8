"""The one access of a process to an engine. Safe for use by several threads.

Rules: every call has a deadline that includes authentication; bodies are types of the
SDK, and a value of an enumeration that the SDK does not know is kept as text; a 404
means "absent" only for a direct read by ID; lists with the same parameters are shared
by parallel callers.
"""

import dataclasses
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence

from lib.cloud import errors
from lib.cloud.support import calls, circuits
from lib.cloud.zvirt import (
    api_paths,
    config,
    documents,
    engine_product,
    engine_refusals,
    http,
    sign_on,
)
from lib.cloud.zvirt.documents import Entity, Item
from lib.process.shared_read import SharedRead

TIMEOUT_S = 30.0
"""Of one call, unless its caller has less time."""
PAGE = 200
"""Objects of one page of `list_all`."""
SERVICE = "api"
_XML = "application/xml"
_CORRELATION_MAX = 50
"""Source: ovirt-engine, BusinessEntitiesDefinitions.CORRELATION_ID_SIZE."""
_SHARED_SCOPES_MAX = 256
Query = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    """One request to the API. path: below its root. resource: what errors name."""

    method: str
    path: str
    query: Query
    operation: str
    resource: str = ""
    body: bytes | None = dataclasses.field(default=None, repr=False)


class EngineClient:
    """One engine with one user."""

    def __init__(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        settings: Callable[[], config.EngineConfig],
        exchange: http.HttpExchange,
        *,
        user_agent: str = "mooring",
        witness: str = "",
        on_call: calls.CallObserver = calls.ignore,
        on_circuit: circuits.CircuitObserver = circuits.ignore,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """settings: returns those of now. on_call: receives every call.

        witness: path of an object that exists as long as the user has its permissions,
        such as its cluster: while it is hidden, no other object counts as absent.
        clock: monotonic seconds. wall_clock: seconds since 1970.
        """
        self._settings = settings
        self._exchange = exchange
        self._clock = clock
        self._on_call = on_call
        self._witness = witness
        services = (sign_on.SERVICE, SERVICE)
        self._circuits = circuits.Circuits(services, on_circuit, clock)
        self._sign_on = sign_on.SignOn(
            exchange,
            settings,
            self._circuits,
            user_agent=user_agent,
            clock=clock,
            wall_clock=wall_clock,
        )
        self._headers = {
            "Accept": _XML,
            "Accept-Language": "en",
            "Version": "4",
            "User-Agent": user_agent,
        }
        self._shared_lock = threading.Lock()
        self._shared: dict[tuple[str, ...], SharedRead[tuple[Item, ...]]] = {}

    @property
    def host(self) -> str:
        """URL of the engine without the path of its API."""
        return self._settings().host

    # Reads.

    def root(self, timeout_s: float = TIMEOUT_S) -> Entity:
        """Return the root of the API: product, version, user.

        Raises:
            CloudError: it is not known.
        """
        call = _Call("GET", "", {}, "read the API")
        return _one(self._send(call, timeout_s), call).entity

    def product(self, timeout_s: float = TIMEOUT_S) -> engine_product.EngineProduct:
        """Return what the engine is.

        Raises:
            Unsupported: its API is too old.
            CloudError: it is not an engine, or it is not known.
        """
        return engine_product.of_root(self.root(timeout_s), self._settings())

    def get(
        self,
        path: str,
        follow: Sequence[str] = (),
        timeout_s: float = TIMEOUT_S,
        witness: str | None = "",
        *,
        all_content: bool = False,
    ) -> Item | None:
        """Read one object by ID; None: the engine reports that it does not exist.

        A gateway may answer 404, too, and so does an engine whose user has lost its
        permissions: an absence counts while the root answers, and the witness.
        witness: empty: the usual one; None: none, the absence decides nothing.
        all_content: with what the engine omits otherwise, such as the VMs of a disk.

        Raises:
            CloudError: it is not known.
        """
        query = {"follow": ",".join(follow)} if follow else {}
        if all_content:
            query["all_content"] = "true"
        call = _Call(
            "GET", path, query, api_paths.operation("read", path), api_paths.last(path)
        )
        deadline = self._clock() + timeout_s
        response = self._send(call, timeout_s, absent_ok=True)
        if response.status != 404:
            return _one(response, call)
        if witness is not None:
            self._check_witness(call, witness or self._witness, deadline)
        return None

    def _check_witness(self, call: _Call, path: str, deadline: float) -> None:
        """Check that the engine answers, and still shows what certainly exists.

        Raises:
            CloudError: an absence would not be reliable.
        """
        if not path:
            self.root(deadline - self._clock())
            return
        witness = _Call("GET", path, {}, api_paths.operation("read", path))
        response = self._send(witness, deadline - self._clock(), absent_ok=True)
        if response.status == 404:
            raise errors.Forbidden(
                f"absence is not reliable: the engine does not show {path} either",
                operation=call.operation,
                resource=call.resource,
            )
        _one(response, witness)

    def list(
        self,
        path: str,
        query: Query | None = None,
        *,
        not_before: float | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> tuple[Item, ...]:
        """Return a collection, one request.

        not_before: a read of another caller is used that began then or later; by the
        clock, None: now. timeout_s: of the read, also for another caller.

        Raises:
            CloudError: it is not known.
        """
        scope = (
            "list",
            path,
            *(f"{name}={value}" for name, value in (query or {}).items()),
        )
        return self._shared_read(
            scope, lambda: self._list(path, query or {}, timeout_s), not_before
        )

    def list_all(
        self,
        path: str,
        search: str = "",
        follow: Sequence[str] = (),
        *,
        not_before: float | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> tuple[Item, ...]:
        """Return a collection that can be searched, by pages of PAGE objects.

        Objects are sorted by name, so that pages are stable; one that is renamed
        between two pages may be missing. timeout_s: of all pages together.

        Raises:
            CloudError: it is not known, also where a page is missing.
        """
        scope = ("pages", path, search, *follow)
        return self._shared_read(
            scope, lambda: self._pages(path, search, follow, timeout_s), not_before
        )

    def _pages(
        self, path: str, search: str, follow: Sequence[str], timeout_s: float
    ) -> tuple[Item, ...]:
        deadline = self._clock() + timeout_s
        items: dict[str, Item] = {}
        query = {"max": str(PAGE)}
        if follow:
            query["follow"] = ",".join(follow)
        for number in range(1, 10_000):
            text = api_paths.page(path, search, number)
            left_s = deadline - self._clock()
            page = self._list(path, {**query, "search": text}, left_s)
            items.update((item.id, item) for item in page)
            if len(page) < PAGE:
                break
        return tuple(items.values())

    def _list(self, path: str, query: Query, timeout_s: float) -> tuple[Item, ...]:
        call = _Call("GET", path, query, api_paths.operation("list", path))
        return _many(self._send(call, timeout_s), call)

    def _shared_read(
        self,
        scope: tuple[str, ...],
        read: Callable[[], tuple[Item, ...]],
        not_before: float | None,
    ) -> tuple[Item, ...]:
        with self._shared_lock:
            shared = self._shared.get(scope)
            if shared is None:
                if len(self._shared) >= _SHARED_SCOPES_MAX:
                    self._shared.pop(next(iter(self._shared)))
                shared = self._shared[scope] = SharedRead(read, self._clock)
        return shared.get(self._clock() if not_before is None else not_before)

    # Writes.

    def add(  # noqa: PLR0913 # keyword only, with sound defaults
        self,
        path: str,
        entity: Entity,
        query: Query | None = None,
        *,
        correlation_id: str = "",
        timeout_s: float = TIMEOUT_S,
        owner: str = "",
    ) -> Item:
        """Create an object in a collection; return it, as it is then.

        owner: path of the object that the collection is in.

        Raises:
            NotFound: the owner does not exist.
            CloudError: it was refused, or the outcome is unknown.
        """
        name = str(getattr(entity, "name", None) or getattr(entity, "alias", "") or "")
        call = self._write("POST", path, entity, query, correlation_id, "create", name)
        if owner:
            return _one(self._send_to(owner, call, timeout_s), call)
        return _one(self._send(call, timeout_s), call)

    def update(
        self,
        path: str,
        entity: Entity,
        query: Query | None = None,
        *,
        correlation_id: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> Item:
        """Change what an entity names of an object; return it.

        Raises:
            NotFound: it does not exist.
            CloudError: it was refused, or the outcome is unknown.
        """
        name = api_paths.last(path)
        call = self._write("PUT", path, entity, query, correlation_id, "update", name)
        return _one(self._send_to(path, call, timeout_s), call)

    def act(
        self,
        path: str,
        action: str,
        body: Entity,
        *,
        correlation_id: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Carry out an action of an object, such as start. body: an Action.

        Raises:
            NotFound: the object does not exist.
            CloudError: it was refused, or the outcome is unknown.
        """
        whole = f"{path}/{action}"
        name = api_paths.last(path)
        call = self._write("POST", whole, body, {}, correlation_id, action, name)
        self._send_to(path, call, timeout_s)

    def remove(
        self,
        path: str,
        query: Query | None = None,
        *,
        correlation_id: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Delete an object.

        Raises:
            NotFound: it does not exist.
            CloudError: it was refused, or the outcome is unknown.
        """
        name = api_paths.last(path)
        call = self._write("DELETE", path, None, query, correlation_id, "delete", name)
        self._send_to(path, call, timeout_s)

    def _write(  # noqa: PLR0913 # the parts of one request
        self,
        method: str,
        path: str,
        entity: Entity | None,
        query: Query | None,
        correlation_id: str,
        verb: str,
        name: str,
    ) -> _Call:
        if len(correlation_id) > _CORRELATION_MAX or not correlation_id.isascii():
            raise ValueError(f"correlation ID: {correlation_id!r}")
        extra = {"correlation_id": correlation_id} if correlation_id else {}
        body = None if entity is None else documents.write(entity)
        operation = api_paths.operation(verb, path)
        return _Call(method, path, {**(query or {}), **extra}, operation, name, body)

    # Requests.

    def _send_to(self, path: str, call: _Call, timeout_s: float) -> http.EngineResponse:
        """Send a write to an object; a 404 is confirmed by a direct read of it.

        Raises:
            NotFound: the object does not exist.
            CloudError: any other failure.
        """
        deadline = self._clock() + timeout_s
        response = self._send(call, timeout_s, absent_ok=True)
        if response.status != 404:
            return response
        if self.get(path, timeout_s=deadline - self._clock()) is None:
            raise errors.NotFound(
                "not found",
                operation=call.operation,
                resource=api_paths.last(path),
                was_rejected=True,
            )
        raise engine_refusals.error(404, b"", call.operation, call.resource)

    def _send(
        self, call: _Call, timeout_s: float, *, absent_ok: bool = False
    ) -> http.EngineResponse:
        """Send a request with a token; a refused token is replaced once.

        absent_ok: a 404 without body is returned.
        """
        deadline = self._clock() + timeout_s
        with calls.counted(self._on_call, call.operation, self._clock):
            token = self._sign_on.token(deadline - self._clock())
            response = self._exchanged(call, token, deadline)
            if response.status == 401:
                self._sign_on.invalidate(token)
                token = self._sign_on.token(deadline - self._clock())
                response = self._exchanged(call, token, deadline)
            if response.status in (200, 201, 202):
                return response
            if response.status == 404 and absent_ok and not response.body.strip():
                return response
            if response.status == 401:
                self._sign_on.invalidate(token)
            raise _refusal(call, response)

    def _exchanged(
        self, call: _Call, token: sign_on.Token, deadline: float
    ) -> http.EngineResponse:
        """Send one request; only failures to answer open the circuit."""
        settings = self._settings()
        query = f"?{urllib.parse.urlencode(call.query)}" if call.query else ""
        path = f"/{api_paths.path_of_url(call.path)}" if call.path else ""
        headers = {**self._headers, "Authorization": f"Bearer {token.value}"}
        if call.body is not None:
            headers["Content-Type"] = _XML
        with self._circuits.call(SERVICE, call.operation):
            response = self._exchange(
                call.method,
                f"{settings.url}{path}{query}",
                headers,
                call.body,
                deadline - self._clock(),
            )
            if engine_refusals.is_down(response.status, response.body):
                raise _refusal(call, response)
            return response


def _refusal(call: _Call, response: http.EngineResponse) -> errors.CloudError:
    return engine_refusals.error(
        response.status,
        response.body,
        call.operation,
        call.resource,
        retry_after_s=response.retry_after_s,
    )


def _one(response: http.EngineResponse, call: _Call) -> Item:
    try:
        return documents.one(response.body)
    except documents.Malformed as error:
        raise _not_an_engine(call) from error


def _many(response: http.EngineResponse, call: _Call) -> tuple[Item, ...]:
    try:
        return documents.many(response.body)
    except documents.Malformed as error:
        raise _not_an_engine(call) from error


def _not_an_engine(call: _Call) -> errors.CloudError:
    return errors.Unavailable(
        "not an engine: the response is no document of its API",
        operation=call.operation,
        resource=call.resource,
    )

"""One way to call OpenStack: bounded, measured, retried once where that is harmless.

Rules: a GET is tried twice at most, a write once; the libraries below retry nothing;
every failure leaves as a `CloudError`; calls to a service that fails
repeatedly are stopped by a circuit breaker. Texts of services are compared only here.
"""

import contextlib
import dataclasses
import enum
import math
import random
import time
import traceback
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import keystoneauth1.exceptions
import keystoneauth1.session
from keystoneauth1 import identity

from lib.cloud import errors
from lib.cloud.openstack import native
from lib.cloud.openstack.http import answers, endpoints, failures
from lib.cloud.openstack.http import session as sessions
from lib.cloud.support import calls, circuits
from lib.cloud.support.places import AdaptivePlaces
from lib.process import retry_after

T = TypeVar("T")
Query = Sequence[tuple[str, str]]

RETRIABLE = frozenset({429, 502, 503, 504})


class Service(enum.Enum):
    """Services by their catalogue type."""

    COMPUTE = "compute"
    NETWORK = "network"
    VOLUME = "block-storage"
    IMAGE = "image"
    LOAD_BALANCER = "load-balancer"
    KEY_MANAGER = "key-manager"


Method = Literal["POST", "PUT", "DELETE"]


@dataclasses.dataclass(frozen=True, slots=True)
class Get:
    """One GET. path: below the version, quoted. resource: the id or name in errors.

    newest: asks for at most this microversion, if that is older than ours.
    """

    service: Service
    path: str
    operation: str
    query: Query = ()
    resource: str = ""
    newest: endpoints.Version | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """The meaning of a refusal that its status alone does not show.

    text: a part of what the service says, letter case aside. resource: what it is
    about, where that is not the resource of the call. remedy: as of the error.
    shows_text: what the service says follows the message.
    """

    status: int
    text: str
    kind: type[errors.CloudError]
    message: str
    resource: str = ""
    remedy: str | None = None
    shows_text: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """One call that changes something. path, resource, newest: as with `Get`.

    body: JSON to send. refusals: the first that fits counts. revision: the number
    that the thing must still have; Neutron answers 412 when it has not.
    """

    service: Service
    method: Method
    path: str
    operation: str
    body: Mapping[str, object] | None = None
    resource: str = ""
    refusals: Sequence[Refusal] = ()
    newest: endpoints.Version | None = None
    query: Query = ()
    revision: int | None = None


Call = Get | Write
SMALL_BYTES = 16384
"""Answers below this take the same time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """Time and chance. wall: seconds since the epoch. jitter: from 0 up to 1."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random


@dataclasses.dataclass(frozen=True, slots=True)
class Where:
    """Which endpoints of the catalogue to use; region empty: the only one."""

    region: str
    interface: str


class Client:
    """Calls the services of one cloud. Safe to use from several threads."""

    def __init__(
        self,
        session: keystoneauth1.session.Session,
        where: Where,
        on_call: calls.CallObserver,
        effects: Effects | None = None,
        on_circuit: circuits.CircuitObserver = circuits.ignore,
    ) -> None:
        """session: its time-out bounds every single try."""
        self._session = session
        self._where = where
        self._on_call = on_call
        self._effects = effects or Effects()
        self._skew_s: dict[Service, float] = {}
        services = tuple(service.value for service in Service)
        self._circuits = circuits.Circuits(services, on_circuit, self._effects.clock)
        self._places = {
            service: AdaptivePlaces(self._effects.clock) for service in Service
        }

    def places(self, service: Service) -> AdaptivePlaces:
        """Return the places of a service, whose number follows its answers."""
        return self._places[service]

    def now(self) -> float:
        """Return the time of the clock that deadlines are of."""
        return self._effects.clock()

    def wall(self, service: Service) -> float:
        """Return the time of day by a service's clock, as of its last answer.

        In seconds since the epoch; by our own clock before the first answer.
        """
        return self._effects.wall() + self._skew_s.get(service, 0.0)

    def get(self, call: Get, deadline: float) -> bytes:
        """Return the body of a successful answer.

        deadline: when to give up, in the time of `now`.

        Raises:
            CloudError: the native failure by the tables of `failures`.
        """
        return self._counted(call, deadline, lambda: self._get(call, deadline))

    def write(self, call: Write, deadline: float, send_by: float = math.inf) -> bytes:
        """Change something; tried once. Return the body of a successful answer.

        deadline: when the answer is given up. send_by: the request is not sent later.

        Raises:
            CloudError: as `get`. Unavailable: it may have been done all the same.
        """
        send_by = min(send_by, deadline)
        return self._counted(
            call, deadline, lambda: self._write(call, deadline, send_by)
        )

    def write_and_read(self, call: Write, kind: type[T], deadline: float) -> T:
        """Change something and return the answer decoded as `kind`.

        Raises:
            CloudError: as `write`; Unavailable also when the answer is no such thing.
        """
        body = self.write(call, deadline)
        return answers.decode(body, kind, call.operation, call.resource)

    def microversion(
        self, service: Service, newest: endpoints.Version | None = None
    ) -> endpoints.Version | None:
        """Return the microversion that calls use; None in a service without any.

        Raises:
            CloudError: the endpoint could not be found.
        """
        with self._translated(f"find the {service.value} service", ""):
            return self._endpoint(service).microversion(newest)

    def has(self, service: Service) -> bool:
        """Report whether the cloud's catalogue has the service.

        Raises:
            CloudError: there is no token.
        """
        try:
            with self._translated(f"find the {service.value} service", ""):
                self._endpoint(service)
        except endpoints.NotInCatalogue:
            return False
        return True

    def version(self, service: Service) -> endpoints.Version:
        """Return the newest version of its API that a service offers.

        Raises:
            CloudError: the endpoint, or its version document, could not be found.
        """
        operation = f"find the {service.value} service"
        with self._translated(operation, ""):
            return self._endpoint(service).version(operation, "")

    def _counted(self, call: Call, deadline: float, send: Callable[[], bytes]) -> bytes:
        with calls.counted(self._on_call, call.operation, self.now):
            if self.now() >= deadline:
                raise _broken(call, "no time is left for the call", was_rejected=True)
            with self._circuits.call(call.service.value, call.operation):
                return send()

    def count(self, operation: str, outcome: str) -> None:
        """Count something that is worth a metric and is no call."""
        self._on_call(operation, outcome, 0.0)

    def read(self, call: Get, kind: type[T], deadline: float) -> T:
        """Return the answer decoded as `kind`.

        Raises:
            CloudError: as `get`; Unavailable also when the answer is no such thing.
        """
        body = self.get(call, deadline)
        return answers.decode(body, kind, call.operation, call.resource)

    def items(
        self, call: Get, limit: int, kind: type[native.Page[T]], deadline: float
    ) -> tuple[T, ...]:
        """Return all items of a list, each once, in the cloud's order, `limit` a page.

        The next page is asked for at our own endpoint with the marker of the link;
        links themselves may name a host that only the cloud can reach.

        Raises:
            CloudError: as `read`; Unavailable also when the list changed underneath.
        """
        items: list[T] = []
        marker, markers = "", {""}
        while True:
            extra = [("limit", str(limit))] + ([("marker", marker)] if marker else [])
            page_call = dataclasses.replace(call, query=(*call.query, *extra))
            try:
                page = self.read(page_call, kind, deadline)
            except (errors.InvalidRequest, errors.NotFound) as error:
                if not marker:
                    raise
                raise _broken(call, "the list changed while it was read") from error
            items.extend(page.items)
            marker = answers.next_marker(page, call.operation)
            if not marker:
                return _unique(items)
            if marker in markers:
                raise _broken(call, "the pages of the list go round in a circle")
            markers.add(marker)

    def project_id(self) -> str:
        """Return the id of the project that the token is of; empty without one.

        Raises:
            CloudError: there is no token.
        """
        auth = self._session.auth
        if not isinstance(auth, identity.BaseIdentityPlugin):
            return ""
        with self._translated("authenticate", ""):
            return auth.get_access(self._session).project_id or ""

    def project_filter(self) -> Query:
        """Return the query that keeps other projects out of Neutron's lists.

        Empty unless we are an administrator, who is shown all of them: a member may
        see ports of another project that are attached to his own servers.

        Raises:
            CloudError: there is no token.
        """
        auth = self._session.auth
        if not isinstance(auth, identity.BaseIdentityPlugin):
            return ()
        with self._translated("authenticate", ""):
            access = auth.get_access(self._session)
            is_admin = "admin" in (access.role_names or ())
            project_id = access.project_id
        return (("project_id", project_id),) if is_admin and project_id else ()

    def _get(self, call: Get, deadline: float) -> bytes:
        answer = self._send(call, deadline)
        if answer.status in RETRIABLE:
            jitter = self._effects.jitter()
            pause_s = retry_after.repeat_s(answer.retry_after_s, jitter)
            if pause_s is not None and self.now() + pause_s < deadline:
                self._effects.sleep(pause_s)
                answer = self._send(call, deadline)
        if answer.is_success:
            return answer.body
        raise self._failure(call, answer)

    def _write(self, call: Write, deadline: float, send_by: float) -> bytes:
        answer = self._send(call, deadline, send_by)
        if answer.is_success:
            return answer.body
        refusal = _refused(call, answer, sessions.secrets(self._session))
        raise refusal or self._failure(call, answer)

    def _failure(self, call: Call, answer: answers.Answer) -> errors.CloudError:
        secrets = sessions.secrets(self._session)
        service = call.service.value
        return answer.failure(call.operation, call.resource, service, secrets)

    def _send(
        self, call: Call, deadline: float, send_by: float = math.inf
    ) -> answers.Answer:
        """Send one request; its duration shows how much the service has to do."""
        held, began = self._places[call.service], self.now()
        try:
            answer = self._exchange(call, deadline, send_by)
        except errors.Unavailable as error:
            if not error.was_rejected:  # else it was not sent
                held.overloaded(self.now() - began, error.retry_after_s)
            raise
        if answer.status in RETRIABLE:
            held.overloaded(self.now() - began, answer.retry_after_s)
        elif answer.is_success:
            held.measured(_kind(call, len(answer.body)), self.now() - began)
        return answer

    def _exchange(self, call: Call, deadline: float, send_by: float) -> answers.Answer:
        self._left_s(call, min(deadline, send_by))
        within = sessions.within(self._session, self._left_s(call, deadline))
        with within, self._translated(call.operation, call.resource):
            endpoint = self._endpoint(call.service)
            # Again: the endpoint may have needed a token first.
            self._left_s(call, min(deadline, send_by))
            left_s = self._left_s(call, deadline)
            response = self._session.request(
                _url(endpoint, call),
                call.method if isinstance(call, Write) else "GET",
                json=call.body if isinstance(call, Write) else None,
                headers=_headers(endpoint, call),
                raise_exc=False,
                log=False,
                timeout=min(left_s, self._session.timeout or left_s),
            )
        now = self._effects.wall()
        self._skew_s[call.service] = answers.skew_s(response.headers, now)
        return answers.read(
            response.status_code, response.headers, response.content, now
        )

    def _left_s(self, call: Call, deadline: float) -> float:
        left_s = deadline - self.now()
        if left_s <= 0:
            raise _broken(call, "no time is left for the call", was_rejected=True)
        return left_s

    def _endpoint(self, service: Service) -> endpoints.Endpoint:
        where = self._where
        return endpoints.find(
            self._session, service.value, where.region, where.interface
        )

    @contextlib.contextmanager
    def _translated(self, operation: str, resource: str) -> Iterator[None]:
        try:
            yield
        except (keystoneauth1.exceptions.ClientException, OSError) as error:
            kind, message = failures.from_native(error)
            response = getattr(error, "response", None)
            header = None if response is None else response.headers.get("Retry-After")
            raise kind(
                message,
                operation=operation,
                resource=resource,
                request_id=getattr(error, "request_id", None) or "",
                retry_after_s=retry_after.seconds(header, self._effects.wall()),
            ) from error
        except _MALFORMED as error:
            if not _is_of_library(error):
                raise
            message = "the answer is not what the service promises"
            raise errors.Unavailable(
                message, operation=operation, resource=resource
            ) from error


def _kind(call: Call, size_bytes: int) -> str:
    """Return with what other requests the duration of one is compared.

    A list of many takes longer, also in a cloud that has nothing else to do.
    """
    if isinstance(call, Get) and size_bytes < SMALL_BYTES:
        return "read"
    return f"{call.operation} {size_bytes.bit_length()}"


_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
"""What keystoneauth1 raises where a token or a document of versions is malformed."""


def _is_of_library(error: Exception) -> bool:
    """Report whether an error was raised by keystoneauth1, not by code of our own."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [str(frame.f_globals.get("__name__", "")) for frame in frames]
    own = [name.startswith("lib.") for name in modules]
    return any(
        name.startswith("keystoneauth1.") and not any(own[place:])
        for place, name in enumerate(modules)
    )


def _refused(
    call: Write, answer: answers.Answer, secrets: Collection[str]
) -> errors.CloudError | None:
    """Return the meaning of the text of an error; None if it has no special one."""
    text = answer.body.decode(errors="replace").lower()
    for refusal in call.refusals:
        if refusal.status == answer.status and refusal.text.lower() in text:
            about, message = refusal.resource or call.resource, refusal.message
            if refusal.shows_text:
                why = answers.explanation(answer.body, secrets)
                message = f"{message}: {why}" if why else message
            return answer.error(
                refusal.kind, message, call.operation, about, refusal.remedy
            )
    return None


def _broken(call: Call, message: str, was_rejected: bool = False) -> errors.Unavailable:
    return errors.Unavailable(
        message,
        operation=call.operation,
        resource=call.resource,
        was_rejected=was_rejected,
    )


def _url(endpoint: endpoints.Endpoint, call: Call) -> str:
    # Without a version document an unversioned URL leads nowhere.
    endpoint.version(call.operation, call.resource)
    query = urllib.parse.urlencode(call.query)
    url = f"{str(endpoint.data.url).rstrip('/')}/{call.path}"
    return f"{url}?{query}" if query else url


_SAID_AS = {Service.COMPUTE: "compute", Service.VOLUME: "volume"}
"""Source: os-service-types; the header has the old name of block-storage."""


def _headers(endpoint: endpoints.Endpoint, call: Call) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if isinstance(call, Write) and call.revision is not None:
        headers["If-Match"] = f"revision_number={call.revision}"
    chosen = endpoint.microversion(call.newest)
    if chosen is not None:
        version = ".".join(map(str, chosen))
        headers["OpenStack-API-Version"] = f"{_SAID_AS[call.service]} {version}"
        if call.service is Service.COMPUTE:
            headers["X-OpenStack-Nova-API-Version"] = version
    return headers


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    """Return each object once, as it was read last.

    Pages overlap when an object is inserted while they are read, and lists that are
    merged of several databases may contain one twice.
    """
    by_id: dict[object, T] = {}
    for item in items:
        by_id[getattr(item, "id", None) or len(by_id)] = item
    return tuple(by_id.values())

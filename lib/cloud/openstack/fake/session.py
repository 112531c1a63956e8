"""The session below the real client, whose other end is in memory."""

import collections
import dataclasses
import json
import threading
from collections.abc import Callable, Mapping

import keystoneauth1.discover
import keystoneauth1.exceptions
import keystoneauth1.session

from lib.cloud.openstack.fake import neutron, octavia, wire
from lib.cloud.openstack.http import client


class FakeClock:
    """Monotonic time that passes only by `sleep`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the time."""
        self.now += seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a call instead of what should.

    status: of the answer; 0: the connection ends without one. is_done: the service
    did it all the same, only the answer is lost. headers: of the answer.
    """

    status: int = 0
    is_done: bool = False
    message: str = "injected"
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


def nothing(call: wire.Call) -> Fault | None:
    """Return None for every call: no fault."""
    del call
    return None


def genuine(call: wire.Call, answer: wire.Answer) -> wire.Answer:
    """Return every answer as it is."""
    del call
    return answer


@dataclasses.dataclass(frozen=True, slots=True)
class _Response:
    status_code: int
    content: bytes
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class FakeOpenStack:
    """Octavia and Neutron in memory, and the calls that were made.

    absent: types of services that the catalogue has not.
    latency_s: that each call takes. fault: asked before each call; may also raise, to
    simulate a crash of the process. timeout_s: of the call under way. after: called
    after each call that was answered. forge: changes answers, as a proxy or an old
    replica does. operations: the names of the calls, as metrics show them.
    """

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.neutron = neutron.FakeNeutron(self.new_id)
        self.octavia = octavia.FakeOctavia(self.neutron, self.new_id, self.clock)
        self.calls: list[wire.Call] = []
        self.operations: set[str] = set()
        self.latency_s = 0.0
        self.timeout_s = 0.0
        self.tls_refs: set[str] = set()
        self.absent: set[str] = set()
        self.fault: Callable[[wire.Call], Fault | None] = nothing
        self.forge: Callable[[wire.Call, wire.Answer], wire.Answer] = genuine
        self.after: Callable[[wire.Call], None] = lambda call: None
        self._made: collections.Counter[str] = collections.Counter()
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy has as well: all but the calls that were made."""
        return {**vars(self), "calls": [], "_lock": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def writes(self) -> list[wire.Call]:
        """The calls that were to change something."""
        return [call for call in self.calls if call.method != "GET"]

    def content(self) -> str:
        """Return all that it holds as a text, to compare clouds."""
        octavia, neutron = self.octavia, self.neutron
        kinds = (octavia.load_balancers, octavia.listeners, octavia.pools)
        parts = (octavia.monitors, octavia.members)
        network = (neutron.floating_ips, neutron.ports, neutron.groups)
        return repr((*kinds, *parts, *network))

    def new_id(self, kind: str) -> str:
        """Return a UUID that shows its kind: kinds by number, counted up."""
        self._made[kind] += 1
        number = list(self._made).index(kind) + 1
        return f"{number:08x}-0000-4000-8000-{self._made[kind]:012x}"

    def client(self) -> client.Client:
        """Return the real client, connected to this."""
        effects = client.Effects(self.clock, self.clock, self.clock.sleep, lambda: 0.5)
        where = client.Where("RegionOne", "public")

        def on_call(operation: str, outcome: str, seconds: float) -> None:
            del outcome, seconds
            self.operations.add(operation)

        return client.Client(FakeSession(self), where, on_call, effects)

    def respond(self, call: wire.Call) -> wire.Answer:
        """Answer one call, or fail it as tests want it.

        Raises:
            ConnectTimeout: a fault without a status.
        """
        with self._lock:
            self.clock.sleep(self.latency_s)
            self.calls.append(call)
            fault = self.fault(call)
            answer = None
            if fault is None or fault.is_done:
                answer = self._true(call)
            if fault is None and answer is not None:
                self.after(call)
                return self.forge(call, answer)
        if fault is None or not fault.status:
            raise keystoneauth1.exceptions.ConnectTimeout("injected")
        refusal = _refusal(call.service, fault.status, fault.message)
        return dataclasses.replace(refusal, headers=fault.headers)

    def _true(self, call: wire.Call) -> wire.Answer:
        try:
            if call.service == client.Service.LOAD_BALANCER.value:
                return self.octavia.answer(call)
            if call.service == client.Service.KEY_MANAGER.value:
                return self._key(call)
            if call.service == client.Service.COMPUTE.value:
                return self._server(call)
            self.octavia.advance()
            return self.neutron.answer(call)
        except wire.Refused as refused:
            return _refusal(call.service, refused.status, refused.message)

    def _server(self, call: wire.Call) -> wire.Answer:
        """Show a server: those that a port belongs to exist."""
        id_ = call.parts[-1]
        ports = self.neutron.ports.values()
        if any(port["device_id"] == id_ for port in ports):
            return wire.Answer(200, {"server": {"id": id_, "status": "ACTIVE"}})
        message = {"code": 404, "message": f"Instance {id_} could not be found."}
        return wire.Answer(404, {"itemNotFound": message})

    def _key(self, call: wire.Call) -> wire.Answer:
        if any(ref.endswith(call.path) for ref in self.tls_refs):
            return wire.Answer(200, {"container_ref": call.path})
        return wire.Answer(
            404, {"code": 404, "title": "Not Found", "description": "Not Found."}
        )


class FakeSession(keystoneauth1.session.Session):
    """Gives requests to a `FakeOpenStack`."""

    def __init__(self, cloud: FakeOpenStack) -> None:
        super().__init__(timeout=60)
        self._cloud = cloud

    def get_endpoint_data(
        self, auth: object = None, **kwargs: object
    ) -> keystoneauth1.discover.EndpointData:
        """Find any service that is not absent, at a URL that names it."""
        service = str(kwargs["service_type"])
        if service in self._cloud.absent:
            raise keystoneauth1.exceptions.EndpointNotFound()
        version = (2, 0)
        if service == client.Service.LOAD_BALANCER.value:
            version = self._cloud.octavia.version
        return keystoneauth1.discover.EndpointData(
            catalog_url=f"fake://{service}", api_version=version, service_type=service
        )

    def request(  # type: ignore[override]  # only what our client asks
        self,
        url: str,
        method: str,
        json: wire.Json | None = None,
        headers: Mapping[str, str] | None = None,
        **kwargs: object,
    ) -> _Response:
        """Carry one request out in memory."""
        service = url.removeprefix("fake://").split("/")[0]
        self._cloud.timeout_s = float(str(kwargs.get("timeout") or 0.0))
        body = _copied(json or {})
        answer = self._cloud.respond(
            wire.call_of(service, method, url, body, headers or {})
        )
        return _Response(answer.status, answer.content, answer.headers)


def _copied(body: wire.Json) -> wire.Json:
    """Send a body the way a network does: what is no JSON fails here."""
    copied = json.loads(json.dumps(body)) if body else {}
    return copied if isinstance(copied, dict) else {}


def _refusal(service: str, status: int, message: str) -> wire.Answer:
    if service == client.Service.NETWORK.value:
        error: wire.Json = {"type": "Fault", "message": message, "detail": ""}
        return wire.Answer(status, {"NeutronError": error})
    return wire.Answer(
        status, {"faultcode": "Client", "faultstring": message, "debuginfo": None}
    )

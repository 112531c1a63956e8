"""A stand-in for Keystone, Nova and Neutron on loopback, speaking their wire format."""

import collections
import contextlib
import dataclasses
import http.server
import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client, session
from lib.cloud.openstack.instances import cloud

_VERSIONED = r"^/(identity/v3|compute/v2\.1|network/v2\.0|volume/v3(?:/project-1)?)/"
Json = dict[str, object]
Answer = tuple[int, dict[str, str], bytes]


@dataclasses.dataclass(frozen=True)
class Call:
    """One call that arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Json


@dataclasses.dataclass(frozen=True)
class Fault:
    """An answer instead of the true one."""

    status: int
    headers: dict[str, str]
    body: bytes


class StandIn:
    """What the stand-in holds; tests change it at will.

    faults: by path without version ("servers/detail", "ports", "auth/tokens"), used up
    one by one. silent: paths that are not answered until `release`. more: asked first
    for every resource; volume_versions: from the oldest to the newest microversion.
    """

    def __init__(self) -> None:
        self.url = ""
        self.servers: list[Json] = []
        self.ports: list[Json] = []
        self.networks: list[Json] = []
        self.flavors: list[Json] = []
        self.newest = "2.96"
        self.max_limit = 1000
        self.neutron_limit = 1_000_000
        self.roles = ["member"]
        self.project = "project-1"
        self.application_credential = ""
        self.calls: list[Call] = []
        self.faults: dict[str, list[Fault]] = collections.defaultdict(list)
        self.silent: set[str] = set()
        self.release = threading.Event()
        self.tokens = 0
        self.elsewhere: list[str] = []
        self.refused: set[str] = set()
        self.more: Callable[[Call, str], Answer | None] = lambda call, name: None
        self.volume_versions = ("3.0", "3.71")
        self.volume_service = ("block-storage", "/volume/v3")

    def fail(
        self,
        name: str,
        status: int,
        body: bytes = b'{"error": {"message": "injected"}}',
        headers: dict[str, str] | None = None,
    ) -> None:
        """Add one more wrong answer to the calls of that path."""
        self.faults[name].append(Fault(status, headers or {}, body))

    def paths(self) -> list[str]:
        """Return the paths called, without versions."""
        return [_unversioned(call) for call in self.calls]

    def answer(self, call: Call) -> Answer:
        """Answer one call."""
        self.calls.append(call)
        name = _unversioned(call)
        if name in self.silent:
            self.release.wait(60)
        if self.faults[name]:
            fault = self.faults[name].pop(0)
            headers = {"X-Openstack-Request-Id": "req-1"} | fault.headers
            return fault.status, headers, fault.body
        if call.path == "/identity/v3/auth/tokens":
            return self._token()
        if call.path.strip("/") in ("compute/v2.1", "network", "volume/v3"):
            return self._versions(call.path.strip("/"))
        token = call.headers.get("x-auth-token", "")
        if not token or token in self.refused:
            return 401, {}, b'{"error": {"code": 401}}'
        return self.more(call, name) or self._resource(name, call)

    def _resource(self, name: str, call: Call) -> Answer:
        embeds = self._microversion(call) >= (2, 47)
        match name.split("/"):
            case ["servers", "detail"]:
                shown = [_shown(server, embeds) for server in self.servers]
                return self._page("servers", shown, call)
            case ["servers"]:
                return self._page("servers", self._named(call), call)
            case ["servers", server_id]:
                return self._server(server_id, embeds)
            case ["flavors", "detail"]:
                return self._page("flavors", self.flavors, call)
            case ["ports" | "networks" as kind]:
                items = self.ports if kind == "ports" else self.networks
                return self._page(kind, _fields(items, call), call)
        return 404, {}, b"<html>no such page</html>"

    def _server(self, server_id: str, embeds: bool) -> Answer:
        for server in self.servers:
            if server["id"] == server_id:
                return _ok({"server": _shown(server, embeds)})
        message = f"Instance {server_id} could not be found."
        body = {"itemNotFound": {"code": 404, "message": message}}
        return 404, {}, json.dumps(body).encode()

    def _versions(self, path: str) -> Answer:
        if path == "network":
            return _ok({"versions": [self._version("v2.0", "network/v2.0/", "")]})
        if path == "volume/v3":
            oldest, newest = self.volume_versions
            shown = self._version("v3.0", "volume/v3/", newest)
            return _ok({"versions": [shown | {"min_version": oldest}]})
        return _ok({"version": self._version("v2.1", "compute/v2.1/", self.newest)})

    def _named(self, call: Call) -> list[Json]:
        pattern = re.compile(call.query["name"][0], re.IGNORECASE)
        return [
            {"id": s["id"], "name": s["name"], "links": []}
            for s in self.servers
            if pattern.search(str(s["name"]))
        ]

    def _page(self, kind: str, items: list[Json], call: Call) -> Answer:
        most = self.neutron_limit if kind in ("ports", "networks") else self.max_limit
        limit = min(int(call.query.get("limit", [most])[0]), most)
        start = 0
        if "marker" in call.query:
            marker = call.query["marker"][0]
            ids = [item["id"] for item in items]
            if marker not in ids:
                return 400, {}, b'{"badRequest": {"message": "marker not found"}}'
            start = ids.index(marker) + 1
        page = items[start : start + limit]
        body: Json = {kind: page}
        if page and len(page) == limit:
            query = urllib.parse.urlencode(
                {**call.query, "marker": page[-1]["id"]},
                doseq=True,
            )
            # As behind a proxy: a host that clients can't reach.
            href = f"http://internal.invalid{call.path}?{query}"
            body[f"{kind}_links"] = [{"rel": "next", "href": href}]
        return _ok(body)

    def _microversion(self, call: Call) -> tuple[int, ...]:
        header = call.headers.get("openstack-api-version", "compute 2.1")
        return tuple(int(part) for part in header.split()[-1].split("."))

    def _version(self, version: str, path: str, newest: str) -> Json:
        return {
            "id": version,
            "status": "CURRENT",
            "version": newest,
            "min_version": "2.1" if newest else "",
            "links": [{"rel": "self", "href": f"{self.url}/{path}"}],
        }

    def _token(self) -> Answer:
        self.tokens += 1
        catalog = [
            self._endpoint("compute", f"{self.url}/compute/v2.1"),
            self._endpoint("network", f"{self.url}/network/"),
            self._endpoint(self.volume_service[0], self.url + self.volume_service[1]),
            *(self._endpoint(kind, f"{self.url}/{kind}") for kind in self.elsewhere),
        ]
        token: Json = {
            "methods": ["password"],
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "project": {"id": self.project, "name": "p", "domain": {"id": "default"}},
            "user": {"id": "user-1", "name": "u", "domain": {"id": "default"}},
            "roles": [{"id": role, "name": role} for role in self.roles],
            "catalog": catalog,
        }
        if own_id := self.application_credential:
            token["application_credential"] = {"id": own_id, "restricted": True}
        headers = {"X-Subject-Token": f"token-{self.tokens}"}
        return 201, headers, json.dumps({"token": token}).encode()

    def _endpoint(self, kind: str, url: str) -> Json:
        endpoints = [
            {"id": f"{kind}-1", "interface": "public", "url": url}
            | {"region": "RegionOne", "region_id": "RegionOne"}
        ]
        return {"type": kind, "name": kind, "id": kind, "endpoints": endpoints}


def _unversioned(call: Call) -> str:
    return re.sub(_VERSIONED, "", call.path.rstrip("/"))


def _ok(body: Json) -> Answer:
    return 200, {"X-Openstack-Request-Id": "req-ok"}, json.dumps(body).encode()


def _fields(items: list[Json], call: Call) -> list[Json]:
    desired = call.query.get("fields", [])
    filters = {
        key: call.query[key]
        for key in ("project_id", "device_id", "id")
        if key in call.query
    }
    return [
        {key: value for key, value in item.items() if not desired or key in desired}
        for item in items
        if all(item.get(key) in values for key, values in filters.items())
    ]


def _shown(server: Json, embeds: bool) -> Json:
    flavor = server["flavor"]
    assert isinstance(flavor, dict)
    kept = ("original_name", "vcpus", "ram") if embeds else ("id", "links")
    return {**server, "flavor": {k: v for k, v in flavor.items() if k in kept}}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else headers and body are two packets, and the second waits for 40 ms.
    wbufsize = -1
    stand_in: StandIn

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        split = urllib.parse.urlsplit(self.path)
        call = Call(
            self.command,
            split.path,
            urllib.parse.parse_qs(split.query),
            {key.lower(): value for key, value in self.headers.items()},
            json.loads(raw) if raw else {},
        )
        status, headers, body = self.stand_in.answer(call)
        try:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = _serve  # noqa: N815  (the standard library names them)
    do_POST = _serve  # noqa: N815  (the same)
    do_DELETE = _serve  # noqa: N815  (the same)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture()
def stand_in() -> Iterator[StandIn]:
    """Yield a running stand-in of an empty cloud."""
    state = StandIn()
    handler = type("Handler", (_Handler,), {"stand_in": state})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield state
        state.release.set()
        server.shutdown()
        thread.join()


class Clock:
    """Time that passes only when told; `sleep` is one way to tell."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture()
def clock() -> Clock:
    """Return a clock that stands still."""
    return Clock()


Observed = list[tuple[str, str]]


@pytest.fixture()
def observed() -> Observed:
    """Return the operations and outcomes that the client reported."""
    return []


MakeConfig = Callable[..., settings.Config]


@pytest.fixture()
def make_config(stand_in: StandIn) -> MakeConfig:
    """Return a factory of configurations; keywords replace parts of one."""

    def make(
        *, credentials: dict[str, str] | None = None, **parts: object
    ) -> settings.Config:
        values = {
            "auth_url": f"{stand_in.url}/identity/v3",
            "username": "robot",
            "password": "hunter2",
            "user_domain_name": "Default",
            "tenant_id": "project-1",
            "region": "RegionOne",
        } | (credentials or {})
        fresh = settings.Config(credentials=settings.Credentials(**values))  # type: ignore[arg-type]  # texts only
        return dataclasses.replace(fresh, **parts)  # type: ignore[arg-type]  # any part

    return make


MakeClient = Callable[..., client.Client]


@pytest.fixture()
def make_client(
    make_config: MakeConfig, observed: Observed, clock: Clock
) -> Iterator[MakeClient]:
    """Yield a factory of clients of the stand-in; their sessions are closed after."""
    opened = contextlib.ExitStack()

    def make(*, timeout_s: float = 5.0, **credentials: str) -> client.Client:
        values = make_config(credentials=credentials).credentials
        own = session.open_session(values, timeout_s)
        opened.callback(own.session.close)
        return client.Client(
            own,
            client.Where(values.region, values.endpoint_type),
            lambda operation, outcome, seconds: observed.append((operation, outcome)),
            client.Effects(clock, lambda: 0.0, clock.sleep, lambda: 0.5),
        )

    with opened:
        yield make


MakeInstances = Callable[..., cloud.OpenStackInstances]


@pytest.fixture()
def make_instances(
    make_client: MakeClient, make_config: MakeConfig, clock: Clock
) -> MakeInstances:
    """Return a factory of the package's instances; keywords replace configuration."""

    def make(**parts: object) -> cloud.OpenStackInstances:
        return cloud.OpenStackInstances(make_client(), make_config(**parts), clock)

    return make


MakeServer = Callable[..., Json]


@pytest.fixture()
def make_server() -> MakeServer:
    """Return a factory of servers as Nova 2.47 and older write them, both at once."""

    def make(server_id: str, name: str = "", **parts: object) -> Json:
        return {
            "id": server_id,
            "name": name or f"name-{server_id}",
            "status": "ACTIVE",
            "tenant_id": "project-1",
            "metadata": {},
            "addresses": {},
            "accessIPv4": "",
            "accessIPv6": "",
            "OS-EXT-AZ:availability_zone": "nova",
            "flavor": {
                "id": "flavor-1",
                "links": [],
                "original_name": "m1.small",
                "vcpus": 1,
                "ram": 512,
            },
            "created": "2026-01-01T00:00:00Z",
            "links": [{"rel": "self", "href": "http://internal.invalid/servers"}],
        } | parts

    return make


MakePort = Callable[..., Json]


@pytest.fixture()
def make_port() -> MakePort:
    """Return a factory of Neutron ports."""

    def make(port_id: str, server_id: str, *ips: str, **parts: object) -> Json:
        return {
            "id": port_id,
            "device_id": server_id,
            "device_owner": "compute:nova",
            "project_id": "project-1",
            "network_id": "network-1",
            "status": "ACTIVE",
            "mac_address": "fa:16:3e:00:00:01",
            "fixed_ips": [{"subnet_id": "subnet-1", "ip_address": ip} for ip in ips],
        } | parts

    return make

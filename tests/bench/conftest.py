"""The grounds of the benches: a real API server, and a cloud that counts.

The cloud speaks the wire format of Keystone, Nova and Neutron on loopback, in pages of
1,000 as Nova does, and takes a tenth of a second for each call. Load balancers are in
balancing.py, which only their benches read.
"""

import dataclasses
import http.server
import json
import pathlib
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Protocol

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.kube import control_plane
from lib.lab.run import processes
from lib.lab.slots import leases
from tests.harness import testing

LATENCY_S = 0.1
PAGE = 1000
"""Source: Nova configuration, [api] max_limit, default."""
Json = dict[str, object]
OCTAVIA = "load-balancer"
_IDS = re.compile("id-[0-9]+|[0-9a-f]{8}-0000-4000-8000-[0-9a-f]{12}")


class Balancing(Protocol):
    """Load balancers, and the networks that they are in."""

    def answer(
        self, method: str, target: str, body: Json, headers: Mapping[str, str]
    ) -> tuple[int, bytes] | None:
        """Return status and body of a call; None: it is not for them."""
        ...

    def versions(self, url: str) -> Json:
        """Return Octavia's document of versions. url: of the cloud."""
        ...


@dataclasses.dataclass
class Cloud:
    """Servers by id; and what was asked of them, and how much was answered.

    balancing: None: there are no load balancers.
    """

    url: str = ""
    latency_s: float = LATENCY_S
    balancing: Balancing | None = None
    servers: dict[str, Json] = dataclasses.field(default_factory=dict)
    calls: list[str] = dataclasses.field(default_factory=list)
    sent_bytes: int = 0

    def boot(self, name: str, number: int) -> None:
        """Add a server with two ports, as microversion 2.47 shows it."""
        ip = f"10.0.{number // 250}.{number % 250 + 1}"
        address = {"version": 4, "addr": ip, "OS-EXT-IPS:type": "fixed"}
        address["OS-EXT-IPS-MAC:mac_addr"] = "fa:16:3e:00:00:01"
        self.servers[f"id-{number:04}"] = {
            "id": f"id-{number:04}",
            "name": name,
            "status": "ACTIVE",
            "tenant_id": "project-1",
            "user_id": "user-1",
            "metadata": {"cluster": "bench"},
            "hostId": "0" * 56,
            "image": {"id": "image-1", "links": []},
            "flavor": {"original_name": "m1.small", "vcpus": 2, "ram": 4096},
            "created": "2026-01-01T00:00:00Z",
            "updated": "2026-01-01T00:00:00Z",
            "addresses": {"internal": [address]},
            "accessIPv4": "",
            "accessIPv6": "",
            "OS-EXT-AZ:availability_zone": "az1",
            "OS-EXT-STS:vm_state": "active",
            "security_groups": [{"name": "default"}],
            "links": [{"rel": "self", "href": f"{self.url}/compute/v2.1/servers"}],
        }

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Json]:
        """Answer one GET below the services' own roots."""
        body: Json | None = None
        match path.strip("/").split("/"):
            case ["compute", "v2.1"]:
                body = {"version": self._version("v2.1", "compute/v2.1/", "2.96")}
            case ["load-balancer"] if self.balancing is not None:
                body = self.balancing.versions(self.url)
            case ["network"]:
                body = {"versions": [self._version("v2.0", "network/v2.0/", "")]}
            case ["compute", "v2.1", "servers", "detail"]:
                body = self._page(query)
            case ["compute", "v2.1", "servers", server_id] if server_id in self.servers:
                body = {"server": self.servers[server_id]}
            case ["network", "v2.0", "ports"]:
                body = {"ports": [*self._ports(query.get("device_id", ()))]}
        missing: Json = {"itemNotFound": {"code": 404, "message": "not found"}}
        return (404, missing) if body is None else (200, body)

    def _page(self, query: dict[str, list[str]]) -> Json:
        limit = min(int(query.get("limit", ["1000"])[0]), PAGE)
        servers = list(self.servers.values())
        ids = list(self.servers)
        start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
        shown = servers[start : start + limit]
        page: Json = {"servers": shown}
        if len(shown) == limit:
            marker = urllib.parse.urlencode({"limit": limit, "marker": shown[-1]["id"]})
            href = f"{self.url}/compute/v2.1/servers/detail?{marker}"
            page["servers_links"] = [{"rel": "next", "href": href}]
        return page

    def _ports(self, queried: object) -> Iterator[Json]:
        for server_id, server in self.servers.items():
            addresses = json.loads(json.dumps(server["addresses"]))
            for number in range(2):
                if not queried or server_id in str(queried):
                    ip = addresses["internal"][0]["addr"] if not number else ""
                    yield {
                        "id": f"port-{server_id}-{number}",
                        "device_id": server_id,
                        "status": "ACTIVE" if not number else "DOWN",
                        "network_id": "network-1",
                        "fixed_ips": [{"subnet_id": "subnet-1", "ip_address": ip}],
                    }

    def _version(self, version: str, path: str, newest: str) -> Json:
        return {
            "id": version,
            "status": "CURRENT",
            "version": newest,
            "min_version": "2.1" if newest else "",
            "links": [{"rel": "self", "href": f"{self.url}/{path}"}],
        }

    def token(self) -> Json:
        """Return the body of a new token, with the catalogue."""

        def service(kind: str, path: str) -> Json:
            url = {"interface": "public", "url": f"{self.url}/{path}", "id": kind}
            place = {**url, "region": "RegionOne", "region_id": "RegionOne"}
            return {"type": kind, "name": kind, "id": kind, "endpoints": [place]}

        named = {"id": "default", "name": "Default"}
        services = [
            service("compute", "compute/v2.1"),
            service("network", "network/"),
        ]
        if self.balancing is not None:
            services.append(service(OCTAVIA, f"{OCTAVIA}/"))
        return {
            "token": {
                "methods": ["password"],
                "expires_at": "2999-01-01T00:00:00.000000Z",
                "issued_at": "2020-01-01T00:00:00.000000Z",
                "project": {"id": "project-1", "name": "p", "domain": named},
                "user": {"id": "user-1", "name": "u", "domain": named},
                "roles": [{"id": "member", "name": "member"}],
                "catalog": services,
            }
        }

    def conf(self) -> str:
        """Return the cloud.conf that leads here."""
        return (
            f'[Global]\nauth-url = "{self.url}/identity/v3"\nusername = robot\n'
            "password = secret\ndomain-name = Default\ntenant-id = project-1\n"
            "region = RegionOne\n"
        )


class Server(http.server.ThreadingHTTPServer):
    """One that says nothing of clients that went away."""

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address


class Handler(http.server.BaseHTTPRequestHandler):
    """Counts, waits and answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    cloud: Cloud

    def _serve(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urllib.parse.urlsplit(self.path).path
        self.cloud.calls.append(f"{self.command} {_IDS.sub('*', path)}")
        time.sleep(self.cloud.latency_s)
        status, content = self._answer(json.loads(sent) if sent else {})
        self.cloud.sent_bytes += len(content)
        self.send_response(status)
        self.send_header("X-Subject-Token", "token-1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, body: Json) -> tuple[int, bytes]:
        if self.cloud.balancing is not None:
            call = (self.command, self.path, body, dict(self.headers))
            balanced = self.cloud.balancing.answer(*call)
            if balanced is not None:
                return balanced
        if self.command == "POST":
            return 201, json.dumps(self.cloud.token()).encode()
        split = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(split.query)
        status, answer = self.cloud.answer(split.path, query)
        return status, json.dumps(answer).encode()

    # The standard library names them.
    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture()
def cloud() -> Iterator[Cloud]:
    """Yield a cloud without servers."""
    cloud_api = Cloud()
    handler = type("Bound", (Handler,), {"cloud": cloud_api})
    with Server(("127.0.0.1", 0), handler) as server:
        cloud_api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield cloud_api
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def lease() -> Iterator[leases.Lease]:
    """Hold a slot: a block of ports and a folder that no other process uses now."""
    with leases.held(testing.shown()) as held:
        yield held


@pytest.fixture()
def ground(lease: leases.Lease, tmp_path: pathlib.Path) -> Iterator[places.Places]:
    """Yield an API server in which nobody judges Nodes that report nothing."""
    where = testing.second(lease, tmp_path.name, offset=200)
    try:
        control_plane.up(where, testing.shown())
        processes.stop(where, ["kube-controller-manager"])
        yield where
    finally:
        control_plane.down(where)
        processes.stop(where, processes.names(where))


@pytest.fixture()
def pex() -> pathlib.Path:
    """Return the PEX file of openstack-ccm."""
    return pexes.beside("openstack-ccm")

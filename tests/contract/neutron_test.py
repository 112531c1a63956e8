"""OpenStack's routes on the fake Neutron keep the contract.

tests/lab/routes/routes_contract_test.py runs the same rows on the real one.
"""

from collections.abc import Sequence

import pytest

from lib.cloud.openstack.fake import session, wire
from lib.cloud.routes import Route
from tests.contract import routes
from tests.contract.neutron import Json, Neutron


class FakeNetwork:
    """Implements `tests.contract.neutron.Network`."""

    def __init__(self, cloud: session.FakeOpenStack) -> None:
        self._cloud = cloud
        self._neutron = neutron = cloud.neutron
        inside = neutron.add_network("inside")
        self._subnets = (
            neutron.add_subnet(inside, "10.42.0.0/20"),
            neutron.add_subnet(inside, "fd00:42::/64"),
        )
        self.router_id = neutron.add_router(*self._subnets)

    def add_port(self, server_id: str) -> Sequence[str]:
        neutron = self._neutron
        port = neutron.ports[neutron.add_port(self._subnets[0], device_id=server_id)]
        fixed = [
            {"subnet_id": subnet, "ip_address": neutron.free_address(subnet)}
            for subnet in self._subnets[1:]
        ]
        port["fixed_ips"] = [*wire.objects(port, "fixed_ips"), *fixed]
        return [str(ip["ip_address"]) for ip in wire.objects(port, "fixed_ips")]

    def router(self) -> wire.Json:
        return self._neutron.l3.routers[self.router_id]

    def ports(self) -> Sequence[Json]:
        return [
            port
            for port in self._neutron.ports.values()
            if str(port["device_id"]).startswith("server-")
        ]

    def write_routes(self, action: str, route: Route) -> None:
        row: wire.Json = {"destination": route.destination, "nexthop": route.next_hop}
        routes = [r for r in wire.objects(self.router(), "routes") if r != row]
        routes += [row] if action == "add_extraroutes" else []
        self._put(("routers", self.router_id), "router", {"routes": routes})

    def write_routes_whole(self) -> None:
        self._put(("routers", self.router_id), "router", {"routes": []})

    def write_pairs(self, port_id: str, pairs: Sequence[Json]) -> None:
        body = {"allowed_address_pairs": [dict(pair) for pair in pairs]}
        self._put(("ports", port_id), "port", body)

    def _put(self, parts: tuple[str, ...], kind: str, body: Json) -> None:
        call = wire.Call("network", "PUT", parts, {}, {kind: dict(body)}, {})
        self._neutron.answer(call)


class TestNeutron(routes.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> routes.Ground:
        cloud = session.FakeOpenStack()
        inside = FakeNetwork(cloud)
        return Neutron(cloud.client, inside, inside.router_id)


class TestNeutronWithoutAtomicRoutes(routes.Contract):
    """The whole list is written, upon the router's revision."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> routes.Ground:
        cloud = session.FakeOpenStack()
        inside = FakeNetwork(cloud)
        cloud.neutron.l3.is_atomic = False
        return Neutron(cloud.client, inside, inside.router_id)

"""Neutron as the contract of routes needs it: the fake one, or a real one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.http import client
from lib.cloud.openstack.routes.cloud import NeutronRoutes
from lib.cloud.openstack.routes.native import network
from lib.cloud.routes import AddressPair, Entry, Node, Route

Json = Mapping[str, object]


class Network(Protocol):
    """The network of the Nodes: created and read past the product."""

    @property
    def router_id(self) -> str: ...

    def add_port(self, server_id: str) -> Sequence[str]:
        """Create a port of a server with an address of each family; return those."""
        ...

    def router(self) -> Json:
        """Return the router."""
        ...

    def ports(self) -> Sequence[Json]:
        """Return all ports of servers."""
        ...

    def write_routes(self, action: str, route: Route) -> None:
        """Send add_extraroutes or remove_extraroutes."""
        ...

    def write_routes_whole(self) -> None:
        """Remove all routes."""
        ...

    def write_pairs(self, port_id: str, pairs: Sequence[Json]) -> None:
        """Write the allowed address pairs of a port."""
        ...


def rows(result: object) -> list[Json]:
    """Return a list of objects of a document."""
    assert isinstance(result, list)
    return result


class Neutron:
    """Implements `tests.contract.routes.Ground`."""

    def __init__(
        self, connect: Callable[[], client.Client], inside: Network, router_id: str
    ) -> None:
        self._connect = connect
        self._inside = inside
        self._router_id = router_id
        self._nodes: dict[str, tuple[Address, ...]] = {}
        self.restart()

    def restart(self) -> None:
        """See the contract."""
        self.routes = NeutronRoutes(self._connect(), self._router_id)

    def node(self, name: str, *pod_cidrs: str) -> Node:
        """See the contract."""
        if name not in self._nodes:
            self._nodes[name] = tuple(
                Address(AddressType.INTERNAL_IP, address)
                for address in self._inside.add_port(f"server-{name}")
            )
        addresses = self._nodes[name]
        return Node(name, f"openstack:///server-{name}", addresses, pod_cidrs)

    def put_route(self, route: Route) -> None:
        """See the contract."""
        self._inside.write_routes("add_extraroutes", route)

    def remove_route(self, route: Route) -> None:
        """See the contract."""
        self._inside.write_routes("remove_extraroutes", route)

    def put_pair(self, pair: AddressPair) -> None:
        """See the contract."""
        (port,) = (p for p in self._inside.ports() if p["id"] == pair.port_id)
        existing = rows(port["allowed_address_pairs"])
        added = {"ip_address": pair.address}
        self._inside.write_pairs(pair.port_id, [*existing, added])

    def entries(self) -> frozenset[Entry]:
        """See the contract."""
        routes = {
            Route(str(row["destination"]), str(row["nexthop"]))
            for row in rows(self._inside.router()["routes"])
        }
        pairs = {
            AddressPair(str(port["id"]), network(str(pair["ip_address"])))
            for port in self._inside.ports()
            for pair in rows(port["allowed_address_pairs"])
        }
        return frozenset[Entry](routes) | pairs

    def clear(self) -> None:
        """See the contract."""
        self._inside.write_routes_whole()
        for port in self._inside.ports():
            if port["allowed_address_pairs"]:
                self._inside.write_pairs(str(port["id"]), [])

"""What Neutron sends of routers, ports and subnets, as far as routes need it."""

import dataclasses
import functools
import ipaddress
from collections.abc import Mapping

import msgspec

from lib.cloud.openstack.native import FixedIp, page
from lib.cloud.routes import AddressPair, Entry, Observed, Route


class ExtraRoute(msgspec.Struct, frozen=True):
    """An entry of a router's routes."""

    destination: str
    nexthop: str


class Router(msgspec.Struct, frozen=True):
    """A router. routes: None without the extension extraroute."""

    id: str
    project_id: str | None = None
    routes: tuple[ExtraRoute, ...] | None = None
    revision_number: int | None = None


class RouterAnswer(msgspec.Struct, frozen=True):
    """GET /routers/{id}."""

    router: Router


class Pair(msgspec.Struct, frozen=True):
    """One allowed address pair."""

    ip_address: str
    mac_address: str = ""


class Port(msgspec.Struct, frozen=True):
    """A port. allowed_address_pairs: None without that extension."""

    id: str
    device_id: str = ""
    network_id: str = ""
    mac_address: str = ""
    fixed_ips: tuple[FixedIp, ...] = ()
    allowed_address_pairs: tuple[Pair, ...] | None = None
    port_security_enabled: bool | None = None
    revision_number: int | None = None


PortsPage = page("ports", Port)
"""GET /ports."""


class PortAnswer(msgspec.Struct, frozen=True):
    """PUT /ports/{id}."""

    port: Port


class Subnet(msgspec.Struct, frozen=True):
    """A subnet; its CIDR never changes."""

    id: str
    cidr: str


SubnetsPage = page("subnets", Subnet)
"""GET /subnets."""


@dataclasses.dataclass(frozen=True, slots=True)
class KnownLimits:
    """What Neutron has refused lately, so that it is not asked for again.

    routes: a number of routes that one router does not take; None: not known. refused:
    entries that it takes no way, with the reason. is_singly: routes are added one by
    one, since one of many was refused. is_atomic: the extension extraroute-atomic.
    """

    routes: int | None = None
    refused: Mapping[Entry, str] = dataclasses.field(default_factory=dict)
    is_singly: bool = False
    is_atomic: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A router with all that a plan has to know; router None: no router, or absent.

    subnets: CIDRs of the router's own subnets, by id.
    """

    id: str
    router: Router | None
    ports: tuple[Port, ...] = ()
    subnets: Mapping[str, str] = dataclasses.field(default_factory=dict)
    limits: KnownLimits = dataclasses.field(default_factory=KnownLimits)

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes of the router, in canonical form."""
        routes = () if self.router is None else self.router.routes or ()
        return tuple(Route(network(r.destination), host(r.nexthop)) for r in routes)

    @property
    def networks(self) -> frozenset[str]:
        """The networks on which the router has a port."""
        return frozenset(
            port.network_id for port in self.ports if port.device_id == self.id
        )


def of(observed: Observed) -> Table:
    """Return what this package observed."""
    if not isinstance(observed.native, Table):
        raise TypeError("observed by another package")
    return observed.native


@functools.lru_cache(maxsize=10_000)
def network(text: str) -> str:
    """Return a CIDR or an address as a canonical CIDR; malformed texts unchanged."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return text


def host(text: str) -> str:
    """Return an address in canonical form; malformed texts unchanged."""
    return network(text).partition("/")[0]


def pairs(port: Port) -> frozenset[AddressPair]:
    """Return the pairs of a port that let its own MAC address send."""
    return frozenset(
        AddressPair(port.id, network(pair.ip_address))
        for pair in port.allowed_address_pairs or ()
        if pair.mac_address in ("", port.mac_address)
    )

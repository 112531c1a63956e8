"""Which routes and address pairs the Nodes need, or why they lack them. Pure."""

import dataclasses
import ipaddress
from collections.abc import Iterable, Iterator, Mapping

from lib.cloud import provider_id
from lib.cloud.model import AddressType
from lib.cloud.openstack.routes.native import Port, Table, pairs
from lib.cloud.routes import AddressPair, Entry, Node, Reason, Route, Target
from lib.cloud.steps import Problem, ProblemReason


class NeutronReason(ProblemReason):
    """What can be wrong with routes in Neutron only."""

    SUBNET_OVERLAP = "PodCIDROverlapsSubnet"
    NO_PORT = "NextHopWithoutPort"
    REFUSED_ENTRY = "EntryRefused"


@dataclasses.dataclass(slots=True)
class DesiredTable:
    """Desired entries; filled Node by Node, the oldest first.

    entries: with the name of the Node. unserved: Nodes that lack an entry. pending:
    Nodes for which there may be room: the limit is not known exactly yet.
    """

    entries: dict[Entry, str] = dataclasses.field(default_factory=dict)
    problems: dict[str, list[Problem]] = dataclasses.field(default_factory=dict)
    unserved: set[str] = dataclasses.field(default_factory=set)
    pending: set[str] = dataclasses.field(default_factory=set)

    def report(self, node: str, problem: Problem, *, is_unserved: bool = True) -> None:
        """Note a problem of a Node."""
        self.problems.setdefault(node, []).append(problem)
        if is_unserved:
            self.unserved.add(node)


class ArrangedTable:
    """A table, arranged for quick access by address."""

    def __init__(self, target: Target, table: Table) -> None:
        self.table = table
        self.has_routes = table.router is not None
        self.owned = target.record.owned
        self.present = frozenset(table.routes)
        self.subnets = tuple(map(ipaddress.ip_network, table.subnets.values()))
        self._ports: dict[str, list[Port]] = {}
        networks = table.networks
        for port in table.ports:
            if not self.has_routes or port.network_id in networks:
                for fixed in port.fixed_ips:
                    self._ports.setdefault(fixed.ip_address, []).append(port)
        self._by_destination: dict[str, list[Route]] = {}
        for route in table.routes:
            self._by_destination.setdefault(route.destination, []).append(route)

    def port(self, node: Node, address: str) -> Port | None:
        """Return the port that has the address: that of the Node's server first."""
        ports = self._ports.get(address, [])
        server = _server_id(node)
        own = [port for port in ports if server and port.device_id == server]
        some = own or ports
        return some[0] if len(some) == 1 else None

    def routes_to(self, destination: str) -> Iterable[Route]:
        """Return all routes of the table to exactly this destination."""
        return self._by_destination.get(destination, ())

    def reaches(self, address: str) -> bool:
        """Report whether the router has an interface in the address's subnet."""
        parsed = ipaddress.ip_address(address)
        return any(parsed in subnet for subnet in self.subnets)


def _server_id(node: Node) -> str:
    try:
        return provider_id.parse(node.provider_id).id
    except provider_id.ProviderIdError:
        return ""


def desired(target: Target, table: Table) -> DesiredTable:
    """Return what all Nodes need, within the limits that are known."""
    result = DesiredTable()
    environment = ArrangedTable(target, table)
    room, is_exact = _room(table)
    for node in sorted(target.nodes, key=_age):
        for cidr in node.pod_cidrs:
            entries = _entries(node, cidr, environment, result)
            if room is not None and _is_new(entries, environment):
                if not room and is_exact:
                    result.report(node.name, _limit_reached(table, cidr))
                    continue
                if not room:
                    result.pending.add(node.name)
                    continue
                room -= 1
            result.entries |= dict.fromkeys(entries, node.name)
    return result


def _is_new(entries: tuple[Entry, ...], environment: ArrangedTable) -> bool:
    return any(isinstance(e, Route) and e not in environment.present for e in entries)


def _age(node: Node) -> tuple[float, str]:
    created = node.created
    return (created.timestamp() if created is not None else 0.0, node.name)


def _room(table: Table) -> tuple[int | None, bool]:
    """Return how many routes may be added now, and whether there is no more room.

    None: any number. What is known is a number of routes that was refused. The limit
    is between that and the number that there is: half of the distance is tried, until
    it is one.
    """
    if table.limits.routes is None:
        return None, False
    distance = table.limits.routes - len(table.routes)
    return max(0, distance // 2), distance <= 1


def _limit_reached(table: Table, cidr: str) -> Problem:
    message = (
        f"no route to {cidr}: router {table.id} takes no more routes:"
        " raise quota_router_route (max_routes) of Neutron; older Nodes keep theirs"
    )
    return Problem(Reason.LIMIT, message)


def _entries(
    node: Node, cidr: str, environment: ArrangedTable, result: DesiredTable
) -> tuple[Entry, ...]:
    """Return the entries for one podCIDR; none where a problem was noted."""
    next_hop = _next_hop(node, cidr, environment)
    if isinstance(next_hop, Problem):
        # A route that exists still leads to the Pods, and is kept.
        is_routed = any(
            route in environment.owned for route in environment.routes_to(cidr)
        )
        result.report(node.name, next_hop, is_unserved=not is_routed)
        return ()
    hop, port = next_hop
    route = Route(cidr, hop)
    entries: list[Entry] = []
    if environment.has_routes:
        conflict = _conflict(node, route, environment)
        is_present = route in environment.present
        if conflict is not None:
            result.report(node.name, conflict, is_unserved=not is_present)
            if not is_present:
                return ()
        entries.append(route)
    has_pairs = port.allowed_address_pairs is not None
    if has_pairs and port.port_security_enabled is not False:
        entries.append(AddressPair(port.id, cidr))
    return _accepted(node, tuple(entries), environment, result)


def _accepted(
    node: Node,
    entries: tuple[Entry, ...],
    environment: ArrangedTable,
    result: DesiredTable,
) -> tuple[Entry, ...]:
    """Return the entries that Neutron has not refused lately, or that exist."""
    refused = environment.table.limits.refused
    for entry in entries:
        if entry in refused and not _exists(entry, environment):
            message = f"no entry {entry}: {refused[entry]}"
            reason = NeutronReason.REFUSED_ENTRY
            result.report(node.name, Problem(reason, message))
    return tuple(e for e in entries if e not in refused or _exists(e, environment))


def _exists(entry: Entry, environment: ArrangedTable) -> bool:
    if isinstance(entry, Route):
        return entry in environment.present
    return any(
        entry in pairs(port)
        for port in environment.table.ports
        if port.id == entry.port_id
    )


def _next_hop(
    node: Node, cidr: str, environment: ArrangedTable
) -> tuple[str, Port] | Problem:
    """Return the address by which the Node's pods are reached, and its port."""
    pods = ipaddress.ip_network(cidr)
    for subnet in environment.subnets if environment.has_routes else ():
        if subnet.overlaps(pods):
            text = f"podCIDR {cidr}: overlaps subnet {subnet} of router"
            text += f" {environment.table.id}: must be outside all of its subnets"
            return Problem(NeutronReason.SUBNET_OVERLAP, text)
    addresses = [a for a in internal_ips(node) if _version(a) == pods.version]
    if environment.has_routes:
        addresses = [a for a in addresses if environment.reaches(a)]
    if not addresses:
        return _no_next_hop(cidr, pods.version, environment)
    port = environment.port(node, addresses[0])
    if port is None:
        text = f"next hop {addresses[0]} of podCIDR {cidr}: no port has this address:"
        text += " the Node's InternalIP must be that of a port of its server"
        return Problem(NeutronReason.NO_PORT, text)
    return addresses[0], port


def _no_next_hop(cidr: str, version: int, environment: ArrangedTable) -> Problem:
    where = (
        f" in a subnet of router {environment.table.id}"
        if environment.has_routes
        else ""
    )
    text = f"podCIDR {cidr}: the Node has no InternalIP of IPv{version}{where}"
    return Problem(Reason.NO_NEXT_HOP, text)


def _conflict(node: Node, route: Route, environment: ArrangedTable) -> Problem | None:
    """Return the problem of a route to the same podCIDR that others own."""
    for other in environment.routes_to(route.destination):
        is_owned = other == route or other in environment.owned
        if not is_owned and not is_adoptable(node, other):
            text = f"podCIDR {route.destination}: router {environment.table.id} has the"
            text += f" route {other}, which this cluster does not own; not changed"
            return Problem(Reason.CONFLICT, text)
    return None


def is_adoptable(node: Node, route: Route) -> bool:
    """Report whether a route without a record leads to the Node's own pods.

    A next hop of the other family is not what the reference creates, so that such a
    route belongs to others.
    """
    is_own = route.next_hop in {address.address for address in node.addresses}
    is_of_family = _version(route.next_hop) == _version(route.destination)
    return is_own and is_of_family and route.destination in node.pod_cidrs


def adoptable(nodes: Iterable[Node], table: Table) -> Iterator[tuple[Route, str]]:
    """Return the routes that lead to pods of these Nodes, with the Nodes' names."""
    by_cidr: Mapping[str, Node] = {c: node for node in nodes for c in node.pod_cidrs}
    for route in table.routes:
        node = by_cidr.get(route.destination)
        if node is not None and is_adoptable(node, route):
            yield route, node.name


def internal_ips(node: Node) -> tuple[str, ...]:
    """Return the Node's internal addresses, in its order."""
    return tuple(
        address.address
        for address in node.addresses
        if address.type is AddressType.INTERNAL_IP
    )


def _version(address: str) -> int:
    return 6 if ":" in address else 4

"""A project with a router, Nodes of two families, and openstack-ccm between them.

Nodes are objects and ports only: no server and no kubelet stands behind them.
"""

import contextlib
import dataclasses
import json
import pathlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import openstack.connection
import openstack.exceptions

from lib.cloud.routes import Route
from lib.kube import client, resources
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.openstack import accounts, cloud, layout
from lib.lab.run import processes, waiting
from tests.harness.openstack import front
from tests.harness.services import balancing

Json = dict[str, Any]
SUBNETS = ("10.46.0.0/20", "fd00:46::/64")
PODS = "10.112.0.0/14,fd00:112::/32"
RECORD = "mooring-routes"
CALL_S = 30.0
SERVED = ("False", "RouteCreated")
"""Status and reason of the condition NetworkUnavailable of a Node with its routes."""
_APART = 20
"""Ports between two replicas."""


class Network:
    """Implements `tests.contract.neutron.Network` on a real Neutron.

    router_id: the router of the moment; `add_router` makes another.
    """

    def __init__(self, connection: openstack.connection.Connection) -> None:
        self.connection = connection
        network = connection.network
        with cloud.sentences():
            self.network_id = str(network.create_network(name="pods").id)
            self.subnet_ids = [
                str(
                    network.create_subnet(
                        network_id=self.network_id,
                        cidr=cidr,
                        ip_version=6 if ":" in cidr else 4,
                        is_dhcp_enabled=False,
                    ).id
                )
                for cidr in SUBNETS
            ]
        self.router_id = self.add_router()

    def add_router(self) -> str:
        """Create a router with an interface in each subnet; return its ID."""
        network = self.connection.network
        with cloud.sentences():
            router = network.create_router(name="pods")
            for subnet_id in self.subnet_ids:
                port = network.create_port(
                    network_id=self.network_id, fixed_ips=[{"subnet_id": subnet_id}]
                )
                network.add_interface_to_router(router, port=port.id)
            return str(router.id)

    def add_port(self, server_id: str) -> Sequence[str]:
        """Create a port of a server with an address of each family."""
        fixed = [{"subnet_id": id_} for id_ in self.subnet_ids]
        with cloud.sentences():
            port = self.connection.network.create_port(
                network_id=self.network_id, device_id=server_id, fixed_ips=fixed
            )
        by_subnet = {ip["subnet_id"]: ip["ip_address"] for ip in port.fixed_ips}
        return [str(by_subnet[id_]) for id_ in self.subnet_ids]

    def add_subnet(self, cidr: str) -> None:
        """Create a subnet with an interface of the router of the moment."""
        network = self.connection.network
        with cloud.sentences():
            subnet = network.create_subnet(
                network_id=self.network_id,
                cidr=cidr,
                ip_version=4,
                is_dhcp_enabled=False,
            )
            network.add_interface_to_router(self.router_id, subnet=subnet.id)

    def port_id(self, server_id: str) -> str:
        """Return the ID of the port of a server."""
        (port,) = (p for p in self.ports() if p["device_id"] == server_id)
        return str(port["id"])

    def delete_ports(self, server_id: str) -> None:
        """Delete the ports of a server."""
        with cloud.sentences():
            network = self.connection.network
            for port in network.ports(device_id=server_id):
                network.delete_port(port)

    def router(self, router_id: str = "") -> Json:
        """Return a router as Neutron shows it."""
        return dict(self._get(f"/routers/{router_id or self.router_id}")["router"])

    def routes(self, router_id: str = "") -> set[tuple[str, str]]:
        """Return destination and next hop of each route."""
        routes = self.router(router_id)["routes"]
        return {(row["destination"], row["nexthop"]) for row in routes}

    def ports(self) -> Sequence[Json]:
        """Return all ports of servers."""
        ports: list[Json] = self._get(f"/ports?network_id={self.network_id}")["ports"]
        return [port for port in ports if port["device_id"].startswith("server-")]

    def pairs(self) -> dict[str, set[str]]:
        """Return the address pairs of each server that has any."""
        return {
            port["device_id"]: {p["ip_address"] for p in port["allowed_address_pairs"]}
            for port in self.ports()
            if port["allowed_address_pairs"]
        }

    def write_routes(self, action: str, route: Route) -> None:
        """Send add_extraroutes or remove_extraroutes."""
        row = {"destination": route.destination, "nexthop": route.next_hop}
        path = f"/routers/{self.router_id}/{action}"
        self._put(path, {"router": {"routes": [row]}})

    def write_routes_whole(self, router_id: str = "") -> None:
        """Remove all routes."""
        body: Json = {"router": {"routes": []}}
        self._put(f"/routers/{router_id or self.router_id}", body)

    def write_pairs(self, port_id: str, pairs: Sequence[Mapping[str, object]]) -> None:
        """Write the allowed address pairs of a port."""
        port = {"allowed_address_pairs": [dict(pair) for pair in pairs]}
        self._put(f"/ports/{port_id}", {"port": port})

    def put_pair(self, server_id: str, address: str) -> None:
        """Add an address pair to the port of a server, as another client would."""
        (port,) = (p for p in self.ports() if p["device_id"] == server_id)
        pairs = [*port["allowed_address_pairs"], {"ip_address": address}]
        self.write_pairs(port["id"], pairs)

    def _get(self, path: str) -> Json:
        with cloud.sentences():
            answer = self.connection.network.get(path)
            openstack.exceptions.raise_from_response(answer)
            return dict(answer.json())

    def _put(self, path: str, body: Mapping[str, object]) -> None:
        with cloud.sentences():
            answer = self.connection.network.put(path, json=body)
            openstack.exceptions.raise_from_response(answer)

    def clear(self) -> None:
        """Delete routers, ports and the network."""
        network = self.connection.network
        with cloud.sentences():
            for router in network.routers(name="pods"):
                self.write_routes_whole(str(router.id))
                for port in network.ports(device_id=router.id):
                    network.remove_interface_from_router(router, port=port.id)
                network.delete_router(router)
            for port in network.ports(network_id=self.network_id):
                network.delete_port(port)
            network.delete_network(self.network_id)


@dataclasses.dataclass
class RoutingRoom:
    """A cluster, a router behind an entrance, and the replicas between them.

    kubeconfig: of openstack-ccm's own ServiceAccount. prefix: of the names of Nodes and
    their servers; two rooms in one cluster differ in it. families: of podCIDRs, IPv4
    first.
    """

    where: places.Places
    pex: pathlib.Path
    kubeconfig: pathlib.Path
    account: accounts.Account
    inside: Network
    entrance: front.Front
    api: client.Api
    prefix: str
    replicas: list[balancing.Replica] = dataclasses.field(default_factory=list)
    families: int = 2

    @property
    def objects(self) -> kube_objects.Objects:
        """Objects of namespace kube-system, and those without a namespace."""
        return kube_objects.Objects(self.api, "kube-system")

    def conf(
        self, router_id: str = "", settings: str = "", call_s: float = CALL_S
    ) -> str:
        """Return the text of a cloud.conf.

        router_id: empty: the usual one. call_s: that a call may take.
        """
        text = accounts.cloud_conf(
            self.where, self.account, self.entrance.url(layout.KEYSTONE, "/v3")
        )
        route = settings or f"router-id = {router_id or self.inside.router_id}"
        timeout = f"request-timeout = {call_s:g}s"
        return f"{text}\n[Route]\n{route}\n[Metadata]\n{timeout}\n"

    def file(self, number: int = 1) -> pathlib.Path:
        """Return the path of a replica's cloud.conf."""
        return self.where.state / f"{self.account.project}-{number}" / "cloud.conf"

    def replica(
        self, number: int = 1, flags: Sequence[str] = (), text: str = ""
    ) -> balancing.Replica:
        """Return a replica, not started. text: of its cloud.conf."""
        file = self.file(number)
        base = self.where.port_base + _APART * number
        place = places.Places(self.where.cache, file.parent, base)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or self.conf())
        usual = (
            "--controllers=node-route-controller",
            "--route-reconciliation-period=2s",
            f"--cluster-cidr={PODS}",
            f"--cluster-id={self.prefix}",
            f"--leader-elect-resource-name=ccm-{self.prefix}",
            "--leader-elect-lease-duration=4s",
            "--leader-elect-renew-deadline=3s",
            "--leader-elect-retry-period=500ms",
        )
        words = ccm.arguments(place, self.kubeconfig, file, [*usual, *flags])
        replica = balancing.Replica(place, self.pex, words)
        self.replicas.append(replica)
        return replica

    # ------------------------------------------------------------ Nodes

    def name(self, number: int) -> str:
        """Return the name of a Node."""
        return f"{self.prefix}-{number:02}"

    def cidrs(self, number: int) -> list[str]:
        """Return the podCIDRs of a Node."""
        return [f"10.112.{number}.0/24", f"fd00:112:{number}::/64"][: self.families]

    def add(self, number: int, cidrs: Sequence[str] = ()) -> None:
        """Register a Node with a port of its own."""
        name = self.name(number)
        addresses = self.inside.add_port(f"server-{name}")
        self.register(name, addresses, cidrs or self.cidrs(number))

    def register(
        self, name: str, addresses: Sequence[str], cidrs: Sequence[str]
    ) -> None:
        """Register a Node with these addresses."""
        shown = [{"type": "InternalIP", "address": address} for address in addresses]
        spec: Json = {"providerID": f"openstack:///server-{name}"}
        if cidrs:
            spec |= {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)}
        self.objects.make(resources.NODES, name, spec=spec, status={"addresses": shown})

    def delete(self, name: str) -> None:
        """Delete a Node and nothing else."""
        self.objects.delete(resources.NODES, name)

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of a Node."""
        node = self.objects.get(resources.NODES, name) or {}
        return [a["address"] for a in node.get("status", {}).get("addresses", [])]

    def conditions(self) -> dict[str, tuple[str, str] | None]:
        """Return status and reason of NetworkUnavailable by Node of this room."""
        conditions: dict[str, tuple[str, str] | None] = {}
        for node in self.objects.all(resources.NODES):
            name = node["metadata"]["name"]
            if not name.startswith(f"{self.prefix}-"):
                continue
            some = [
                (c["status"], c["reason"])
                for c in node["status"].get("conditions", [])
                if c["type"] == "NetworkUnavailable"
            ]
            conditions[name] = some[0] if some else None
        return conditions

    def expected(self, numbers: Collection[int]) -> set[tuple[str, str]]:
        """Return the routes that these Nodes need."""
        return {
            (cidr, hop)
            for number in numbers
            for cidr, hop in zip(
                self.cidrs(number),
                self.addresses(self.name(number))[: self.families],
                strict=True,
            )
        }

    def served(self, numbers: Collection[int]) -> None:
        """Wait until these Nodes, and no others of this room, have all they need."""
        expected = self.expected(numbers)
        pairs = {f"server-{self.name(n)}": set(self.cidrs(n)) for n in numbers}

        possible = {cidr for n in range(100) for cidr in self.cidrs(n)}

        def holds() -> bool:
            # The cluster is read first: Neutron is slow to answer.
            conditions = self.conditions()
            if any(conditions[self.name(n)] != SERVED for n in numbers):
                return False
            if {row for row in self.inside.routes() if row[0] in possible} != expected:
                return False
            pairs_by_port = self.inside.pairs()
            return all(pairs_by_port.get(k, set()) >= some for k, some in pairs.items())

        waiting.until(f"{len(numbers)} Nodes are routed to", holds, poll_s=0.3)

    # ------------------------------------------------------------ what is told

    def record(self) -> dict[str, str]:
        """Return the texts of the record."""
        config_map = self.objects.get(resources.CONFIG_MAPS, RECORD) or {}
        return dict(config_map.get("data") or {})

    def events(self, subject: str) -> list[str]:
        """Return reason and message of the Events about a Node or a Lease."""
        page = self.api.request("GET", "/api/v1/events", timeout_s=30)
        return [
            f"{event['reason']}: {event['message']}"
            for event in json.loads(page)["items"]
            if event["involvedObject"]["name"] == subject
        ]

    def problems(self, replica: balancing.Replica, token: str) -> dict[str, float]:
        """Return mooring_route_problem by reason, of those that are not 0."""
        text = ccm.metrics(replica.place, token)
        rows = [x for x in text.splitlines() if x.startswith("mooring_route_problem{")]
        counts = {row.split('"')[1]: float(row.rpartition(" ")[2]) for row in rows}
        return {reason: count for reason, count in counts.items() if count}

    def neutron_calls(self, since: float) -> list[str]:
        """Return the calls of Neutron since a moment, ids left out."""
        return [
            balancing.kind(call)
            for call in list(self.entrance.calls)
            if call.service == layout.NEUTRON and call.at >= since
        ]

    def close(self) -> None:
        """End the replicas, and remove Nodes, record and network."""
        for replica in self.replicas:
            replica.stop()
        for name in self.conditions():
            self.delete(name)
        self.objects.delete(resources.CONFIG_MAPS, RECORD)


def allow_routes(room: RoutingRoom, number: int) -> None:
    """Set the quota of routes of one router, as an administrator."""
    project_id = room.inside.connection.current_project_id
    with (
        contextlib.closing(cloud.connect(room.where, accounts.ADMIN)) as admin,
        cloud.sentences(),
    ):
        body = {"quota": {"router_route": number}}
        answer = admin.network.put(f"/quotas/{project_id}", json=body)
        openstack.exceptions.raise_from_response(answer)


def cluster_of(where: places.Places) -> tuple[client.Api, pathlib.Path]:
    """Return the control plane's API and a kubeconfig of openstack-ccm's account."""
    admin, target = control_plane.admin_kubeconfig(where), where.state / "ccm-account"
    api = cluster.connect(admin)
    cluster.create_all(api, ccm.manifest())
    cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, target)
    return api, target


@contextlib.contextmanager
def room(
    where: places.Places,
    pex: pathlib.Path,
    account: accounts.Account,
    prefix: str,
    inside: Network | None = None,
) -> Iterator[RoutingRoom]:
    """Open a room for as long as the block lasts. inside: another room's network."""
    api, kubeconfig = cluster_of(where)
    with contextlib.ExitStack() as ends:
        if inside is None:
            connection = ends.enter_context(
                contextlib.closing(cloud.connect(where, account))
            )
            inside = Network(connection)
            ends.callback(inside.clear)
        entrance = ends.enter_context(front.of(where).opened())
        new_room = RoutingRoom(
            where, pex, kubeconfig, account, inside, entrance, api, prefix
        )
        ends.callback(new_room.close)
        yield new_room


Open = Callable[[str], RoutingRoom]


def quiet(room: RoutingRoom, for_s: float = 6.0) -> None:
    """Wait until no write of Neutron has come for a while.

    Raises:
        LabError: writes do not end.
    """
    began = time.monotonic()

    def is_quiet() -> bool:
        writes = [
            call.at
            for call in list(room.entrance.calls)
            if call.service == layout.NEUTRON and call.method != "GET"
        ]
        return time.monotonic() - max(writes, default=began) >= for_s

    waiting.until("writes of Neutron end", is_quiet, poll_s=0.3)


def stop(room: RoutingRoom) -> None:
    """End all replicas."""
    for replica in room.replicas:
        processes.stop(replica.place, [ccm.NAME])

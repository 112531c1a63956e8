"""A user of a project in the lab's cloud, or an existing one: `servers.Cloud`.

Lists are read raw: the SDK's own resources take a second per thousand servers.
"""

import concurrent.futures
from collections.abc import Collection, Mapping, Sequence

import msgspec
import openstack.connection
import openstack.exceptions
from openstack.image.v2 import image

from lib.lab import errors
from lib.lab.grounds import servers
from lib.lab.openstack import cloud, seed_cloud
from lib.lab.run import waiting

NETWORK = "lab-net"
_SUBNET = ("lab-subnet", "10.42.0.0/20")
_ROUTER = "lab-router"
# Nova: names of flavors inside servers since 2.47.
_MICROVERSION = "2.47"
_PAGE = 1000
_AT_ONCE = 8
POLL_S = 0.5


class _Address(msgspec.Struct, frozen=True):
    addr: str


class _Flavor(msgspec.Struct, frozen=True):
    original_name: str = ""


class _Fault(msgspec.Struct, frozen=True):
    message: str = ""


class _Server(msgspec.Struct, frozen=True):
    id: str
    name: str
    status: str
    addresses: Mapping[str, Sequence[_Address]] = {}
    flavor: _Flavor = _Flavor()
    fault: _Fault = _Fault()
    zone: str | None = msgspec.field(default="", name="OS-EXT-AZ:availability_zone")


class _Servers(msgspec.Struct, frozen=True):
    servers: Sequence[_Server]


def parse(body: bytes) -> tuple[servers.Server, ...]:
    """Read one page of a detailed list of servers.

    Source: Nova API, "List Servers Detailed", microversion 2.47.
    """
    page = msgspec.json.decode(body, type=_Servers)
    return tuple(
        servers.Server(
            id=server.id,
            name=server.name,
            status=server.status,
            zone=server.zone or "",
            flavor=server.flavor.original_name,
            addresses=tuple(a.addr for each in server.addresses.values() for a in each),
            fault=server.fault.message,
        )
        for server in page.servers
    )


class Tenant:
    """The cloud with one account's rights. Safe to use from several threads."""

    def __init__(self, connection: openstack.connection.Connection) -> None:
        self.connection = connection

    def items(self) -> tuple[servers.Server, ...]:
        """See `servers.Cloud.items`."""
        listed: list[servers.Server] = []
        marker: dict[str, str] = {}
        while True:
            with cloud.sentences():
                answer = self.connection.compute.get(
                    "/servers/detail",
                    params={"limit": _PAGE, **marker},
                    microversion=_MICROVERSION,
                )
                openstack.exceptions.raise_from_response(answer)
            page = parse(answer.content)
            listed += page
            # A cloud may give shorter pages than asked for; the last one is empty.
            if not page or b"servers_links" not in answer.content:
                return tuple(listed)
            marker = {"marker": page[-1].id}

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        """See `servers.Cloud.boot`; one that has this name already is given back."""
        for server in self.items():
            if server.name == name:
                return server
        return self.boot_another(name, kind)

    def boot_another(
        self, name: str, kind: servers.Kind | None = None
    ) -> servers.Server:
        """Start making a server even if there is one of that name."""
        return self._create(name, self._resolve(kind or servers.Kind()))

    def boot_all(
        self,
        names: Sequence[str],
        kind: servers.Kind | None = None,
    ) -> Mapping[str, servers.Server]:
        """Have servers with these names run; return them by name.

        kind: in the lab's own cloud None makes the smallest ones on `lab-net`.
        """
        existing = {server.name: server for server in self.items()}
        missing = [name for name in names if name not in existing]
        if missing:
            resolved = self._resolve(kind or servers.Kind())
            with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
                created = pool.map(lambda name: self._create(name, resolved), missing)
                existing.update((server.name, server) for server in created)
        ids = {existing[name].id for name in names}
        running = self.wait(ids, servers.ACTIVE)
        return {server.name: server for server in running}

    def wait(self, ids: Collection[str], status: str) -> tuple[servers.Server, ...]:
        """Wait until all these servers have a status, and return them.

        Raises:
            LabError: one went to ERROR or away, or the time is over.
        """
        observed: tuple[servers.Server, ...] = ()
        states: dict[str, str] = {}

        def are_met() -> bool:
            nonlocal observed, states
            observed = tuple(server for server in self.items() if server.id in ids)
            states = {server.name: server.status for server in observed}
            if len(observed) == len(ids) and set(states.values()) <= {status}:
                return True
            if servers.ERROR in states.values() or len(observed) < len(ids):
                faults = {server.fault for server in observed if server.fault}
                raise errors.LabError(
                    f"servers failed or went away: {states}"
                    f"{''.join(f'; {fault}' for fault in sorted(faults))}"
                )
            return False

        waiting.until(lambda: f"servers are {status}: {states}", are_met, poll_s=POLL_S)
        return observed

    def stop(self, server_id: str) -> None:
        """See `servers.Cloud.stop`."""
        with cloud.sentences():
            self.connection.compute.stop_server(server_id)

    def start(self, server_id: str) -> None:
        """See `servers.Cloud.start`."""
        with cloud.sentences():
            self.connection.compute.start_server(server_id)

    def delete(self, server_id: str) -> None:
        """See `servers.Cloud.delete`."""
        with cloud.sentences():
            self.connection.compute.delete_server(server_id, ignore_missing=True)

    def rename(self, server_id: str, name: str) -> None:
        """Rename a server."""
        with cloud.sentences():
            self.connection.compute.update_server(server_id, name=name)

    def add_floating_ip(self, server_id: str) -> str:
        """See `servers.Cloud.add_floating_ip`.

        The server shows it among its addresses a few seconds later.
        """
        with cloud.sentences():
            network = self.connection.network
            port = next(iter(network.ports(device_id=server_id)), None)
            outside = next(iter(network.networks(is_router_external=True)), None)
            if port is None or outside is None:
                raise errors.LabError(
                    "the server has no port, or the cloud has no external network:"
                    " it can have no floating IP"
                )
            floating_ip = network.create_ip(
                floating_network_id=outside.id, port_id=port.id
            )
            return str(floating_ip.floating_ip_address)

    def remove_floating_ips(self, server_id: str) -> None:
        """See `servers.Cloud.remove_floating_ips`."""
        with cloud.sentences():
            network = self.connection.network
            for port in network.ports(device_id=server_id):
                for address in network.ips(port_id=port.id):
                    network.delete_ip(address, ignore_missing=True)

    def ensure_network(self, has_router: bool = True) -> str:
        """Have a network with a router to the public one; return its ID.

        Of the lab's own cloud. Floating IPs need all three. Repeating it does no harm.
        has_router: neutron needs four processor seconds for a router's life.
        """
        with cloud.sentences():
            network = self.connection.network
            mine = network.find_network(NETWORK) or network.create_network(name=NETWORK)
            name, cidr = _SUBNET
            subnet = network.find_subnet(name) or network.create_subnet(
                name=name, network_id=mine.id, ip_version=4, cidr=cidr
            )
            if not has_router:
                return str(mine.id)
            public = network.find_network(
                seed_cloud.PUBLIC_NETWORK, ignore_missing=False
            )
            router = network.find_router(_ROUTER) or network.create_router(
                name=_ROUTER, external_gateway_info={"network_id": public.id}
            )
            attached = network.ports(device_id=router.id, network_id=mine.id)
            if next(iter(attached), None) is None:
                network.add_interface_to_router(router, subnet=subnet.id)
            return str(mine.id)

    def router_id(self) -> str:
        """Return the ID of the router that `ensure_network` has created."""
        with cloud.sentences():
            network = self.connection.network
            return str(network.find_router(_ROUTER, ignore_missing=False).id)

    def add_port(self, name: str, server_id: str) -> str:
        """Create a port on `lab-net` as a server would have one; return its address."""
        network = self.connection.network
        with cloud.sentences():
            mine = network.find_network(NETWORK, ignore_missing=False)
            port = network.create_port(
                name=name, network_id=mine.id, device_id=server_id
            )
            return str(port.fixed_ips[0]["ip_address"])

    def add_load_balancer(
        self, name: str, ports: Sequence[int], tags: Sequence[str] = ()
    ) -> str:
        """Have a load balancer on `lab-net`, not yet ACTIVE; return its ID.

        ports: of its TCP listeners, each with a pool.
        """
        network = self.connection.network
        pool = {"name": name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
        with cloud.sentences():
            inside = network.find_network(NETWORK, ignore_missing=False)
            balancer = self.connection.load_balancer.create_load_balancer(
                name=name,
                tags=list(tags),
                vip_subnet_id=inside.subnet_ids[0],
                listeners=[
                    {
                        "name": f"{name}-{port}",
                        "protocol": "TCP",
                        "protocol_port": port,
                        "default_pool": {**pool, "name": f"{name}-{port}"},
                    }
                    for port in ports
                ],
            )
            return str(balancer.id)

    def clear(self) -> None:
        """Delete the project's servers, floating IPs, routers and networks."""
        for server in self.items():
            self.delete(server.id)
        waiting.until("servers are deleted", lambda: not self.items(), poll_s=POLL_S)
        with cloud.sentences():
            network = self.connection.network
            own = {"project_id": self.connection.current_project_id}
            for address in network.ips(**own):
                network.delete_ip(address)
            for router in network.routers(**own):
                for port in network.ports(device_id=router.id, **own):
                    network.remove_interface_from_router(router, port=port.id)
                network.delete_router(router)
            for each in network.networks(**own):
                network.delete_network(each)

    def _create(self, name: str, resolved: servers.Kind) -> servers.Server:
        with cloud.sentences():
            server = self.connection.compute.create_server(
                name=name,
                flavor_id=resolved.flavor,
                image_id=resolved.image,
                networks=[{"uuid": resolved.network}],
            )
        return servers.Server(id=str(server.id), name=name, status="BUILD")

    def _resolve(self, kind: servers.Kind) -> servers.Kind:
        """Put ids in the place of names, and of what was left open."""
        with cloud.sentences():
            chosen = self._image(kind.image)
            return servers.Kind(
                flavor=self._flavor(kind.flavor, chosen),
                image=str(chosen.id),
                network=self._network(kind.network),
            )

    def _image(self, name: str) -> image.Image:
        images = cloud.images_of(self.connection)
        if name:
            return images.find_image(name, ignore_missing=False)
        active = [image_ for image_ in images.images() if image_.status == "active"]
        if not active:
            raise errors.LabError("the cloud has no image to boot from")
        return min(active, key=lambda image_: (image_.min_disk or 0, image_.size or 0))

    def _flavor(self, name: str, image_: image.Image) -> str:
        compute = self.connection.compute
        if name:
            return str(compute.find_flavor(name, ignore_missing=False).id)
        # Nova lets only volumes be booted with a flavor that has no disk (policy
        # os_compute_api:servers:create:zero_disk_flavor).
        fitting = [
            flavor
            for flavor in compute.flavors()
            if flavor.disk >= max(image_.min_disk or 0, 1)
            and flavor.ram >= (image_.min_ram or 0)
        ]
        if not fitting:
            raise errors.LabError("no flavor is large enough for the image")
        smallest = min(
            fitting, key=lambda flavor: (flavor.ram, flavor.vcpus, flavor.disk)
        )
        return str(smallest.id)

    def _network(self, name: str) -> str:
        network = self.connection.network
        if name:
            return str(network.find_network(name, ignore_missing=False).id)
        inside = {
            network_.name: network_
            for network_ in network.networks(is_router_external=False)
        }
        if NETWORK in inside:
            return str(inside[NETWORK].id)
        if len(inside) != 1:
            raise errors.LabError(f"network: not set: must be one of {sorted(inside)}")
        return str(next(iter(inside.values())).id)

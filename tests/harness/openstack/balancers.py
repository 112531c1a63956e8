"""What Octavia and Neutron hold of a project's load balancers, past our own rooms.

Objects are plain JSON: each test reads other fields.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import openstack.connection
import openstack.exceptions

from lib.lab.openstack import cloud, database, layout
from lib.lab.run import waiting

POLL_S = 1.0
ACTIVE = "ACTIVE"
BALANCERS, LISTENERS, POOLS = "loadbalancers", "listeners", "pools"
MONITORS, MEMBERS = "healthmonitors", "members"
ADDRESSES, GROUPS, PORTS = "floatingips", "security_groups", "ports"
KINDS = (BALANCERS, LISTENERS, POOLS, MONITORS, ADDRESSES, GROUPS, PORTS)
"""All that there is one list of; of `MEMBERS` each pool has one of its own."""
_NEUTRON = frozenset({ADDRESSES, GROUPS, PORTS})
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class BalancerView:
    """What there was at one time, by id. Members are read once, when needed."""

    connection: openstack.connection.Connection
    balancers: Mapping[str, Json]
    listeners: Mapping[str, Json]
    pools: Mapping[str, Json]
    monitors: Mapping[str, Json]
    floating_ips: Mapping[str, Json]
    _members: dict[str, list[Json]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def listener(self, balancer_id: str, port: int, protocol: str = "") -> Json:
        """Return the listener on a port; empty without one."""
        for listener in self.listeners.values():
            is_on_it = {"id": balancer_id} in listener["loadbalancers"]
            is_it = not protocol or listener["protocol"] == protocol
            if is_on_it and is_it and listener["protocol_port"] == port:
                return listener
        return {}

    def pool(self, balancer_id: str, port: int, protocol: str = "") -> Json:
        """Return the pool behind a listener; empty without one."""
        listener = self.listener(balancer_id, port, protocol)
        return self.pools.get(str(listener.get("default_pool_id")), {})

    def monitor(self, balancer_id: str, port: int, protocol: str = "") -> Json:
        """Return that pool's monitor; empty without one."""
        pool = self.pool(balancer_id, port, protocol)
        return self.monitors.get(str(pool.get("healthmonitor_id")), {})

    def members(self, balancer_id: str, port: int, protocol: str = "") -> list[Json]:
        """Return that pool's members, by name."""
        pool = self.pool(balancer_id, port, protocol)
        if not pool:
            return []
        id_ = str(pool["id"])
        if id_ not in self._members:
            self._members[id_] = members(self.connection, id_)
        return self._members[id_]

    def floating_ip(self, balancer_id: str) -> Json:
        """Return the floating IP of a VIP; empty without one."""
        port_id = self.balancers.get(balancer_id, {}).get("vip_port_id")
        for floating_ip in self.floating_ips.values():
            if port_id and floating_ip["port_id"] == port_id:
                return floating_ip
        return {}


def look(connection: openstack.connection.Connection) -> BalancerView:
    """Read what the connection's project has: five lists.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    kinds = (BALANCERS, LISTENERS, POOLS, MONITORS, ADDRESSES)
    return BalancerView(connection, *(listed(connection, kind) for kind in kinds))


def listed(
    connection: openstack.connection.Connection, kind: str
) -> Mapping[str, Json]:
    """Read one list of what the connection's project has, by id. kind: of `KINDS`.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    project = {"project_id": connection.current_project_id}
    with cloud.sentences():
        if kind in _NEUTRON:
            path = f"/{kind.replace('_', '-')}"
            answer = connection.network.get(path, params=project)
        else:
            answer = connection.load_balancer.get(f"/lbaas/{kind}", params=project)
        return {str(item["id"]): item for item in _read(answer, kind)}


def members(connection: openstack.connection.Connection, pool_id: str) -> list[Json]:
    """Read the members of a pool, by name; none of one that is gone.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    with cloud.sentences():
        answer = connection.load_balancer.get(f"/lbaas/pools/{pool_id}/members")
        pool_members = [] if answer.status_code == 404 else _read(answer, MEMBERS)
    return sorted(pool_members, key=lambda member: str(member["name"]))


def _read(answer: Any, kind: str) -> list[Json]:
    openstack.exceptions.raise_from_response(answer)
    return list(answer.json()[kind])


def node_ports(
    connection: openstack.connection.Connection, network_id: str, count: int
) -> list[list[str]]:
    """Create ports that stand for those of servers; return the addresses of each.

    Each has one address in every subnet of the network.

    Raises:
        LabError: the cloud refused, or does not answer.
    """
    with cloud.sentences():
        network = connection.network
        subnets = network.subnets(network_id=network_id)
        fixed = [{"subnet_id": subnet.id} for subnet in subnets]
        ports = [
            network.create_port(
                network_id=network_id, device_id=f"node-{number}", fixed_ips=fixed
            )
            for number in range(1, count + 1)
        ]
        return [[str(each["ip_address"]) for each in port.fixed_ips] for port in ports]


def clear(connection: openstack.connection.Connection) -> None:
    """Delete a project's load balancers and all ports but those of routers.

    Raises:
        LabError: the cloud refused, or load balancers do not go.
    """
    project = connection.current_project_id

    def are_deleted() -> bool:
        left = listed(connection, BALANCERS)
        for id_, balancer in left.items():
            if not str(balancer["provisioning_status"]).startswith("PENDING_"):
                connection.load_balancer.delete_load_balancer(id_, cascade=True)
        return not left

    with cloud.sentences():
        waiting.until("load balancers are deleted", are_deleted, poll_s=POLL_S)
        for port in connection.network.ports(project_id=project):
            if not (port.device_owner or "").startswith("network:"):
                connection.network.delete_port(port)


def set_status(home: layout.Layout, balancer_id: str, status: str) -> None:
    """Set a provisioning status of a load balancer that no API call can cause.

    Raises:
        LabError: the database refused.
    """
    if not balancer_id.replace("-", "").isalnum() or not status.isalpha():
        raise ValueError("an id and a status are wanted")
    database.run(
        home,
        f"UPDATE octavia.load_balancer SET provisioning_status = '{status}',"  # noqa: S608
        f" updated_at = UTC_TIMESTAMP() WHERE id = '{balancer_id}';",
    )

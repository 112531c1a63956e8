"""What a project of the lab's cloud holds of Octavia, and of Neutron for its sake.

Read raw and past every client of ours, so that it can say what one of them has done.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import openstack.connection
import openstack.exceptions

from lib.lab import errors
from lib.lab.openstack import cloud, database_session, layout, tenant

Thing = Mapping[str, Any]
Census = Mapping[str, Mapping[str, Thing]]
"""Kind, then id: what there is, without what changes by itself."""

ACTIVE = "ACTIVE"
BALANCERS, LISTENERS, POOLS = "loadbalancers", "listeners", "pools"
MONITORS, MEMBERS = "healthmonitors", "members"
ADDRESSES, GROUPS, PORTS = "floatingips", "security_groups", "ports"
KINDS = (BALANCERS, LISTENERS, POOLS, MONITORS, MEMBERS, ADDRESSES, GROUPS, PORTS)
_VOLATILE = frozenset({"updated_at", "operating_status", "revision_number", "status"})
_POLL_S = 0.5


@dataclasses.dataclass(frozen=True)
class Project:
    """One project. connection: with the rights of its user."""

    connection: openstack.connection.Connection

    def census(self) -> Census:
        """Give all there is."""
        found = {kind: self.octavia(kind) for kind in (BALANCERS, LISTENERS, MONITORS)}
        pools = self.octavia(POOLS)
        found[POOLS] = pools
        found[MEMBERS] = {
            id_: one for pool in pools for id_, one in self.members(pool).items()
        }
        for kind in (ADDRESSES, GROUPS, PORTS):
            found[kind] = self.neutron(kind)
        return found

    def octavia(self, kind: str) -> Mapping[str, Thing]:
        """List one kind of Octavia's, of this project only."""
        path = f"/lbaas/{kind}?project_id={self._id}"
        return self._list(self.connection.load_balancer, path, kind)

    def members(self, pool_id: str) -> Mapping[str, Thing]:
        """List the members of a pool."""
        path = f"/lbaas/pools/{pool_id}/members"
        return self._list(self.connection.load_balancer, path, MEMBERS)

    def neutron(self, kind: str) -> Mapping[str, Thing]:
        """List one kind of Neutron's, of this project only."""
        path = f"/{kind.replace('_', '-')}?project_id={self._id}"
        return self._list(self.connection.network, path, kind)

    @property
    def _id(self) -> str:
        return str(self.connection.current_project_id)

    def _list(self, proxy: Any, path: str, kind: str) -> Mapping[str, Thing]:
        with cloud.sentences():
            answer = proxy.get(path)
            openstack.exceptions.raise_from_response(answer)
        rows = msgspec.json.decode(answer.content)[kind]
        return {row["id"]: stable(row) for row in rows}

    def states(self) -> Mapping[str, str]:
        """Give the provisioning status of all load balancers, by id."""
        with cloud.sentences():
            fields = f"fields=id&fields=provisioning_status&project_id={self._id}"
            answer = self.connection.load_balancer.get(f"/lbaas/loadbalancers?{fields}")
            openstack.exceptions.raise_from_response(answer)
        rows = msgspec.json.decode(answer.content)[BALANCERS]
        return {row["id"]: row["provisioning_status"] for row in rows}

    def make_balancer(self, name: str, tags: Sequence[str] = ()) -> str:
        """Have a load balancer with one listener and pool; give its id when ACTIVE."""
        network = self.connection.network
        with cloud.sentences():
            subnet = network.find_network(tenant.NETWORK, ignore_missing=False)
            pool = {"name": name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
            listener = {"name": name, "protocol": "TCP", "protocol_port": 7}
            body = {
                "name": name,
                "tags": list(tags),
                "vip_subnet_id": subnet.subnet_ids[0],
                "listeners": [{**listener, "default_pool": pool}],
            }
            answer = self.connection.load_balancer.post(
                "/lbaas/loadbalancers", json={"loadbalancer": body}
            )
            openstack.exceptions.raise_from_response(answer)
        return str(answer.json()["loadbalancer"]["id"])

    def wait(self, ids: Collection[str], timeout_s: float = 300) -> None:
        """Wait until these load balancers are ACTIVE.

        Raises:
            LabError: one is not in time.
        """
        end = time.monotonic() + timeout_s
        while {self.states().get(id_) for id_ in ids} - {ACTIVE}:
            if time.monotonic() > end:
                raise errors.LabError(f"load balancers are not ACTIVE: {sorted(ids)}")
            time.sleep(_POLL_S)

    def make_address(self, description: str, port_id: str | None = None) -> str:
        """Have a floating IP; give its id."""
        with cloud.sentences():
            network = self.connection.network
            outside = next(iter(network.networks(is_router_external=True)))
            more = {"port_id": port_id} if port_id else {}
            made = network.create_ip(
                floating_network_id=outside.id, description=description, **more
            )
            return str(made.id)

    def make_group(self, name: str, description: str) -> str:
        """Have a security group; give its id."""
        with cloud.sentences():
            made = self.connection.network.create_security_group(
                name=name, description=description
            )
            return str(made.id)

    def make_ports(self, names: Sequence[str]) -> Mapping[str, str]:
        """Have ports that stand for the servers of Nodes; give addresses by name."""
        with cloud.sentences():
            network = self.connection.network
            inside = network.find_network(tenant.NETWORK, ignore_missing=False)
            fixed = [{"subnet_id": inside.subnet_ids[0]}]
            found = {}
            for name in names:
                port = network.create_port(
                    network_id=inside.id, device_id=name, name=name, fixed_ips=fixed
                )
                found[name] = str(port.fixed_ips[0]["ip_address"])
            return found

    def clear(self, timeout_s: float = 300) -> None:
        """Delete all load balancers, and the ports that `make_ports` made.

        Raises:
            LabError: a load balancer does not go.
        """
        end = time.monotonic() + timeout_s
        while states := self.states():
            for id_, state in states.items():
                if not state.startswith("PENDING"):
                    path = f"/lbaas/loadbalancers/{id_}?cascade=true"
                    self.connection.load_balancer.delete(path)
            if time.monotonic() > end:
                raise errors.LabError(f"load balancers do not go: {states}")
            time.sleep(_POLL_S)
        for id_, port in self.neutron(PORTS).items():
            if not port["device_owner"]:
                with cloud.sentences():
                    self.connection.network.delete_port(id_)


def stable(thing: Thing) -> Thing:
    """Leave out what changes without anybody's doing, and the order of lists."""
    return {
        key: sorted(map(_still, value), key=repr) if isinstance(value, list) else value
        for key, value in thing.items()
        if key not in _VOLATILE
    }


def _still(part: object) -> object:
    return stable(part) if isinstance(part, dict) else part


class Watch:
    """Sees when load balancers turn ACTIVE, in Octavia's own database.

    So that nobody's API is slowed down by it. turned: id of the load balancer, and
    when that was seen, by the monotonic clock.
    """

    def __init__(self, home: layout.Layout, pause_s: float = 0.05) -> None:
        self.turned: list[tuple[str, float]] = []
        self._home = home
        self._pause_s = pause_s
        self._stop = threading.Event()

    @contextlib.contextmanager
    def opened(self) -> Iterator["Watch"]:
        """Look for as long as the block lasts."""
        with database_session.Session(self._home) as session:
            thread = threading.Thread(target=self._run, args=(session,))
            thread.start()
            try:
                yield self
            finally:
                self._stop.set()
                thread.join()

    def _run(self, session: database_session.Session) -> None:
        query = "SELECT id, provisioning_status FROM octavia.load_balancer"
        before: Mapping[str, str] = {}
        while not self._stop.wait(self._pause_s):
            now = {row[0]: row[1] for row in session.ask(query)}
            at = time.monotonic()
            for id_, state in now.items():
                if state == ACTIVE and before.get(id_, ACTIVE) != ACTIVE:
                    self.turned.append((id_, at))
            before = now

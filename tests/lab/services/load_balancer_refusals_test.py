"""Lasting refusals of Octavia and Neutron, and Node subnets that have one CIDR.

A refusal is one Event and one count of the metric, costs few calls, and the Service is
served after its cause has ended. All calls pass an entrance that counts them.
"""

import contextlib
import dataclasses
import functools
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import openstack.connection
import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason
from lib.lab import places
from lib.lab.daemons import ccm, metrics
from lib.lab.openstack import accounts, cloud
from lib.lab.run import waiting
from tests.harness.openstack import balancers
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room
from tests.harness.services.services import RecordedEvent

INTERNAL: Mapping[str, str] = {keys.INTERNAL: "true"}
WATCH_S = 10.0
CALLS_EACH = 15
"""Calls per Service in that time: at most two retries, each with its reads."""
BACKOFF_S = 5.0
"""Between two tries of one Service at first; it doubles."""
CIDR = "10.44.0.0/24"
TWICE = "10.44.0.5"
"""An address that ports of two servers have, in two networks of one CIDR."""


@dataclasses.dataclass(frozen=True)
class Ground:
    """The cluster, and the project as its user and the cloud's administrator see it."""

    room: Room
    admin: openstack.connection.Connection
    token: str

    @property
    def connection(self) -> openstack.connection.Connection:
        return self.room.mine.connection

    @property
    def project_id(self) -> str:
        return str(self.connection.current_project_id)

    def refused(self) -> float:
        """Return the metric of Services that the cloud refuses."""
        text = ccm.metrics(self.room.replicas[1].place, self.token)
        problems = metrics.by(text, "mooring_load_balancer_problem", "reason")
        return problems[CommonReason.REFUSED]

    def warnings(self, name: str) -> list[RecordedEvent]:
        recorded = self.room.services.events().get(name, ())
        return [event for event in recorded if event.type == "Warning"]

    def is_served(self, name: str) -> bool:
        service = self.room.services.get(name)
        return service is not None and bool(services.ingress(service))


End = Callable[[], object]
"""Ends what makes the cloud refuse."""


@dataclasses.dataclass(frozen=True)
class Cause:
    """annotations, spec: of the Service that is refused. end: see `End`."""

    end: End
    annotations: Mapping[str, str] = dataclasses.field(default_factory=lambda: INTERNAL)
    spec: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def address_in_use(ground: Ground) -> Cause:
    """The requested loadBalancerIP is the address of another port."""
    network = ground.connection.network
    inside = network.find_network("lab-net", ignore_missing=False)
    port = network.create_port(network_id=inside.id, device_id="another")
    address = str(port.fixed_ips[0]["ip_address"])
    return Cause(lambda: network.delete_port(port), spec={"loadBalancerIP": address})


def subnet_exhausted(ground: Ground) -> Cause:
    """Both addresses of an allocation pool are in use."""
    network = ground.connection.network
    tiny = network.create_network(name="tiny")
    subnet = network.create_subnet(
        name="tiny",
        network_id=tiny.id,
        ip_version=4,
        cidr="10.46.0.0/28",
        enable_dhcp=False,
        allocation_pools=[{"start": "10.46.0.5", "end": "10.46.0.6"}],
    )
    ports = [network.create_port(network_id=tiny.id) for _ in range(2)]
    return Cause(
        lambda: network.delete_port(ports[0]),
        {**INTERNAL, keys.SUBNET_ID: str(subnet.id)},
    )


def floating_ip_quota(ground: Ground) -> Cause:
    return Cause(network_quota(ground, "floatingip", balancers.ADDRESSES), {})


def port_quota(ground: Ground) -> Cause:
    return Cause(network_quota(ground, "port", balancers.PORTS))


def network_quota(ground: Ground, resource: str, kind: str) -> End:
    """Allow no more of a resource than there are."""
    path = f"/quotas/{ground.project_id}"
    count = len(balancers.listed(ground.connection, kind))
    body = {"quota": {resource: count}}
    ground.admin.network.put(path, json=body).raise_for_status()
    return lambda: ground.admin.network.delete(path).raise_for_status()


def load_balancer_quota(ground: Ground) -> Cause:
    """Allow no more load balancers than there are."""
    path = f"/lbaas/quotas/{ground.project_id}"
    count = len(balancers.listed(ground.connection, balancers.BALANCERS))
    body = {"quota": {"load_balancer": count}}
    ground.admin.load_balancer.put(path, json=body).raise_for_status()
    return Cause(lambda: ground.admin.load_balancer.delete(path).raise_for_status())


@dataclasses.dataclass(frozen=True)
class Row:
    """A refusal. path: of the requests that are refused. says: part of the Event."""

    name: str
    make: Callable[[Ground], Cause]
    path: str
    says: str


BALANCERS = "/lbaas/loadbalancers"
TOGETHER = (
    Row("address-in-use", address_in_use, BALANCERS, "already in use or not availa"),
    Row("subnet-exhausted", subnet_exhausted, BALANCERS, "the subnet has no address"),
    Row("floating-ip-quota", floating_ip_quota, "/floatingips", "network quota is us"),
)
"""They do not get in each other's way."""
ALONE: tuple[tuple[Row, ...], ...] = (
    (Row("lb-quota", load_balancer_quota, BALANCERS, "load balancer quota is used"),),
    (Row("port-quota", port_quota, BALANCERS, "the project's network quota is us"),),
)
"""A quota of these would refuse the others as well."""
ROUNDS = (TOGETHER, *ALONE)


@pytest.fixture(scope="module")
def ground(where: places.Places, open_room: balancing.Open) -> Iterator[Ground]:
    room = open_room("refusals", 2)
    token = ccm.reader_token(room.api)
    with contextlib.closing(cloud.connect(where, accounts.ADMIN)) as admin:
        room.replica(1).start()
        new_ground = Ground(room, admin, token)
        try:
            yield new_ground
        finally:
            admin.network.delete(f"/quotas/{new_ground.project_id}")
            admin.load_balancer.delete(f"/lbaas/quotas/{new_ground.project_id}")


def server_subnet(ground: Ground, name: str, server: str) -> str:
    """Create a network with the CIDR, and a server's port at the address."""
    network = ground.connection.network
    network_ = network.create_network(name=name)
    subnet = network.create_subnet(
        name=name, network_id=network_.id, ip_version=4, cidr=CIDR
    )
    network.create_port(
        network_id=network_.id,
        device_id=server,
        fixed_ips=[{"subnet_id": subnet.id, "ip_address": TWICE}],
    )
    return str(subnet.id)


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_subnets_with_one_cidr_members_get_that_of_the_nodes_server(
    ground: Ground, is_first: bool
) -> None:
    """Whichever was created first; the load balancer is in the same subnet."""
    room = ground.room
    suffix = "first" if is_first else "last"
    own, other = f"own-{suffix}", f"other-{suffix}"
    servers = {name: str(uuid.uuid4()) for name in (own, other)}
    order = (own, other) if is_first else (other, own)
    subnets = {name: server_subnet(ground, name, servers[name]) for name in order}
    services.make_node(room.api, f"node-{suffix}", [TWICE], server_id=servers[own])
    try:
        name = f"one-cidr-{suffix}"
        room.services.make(name, INTERNAL)
        waiting.until("served", lambda: ground.is_served(name))
        service = room.services.get(name)
        assert service is not None
        id_ = services.balancer_id(service)
        view = balancers.look(ground.connection)
        (member,) = view.members(id_, 80)
        print(f"{subnets}: VIP in {view.balancers[id_]['vip_subnet_id']}, {member}")
        assert view.balancers[id_]["vip_subnet_id"] == subnets[own]
        assert (member["address"], member["subnet_id"]) == (TWICE, subnets[own])
        assert not ground.warnings(name)
        room.services.delete([name])
        waiting.until("deleted", lambda: room.services.get(name) is None)
    finally:
        services.delete_nodes(room.api, [f"node-{suffix}"])


def refused_posts(counted: Counted, rows: Sequence[Row]) -> int:
    paths = {row.path for row in rows}
    return sum(
        call.method == "POST" and call.status >= 400 and call.path.endswith(path)
        for call in counted.calls()
        for path in paths
    )


def one_round(ground: Ground, rows: Sequence[Row], shown: dict[str, str]) -> None:
    """Make the cloud refuse some Services, then remove the causes."""
    whole, began = Counted(ground.room.entrance), time.monotonic()
    causes = {row.name: row.make(ground) for row in rows}
    for name, cause in causes.items():
        ground.room.services.make(name, cause.annotations, **cause.spec)
    for row in rows:
        waiting.until(
            f"an Event of {row.name}",
            functools.partial(ground.warnings, row.name),
        )
    waiting.until("the metric", lambda: ground.refused() == len(rows))
    counted = Counted(ground.room.entrance)
    time.sleep(WATCH_S)
    calls, posts = len(counted.calls()), refused_posts(whole, rows)
    most = 2 + math.log2(1 + (time.monotonic() - began) / BACKOFF_S)
    for cause in causes.values():
        cause.end()
    for row in rows:
        took_s = waiting.until(
            f"{row.name} is served",
            functools.partial(ground.is_served, row.name),
        )
        (event,) = ground.warnings(row.name)
        shown[row.name] = (
            f"x{event.count} {event.reason}: {event.message}; {posts} refusals and"
            f" {calls} calls of {len(rows)} in {WATCH_S:.0f} s;"
            f" served {took_s:.0f} s after its cause had ended"
        )
        assert (event.count, event.reason) == (1, "SyncLoadBalancerFailed")
        assert row.says in event.message
    waiting.until("no problem is left", lambda: ground.refused() == 0)
    assert len(rows) <= posts <= most * len(rows)
    assert calls <= CALLS_EACH * len(rows)


def test_a_lasting_refusal_is_reported_once_and_served_once_it_ends(
    ground: Ground,
) -> None:
    """One Event, the metric, few calls, and nothing is created twice."""
    ground.room.add_nodes(ground.room.nodes)
    shown: dict[str, str] = {}
    names = [row.name for rows in ROUNDS for row in rows]
    try:
        for rows in ROUNDS:
            one_round(ground, rows, shown)
    finally:
        for name in names:
            print(f"{name:18} {shown.get(name, 'MISSING')}")
    assert shown.keys() == set(names)
    assert len(balancers.listed(ground.connection, balancers.BALANCERS)) == len(names)
    assert len(balancers.listed(ground.connection, balancers.ADDRESSES)) == 1

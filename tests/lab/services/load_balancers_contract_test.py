"""The fake Octavia and Neutron and the real ones answer alike: one suite for both.

Both also keep the contract that every provider keeps, tests/contract/load_balancers.py.

The room that is used in the field drives both; what it did is read back past it. Few
load balancers, many requests each, all in parallel: Octavia takes seconds for a change.
"""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import os
import time
from collections.abc import Callable, Iterator, Mapping

import openstack.connection
import pytest

from lib.cloud import errors
from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Facts,
    IpFamily,
    Node,
    Port,
    PortProtocol,
    Spec,
    Target,
)
from lib.cloud.model import Address, AddressType, Seen, Unknown
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.http import client, session
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.read import lists, native
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import Asked, CommonReason, GateState, Problem
from lib.lab.openstack import accounts, cloud, tenant
from lib.lab.run import waiting
from tests.contract import load_balancers as contract
from tests.contract.octavia import Octavia
from tests.harness.openstack import offers

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
TCP, UDP, SCTP = PortProtocol.TCP, PortProtocol.UDP, PortProtocol.SCTP
CLUSTER = Cluster("contract", "kubernetes")
TIMEOUT_S = waiting.LIMIT_S


@dataclasses.dataclass(frozen=True)
class Ground:
    """A cloud with a network of Nodes. sleep: lets time pass there.

    addresses: of ports that stand for Nodes, in subnet_id. free_ips: floating IPs that
    nothing has. flavor_id, zone: that Octavia knows. configured: the default of
    load balancers.
    """

    api: client.Client
    sleep: Callable[[float], None]
    network_id: str
    external_id: str
    external_name: str
    port_id: str
    flavor_id: str
    zone: str
    subnet_id: str
    second_subnet_id: str
    addresses: tuple[str, ...]
    free_ips: tuple[str, ...]
    is_fake: bool = False

    @property
    def configured(self) -> settings.LoadBalancer:
        return settings.LoadBalancer(
            subnet_id=self.subnet_id, container_store="external"
        )


def fake_ground() -> Ground:
    on = driver.ground()
    neutron = on.cloud.neutron
    second = neutron.add_subnet(on.network_id, "fd00:42::/64", "inside-v6")
    addresses = tuple(on.node(number).addresses[0].address for number in (1, 2, 3))
    free = []
    for number in (1, 2):
        address = f"198.51.100.{number}"
        free.append(address)
        neutron.floating_ips[address] = {
            "id": address,
            "floating_ip_address": address,
            "floating_network_id": on.external_id,
            "port_id": None,
            "description": "",
            "tags": [],
        }
    return Ground(
        on.cloud.client(),
        on.cloud.clock.sleep,
        on.network_id,
        on.external_id,
        "public-v4",
        neutron.add_port(on.subnet_id),
        "00000000-0000-4000-8000-00000000000f",
        "balancers-zone",
        on.subnet_id,
        second,
        addresses,
        tuple(free),
        is_fake=True,
    )


def real_ground(
    cloud_conf: str, mine: tenant.Tenant, admin: openstack.connection.Connection
) -> Ground:
    config = openstack_config.read(cloud_conf, os.environ)
    opened = session.open_session(config.credentials, 60.0)
    where = client.Where(config.credentials.region, config.credentials.endpoint_type)
    api = client.Client(opened, where, lambda operation, outcome, seconds: None)
    network = mine.connection.network
    inside = network.find_network(tenant.NETWORK, ignore_missing=False)
    subnet_id = inside.subnet_ids[0]
    second = network.create_subnet(
        name="lab-v6", network_id=inside.id, ip_version=6, cidr="fd00:42::/64"
    )
    fixed = [{"subnet_id": subnet_id}]
    ports = [
        network.create_port(
            network_id=inside.id, device_id=f"node-{number}", fixed_ips=fixed
        )
        for number in (1, 2, 3)
    ]
    public = next(iter(network.networks(is_router_external=True)))
    free = [network.create_ip(floating_network_id=public.id) for _ in (1, 2)]
    vip = network.create_port(network_id=inside.id, fixed_ips=fixed)
    flavor_id, zone = offers.balancers(admin, "balancers", "balancers-zone")
    return Ground(
        api,
        time.sleep,
        str(inside.id),
        str(public.id),
        "public-v4",
        str(vip.id),
        flavor_id,
        zone,
        str(subnet_id),
        str(second.id),
        tuple(str(port.fixed_ips[0]["ip_address"]) for port in ports),
        tuple(str(ip.floating_ip_address) for ip in free),
    )


@pytest.fixture(scope="module", params=["fake", "openstack"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "fake":
        yield fake_ground()
        return
    where = request.getfixturevalue("where")
    make: MakeProject = request.getfixturevalue("project")
    account, mine = make("balancers")
    with contextlib.closing(cloud.connect(where, accounts.ADMIN)) as admin:
        yield real_ground(accounts.cloud_conf(where, account), mine, admin)
    network = mine.connection.network
    for port in network.ports(project_id=mine.connection.current_project_id):
        if port.device_id.startswith("node-") or not port.device_id:
            network.delete_port(port.id)


class Served:
    """One Service and the room that serves it, gates and all."""

    def __init__(
        self, on: Ground, name: str, config: settings.LoadBalancer, **fields: object
    ) -> None:
        self.on = on
        self.balancers = OctaviaLoadBalancers(on.api, config)
        nodes = tuple(
            Node(f"node-{at}", "", (Address(AddressType.INTERNAL_IP, address),))
            for at, address in enumerate(on.addresses, 1)
        )
        ports = (Port(80, TCP, 30080),)
        usual = Facts(
            CLUSTER, "contract", name, f"uid-{name}", ports=ports, nodes=nodes
        )
        self.facts = dataclasses.replace(usual, **fields)  # type: ignore[arg-type]
        self.problems: tuple[Problem, ...] = ()
        self.id = ""

    def change(self, **fields: object) -> None:
        self.facts = dataclasses.replace(
            self.facts, **fields  # type: ignore[arg-type]  # any field
        )

    def annotate(self, values: Mapping[str, str | None]) -> None:
        both = {**self.facts.annotations, **values}
        self.change(annotations={k: v for k, v in both.items() if v is not None})

    def settle(self, *, gone: bool = False) -> list[str]:
        """Drive plans to their end; give the steps."""
        steps: list[str] = []
        for _ in range(80):
            spec = None
            if not gone:
                parsed = self.balancers.parse(self.facts)
                assert isinstance(parsed, Spec), parsed
                spec = parsed
            target = Target(self.balancers.refer(self.facts), spec)
            observation = self.balancers.observe([target], Depth.FULL)[target.ref]
            assert isinstance(observation, Seen), observation
            self.id = observation.value.id or self.id
            now = datetime.datetime.now(datetime.UTC)
            plan = self.balancers.plan(target, observation.value, now)
            self.problems = plan.problems
            self.annotate(dict(plan.results.annotations))
            if plan.results.ingress is not None:
                self.change(ingress=plan.results.ingress)
            if plan.settled:
                return steps
            assert plan.steps or plan.retry_after_s, plan
            for step in plan.steps:
                if step.is_gated and self.id and not self.wait():
                    break
                steps.append(str(step))
                result = self.balancers.apply(step)
                self.annotate(dict(result.annotations))
                if "load balancer" in step.path[0] and result.id and not self.id:
                    self.id = result.id
                if not step.is_repeatable:
                    break
            if not plan.steps:
                self.on.sleep(min(plan.retry_after_s or 1.0, 1.0))
        raise AssertionError(f"does not settle: {steps[-10:]}")

    def wait(self) -> bool:
        """Wait for the gate; say whether it opened."""
        waited_s = 0.0
        while waited_s < TIMEOUT_S:
            gate = self.balancers.gates([Asked(self.id, waited_s)])[self.id]
            assert not isinstance(gate, Unknown), gate
            if gate.state is not GateState.CLOSED:
                return gate.state is GateState.OPEN
            after_s = min(gate.retry_after_s, 0.5)
            self.on.sleep(after_s)
            waited_s += after_s
        raise AssertionError("the gate does not open")

    def _deadline(self) -> float:
        return self.on.api.now() + 60

    def balancer(self) -> native.LoadBalancer:
        deadline = self._deadline()
        return lists.LOAD_BALANCER.read(self.on.api, self.id, deadline).loadbalancer

    def listeners(self) -> dict[int, native.Listener]:
        visible = lists.LISTENERS.visible(
            self.on.api, self._deadline(), (("load_balancer_id", self.id),)
        )
        return {listener.protocol_port: listener for listener in visible}

    def pool(self, port: int = 80) -> native.Pool:
        pools = lists.POOLS.visible(
            self.on.api, self._deadline(), (("loadbalancer_id", self.id),)
        )
        pool_id = self.listeners()[port].default_pool_id
        return next(pool for pool in pools if pool.id == pool_id)

    def members(self, port: int = 80) -> list[native.Member]:
        pool_id = self.pool(port).id
        visible = lists.MEMBERS.visible(self.on.api, self._deadline(), (), pool_id)
        return sorted(visible, key=lambda member: member.name or "")

    def monitor(self, port: int = 80) -> native.Monitor | None:
        monitor_id = self.pool(port).healthmonitor_id
        monitors = lists.MONITORS.of_project(self.on.api, self._deadline())
        return next((monitor for monitor in monitors if monitor.id == monitor_id), None)

    def floating_ips(self) -> list[str]:
        port_id = self.balancer().vip_port_id
        addresses = lists.FLOATING_IPS.of_project(self.on.api, self._deadline())
        return [ip.floating_ip_address for ip in addresses if ip.port_id == port_id]

    def addresses(self) -> list[str]:
        return [address.ip for address in self.facts.ingress]


def assert_gone(served: Served) -> None:
    """No load balancer, floating IP or group with the ownership tag is left."""
    deadline = served.on.api.now() + 60
    assert lists.LOAD_BALANCER.find(served.on.api, served.id, deadline) is None
    left = [
        balancer
        for balancer in served.balancers.owned(CLUSTER.id)
        if balancer.uid == served.facts.uid
    ]
    assert left == []


SET = {
    keys.CONNECTION_LIMIT: "100",
    keys.METHOD: "LEAST_CONNECTIONS",
    keys.TIMEOUT_CLIENT_DATA: "7001",
    keys.TIMEOUT_MEMBER_CONNECT: "7002",
    keys.TIMEOUT_MEMBER_DATA: "7003",
    keys.TIMEOUT_TCP_INSPECT: "7004",
    keys.SOURCE_RANGES: "192.0.2.7/24",
    keys.ENABLE_MONITOR: "true",
    keys.MONITOR_DELAY: "9",
    keys.MONITOR_TIMEOUT: "8",
    keys.MONITOR_RETRIES: "4",
    keys.MONITOR_RETRIES_DOWN: "5",
}
CHANGED = {
    keys.CONNECTION_LIMIT: "-1",
    keys.METHOD: "SOURCE_IP",
    keys.TIMEOUT_CLIENT_DATA: "8001",
    keys.TIMEOUT_MEMBER_CONNECT: "8002",
    keys.TIMEOUT_MEMBER_DATA: "8003",
    keys.TIMEOUT_TCP_INSPECT: "8004",
    keys.SOURCE_RANGES: "192.0.2.0/24, 10.0.0.0/8",
    keys.MONITOR_DELAY: "19",
    keys.MONITOR_TIMEOUT: "18",
    keys.MONITOR_RETRIES: "5",
    keys.MONITOR_RETRIES_DOWN: "6",
}


def shown(served: Served) -> dict[str, object]:
    """Show in the cloud's words what the annotations above set."""
    listener, pool = served.listeners()[80], served.pool()
    monitor = served.monitor()
    assert monitor is not None
    return {
        keys.CONNECTION_LIMIT: listener.connection_limit,
        keys.METHOD: pool.lb_algorithm,
        keys.TIMEOUT_CLIENT_DATA: listener.timeout_client_data,
        keys.TIMEOUT_MEMBER_CONNECT: listener.timeout_member_connect,
        keys.TIMEOUT_MEMBER_DATA: listener.timeout_member_data,
        keys.TIMEOUT_TCP_INSPECT: listener.timeout_tcp_inspect,
        keys.SOURCE_RANGES: sorted(listener.allowed_cidrs or ()),
        keys.MONITOR_DELAY: monitor.delay,
        keys.MONITOR_TIMEOUT: monitor.timeout,
        keys.MONITOR_RETRIES: monitor.max_retries,
        keys.MONITOR_RETRIES_DOWN: monitor.max_retries_down,
    }


def as_shown(annotations: Mapping[str, str]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for key, value in annotations.items():
        is_number = value.lstrip("-").isdecimal()
        shown[key] = int(value) if is_number else value
    shown[keys.SOURCE_RANGES] = (
        ["10.0.0.0/8", "192.0.2.0/24"]
        if "," in annotations[keys.SOURCE_RANGES]
        else ["192.0.2.0/24"]
    )
    shown.pop(keys.ENABLE_MONITOR, None)
    return shown


def a_load_balancer_from_its_creation_to_its_end(ground: Ground) -> None:
    """All settings at creation, all of them changed, protocols, members; no trace."""
    served = Served(ground, "whole", ground.configured, annotations=SET)
    steps = served.settle()
    assert [step.split()[1] for step in steps] == ["load", "floating"]
    assert shown(served) == as_shown(SET)
    assert len(served.members()) == 3
    assert {member.subnet_id for member in served.members()} == {ground.subnet_id}
    assert served.addresses() == served.floating_ips()
    assert served.settle() == []

    served.annotate(CHANGED)
    served.change(has_affinity=True, nodes=served.facts.nodes[1:])
    steps = served.settle()
    assert shown(served) == as_shown(CHANGED)
    assert len(steps) == 4, steps  # listener, pool, members, monitor: one each
    assert [member.name for member in served.members()] == ["node-2", "node-3"]
    persistence = served.pool().session_persistence
    assert persistence is not None
    assert persistence.type == "SOURCE_IP"

    served.annotate({keys.PROXY_PROTOCOL: "v2", keys.ENABLE_MONITOR: "false"})
    served.change(has_affinity=False, ports=(*served.facts.ports, Port(53, UDP, 30053)))
    served.settle()
    assert (served.pool().protocol, served.monitor()) == ("PROXYV2", None)
    assert served.pool().session_persistence is None
    assert served.listeners()[53].protocol == "UDP"
    assert len(served.members(53)) == 2
    served.change(ports=(Port(80, TCP, 30080),))
    served.annotate({keys.PROXY_PROTOCOL: None, keys.FORWARDED_FOR: "true"})
    served.settle()
    assert set(served.listeners()) == {80}
    assert served.listeners()[80].protocol == served.pool().protocol == "HTTP"
    assert served.listeners()[80].insert_headers == {"X-Forwarded-For": "true"}
    served.settle(gone=True)
    assert_gone(served)


def udp_sctp_tls_and_local_traffic(ground: Ground) -> None:
    """Each protocol gets its listener; all are probed at the health check port."""
    served = Served(
        ground,
        "kinds",
        settings.LoadBalancer(container_store="external"),
        annotations={
            keys.INTERNAL: "true",
            keys.TLS_REF: "external-ref",
            keys.SUBNET_ID: ground.subnet_id,
            keys.MEMBER_SUBNET_ID: ground.subnet_id,
        },
        ports=(Port(443, TCP, 30443), Port(53, UDP, 30053), Port(99, SCTP, 30099)),
        is_local=True,
        health_check_node_port=31000,
    )
    served.settle()
    assert {listener.protocol for listener in served.listeners().values()} == {
        "TERMINATED_HTTPS",
        "UDP",
        "SCTP",
    }
    assert served.listeners()[443].default_tls_container_ref == "external-ref"
    for port in (443, 53, 99):
        monitor = served.monitor(port)
        assert monitor is not None
        assert (monitor.type, monitor.url_path) == ("HTTP", "/healthz")
        assert {member.monitor_port for member in served.members(port)} == {31000}
    assert served.floating_ips() == []
    served.change(is_local=False, health_check_node_port=0)
    served.annotate({keys.ENABLE_MONITOR: "true"})
    served.settle()
    kinds = {}
    for port in (443, 53, 99):
        monitor = served.monitor(port)
        kinds[port] = monitor.type if monitor else ""
        assert {member.monitor_port for member in served.members(port)} == {None}
    assert kinds == {443: "TCP", 53: "UDP-CONNECT", 99: "SCTP"}
    served.settle(gone=True)
    assert_gone(served)


def addresses_groups_and_a_second_service(ground: Ground) -> None:
    """Floating IPs by address, a managed group, two families, sharing, adoption."""
    config = dataclasses.replace(ground.configured, manage_security_groups=True)
    first_ip, second_ip = ground.free_ips
    served = Served(
        ground,
        "first",
        config,
        annotations={keys.DECKHOUSE_ADDRESS: first_ip},
        ip_families=(IpFamily.IPV4, IpFamily.IPV6),
    )
    served.settle()
    assert served.floating_ips() == [first_ip]
    extra = [vip.ip_address for vip in served.balancer().additional_vips]
    assert len(extra) == 1
    assert served.addresses() == [first_ip, *extra]
    deadline = ground.api.now() + 60
    ports = lists.PORTS.of_project(ground.api, deadline)
    assert sum(len(port.security_groups) > 0 for port in ports if port.device_id) >= 3
    served.annotate({keys.DECKHOUSE_ADDRESS: None})
    served.change(load_balancer_ip=second_ip)
    served.settle()
    assert served.floating_ips() == [second_ip]

    share = {keys.DECKHOUSE_ID: served.id}
    other = Served(
        ground, "second", config, annotations=share, ports=(Port(81, TCP, 30081),)
    )
    other.settle()
    assert other.addresses() == [second_ip]
    assert set(other.listeners()) == {80, 81}
    assert served.settle() == []
    other.settle(gone=True)
    assert set(served.listeners()) == {80}

    # Its Service lost all that was written on it, but for its status.
    served.change(annotations={})
    assert served.settle() == []
    served.settle(gone=True)
    assert_gone(served)
    left = lists.FLOATING_IPS.of_project(ground.api, ground.api.now() + 60)
    assert {first_ip, second_ip} <= {ip.floating_ip_address for ip in left}


def a_load_balancer_put_where_its_owner_wants_it(ground: Ground) -> None:
    """Network, flavor, zone, class, floating subnet, Nodes; a kept address."""
    gold = settings.LoadBalancerClass(floating_network_id=ground.external_id)
    config = settings.LoadBalancer(classes={"gold": gold})
    served = Served(ground, "placed", config)
    first, second, third = served.facts.nodes
    other = dataclasses.replace(first.addresses[0], address="10.250.0.1")
    served.change(
        nodes=(
            dataclasses.replace(
                first, labels=(("role", "edge"),), addresses=(other, *first.addresses)
            ),
            dataclasses.replace(second, labels=(("role", "edge"),)),
            third,
        )
    )
    served.annotate(
        {
            keys.CLASS: "gold",
            keys.NETWORK_ID: ground.network_id,
            keys.FLAVOR_ID: ground.flavor_id,
            keys.AVAILABILITY_ZONE: ground.zone,
            keys.FLOATING_SUBNET: f"{ground.external_name[:-1]}*",
            keys.FLOATING_SUBNET_TAGS: "!nobody-has-it",
            keys.NODE_SELECTOR: "role=edge",
            keys.MEMBER_CIDR: "10.0.0.0/9, 10.250.0.0/32",
            keys.HOSTNAME: "lb.example.com",
            keys.KEEP_FLOATING_IP: "true",
        }
    )
    served.settle()
    balancer = served.balancer()
    assert balancer.vip_network_id == ground.network_id
    assert (balancer.flavor_id, balancer.availability_zone) == (
        ground.flavor_id,
        ground.zone,
    )
    assert [member.address for member in served.members()] == list(ground.addresses[:2])
    assert [address.hostname for address in served.facts.ingress] == ["lb.example.com"]
    assert len(served.floating_ips()) == 1
    (kept,) = served.floating_ips()

    served.annotate(
        {
            keys.FLAVOR_ID: "another",
            keys.AVAILABILITY_ZONE: "another",
            keys.NODE_SELECTOR: "",
            keys.HOSTNAME: None,
            keys.INTERNAL: "true",
        }
    )
    served.settle()
    (problem,) = served.problems
    assert problem.reason is CommonReason.IMMUTABLE
    assert "flavor-id" in problem.message
    assert "availability-zone" in problem.message
    assert len(served.members()) == 3
    assert served.addresses() == [balancer.vip_address]
    served.annotate({keys.INTERNAL: None})
    served.settle()
    assert served.addresses() == [kept]  # the one that was kept comes back
    served.annotate({keys.KEEP_FLOATING_IP: None})
    served.settle(gone=True)
    assert_gone(served)


def a_vip_on_a_port_of_the_users(ground: Ground) -> None:
    """The port outlives the load balancer; floating IPs by network and id."""
    served = Served(ground, "port", settings.LoadBalancer())
    deadline = ground.api.now() + 60
    filters = (("network_id", ground.external_id),)
    external = lists.SUBNETS.visible(ground.api, deadline, filters)
    served.annotate(
        {
            keys.PORT_ID: ground.port_id,
            keys.FLOATING_NETWORK_ID: ground.external_id,
            keys.FLOATING_SUBNET_ID: external[0].id,
        }
    )
    served.settle()
    assert served.balancer().vip_port_id == ground.port_id
    assert served.addresses() == served.floating_ips()
    served.annotate({keys.PORT_ID: ground.network_id})
    served.settle()
    assert [problem.reason for problem in served.problems] == [CommonReason.IMMUTABLE]
    served.settle(gone=True)
    assert_gone(served)


def a_write_in_between_is_refused_as_busy(ground: Ground) -> None:
    """Octavia takes one change at a time; a step that comes too soon is no harm."""
    served = Served(
        ground, "busy", ground.configured, annotations={keys.INTERNAL: "true"}
    )
    served.settle()
    ground.sleep(1.0)  # updated_at has a resolution of a second
    updated_at = served.balancer().updated_at
    served.annotate({keys.CONNECTION_LIMIT: "5", keys.METHOD: "SOURCE_IP"})
    parsed = served.balancers.parse(served.facts)
    assert isinstance(parsed, Spec)
    target = Target(served.balancers.refer(served.facts), parsed)
    observation = served.balancers.observe([target], Depth.TREE)[target.ref]
    assert isinstance(observation, Seen)
    now = datetime.datetime.now(datetime.UTC)
    first, second = served.balancers.plan(target, observation.value, now).steps
    served.balancers.apply(first)
    with pytest.raises(errors.Busy):
        served.balancers.apply(second)
    served.settle()
    assert served.listeners()[80].connection_limit == 5
    # By this alone what was read once is known to be old.
    assert served.balancer().updated_at != updated_at
    assert served.pool().lb_algorithm == "SOURCE_IP"
    served.settle(gone=True)
    assert_gone(served)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (keys.NETWORK_ID, "a requested network does not exist"),
        (keys.PORT_ID, "a requested port does not exist"),
    ],
)
def test_what_octavia_does_not_know_is_said_in_words(
    ground: Ground, key: str, words: str
) -> None:
    """Nothing is made, and the owner learns what was wrong."""
    absent_id = "00000000-0000-4000-8000-0000000000ee"
    usual = settings.LoadBalancer()
    served = Served(ground, "nowhere", usual, annotations={key: absent_id})
    served.annotate({keys.INTERNAL: "true"})
    parsed = served.balancers.parse(served.facts)
    assert isinstance(parsed, Spec)
    target = Target(served.balancers.refer(served.facts), parsed)
    observation = served.balancers.observe([target], Depth.TREE)[target.ref]
    assert isinstance(observation, Seen)
    now = datetime.datetime.now(datetime.UTC)
    (step,) = served.balancers.plan(target, observation.value, now).steps
    with pytest.raises(errors.InvalidRequest) as raised:
        served.balancers.apply(step)
    assert words in raised.value.summary


ELSEWHERE = {
    keys.ON_ERROR: "no call of its API makes the real Octavia fail",
    keys.OWNED_ID: "written only",
}
HERE: Mapping[Callable[[Ground], None], set[str]] = {
    a_load_balancer_from_its_creation_to_its_end: {
        *SET,
        keys.PROXY_PROTOCOL,
        keys.FORWARDED_FOR,
    },
    udp_sctp_tls_and_local_traffic: {
        keys.INTERNAL,
        keys.TLS_REF,
        keys.SUBNET_ID,
        keys.MEMBER_SUBNET_ID,
    },
    addresses_groups_and_a_second_service: {
        keys.DECKHOUSE_ADDRESS,
        keys.DECKHOUSE_ID,
        keys.LOAD_BALANCER_ID,
    },
    a_load_balancer_put_where_its_owner_wants_it: {
        keys.CLASS,
        keys.NETWORK_ID,
        keys.FLAVOR_ID,
        keys.AVAILABILITY_ZONE,
        keys.FLOATING_SUBNET,
        keys.FLOATING_SUBNET_TAGS,
        keys.NODE_SELECTOR,
        keys.MEMBER_CIDR,
        keys.HOSTNAME,
        keys.KEEP_FLOATING_IP,
    },
    a_vip_on_a_port_of_the_users: {
        keys.PORT_ID,
        keys.FLOATING_NETWORK_ID,
        keys.FLOATING_SUBNET_ID,
    },
}


SCENARIOS: tuple[Callable[[Ground], None], ...] = (
    *HERE,
    a_write_in_between_is_refused_as_busy,
)


@pytest.fixture(scope="module")
def running(
    ground: Ground, request: pytest.FixtureRequest
) -> Iterator[Mapping[str, concurrent.futures.Future[None]]]:
    """Begin all scenarios: each mostly waits for load balancers of its own."""
    at_once = 1 if ground.is_fake else len(SCENARIOS)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        selected = {
            str(item.callspec.params["scenario"])
            for item in request.session.items
            if isinstance(item, pytest.Function)
            and item.originalname == test_scenario.__name__
        }
        yield {
            scenario.__name__: pool.submit(scenario, ground)
            for scenario in SCENARIOS
            if scenario.__name__ in selected
        }


@pytest.mark.parametrize("scenario", [item.__name__ for item in SCENARIOS])
def test_scenario(
    running: Mapping[str, concurrent.futures.Future[None]], scenario: str
) -> None:
    """What the scenario's own sentence says holds on both grounds."""
    running[scenario].result()


def test_every_annotation_is_tried_on_the_real_octavia() -> None:
    """The table of annotations and tests is whole; missing rows have a reason."""
    for scenario, some in HERE.items():
        print("\n".join(f"{key:70} {scenario.__name__}" for key in sorted(some)))
    assert set().union(*HERE.values()) | set(ELSEWHERE) == keys.READ


class TestProtocol(contract.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, ground: Ground) -> contract.Ground:
        nodes = tuple(
            Node(f"node-{at}", "", (Address(AddressType.INTERNAL_IP, address),))
            for at, address in enumerate(ground.addresses, 1)
        )
        return Octavia(ground.api, ground.configured, nodes, ground.sleep)

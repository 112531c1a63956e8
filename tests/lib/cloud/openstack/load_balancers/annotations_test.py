"""What each annotation does to a new load balancer, and to one that is there.

One table: a row for every annotation that is read; the last test fails without one.
"""

import dataclasses
from collections.abc import Callable

import pytest

from lib.cloud.load_balancers import Depth
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason, ProblemReason

OTHER_FLAVOR = "00000000-0000-4000-8000-00000000000f"
OTHER_FLAVOR_2 = "00000000-0000-4000-8000-0000000000f2"
FREE_IP = "198.51.100.9"
FREE_IP_2 = "198.51.100.10"
TLS = "https://keys.example:9311/v1/containers/00000000-0000-4000-8000-0000000000aa"
TLS_2 = "https://keys.example:9311/v1/secrets/00000000-0000-4000-8000-0000000000bb"

Probe = Callable[[driver.Driver], object]


@dataclasses.dataclass(frozen=True)
class Row:
    """An annotation, its value at creation and after, and what is to be seen then.

    Values may name things of the ground in braces. after: None: the same as before,
    since it can't be changed, and a problem says so.
    """

    key: str
    value: str
    probe: Probe
    expected: object
    changed: str
    after: object
    problem: ProblemReason | None = None
    extra: tuple[tuple[str, str], ...] = ()


def of(name: str, field: str) -> Probe:
    """Look at a field of the first listener, pool, monitor, balancer."""

    def probe(driven: driver.Driver) -> object:
        result = getattr(driven, name)
        assert isinstance(result, dict)
        return result.get(field)

    return probe


def floating(driven: driver.Driver) -> object:
    """The address of the floating IP on the VIP; empty without one."""
    return driven.floating_ip.get("floating_ip_address", "")


def floating_subnet(driven: driver.Driver) -> object:
    """The first three parts of that address, which tell the subnet."""
    return str(floating(driven)).rpartition(".")[0]


def member_names(driven: driver.Driver) -> object:
    return sorted(str(member["name"]) for member in driven.members)


def member_addresses(driven: driver.Driver) -> object:
    return sorted(str(member["address"]) for member in driven.members)


def member_subnets(driven: driver.Driver) -> object:
    return {member["subnet_id"] for member in driven.members}


def ingress(driven: driver.Driver) -> object:
    return [(ingress.ip, ingress.hostname) for ingress in driven.facts.ingress]


def floating_left(driven: driver.Driver) -> object:
    """Whether the floating IP outlives a Service that becomes internal."""
    driven.annotate({keys.INTERNAL: "true"})
    driven.settle()
    left = len(driven.cloud.neutron.floating_ips)
    driven.annotate({keys.INTERNAL: None})
    driven.settle()
    return left - len(FREE) - 1  # and that of the user's load balancer


def in_error(driven: driver.Driver) -> object:
    """What is done about one that turns ERROR."""
    before = driven.balancer["id"]
    driven.balancer["provisioning_status"] = "ERROR"
    driven.settle()
    if driven.balancer["id"] != before:
        return "recreated"
    is_active = driven.balancer["provisioning_status"] == "ACTIVE"
    driven.balancer["provisioning_status"] = "ACTIVE"
    return "failed over" if is_active else "reported"


def balancer_id(driven: driver.Driver) -> object:
    return driven.balancer["name"]


FREE = (FREE_IP, FREE_IP_2)
IMMUTABLE = CommonReason.IMMUTABLE
MONITORED = ((keys.ENABLE_MONITOR, "true"),)
INTERNAL = ((keys.INTERNAL, "true"),)
USUAL = "kube_service_kubernetes_default_web"

ROWS = [
    Row(keys.INTERNAL, "true", floating, "", "false", "198.51.100.100"),
    Row(
        keys.SOURCE_RANGES,
        "192.0.2.7/24",
        of("listener", "allowed_cidrs"),
        ["192.0.2.0/24"],
        "192.0.2.0/24, 10.0.0.0/8",
        ["192.0.2.0/24", "10.0.0.0/8"],
    ),
    Row(keys.CLASS, "special", floating_subnet, "203.0.113", "", "203.0.113"),
    Row(
        keys.NETWORK_ID,
        "{other_network}",
        of("balancer", "vip_network_id"),
        "{other_network}",
        "{network}",
        "{other_network}",
        IMMUTABLE,
    ),
    Row(
        keys.SUBNET_ID,
        "{other_subnet}",
        of("balancer", "vip_subnet_id"),
        "{other_subnet}",
        "{subnet}",
        "{other_subnet}",
        IMMUTABLE,
    ),
    Row(
        keys.MEMBER_SUBNET_ID,
        "{other_subnet}",
        member_subnets,
        {"{other_subnet}"},
        "{subnet}",
        {"{subnet}"},
    ),
    Row(
        keys.PORT_ID,
        "{port}",
        of("balancer", "vip_port_id"),
        "{port}",
        "{port_2}",
        "{port}",
        IMMUTABLE,
    ),
    Row(
        keys.FLOATING_NETWORK_ID,
        "{second_external}",
        floating_subnet,
        "203.0.113",
        "{external}",
        "203.0.113",
    ),
    Row(
        keys.FLOATING_SUBNET_ID,
        "{second_subnet}",
        floating_subnet,
        "203.0.113",
        "",
        "203.0.113",
        extra=((keys.FLOATING_NETWORK_ID, "{second_external}"),),
    ),
    Row(
        keys.FLOATING_SUBNET,
        "third-*",
        floating_subnet,
        "192.0.2",
        "second-*",
        "192.0.2",
        extra=((keys.FLOATING_NETWORK_ID, "{second_external}"),),
    ),
    Row(
        keys.FLOATING_SUBNET_TAGS,
        "!blue",
        floating_subnet,
        "203.0.113",
        "blue",
        "203.0.113",
        extra=((keys.FLOATING_NETWORK_ID, "{second_external}"),),
    ),
    Row(keys.KEEP_FLOATING_IP, "true", floating_left, 1, "false", 0),
    Row(keys.LOAD_BALANCER_ID, "{users}", balancer_id, "users", "{users}", "users"),
    Row(keys.DECKHOUSE_ID, "{users}", balancer_id, "users", "{users}", "users"),
    Row(keys.DECKHOUSE_ADDRESS, FREE_IP, floating, FREE_IP, FREE_IP_2, FREE_IP_2),
    Row(
        keys.HOSTNAME,
        "lb.example.com",
        ingress,
        [("", "lb.example.com")],
        "other.example.com",
        [("", "other.example.com")],
    ),
    Row(keys.PROXY_PROTOCOL, "v1", of("pool", "protocol"), "PROXY", "v2", "PROXYV2"),
    Row(keys.FORWARDED_FOR, "true", of("listener", "protocol"), "HTTP", "false", "TCP"),
    Row(
        keys.TLS_REF,
        TLS,
        of("listener", "default_tls_container_ref"),
        TLS,
        TLS_2,
        TLS_2,
    ),
    Row(
        keys.CONNECTION_LIMIT,
        "100",
        of("listener", "connection_limit"),
        100,
        "-1",
        -1,
    ),
    Row(
        keys.METHOD,
        "LEAST_CONNECTIONS",
        of("pool", "lb_algorithm"),
        "LEAST_CONNECTIONS",
        "SOURCE_IP",
        "SOURCE_IP",
    ),
    *(
        Row(key, "7000", of("listener", field), 7000, "8000", 8000)
        for key, field in (
            (keys.TIMEOUT_CLIENT_DATA, "timeout_client_data"),
            (keys.TIMEOUT_MEMBER_CONNECT, "timeout_member_connect"),
            (keys.TIMEOUT_MEMBER_DATA, "timeout_member_data"),
            (keys.TIMEOUT_TCP_INSPECT, "timeout_tcp_inspect"),
        )
    ),
    Row(keys.ENABLE_MONITOR, "true", of("monitor", "type"), "TCP", "false", None),
    *(
        Row(key, "9", of("monitor", field), 9, "4", 4, extra=MONITORED)
        for key, field in (
            (keys.MONITOR_DELAY, "delay"),
            (keys.MONITOR_TIMEOUT, "timeout"),
            (keys.MONITOR_RETRIES, "max_retries"),
            (keys.MONITOR_RETRIES_DOWN, "max_retries_down"),
        )
    ),
    Row(
        keys.FLAVOR_ID,
        OTHER_FLAVOR,
        of("balancer", "flavor_id"),
        OTHER_FLAVOR,
        OTHER_FLAVOR_2,
        OTHER_FLAVOR,
        IMMUTABLE,
    ),
    Row(
        keys.AVAILABILITY_ZONE,
        "az1",
        of("balancer", "availability_zone"),
        "az1",
        "az2",
        "az1",
        IMMUTABLE,
    ),
    Row(
        keys.NODE_SELECTOR,
        "role=edge, zone",
        member_names,
        ["node-1"],
        "role",
        ["node-1", "node-2"],
    ),
    Row(
        keys.MEMBER_CIDR,
        "10.1.0.0/16",
        member_addresses,
        ["10.1.0.1"],
        "10.0.0.0/16",
        ["10.0.0.1", "10.0.0.2"],
    ),
    Row(keys.ON_ERROR, "failover", in_error, "failed over", "recreate", "recreated"),
    Row(keys.OWNED_ID, "anything", balancer_id, USUAL, "nothing", USUAL),
]


@dataclasses.dataclass(frozen=True)
class Scene:
    """A Service before its creation, and what braces stand for."""

    driven: driver.Driver
    named: dict[str, str]

    def fill(self, value: object) -> object:
        """Put ids in the place of braces."""
        if isinstance(value, str):
            for name, id_ in self.named.items():
                value = value.replace(f"{{{name}}}", id_)
            return value
        if isinstance(value, set):
            return {self.fill(each) for each in value}
        return value


def scene() -> Scene:
    on = driver.ground()
    neutron = on.cloud.neutron
    second = neutron.add_network("second", external=True)
    second_subnet = neutron.add_subnet(second, "203.0.113.0/24", "second-v4")
    neutron.add_subnet(second, "192.0.2.0/24", "third-v4", ("blue",))
    for address in FREE:
        add_free_ip(on, address)
    on.cloud.tls_refs |= {TLS, TLS_2}
    first = on.node(1, role="edge", zone="a")
    both = dataclasses.replace(
        first,
        addresses=(
            *first.addresses,
            dataclasses.replace(first.addresses[0], address="10.1.0.1"),
        ),
    )
    neutron.add_port(on.other_subnet_id, "10.1.0.1", "server-1")
    facts = driver.service((both, on.node(2, role="core")))
    classes = {"special": settings.LoadBalancerClass(floating_network_id=second)}
    named = {
        "network": on.network_id,
        "subnet": on.subnet_id,
        "external": on.external_id,
        "other_subnet": on.other_subnet_id,
        "other_network": str(neutron.subnets[on.other_subnet_id]["network_id"]),
        "second_external": second,
        "second_subnet": second_subnet,
        "port": neutron.add_port(on.subnet_id),
        "port_2": neutron.add_port(on.subnet_id),
        "users": add_balancer(on),
    }
    return Scene(
        driver.Driver(on, facts, settings.LoadBalancer(classes=classes)), named
    )


def add_free_ip(on: driver.Ground, address: str) -> None:
    on.cloud.neutron.floating_ips[address] = {
        "id": address,
        "floating_ip_address": address,
        "floating_network_id": on.external_id,
        "port_id": None,
        "description": "",
        "tags": [],
    }


def add_balancer(on: driver.Ground) -> str:
    """Make a load balancer of a user's, with a floating IP."""
    body: wire.Json = {
        "loadbalancer": {
            "name": "users",
            "provider": "amphora",
            "vip_subnet_id": on.subnet_id,
        }
    }
    url = "fake://load-balancer/lbaas/loadbalancers"
    answer = on.cloud.octavia.answer(
        wire.call_of("load-balancer", "POST", url, body, {})
    )
    on.cloud.octavia.finish()
    created = wire.part(answer.body or {}, "loadbalancer")
    address = "198.51.100.99"
    add_free_ip(on, address)
    on.cloud.neutron.floating_ips[address]["port_id"] = created["vip_port_id"]
    return str(created["id"])


@pytest.mark.parametrize("row", ROWS, ids=[row.key.split("/")[-1] for row in ROWS])
def test_annotation_at_creation_and_at_change(row: Row) -> None:
    """It counts when the load balancer is made, and when it is set later on."""
    created = scene()
    driven = created.driven
    driven.annotate({key: str(created.fill(value)) for key, value in row.extra})
    driven.annotate({row.key: str(created.fill(row.value))})
    driven.settle()
    assert row.probe(driven) == created.fill(row.expected), driven.problems
    assert [p for p in driven.problems if p.reason is IMMUTABLE] == []
    driven.annotate({row.key: str(created.fill(row.changed))})
    driven.depth = Depth.FULL
    driven.settle()
    assert row.probe(driven) == created.fill(row.after), driven.problems
    problem_reasons = {problem.reason for problem in driven.problems}
    assert (row.problem in problem_reasons) == (row.problem is not None)
    before = len(driven.cloud.writes)
    driven.one_pass()
    assert driven.cloud.writes[before:] == []


def test_every_annotation_has_a_row() -> None:
    """The table is whole: nothing is read that no row tries out."""
    rows = {row.key for row in ROWS}
    print("\n".join(f"{row.key:70} {row.value:30} {row.changed}" for row in ROWS))
    assert rows == keys.READ

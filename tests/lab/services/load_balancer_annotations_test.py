"""Every wish that a Service can have, at its creation and changed later: one table.

openstack-ccm, the PEX, serves all rows at once; what it did is read from Octavia and
Neutron past it. A row for each annotation that is read or written, and for each field
of a Service that matters; without one the test fails.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import client
from lib.lab import places
from lib.lab.openstack import accounts, cloud, layout
from tests.harness import testing
from tests.harness.openstack import balancer_watch, balancers, premises, wishes
from tests.harness.openstack.wishes import Row, Seen
from tests.harness.services import services, stages

NAMESPACE = "annotations"
SERVED_S = 300.0
AT_ONCE = 9
FIRST, SECOND, THIRD = ("annotated-1", "annotated-2", "annotated-3")
NODES: Mapping[str, Mapping[str, str]] = {
    FIRST: {"role": "edge", "kind": "a"},
    SECOND: {"role": "core"},
    THIRD: {},
}
"""Names and labels."""
CONF = """
[LoadBalancer]
container-store = external
[LoadBalancerClass "gold"]
floating-network-id = {second_external}
floating-subnet-id = {subnet_a}
[LoadBalancerClass "silver"]
floating-network-id = {second_external}
floating-subnet = second-?
floating-subnet-tags = blue
[LoadBalancerClass "lead"]
network-id = {other_network}
[LoadBalancerClass "tin"]
subnet-id = {other_subnet}
member-subnet-id = {subnet}
"""

Values = Mapping[str, Any]


def address(seen: Seen) -> object:
    """The floating IP, which the status and the annotation must show as well."""
    found = seen.address
    shown = found or str(seen.balancer.get("vip_address"))
    if seen.ingress != [f"{shown} VIP"]:
        return f"status {seen.ingress}, cloud {shown}"
    if seen.annotation(keys.LOAD_BALANCER_ADDRESS) != shown:
        return f"annotation is not {shown}"
    return found


def is_floating(seen: Seen) -> object:
    return bool(address(seen))


def floating_range(seen: Seen) -> object:
    """The first two parts of the floating IP tell its subnet."""
    return ".".join(str(address(seen)).split(".")[:2])


def kept(seen: Seen) -> object:
    """How many floating IPs were made for this Service, and whether one is on it."""
    about = f"{NAMESPACE}/{seen.name} "
    made = [ip for ip in seen.view.floating_ips.values() if about in ip["description"]]
    return len(made), bool(seen.address)


def ingress(seen: Seen) -> object:
    return seen.ingress


def proxied(seen: Seen) -> object:
    protocol = seen.part("pool").get("protocol")
    return protocol, [one.split(" ")[-1] for one in seen.ingress]


def protocols(seen: Seen) -> object:
    """Listeners and pools by port."""
    return sorted(
        (one["protocol"], one["protocol_port"], seen.view.pools[pool]["protocol"])
        for one in seen.view.listeners.values()
        if {"id": seen.id} in one["loadbalancers"]
        and (pool := str(one["default_pool_id"])) in seen.view.pools
    )


def tagged(seen: Seen) -> object:
    """On which of the user's load balancers this Service has a listener."""
    name = f"kube_service_kubernetes_{NAMESPACE}_{seen.name}"
    return sorted(
        str(seen.view.balancers[one["loadbalancers"][0]["id"]]["name"])
        for one in seen.view.listeners.values()
        if name in one["tags"]
    )


def monitored(seen: Seen) -> object:
    """Type of the monitor, and whether members are asked elsewhere."""
    kind = seen.part("monitor").get("type")
    ports = {one["monitor_port"] for one in seen.members}
    health = seen.service["spec"].get("healthCheckNodePort")
    return kind, "health" if health and ports == {health} else ports


def affinity(seen: Seen) -> object:
    found = seen.part("pool").get("session_persistence")
    return found["type"] if found else None


def versions(seen: Seen) -> object:
    """The IP version of each address that is shown."""
    return ["IPv6" if ":" in one else "IPv4" for one in seen.ingress]


def node_port(seen: Seen) -> object:
    ports = {one["protocol_port"] for one in seen.members}
    return ports == {seen.service["spec"]["ports"][0]["nodePort"]}


def own(seen: Seen) -> object:
    """Whether the Service leads to its load balancer by all that we write."""
    is_there = seen.balancer.get("provisioning_status") == "ACTIVE"
    return is_there and seen.annotation(keys.OWNED_ID) == seen.id and is_floating(seen)


def made(seen: Seen) -> object:
    """Whether anything of it is there: in the cloud, on the Service."""
    name = f"kube_service_kubernetes_{NAMESPACE}_{seen.name}"
    in_cloud = any(one["name"] == name for one in seen.view.balancers.values())
    finalizers = seen.service["metadata"].get("finalizers", ())
    return in_cloud, bool(finalizers), bool(seen.ingress)


def in_error(seen: Seen) -> object:
    """Whether it is the load balancer that there was before; none is in ERROR."""
    if seen.balancer.get("provisioning_status") != "ACTIVE":
        return "not active"
    return "another" if seen.id != seen.names.get("errored", seen.id) else "the same"


def fail(ground: wishes.Ground, name: str) -> None:
    """Set a load balancer to ERROR, as when its hypervisor crashes."""
    assert isinstance(ground, Ground)
    service = ground.services.get(name)
    assert service is not None
    id_ = services.balancer_id(service)
    ground.names["errored"] = id_
    balancers.set_status(layout.of(ground.where), id_, "ERROR")


def label(ground: wishes.Ground, name: str) -> None:
    del name
    assert isinstance(ground, Ground)
    services.label_node(ground.api, THIRD, {"stage": "late"})


IMMUTABLE = "ImmutableField"
INTERNAL: Values = {keys.INTERNAL: "true"}
HERE: Values = {**INTERNAL, keys.SUBNET_ID: "{subnet}"}
MONITORED: Values = {**INTERNAL, keys.ENABLE_MONITOR: "true"}


def number(key: str, kind: str, first: int, second: int) -> Row:
    """Make a row of a whole number."""
    shown = key.rpartition("/")[2].removeprefix("health-monitor-").replace("-", "_")
    values = (str(first), first, str(second), second)
    probe = wishes.of(kind, shown)
    return wishes.annotated(key, probe, *values, also=MONITORED, service="settings")


OUTSIDE: Values = {keys.FLOATING_NETWORK_ID: "{second_external}"}
PLACES = (
    wishes.annotated(keys.INTERNAL, is_floating, "true", False, "false", True, also={}),
    wishes.annotated(
        keys.CLASS, floating_range, "gold", "198.20", "", "198.20", also={}
    ),
    wishes.annotated(
        keys.NETWORK_ID,
        wishes.of("balancer", "vip_network_id"),
        *("{other_network}", "{other_network}", "{network}", "{other_network}"),
        event=IMMUTABLE,
    ),
    wishes.annotated(
        keys.SUBNET_ID,
        wishes.of("balancer", "vip_subnet_id"),
        *("{other_subnet}", "{other_subnet}", "{subnet}", "{other_subnet}"),
        event=IMMUTABLE,
    ),
    wishes.annotated(
        keys.MEMBER_SUBNET_ID,
        wishes.members("subnet_id"),
        *("{other_subnet}", ["{other_subnet}"], "{subnet}", ["{subnet}"]),
        also=HERE,
        service="members",
    ),
    wishes.annotated(
        keys.PORT_ID,
        wishes.of("balancer", "vip_port_id"),
        *("{port}", "{port}", "{port_2}", "{port}"),
        event=IMMUTABLE,
    ),
    wishes.annotated(
        keys.FLOATING_NETWORK_ID,
        floating_range,
        *("{second_external}", "198.21", "{external}", "198.21"),
        also={},
        event=IMMUTABLE,
        service="floating-ids",
    ),
    wishes.annotated(
        keys.FLOATING_SUBNET_ID,
        floating_range,
        *("{subnet_b}", "198.21", "{subnet_a}", "198.21"),
        also={},
        event=IMMUTABLE,
        service="floating-ids",
    ),
    wishes.annotated(
        keys.FLOATING_SUBNET,
        floating_range,
        *("~second-[b-z]", "198.21", "second-a", "198.21"),
        also=OUTSIDE,
        event=IMMUTABLE,
    ),
    wishes.annotated(
        keys.FLOATING_SUBNET_TAGS,
        floating_range,
        *("!blue", "198.20", "blue", "198.20"),
        also=OUTSIDE,
        event=IMMUTABLE,
    ),
    wishes.annotated(
        keys.FLAVOR_ID,
        wishes.of("balancer", "flavor_id"),
        *("{flavor}", "{flavor}", "{nothing}", "{flavor}"),
        event=IMMUTABLE,
        service="network-id",
    ),
    wishes.annotated(
        keys.AVAILABILITY_ZONE,
        wishes.of("balancer", "availability_zone"),
        *("{zone}", "{zone}", "elsewhere", "{zone}"),
        event=IMMUTABLE,
        service="network-id",
    ),
    wishes.annotated(
        keys.DECKHOUSE_ADDRESS,
        address,
        *("{free_1}", "{free_1}", "{free_2}", "{free_2}"),
        service="deckhouse-address",
        also={},
    ),
    Row(
        keys.KEEP_FLOATING_IP,
        "keep",
        kept,
        {keys.KEEP_FLOATING_IP: "true"},
        (1, True),
        INTERNAL,
        (1, False),
    ),
    Row(
        keys.LOAD_BALANCER_ID,
        "load-balancer-id",
        tagged,
        {keys.LOAD_BALANCER_ID: "{u1}", "spec": {"ports": [services.port(81)]}},
        ["u1"],
        {"spec": {"ports": [services.port(81), services.port(82)]}},
        ["u1", "u1"],
    ),
    Row(
        keys.DECKHOUSE_ID,
        "deckhouse-id",
        tagged,
        {
            keys.DECKHOUSE_ID: "{u2}",
            "spec": {"ports": [services.port(81), services.port(82)]},
        },
        ["u2", "u2"],
        {"spec": {"ports": [services.port(82)]}},
        ["u2"],
    ),
    wishes.annotated(
        keys.OWNED_ID,
        own,
        *("{nothing}", True, "{nothing}", True),
        also={},
        service="owned",
    ),
    wishes.annotated(
        keys.LOAD_BALANCER_ADDRESS,
        own,
        *("::1", True, "::2", True),
        also={},
        service="owned",
    ),
)
CLASSES = (
    Row(
        "[LoadBalancerClass] floating-subnet, -tags",
        "silver",
        floating_range,
        {keys.CLASS: "silver"},
        "198.21",
        {keys.CLASS: "gold"},
        "198.21",
        IMMUTABLE,
    ),
    Row(
        "[LoadBalancerClass] network-id",
        "lead",
        wishes.of("balancer", "vip_network_id"),
        {**INTERNAL, keys.CLASS: "lead"},
        "{other_network}",
        {keys.NETWORK_ID: "{network}"},
        "{other_network}",
        IMMUTABLE,
    ),
    Row(
        "[LoadBalancerClass] subnet-id",
        "tin",
        wishes.of("balancer", "vip_subnet_id"),
        {**INTERNAL, keys.CLASS: "tin"},
        "{other_subnet}",
        {keys.SUBNET_ID: "{subnet}"},
        "{other_subnet}",
        IMMUTABLE,
    ),
    Row(
        "[LoadBalancerClass] member-subnet-id",
        "tin",
        wishes.members("subnet_id"),
        {**INTERNAL, keys.CLASS: "tin"},
        ["{subnet}"],
        {keys.MEMBER_SUBNET_ID: "{other_subnet}"},
        ["{other_subnet}"],
    ),
)
SETTINGS = (
    wishes.annotated(
        keys.SOURCE_RANGES,
        wishes.of("listener", "allowed_cidrs"),
        *("192.0.2.0/24", ["192.0.2.0/24"], "10.0.0.0/8", ["10.0.0.0/8"]),
        service="settings",
    ),
    wishes.annotated(
        keys.HOSTNAME,
        ingress,
        *("a.example.com", ["a.example.com"], "b.io", ["b.io"]),
        service="fields",
    ),
    wishes.annotated(
        keys.PROXY_PROTOCOL,
        proxied,
        *("v2", ("PROXYV2", ["Proxy"]), "true", ("PROXY", ["Proxy"])),
    ),
    wishes.annotated(
        keys.FORWARDED_FOR,
        protocols,
        *("true", [("HTTP", 80, "HTTP")], "false", [("TCP", 80, "TCP")]),
    ),
    wishes.annotated(
        keys.TLS_REF,
        wishes.of("listener", "default_tls_container_ref"),
        *("ref-one", "ref-one", "ref-two", "ref-two"),
    ),
    wishes.annotated(
        keys.METHOD,
        wishes.of("pool", "lb_algorithm"),
        *("LEAST_CONNECTIONS", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP"),
        service="settings",
    ),
    wishes.annotated(
        keys.ENABLE_MONITOR, wishes.of("monitor", "type"), "true", "TCP", "false", None
    ),
    number(keys.CONNECTION_LIMIT, "listener", 100, 200),
    number(keys.TIMEOUT_CLIENT_DATA, "listener", 7001, 8001),
    number(keys.TIMEOUT_MEMBER_CONNECT, "listener", 7002, 8002),
    number(keys.TIMEOUT_MEMBER_DATA, "listener", 7003, 8003),
    number(keys.TIMEOUT_TCP_INSPECT, "listener", 7004, 8004),
    number(keys.MONITOR_DELAY, "monitor", 9, 19),
    number(keys.MONITOR_TIMEOUT, "monitor", 2, 4),
    number(keys.MONITOR_RETRIES, "monitor", 4, 5),
    number(keys.MONITOR_RETRIES_DOWN, "monitor", 6, 7),
    wishes.annotated(
        keys.NODE_SELECTOR,
        wishes.members("name"),
        *("role=edge, kind", [FIRST], "role", [FIRST, SECOND]),
    ),
    Row(
        "a Node's labels",
        "labels",
        wishes.members("name"),
        {**INTERNAL, keys.NODE_SELECTOR: "stage"},
        [],
        {},
        [THIRD],
        do=label,
    ),
    wishes.annotated(
        keys.MEMBER_CIDR,
        wishes.members("address"),
        "10.250.0.0/24, 10.251.0.0/24",
        ["10.250.0.1", "10.250.0.2", "10.250.0.3"],
        "10.250.0.2/32",
        ["10.250.0.2"],
        also=HERE,
        service="members",
    ),
    Row(
        keys.ON_ERROR,
        "on-error",
        in_error,
        {**INTERNAL, keys.ON_ERROR: "report"},
        "the same",
        {keys.ON_ERROR: "recreate"},
        "another",
        event="LoadBalancerInError",
        do=fail,
    ),
)
FIELDS = (
    wishes.field(
        "loadBalancerIP",
        address,
        *({"loadBalancerIP": "{free_3}"}, "{free_3}"),
        *({"loadBalancerIP": "{free_4}"}, "{free_4}"),
        also={},
    ),
    wishes.field(
        "loadBalancerIP, internal",
        wishes.of("balancer", "vip_address"),
        *({"loadBalancerIP": "10.42.9.9"}, "10.42.9.9"),
        *({"loadBalancerIP": "10.42.9.10"}, "10.42.9.9"),
        event=IMMUTABLE,
    ),
    wishes.field(
        "loadBalancerSourceRanges",
        wishes.of("listener", "allowed_cidrs"),
        *({"loadBalancerSourceRanges": ["192.0.2.0/24"]}, ["192.0.2.0/24"]),
        *({"loadBalancerSourceRanges": []}, ["0.0.0.0/0"]),
        service="fields",
    ),
    wishes.field(
        "sessionAffinity",
        affinity,
        *({"sessionAffinity": "ClientIP"}, "SOURCE_IP"),
        *({"sessionAffinity": "None", "sessionAffinityConfig": None}, None),
        service="fields",
    ),
    wishes.field(
        "externalTrafficPolicy",
        monitored,
        *({"externalTrafficPolicy": "Local"}, ("HTTP", "health")),
        *({"externalTrafficPolicy": "Cluster"}, (None, {None})),
    ),
    wishes.field(
        "externalTrafficPolicy, to Local",
        monitored,
        *({}, (None, {None})),
        *({"externalTrafficPolicy": "Local"}, ("HTTP", "health")),
    ),
    wishes.field(
        "ipFamilies",
        versions,
        *({"ipFamilies": ["IPv6"]}, ["IPv6"]),
        {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]},
        ["IPv6"],
        event=IMMUTABLE,
    ),
    wishes.field(
        "ipFamilies, two",
        versions,
        {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]},
        ["IPv4", "IPv6"],
        *({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}, ["IPv4"]),
    ),
    wishes.field(
        "ports",
        protocols,
        *({"ports": [services.port(80)]}, [("TCP", 80, "TCP")]),
        {
            "ports": [
                services.port(80),
                services.port(53, "UDP"),
                services.port(99, "SCTP"),
            ]
        },
        [("SCTP", 99, "SCTP"), ("TCP", 80, "TCP"), ("UDP", 53, "UDP")],
    ),
    wishes.field(
        "ports, protocol and removal",
        protocols,
        {
            "ports": [
                services.port(80),
                services.port(53, "UDP"),
                services.port(99, "SCTP"),
            ]
        },
        [("SCTP", 99, "SCTP"), ("TCP", 80, "TCP"), ("UDP", 53, "UDP")],
        {"ports": [services.port(99, "UDP"), services.port(53, "UDP")]},
        [("UDP", 53, "UDP"), ("UDP", 99, "UDP")],
    ),
    wishes.field(
        "ports, nodePort",
        node_port,
        *({"ports": [services.port(80, nodePort=31980)]}, True),
        *({"ports": [services.port(80, nodePort=31981)]}, True),
        service="fields",
    ),
    wishes.field(
        "type, away",
        made,
        *({}, (True, True, True)),
        *({"type": "ClusterIP"}, (False, False, False)),
    ),
)
ROWS = (*PLACES, *CLASSES, *SETTINGS, *FIELDS)
SOME = (*PLACES[:1], *CLASSES[:1], *SETTINGS[:2], *FIELDS[:2])
"""What the default tier tries: some of each kind of annotation."""


@dataclasses.dataclass
class Ground(wishes.Ground):
    """Beside that the API server, and where the database is."""

    where: places.Places
    api: client.Api


@pytest.fixture(scope="module")
def ground(where: places.Places, open_stage: stages.Open) -> Iterator[Ground]:
    """Have it all, and the daemon under its chart's ServiceAccount."""
    names = {"nothing": "00000000-0000-4000-8000-0000000000ee"}
    with contextlib.ExitStack() as ends:
        admin = cloud.connect(where, accounts.ADMIN)
        ends.callback(admin.close)
        premises.offer(admin, names)
        ends.callback(premises.withdraw, admin, names)
        stage = ends.enter_context(open_stage(NAMESPACE))
        connection = stage.mine.connection
        premises.furnish(connection, names)
        states = ends.enter_context(balancer_watch.states(layout.of(where), connection))
        found = balancers.node_ports(connection, names["network"], len(NODES))
        addresses = {}
        for number, (node, some) in enumerate(zip(NODES, found, strict=True), 1):
            first, second = sorted(some, key=lambda one: ":" in one)
            addresses[node] = (first, f"10.250.0.{number}", second)
        stage.add_nodes(addresses, NODES)
        stage.serve(settings=CONF.format_map(names))
        api = stage.cluster.api
        yield Ground(stage.services, connection, names, states, where, api)


def test_every_wish_is_served_at_creation_and_at_change(ground: Ground) -> None:
    """Each row shows in the cloud what it asked for, or an Event says why not."""
    table = wishes.Table(ground, testing.by_tier(SOME, ROWS))
    try:
        table.serve(AT_ONCE, SERVED_S)
    finally:
        print("\n".join(table.lines()))
    assert not table.wrong()


def test_no_annotation_is_without_a_row() -> None:
    """All that are read or written stand in the table, each once."""
    titles = [row.title for row in ROWS]
    assert len(set(titles)) == len(titles)
    assert set(titles) >= keys.READ | keys.WRITTEN

"""Every request of a Service, at its creation and changed later: one table.

openstack-ccm, the PEX, serves all rows together; what it did is read from Octavia and
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
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch, balancers, cases, prerequisites
from tests.harness.openstack.cases import Observed, Row
from tests.harness.services import services, stages

NAMESPACE = "annotations"
SERVED_S = waiting.LIMIT_S
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


def address(observed: Observed) -> object:
    """The floating IP, which the status and the annotation must show as well."""
    floating_ip = observed.address
    shown = floating_ip or str(observed.balancer.get("vip_address"))
    if observed.ingress != [f"{shown} VIP"]:
        return f"status {observed.ingress}, cloud {shown}"
    if observed.annotation(keys.LOAD_BALANCER_ADDRESS) != shown:
        return f"annotation is not {shown}"
    return floating_ip


def is_floating(observed: Observed) -> object:
    return bool(address(observed))


def floating_range(observed: Observed) -> object:
    """Return the first two parts of the floating IP, which identify its subnet."""
    return ".".join(str(address(observed)).split(".")[:2])


def kept(observed: Observed) -> object:
    """How many floating IPs were made for this Service, and whether one is on it."""
    about = f"{NAMESPACE}/{observed.name} "
    created = [
        ip for ip in observed.view.floating_ips.values() if about in ip["description"]
    ]
    return len(created), bool(observed.address)


def ingress(observed: Observed) -> object:
    return observed.ingress


def proxied(observed: Observed) -> object:
    protocol = observed.part("pool").get("protocol")
    return protocol, [address_.split(" ")[-1] for address_ in observed.ingress]


def protocols(observed: Observed) -> object:
    """Listeners and pools by port."""
    return sorted(
        (
            listener["protocol"],
            listener["protocol_port"],
            observed.view.pools[pool]["protocol"],
        )
        for listener in observed.view.listeners.values()
        if {"id": observed.id} in listener["loadbalancers"]
        and (pool := str(listener["default_pool_id"])) in observed.view.pools
    )


def tagged(observed: Observed) -> object:
    """On which of the user's load balancers this Service has a listener."""
    name = f"kube_service_kubernetes_{NAMESPACE}_{observed.name}"
    return sorted(
        str(observed.view.balancers[listener["loadbalancers"][0]["id"]]["name"])
        for listener in observed.view.listeners.values()
        if name in listener["tags"]
    )


def monitored(observed: Observed) -> object:
    """Type of the monitor, and whether members are asked elsewhere."""
    kind = observed.part("monitor").get("type")
    ports = {member["monitor_port"] for member in observed.members}
    health = observed.service["spec"].get("healthCheckNodePort")
    return kind, "health" if health and ports == {health} else ports


def affinity(observed: Observed) -> object:
    persistence = observed.part("pool").get("session_persistence")
    return persistence["type"] if persistence else None


def versions(observed: Observed) -> object:
    """The IP version of each address that is shown."""
    return ["IPv6" if ":" in address_ else "IPv4" for address_ in observed.ingress]


def node_port(observed: Observed) -> object:
    ports = {member["protocol_port"] for member in observed.members}
    return ports == {observed.service["spec"]["ports"][0]["nodePort"]}


def own(observed: Observed) -> object:
    """Whether the Service leads to its load balancer by all that we write."""
    is_there = observed.balancer.get("provisioning_status") == "ACTIVE"
    return (
        is_there
        and observed.annotation(keys.OWNED_ID) == observed.id
        and is_floating(observed)
    )


def made(observed: Observed) -> object:
    """Whether anything of it is there: in the cloud, on the Service."""
    name = f"kube_service_kubernetes_{NAMESPACE}_{observed.name}"
    in_cloud = any(
        balancer["name"] == name for balancer in observed.view.balancers.values()
    )
    finalizers = observed.service["metadata"].get("finalizers", ())
    return in_cloud, bool(finalizers), bool(observed.ingress)


def in_error(observed: Observed) -> object:
    """Whether it is the load balancer that there was before; none is in ERROR."""
    if observed.balancer.get("provisioning_status") != "ACTIVE":
        return "not active"
    return (
        "another"
        if observed.id != observed.names.get("errored", observed.id)
        else "the same"
    )


def fail(ground: cases.Ground, name: str) -> None:
    """Set a load balancer to ERROR, as when its hypervisor crashes."""
    assert isinstance(ground, Ground)
    service = ground.services.get(name)
    assert service is not None
    id_ = services.balancer_id(service)
    ground.names["errored"] = id_
    balancers.set_status(layout.of(ground.where), id_, "ERROR")


def label(ground: cases.Ground, name: str) -> None:
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
    probe = cases.of(kind, shown)
    return cases.annotated(key, probe, *values, also=MONITORED, service="settings")


OUTSIDE: Values = {keys.FLOATING_NETWORK_ID: "{second_external}"}
PLACES = (
    cases.annotated(keys.INTERNAL, is_floating, "true", False, "false", True, also={}),
    cases.annotated(
        keys.CLASS, floating_range, "gold", "198.20", "", "198.20", also={}
    ),
    cases.annotated(
        keys.NETWORK_ID,
        cases.of("balancer", "vip_network_id"),
        *("{other_network}", "{other_network}", "{network}", "{other_network}"),
        event=IMMUTABLE,
    ),
    cases.annotated(
        keys.SUBNET_ID,
        cases.of("balancer", "vip_subnet_id"),
        *("{other_subnet}", "{other_subnet}", "{subnet}", "{other_subnet}"),
        event=IMMUTABLE,
    ),
    cases.annotated(
        keys.MEMBER_SUBNET_ID,
        cases.members("subnet_id"),
        *("{other_subnet}", ["{other_subnet}"], "{subnet}", ["{subnet}"]),
        also=HERE,
        service="members",
    ),
    cases.annotated(
        keys.PORT_ID,
        cases.of("balancer", "vip_port_id"),
        *("{port}", "{port}", "{port_2}", "{port}"),
        event=IMMUTABLE,
    ),
    cases.annotated(
        keys.FLOATING_NETWORK_ID,
        floating_range,
        *("{second_external}", "198.21", "{external}", "198.21"),
        also={},
        event=IMMUTABLE,
        service="floating-ids",
    ),
    cases.annotated(
        keys.FLOATING_SUBNET_ID,
        floating_range,
        *("{subnet_b}", "198.21", "{subnet_a}", "198.21"),
        also={},
        event=IMMUTABLE,
        service="floating-ids",
    ),
    cases.annotated(
        keys.FLOATING_SUBNET,
        floating_range,
        *("~second-[b-z]", "198.21", "second-a", "198.21"),
        also=OUTSIDE,
        event=IMMUTABLE,
    ),
    cases.annotated(
        keys.FLOATING_SUBNET_TAGS,
        floating_range,
        *("!blue", "198.20", "blue", "198.20"),
        also=OUTSIDE,
        event=IMMUTABLE,
    ),
    cases.annotated(
        keys.FLAVOR_ID,
        cases.of("balancer", "flavor_id"),
        *("{flavor}", "{flavor}", "{nothing}", "{flavor}"),
        event=IMMUTABLE,
        service="network-id",
    ),
    cases.annotated(
        keys.AVAILABILITY_ZONE,
        cases.of("balancer", "availability_zone"),
        *("{zone}", "{zone}", "elsewhere", "{zone}"),
        event=IMMUTABLE,
        service="network-id",
    ),
    cases.annotated(
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
    cases.annotated(
        keys.OWNED_ID,
        own,
        *("{nothing}", True, "{nothing}", True),
        also={},
        service="owned",
    ),
    cases.annotated(
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
        cases.of("balancer", "vip_network_id"),
        {**INTERNAL, keys.CLASS: "lead"},
        "{other_network}",
        {keys.NETWORK_ID: "{network}"},
        "{other_network}",
        IMMUTABLE,
    ),
    Row(
        "[LoadBalancerClass] subnet-id",
        "tin",
        cases.of("balancer", "vip_subnet_id"),
        {**INTERNAL, keys.CLASS: "tin"},
        "{other_subnet}",
        {keys.SUBNET_ID: "{subnet}"},
        "{other_subnet}",
        IMMUTABLE,
    ),
    Row(
        "[LoadBalancerClass] member-subnet-id",
        "tin",
        cases.members("subnet_id"),
        {**INTERNAL, keys.CLASS: "tin"},
        ["{subnet}"],
        {keys.MEMBER_SUBNET_ID: "{other_subnet}"},
        ["{other_subnet}"],
    ),
)
SETTINGS = (
    cases.annotated(
        keys.SOURCE_RANGES,
        cases.of("listener", "allowed_cidrs"),
        *("192.0.2.0/24", ["192.0.2.0/24"], "10.0.0.0/8", ["10.0.0.0/8"]),
        service="settings",
    ),
    cases.annotated(
        keys.HOSTNAME,
        ingress,
        *("a.example.com", ["a.example.com"], "b.io", ["b.io"]),
        service="fields",
    ),
    cases.annotated(
        keys.PROXY_PROTOCOL,
        proxied,
        *("v2", ("PROXYV2", ["Proxy"]), "true", ("PROXY", ["Proxy"])),
    ),
    cases.annotated(
        keys.FORWARDED_FOR,
        protocols,
        *("true", [("HTTP", 80, "HTTP")], "false", [("TCP", 80, "TCP")]),
    ),
    cases.annotated(
        keys.TLS_REF,
        cases.of("listener", "default_tls_container_ref"),
        *("ref-one", "ref-one", "ref-two", "ref-two"),
    ),
    cases.annotated(
        keys.METHOD,
        cases.of("pool", "lb_algorithm"),
        *("LEAST_CONNECTIONS", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP"),
        service="settings",
    ),
    cases.annotated(
        keys.ENABLE_MONITOR, cases.of("monitor", "type"), "true", "TCP", "false", None
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
    cases.annotated(
        keys.NODE_SELECTOR,
        cases.members("name"),
        *("role=edge, kind", [FIRST], "role", [FIRST, SECOND]),
    ),
    Row(
        "a Node's labels",
        "labels",
        cases.members("name"),
        {**INTERNAL, keys.NODE_SELECTOR: "stage"},
        [],
        {},
        [THIRD],
        do=label,
    ),
    cases.annotated(
        keys.MEMBER_CIDR,
        cases.members("address"),
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
    cases.field(
        "loadBalancerIP",
        address,
        *({"loadBalancerIP": "{free_3}"}, "{free_3}"),
        *({"loadBalancerIP": "{free_4}"}, "{free_4}"),
        also={},
    ),
    cases.field(
        "loadBalancerIP, internal",
        cases.of("balancer", "vip_address"),
        *({"loadBalancerIP": "10.42.9.9"}, "10.42.9.9"),
        *({"loadBalancerIP": "10.42.9.10"}, "10.42.9.9"),
        event=IMMUTABLE,
    ),
    cases.field(
        "loadBalancerSourceRanges",
        cases.of("listener", "allowed_cidrs"),
        *({"loadBalancerSourceRanges": ["192.0.2.0/24"]}, ["192.0.2.0/24"]),
        *({"loadBalancerSourceRanges": []}, ["0.0.0.0/0"]),
        service="fields",
    ),
    cases.field(
        "sessionAffinity",
        affinity,
        *({"sessionAffinity": "ClientIP"}, "SOURCE_IP"),
        *({"sessionAffinity": "None", "sessionAffinityConfig": None}, None),
        service="fields",
    ),
    cases.field(
        "externalTrafficPolicy",
        monitored,
        *({"externalTrafficPolicy": "Local"}, ("HTTP", "health")),
        *({"externalTrafficPolicy": "Cluster"}, (None, {None})),
    ),
    cases.field(
        "externalTrafficPolicy, to Local",
        monitored,
        *({}, (None, {None})),
        *({"externalTrafficPolicy": "Local"}, ("HTTP", "health")),
    ),
    cases.field(
        "ipFamilies",
        versions,
        *({"ipFamilies": ["IPv6"]}, ["IPv6"]),
        {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]},
        ["IPv6"],
        event=IMMUTABLE,
    ),
    cases.field(
        "ipFamilies, two",
        versions,
        {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]},
        ["IPv4", "IPv6"],
        *({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}, ["IPv4"]),
    ),
    cases.field(
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
    cases.field(
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
    cases.field(
        "ports, nodePort",
        node_port,
        *({"ports": [services.port(80, nodePort=31980)]}, True),
        *({"ports": [services.port(80, nodePort=31981)]}, True),
        service="fields",
    ),
    cases.field(
        "type, away",
        made,
        *({}, (True, True, True)),
        *({"type": "ClusterIP"}, (False, False, False)),
    ),
)
ROWS = (*PLACES, *CLASSES, *SETTINGS, *FIELDS)


@dataclasses.dataclass
class Ground(cases.Ground):
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
        prerequisites.offer(admin, names)
        ends.callback(prerequisites.withdraw, admin, names)
        stage = ends.enter_context(open_stage(NAMESPACE))
        connection = stage.mine.connection
        prerequisites.furnish(connection, names)
        states = ends.enter_context(balancer_watch.states(layout.of(where), connection))
        node_ports = balancers.node_ports(connection, names["network"], len(NODES))
        addresses = {}
        for number, (node, some) in enumerate(zip(NODES, node_ports, strict=True), 1):
            first, second = sorted(some, key=lambda address_: ":" in address_)
            addresses[node] = (first, f"10.250.0.{number}", second)
        stage.add_nodes(addresses, NODES)
        stage.serve(settings=CONF.format_map(names))
        api = stage.cluster.api
        yield Ground(stage.services, connection, names, states, where, api)


def test_every_wish_is_served_at_creation_and_at_change(ground: Ground) -> None:
    """Each row has its effect in the cloud, or an Event with the reason."""
    table = cases.Table(ground, ROWS)
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

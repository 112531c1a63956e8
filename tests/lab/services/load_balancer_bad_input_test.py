"""Services with invalid requests, served by the daemon beside valid ones.

One table: each gets one Event with its problem and counts in the metric; other
Services are not affected, the cloud is not changed, and a corrected Service is served.
"""

import dataclasses
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.cloud.load_balancers import Reason
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason, ProblemReason
from lib.kube import client
from lib.lab import places
from lib.lab.daemons import ccm, metrics
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch, balancers, cases
from tests.harness.services import services, stages
from tests.harness.services.services import RecordedEvent

NAMESPACE = "bad-input"
NODES = ("bad-input-1", "bad-input-2")
AT_ONCE = 8
WATCH_S = 20.0
CALLS_EACH = 5.0
"""Of one Service to the cloud in 20 s: a retry or two, with its reads."""
POLL_S = 0.7
SYNC_FAILED = "SyncLoadBalancerFailed"
NOBODY = "00000000-0000-4000-8000-0000000000ee"
TWICE = "10.44.0.5"
"""An address that ports of servers have in two networks."""
AMBIGUOUS: Mapping[str, str] = {keys.MEMBER_CIDR: "10.44.0.0/24"}
INTERNAL: Mapping[str, str] = {keys.INTERNAL: "true"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A Service that asks for something wrong.

    Texts may name things of the ground in braces. says: parts of its Event's message.
    right: what is changed to put it right. reasons: labels of the metric.
    """

    name: str
    wrong: Mapping[str, Any]
    reason: ProblemReason
    says: tuple[str, ...]
    right: Mapping[str, Any]


def wrong(
    name: str,
    values: Mapping[str, Any],
    reason: ProblemReason,
    *says: str,
    right: Mapping[str, Any] | None = None,
    also: Mapping[str, str] = INTERNAL,
) -> Row:
    """Make a row; it is corrected by removing its annotations."""
    usual = {key: None for key in values if key != "spec"}
    return Row(
        name, {**also, **values}, reason, says, usual if right is None else right
    )


ROWS = (
    wrong(
        "unknown-class", {keys.CLASS: "nope"}, Reason.UNKNOWN_CLASS, '"nope"', "gold"
    ),
    wrong("subnet-missing", {keys.SUBNET_ID: NOBODY}, OctaviaReason.SUBNET, NOBODY),
    wrong(
        "member-subnet", {keys.MEMBER_SUBNET_ID: NOBODY}, OctaviaReason.SUBNET, NOBODY
    ),
    wrong(
        "subnet-ambiguous",
        AMBIGUOUS,
        OctaviaReason.SUBNET,
        *(TWICE, "{twice}", "{twice_2}", "set subnet-id"),
        right={keys.SUBNET_ID: "{subnet}"},
    ),
    wrong(
        "floating-subnet",
        {keys.FLOATING_SUBNET: "nowhere-*"},
        OctaviaReason.SUBNET,
        '"nowhere-*"',
        also={},
    ),
    wrong(
        "no-floating-network",
        {keys.FLOATING_NETWORK_ID: "{network}"},
        CommonReason.REFUSED,
        "the floating network is not an external one",
        also={},
    ),
    wrong(
        "network-missing",
        {keys.NETWORK_ID: NOBODY},
        CommonReason.REFUSED,
        "a requested network",
    ),
    wrong(
        "port-missing",
        {keys.PORT_ID: NOBODY},
        CommonReason.REFUSED,
        "a requested port",
    ),
    wrong(
        "flavor-missing",
        {keys.FLAVOR_ID: NOBODY},
        CommonReason.REFUSED,
        "a requested flavor",
    ),
    wrong(
        "zone-missing",
        {keys.AVAILABILITY_ZONE: "nowhere"},
        CommonReason.REFUSED,
        "a requested availability zone",
    ),
    wrong(
        "address-taken",
        {"spec": {"loadBalancerIP": "{taken}"}},
        Reason.ADDRESS_TAKEN,
        *("{taken}", "in use"),
        right={"spec": {"loadBalancerIP": "{free}"}},
        also={},
    ),
    wrong(
        "vip-taken",
        {"spec": {"loadBalancerIP": "{vip_taken}"}},
        CommonReason.REFUSED,
        "{vip_taken}",
        right={"spec": {"loadBalancerIP": ""}},
    ),
    wrong(
        "address-no-address",
        {"spec": {"loadBalancerIP": "here"}},
        Reason.INVALID_SERVICE,
        *("loadBalancerIP", '"here"', "an IP address"),
        right={"spec": {"loadBalancerIP": ""}},
    ),
    wrong(
        "port-collision",
        {keys.LOAD_BALANCER_ID: "{shared}"},
        Reason.PORT_CONFLICT,
        *("{shared}", "80/TCP"),
        right={"spec": {"ports": [services.port(81)]}},
        also={},
    ),
    wrong(
        "shared-limit",
        {keys.LOAD_BALANCER_ID: "{full}"},
        OctaviaReason.SHARED_LIMIT,
        *("{full}", "max-shared-lb is 2"),
        also={},
    ),
    wrong(
        "load-balancer-missing",
        {keys.LOAD_BALANCER_ID: NOBODY},
        Reason.MISSING,
        NOBODY,
    ),
    wrong(
        "internal-shared",
        {keys.LOAD_BALANCER_ID: "{full}"},
        CommonReason.UNSUPPORTED,
        "internal Service cannot share",
    ),
    wrong(
        "proxy-and-header",
        {keys.PROXY_PROTOCOL: "v1", keys.FORWARDED_FOR: "true"},
        Reason.INVALID_ANNOTATION,
        *("x-forwarded-for", "proxy-protocol"),
    ),
    wrong(
        "tls-reference",
        {keys.TLS_REF: "https://keys/v1/nothing"},
        OctaviaReason.TLS,
        *("default-tls-container-ref", "containers/<uuid>"),
    ),
    wrong(
        "node-port-0",
        {"spec": {"allocateLoadBalancerNodePorts": False}},
        Reason.NO_NODE_PORT,
        *("80/TCP", "no nodePort"),
        right={"spec": {"allocateLoadBalancerNodePorts": True}},
    ),
)

SERVED_ANYWAY: Mapping[str, tuple[str, str]] = {
    keys.KEEP_FLOATING_IP: ("yes", "one of true, false"),
    keys.FORWARDED_FOR: ("on", "one of true, false"),
    keys.ENABLE_MONITOR: ("1", "one of true, false"),
    keys.PROXY_PROTOCOL: ("v3", "one of true, v1, v2, false"),
    keys.ON_ERROR: ("panic", "one of report, failover, recreate"),
    keys.METHOD: ("FASTEST", "one of ROUND_ROBIN, LEAST_CONNECTIONS"),
    keys.CONNECTION_LIMIT: ("many", "a whole number from -1 to"),
    keys.TIMEOUT_CLIENT_DATA: ("50s", "a whole number from 0 to"),
    keys.TIMEOUT_MEMBER_CONNECT: ("-1", "a whole number from 0 to"),
    keys.TIMEOUT_MEMBER_DATA: ("1.5", "a whole number from 0 to"),
    keys.TIMEOUT_TCP_INSPECT: ("99999999999999", "a whole number from 0 to"),
    keys.MONITOR_DELAY: ("5s", "a whole number from 0 to 86400"),
    keys.MONITOR_TIMEOUT: ("", "a whole number from 0 to 86400"),
    keys.MONITOR_RETRIES: ("0", "a whole number from 1 to 10"),
    keys.MONITOR_RETRIES_DOWN: ("11", "a whole number from 1 to 10"),
    keys.HOSTNAME: ("Not a name", "a DNS name in lower case"),
}
"""Values in whose place the default is used: key to value and what is allowed."""
FATAL: Mapping[str, tuple[str, str]] = {
    keys.NETWORK_ID: ("net", "a UUID"),
    keys.SUBNET_ID: ("my-subnet", "a UUID"),
    keys.MEMBER_SUBNET_ID: ("my-subnet", "a UUID"),
    keys.PORT_ID: ("80", "a UUID"),
    keys.FLOATING_NETWORK_ID: ("public", "a UUID"),
    keys.FLOATING_SUBNET_ID: ("public-v4", "a UUID"),
    keys.DECKHOUSE_ID: ("mine", "a UUID"),
    keys.LOAD_BALANCER_ID: ("mine", "a UUID"),
    keys.DECKHOUSE_ADDRESS: ("lb.example.com", "an IP address"),
    keys.NODE_SELECTOR: ("=edge", "key=value or key"),
    keys.MEMBER_CIDR: ("10.0.0.0.0/8", "CIDRs, separated by commas"),
}
"""Values that nothing can take the place of."""
PATTERN: Mapping[str, tuple[str, str]] = {
    keys.FLOATING_SUBNET: ("~[", "a name, a glob, or a regular expression"),
}
UNSURE: Mapping[str, tuple[str, str]] = {
    keys.INTERNAL: ("yes", "one of true, false"),
}
TYPED = {
    "sloppy": SERVED_ANYWAY,
    "unsure": UNSURE,
    "wrong": FATAL,
    "pattern": PATTERN,
}
"""Services with wrong values of annotations, one Event for each of them."""
UNTYPED = {
    keys.CLASS: "unknown-class",
    keys.TLS_REF: "tls-reference",
    keys.FLAVOR_ID: "flavor-missing",
    keys.AVAILABILITY_ZONE: "zone-missing",
    keys.FLOATING_SUBNET_TAGS: "any text is one",
    keys.OWNED_ID: "overwritten",
    keys.SOURCE_RANGES: "the API server refuses what is no list of CIDRs",
}


@dataclasses.dataclass
class Ground(cases.Ground):
    """Beside that, the daemon's metrics, and addresses of the Nodes by name."""

    where: places.Places
    api: client.Api
    token: str
    addresses: Mapping[str, list[str]]

    def problems(self) -> Mapping[str, float]:
        """Return the metric of problems by reason."""
        text = ccm.metrics(self.where, self.token)
        return metrics.by(text, "mooring_load_balancer_problem", "reason")

    def calls(self) -> float:
        """Count the calls of the cloud so far."""
        text = ccm.metrics(self.where, self.token)
        return metrics.total(text, "mooring_cloud_requests_total")

    def warnings(self) -> Mapping[str, list[RecordedEvent]]:
        """Return the warnings of each Service."""
        return {
            name: [event for event in recorded if event.type == "Warning"]
            for name, recorded in self.services.events().items()
        }

    def is_served(self, name: str) -> bool:
        service = self.services.get(name)
        return service is not None and bool(services.ingress(service))

    def until(self, what: str, remaining: Callable[[], object]) -> None:
        """Wait until nothing is named any more; fail with what is."""
        waiting.until(
            lambda: f"{what}: {remaining()}", lambda: not remaining(), poll_s=POLL_S
        )

    def nodes(self) -> None:
        for name, addresses in self.addresses.items():
            services.make_node(self.api, name, addresses)


def furnish(stage: stages.Stage, names: dict[str, str]) -> None:
    """Make what the rows are about; ids by name."""
    connection, network = stage.mine.connection, stage.mine.connection.network
    names["network"], names["subnet"] = stage.network()
    for name in ("twice", "twice_2"):
        other = network.create_network(name=name)
        subnet = network.create_subnet(
            name=name, network_id=other.id, ip_version=4, cidr="10.44.0.0/24"
        )
        names[name] = str(subnet.id)
        network.create_port(
            network_id=other.id,
            device_id=f"server-{name}",
            fixed_ips=[{"subnet_id": subnet.id, "ip_address": TWICE}],
        )
    public = next(iter(network.networks(is_router_external=True)))
    shared = connection.load_balancer.create_load_balancer(
        name="shared",
        vip_subnet_id=names["subnet"],
        listeners=[{"name": "users", "protocol": "HTTP", "protocol_port": 80}],
    )
    full = connection.load_balancer.create_load_balancer(
        name="full",
        vip_subnet_id=names["subnet"],
        tags=["kube_service_a_b_c", "kube_service_d_e_f"],
    )
    taken = network.create_ip(floating_network_id=public.id, port_id=shared.vip_port_id)
    free = network.create_ip(floating_network_id=public.id)
    names |= {
        "shared": str(shared.id),
        "full": str(full.id),
        "vip_taken": str(shared.vip_address),
        "taken": str(taken.floating_ip_address),
        "free": str(free.floating_ip_address),
    }


CONF = """
[LoadBalancer]
create-monitor = false
[LoadBalancerClass "gold"]
floating-subnet = public-*
"""


@pytest.fixture(scope="module")
def ground(where: places.Places, open_stage: stages.Open) -> Iterator[Ground]:
    """Have it all, and the daemon under its chart's ServiceAccount."""
    with (
        open_stage(NAMESPACE) as stage,
        balancer_watch.states(layout.of(where), stage.mine.connection) as states,
    ):
        names: dict[str, str] = {}
        furnish(stage, names)
        ports = balancers.node_ports(
            stage.mine.connection, names["network"], len(NODES)
        )
        addresses = dict(zip(NODES, ports, strict=True))
        for name, address in zip(NODES, (TWICE, "10.44.0.6"), strict=True):
            addresses[name].append(address)
        stage.add_nodes(addresses)
        stage.serve(settings=CONF)
        api = stage.cluster.api
        yield Ground(
            stage.services,
            stage.mine.connection,
            names,
            states,
            where,
            api,
            ccm.reader_token(api),
            addresses,
        )


def typed_values(some: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {key: value for key, (value, _) in some.items()}


def expected() -> Counter[str]:
    """Count the Services with each reason, as the metric must."""
    counts = Counter(str(row.reason) for row in ROWS)
    counts[str(Reason.INVALID_ANNOTATION)] += len(TYPED)
    return counts


def untold(ground: Ground) -> list[str]:
    """Return what no Event has reported yet."""
    warnings = ground.warnings()
    left = [row.name for row in ROWS if not _fitting(ground, row, warnings)]
    for name, values in TYPED.items():
        for key, pair in values.items():
            text = _typed(key, *pair)
            if not any(text in event.message for event in warnings.get(name, ())):
                left.append(f"{name}: {text}")
    return left


def _fitting(
    ground: Ground, row: Row, warnings: Mapping[str, list[RecordedEvent]]
) -> list[RecordedEvent]:
    says = ground.fill(row.says)
    return [
        event
        for event in warnings.get(row.name, ())
        if all(part in event.message for part in says)
    ]


def show(ground: Ground) -> None:
    for name, recorded in ground.warnings().items():
        for event in recorded:
            print(f"{name:22} x{event.count} {event.reason:22} {event.message}")


def test_each_wrong_service_is_told_once_and_served_when_put_right(
    ground: Ground,
) -> None:
    """One Event each, the metric, no loop; other Services are not affected."""
    ground.services.make("good", INTERNAL)
    for row in ROWS:
        values, spec = ground.request(row.wrong)
        ground.services.make(row.name, values, **spec)
    for name, some in TYPED.items():
        ground.services.make(name, {**INTERNAL, **typed_values(some)})
    try:
        ground.until("told", lambda: untold(ground))
        ground.until("served", lambda: not ground.is_served("good"))
        ground.until("counted", lambda: miscounted(ground))
        peace(ground)
    finally:
        show(ground)
    put_right(ground)


def miscounted(ground: Ground) -> dict[str, tuple[float, int]]:
    """Return the reasons whose number in the metric is wrong, with the right one."""
    counts = ground.problems()
    required = expected()
    return {
        str(reason): (counts[reason], required[reason])
        for reason in (*CommonReason, *Reason, *OctaviaReason)
        if counts[reason] != required[reason]
    }


def peace(ground: Ground) -> None:
    """See that nothing is reported again, and that the cloud is asked little.

    Events about a cloud that is slow to answer are no concern of the table.
    """
    calls, began = ground.calls(), time.monotonic()
    time.sleep(WATCH_S)
    warnings, grown = ground.warnings(), ground.calls() - calls
    took_s = time.monotonic() - began
    print(f"{grown:.0f} calls of the cloud in {took_s:.0f} s")
    count = len(ROWS) + len(TYPED)
    assert grown <= CALLS_EACH * count * max(1.0, took_s / 20)
    assert [
        event for event in warnings.get("good", ()) if event.reason != SYNC_FAILED
    ] == []
    for row in ROWS:
        fitting = _fitting(ground, row, warnings)
        others = [event for event in warnings[row.name] if event not in fitting]
        assert [event.count for event in fitting] == [1], (row.name, warnings[row.name])
        assert {event.reason for event in others} <= {SYNC_FAILED}, others
    for name, values in TYPED.items():
        for key, pair in values.items():
            counts = [
                event.count
                for event in warnings[name]
                if _typed(key, *pair) in event.message
            ]
            assert counts == [1], (key, warnings[name])


def _typed(key: str, value: str, allowed: str) -> str:
    """Return what the Event about a wrong value of an annotation says."""
    kind = "unsupported" if allowed.startswith("one of ") else "invalid"
    return f'annotation {key}: {kind} value "{value}": must be {allowed}'


def put_right(ground: Ground) -> None:
    """Change each as its owner would after reading the Event; all are served.

    Some at a time: Octavia is slow with many.
    """
    changes: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {
        row.name: ground.request(row.right) for row in ROWS
    }
    changes |= {name: (dict.fromkeys(some), {}) for name, some in TYPED.items()}
    names = list(changes)
    for at in range(0, len(names), AT_ONCE):
        some = names[at : at + AT_ONCE]
        for name in some:
            values, spec = changes[name]
            ground.services.change(name, values, **spec)
        ground.until(
            "served after its correction", functools.partial(unserved, ground, some)
        )
    ground.until("no problem is left", lambda: still_counted(ground))


def unserved(ground: Ground, names: list[str]) -> list[str]:
    return [name for name in names if not ground.is_served(name)]


def still_counted(ground: Ground) -> dict[str, float]:
    counts = ground.problems()
    return {reason: count for reason, count in counts.items() if count}


def test_without_nodes_a_service_is_told_and_served_when_there_are_some(
    ground: Ground,
) -> None:
    """One Event; who has a load balancer keeps it as it is."""
    service = ground.services.get("good")
    assert service is not None
    id_ = services.balancer_id(service)
    services.delete_nodes(ground.api, NODES)
    ground.services.make("no-nodes", INTERNAL)
    try:
        ground.until("told", lambda: not without_nodes(ground))
        assert len(balancers.look(ground.connection).members(id_, 80)) == len(NODES)
        ground.until("counted", lambda: unaware(ground))
    finally:
        ground.nodes()
    ground.until("served", lambda: not ground.is_served("no-nodes"))
    assert [event.count for event in without_nodes(ground)] == [1]


def without_nodes(ground: Ground) -> list[RecordedEvent]:
    """Return the Events about the lack of Nodes."""
    text = "there are no available Nodes"
    events = ground.warnings().get("no-nodes", ())
    return [event for event in events if text in event.message]


def unaware(ground: Ground) -> int:
    """Count the Services that the metric does not show as without Nodes."""
    counts = ground.problems()
    return len(ground.services.all()) - int(counts[Reason.NO_NODES])


def test_no_annotation_is_without_a_wrong_value() -> None:
    """Each that has a type stands in the table with a value that has not."""
    typed = set().union(*TYPED.values())
    assert typed | set(UNTYPED) == keys.READ

"""From any state to what is wanted, and a second pass writes nothing."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.load_balancers import (
    Depth,
    Facts,
    Plan,
    Port,
    PortProtocol,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.fake import octavia as fake_octavia
from lib.cloud.openstack.load_balancers.spec import annotations as keys

TCP, UDP = PortProtocol.TCP, PortProtocol.UDP
BUSY = Facts(
    driver.CLUSTER,
    "default",
    "web",
    driver.UID,
    annotations={keys.ENABLE_MONITOR: "true"},
    ports=(Port(80, TCP, 30080), Port(53, UDP, 30053)),
)
MANAGED = settings.LoadBalancer(manage_security_groups=True)


def start(
    facts: Facts = BUSY, config: settings.LoadBalancer = MANAGED, nodes: int = 2
) -> driver.Driver:
    on = driver.ground()
    created = tuple(on.node(number) for number in range(1, nodes + 1))
    return driver.Driver(on, dataclasses.replace(facts, nodes=created), config)


def assert_at_rest(driven: driver.Driver) -> None:
    """A pass that changes nothing, also when nothing is remembered and all is read."""
    before = len(driven.cloud.writes)
    driven.restart()
    driven.depth = Depth.FULL
    assert driven.one_pass()
    assert driven.cloud.writes[before:] == []


def assert_empty(cloud: session.FakeOpenStack) -> None:
    assert cloud.octavia.load_balancers == {}
    assert cloud.octavia.listeners == {}
    assert cloud.octavia.pools == {}
    assert cloud.octavia.monitors == {}
    assert cloud.neutron.floating_ips == {}
    assert cloud.neutron.groups == {}
    assert all(port["security_groups"] == [] for port in cloud.neutron.ports.values())


def test_a_new_load_balancer_is_one_request_and_goes_without_a_trace() -> None:
    """One POST holds listeners, pools, members, monitors; deletion leaves nothing."""
    driven = start()
    steps = driven.settle()
    posts = [call for call in driven.cloud.writes if call.parts[0] == "lbaas"]
    assert [call.path for call in posts] == ["lbaas/loadbalancers"]
    assert len(steps) == 6, steps
    assert len(driven.members) == 2
    assert_at_rest(driven)
    driven.settle(gone=True)
    assert_empty(driven.cloud)


class Died(BaseException):
    """The process is no more."""


def death(at: int, *, after: bool) -> tuple[Callable[..., None], list[str]]:
    """Return a hook that ends the process at the call of that number."""
    calls: list[str] = []

    def hook(call: wire.Call) -> None:
        calls.append(f"{call.method} {call.parts[-1] if after else call.path}")
        if len(calls) == at:
            raise Died

    return hook, calls


def die(driven: driver.Driver, at: int, *, after: bool, gone: bool) -> bool:
    """Die at one call; False: there are fewer calls."""
    hook, calls = death(at, after=after)
    if after:
        driven.cloud.after = hook
    else:
        driven.cloud.fault = hook
    with contextlib.suppress(Died):
        driven.settle(gone=gone)
    driven.cloud.after = lambda call: None
    driven.cloud.fault = session.nothing
    return len(calls) >= at


def left(
    begin: Callable[[], driver.Driver], least: int, *, after: bool, gone: bool = False
) -> Iterator[driver.Driver]:
    """Die at every call; yield new processes before all that deaths leave behind.

    What two deaths leave alike is yielded once. The last one is yielded without death.
    least: so many calls there must be.
    """
    kinds: set[str] = set()
    is_more, deaths = True, 0
    while is_more:
        driven = begin()
        is_more = die(driven, deaths + 1, after=after, gone=gone)
        deaths += is_more
        state = f"{driven.facts} {driven.cloud.content()}"
        if state not in kinds:
            kinds.add(state)
            driven.restart()
            yield driven
    print(f"{deaths} deaths leave {len(kinds)} states")
    assert deaths >= least
    assert len(kinds) >= 4


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_call_of_a_creation_leaves_one_of_each(after: bool) -> None:
    """One load balancer, one floating IP, one group; then deletion leaves nothing."""
    for driven in left(start, 20, after=after):
        driven.settle()
        octavia, neutron = driven.cloud.octavia, driven.cloud.neutron
        assert len(octavia.load_balancers) == 1
        assert len(octavia.listeners) == len(octavia.pools) == 2
        assert len(neutron.floating_ips) == len(neutron.groups) == 1
        assert_at_rest(driven)
        driven.settle(gone=True)
        assert_empty(driven.cloud)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("gone", [False, True], ids=["change", "deletion"])
def test_death_at_any_call_of_a_change_or_deletion_is_made_good(
    after: bool, gone: bool
) -> None:
    """The next process finds what the last one left, and finishes it."""
    served = start()
    served.settle()

    def changed() -> driver.Driver:
        driven = served.copied()
        assert driven.settle() == []  # the process that dies knows the place
        driven.annotate({keys.PROXY_PROTOCOL: "v1", keys.CONNECTION_LIMIT: "7"})
        driven.change(
            ports=(Port(80, TCP, 30081), Port(8080, TCP, 30808)),
            nodes=(*driven.facts.nodes[1:], driven.ground.node(9)),
        )
        return driven

    for driven in left(changed, 10, after=after, gone=gone):
        driven.settle(gone=gone)
        if gone:
            assert_empty(driven.cloud)
        else:
            assert_at_rest(driven)
            assert len(driven.cloud.octavia.listeners) == 2
            assert driven.listener["connection_limit"] == 7


def lose(method: str, path: str) -> Callable[[wire.Call], session.Fault | None]:
    """Do the first such call, and lose its answer."""
    left = [True]

    def fault(call: wire.Call) -> session.Fault | None:
        if left and call.method == method and call.path == path:
            left.clear()
            return session.Fault(is_done=True)
        return None

    return fault


@pytest.mark.parametrize(
    "path", ["lbaas/loadbalancers", "floatingips", "security-groups"]
)
def test_what_was_made_though_the_answer_was_lost_is_found_again(path: str) -> None:
    """Nothing is made twice."""
    driven = start()
    driven.cloud.fault = lose("POST", path)
    driven.settle()
    assert len(driven.cloud.octavia.load_balancers) == 1
    assert len(driven.cloud.neutron.floating_ips) == 1
    assert len(driven.cloud.neutron.groups) == 1
    assert_at_rest(driven)


# ------------------------------------------------------------------ hypothesis

_values = strategies.sampled_from
ANNOTATIONS = strategies.fixed_dictionaries(
    {},
    optional={
        keys.INTERNAL: _values(["true", "false"]),
        keys.PROXY_PROTOCOL: _values(["true", "v1", "v2", "false", "x"]),
        keys.CONNECTION_LIMIT: _values(["-1", "100", "many"]),
        keys.METHOD: _values(["ROUND_ROBIN", "SOURCE_IP", "BEST"]),
        keys.TIMEOUT_MEMBER_DATA: _values(["1000", "50000"]),
        keys.ENABLE_MONITOR: _values(["true", "false", "maybe"]),
        keys.MONITOR_DELAY: _values(["2", "5", "60"]),
        keys.SOURCE_RANGES: _values(["10.0.0.0/8", "10.0.0.0/8,192.0.2.0/24"]),
        keys.KEEP_FLOATING_IP: _values(["true", "false"]),
        keys.HOSTNAME: _values(["lb.example.com", "-"]),
    },
)
PORTS = strategies.lists(
    strategies.builds(
        Port,
        port=_values([80, 443, 53, 8080]),
        protocol=_values([TCP, UDP]),
        node_port=_values([30080, 30443, 30053, 0]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda port: (port.port, port.protocol),
).map(tuple)


@strategies.composite
def desired_states(draw: strategies.DrawFn) -> dict[str, object]:
    is_local = draw(strategies.booleans())
    return {
        "annotations": draw(ANNOTATIONS),
        "ports": draw(PORTS),
        "is_local": is_local,
        "health_check_node_port": 31000 if is_local else 0,
        "has_affinity": draw(strategies.booleans()),
        "nodes": draw(strategies.sets(_values([0, 1, 2, 3]), min_size=1)),
    }


def by_hand(cloud: session.FakeOpenStack, what: str) -> None:
    """Change something the way a user of the cloud would, if it is there."""
    octavia = cloud.octavia
    for balancer in octavia.load_balancers.values():
        balancer["updated_at"] = f"changed {what}"
    kind, _, event = what.partition(" ")
    holders = {
        "listener": octavia.listeners,
        "pool": octavia.pools,
        "monitor": octavia.monitors,
        "balancer": octavia.load_balancers,
    }
    result = next(iter(holders.get(kind, {}).values()), None)
    if result is not None and event == "gone" and kind == "balancer":
        octavia._drop(str(result["id"]))
    elif result is not None and event == "gone":
        plural = "healthmonitors" if kind == "monitor" else f"{kind}s"
        octavia._delete_child(plural, result)
    elif result is not None:
        result |= CHANGES[kind]
    elif kind in ("rules", "floating"):
        change_network(cloud, kind)
    elif kind == "member":
        change_members(octavia, event)


OFF: wire.Json = {"admin_state_up": False}
CHANGES: dict[str, wire.Json] = {
    "listener": {
        "connection_limit": 5,
        "allowed_cidrs": ["192.0.2.1/32"],
        "tags": [],
        **OFF,
    },
    "pool": {"lb_algorithm": "LEAST_CONNECTIONS", "session_persistence": None, **OFF},
    "monitor": {"timeout": 77, "max_retries_down": 9, **OFF},
    "balancer": {"tags": [], **OFF},
}


def change_network(cloud: session.FakeOpenStack, kind: str) -> None:
    neutron = cloud.neutron
    if kind == "floating":
        neutron.floating_ips.clear()
    for group in neutron.groups.values():
        group["security_group_rules"] = []


def change_members(octavia: fake_octavia.FakeOctavia, event: str) -> None:
    for pool_id, members in octavia.members.items():
        if event == "gone":
            members.clear()
        if event == "added":
            request: wire.Json = {"address": "10.9.9.9", "protocol_port": 9}
            octavia._new_member(pool_id, request)
        for member in members.values():
            member.update({"weight": 7, "monitor_port": 9, **OFF})


DRIFTS = [
    "none",
    "listener gone",
    "listener changed",
    "balancer changed",
    "pool gone",
    "pool changed",
    "monitor gone",
    "monitor changed",
    "member changed",
    "member gone",
    "member added",
    "floating IP gone",
    "balancer gone",
    "rules gone",
]


LIES = ["incomplete list", "gateway", "other project", "restart amid a list"]


def endure(driven: driver.Driver, lie: str) -> None:
    """Reconcile while the cloud shows less than it has: nothing may be written."""
    cloud = driven.cloud
    before = len(cloud.writes)
    if lie == "gateway":
        cloud.fault = lambda call: session.Fault(502)
    elif lie == "other project":
        wrong = driver.ground()
        elsewhere = driver.Driver(wrong, driven.facts, driven.config)
        if driven.facts.ingress:  # else it may be a new Service
            elsewhere.one_pass()
            elsewhere.one_pass()
        assert wrong.cloud.writes == []
    else:
        cloud.octavia.hidden.update(cloud.octavia.load_balancers)
        if lie == "restart amid a list":
            driven.restart()
    for _ in range(3):
        driven.one_pass()
    cloud.octavia.hidden.clear()
    cloud.fault = session.nothing
    driven.settle()
    assert len(cloud.writes) == before, lie


def add_foreign(on: driver.Ground) -> Callable[[], str]:
    """Make what is not ours; give a function that shows it."""
    octavia, neutron = on.cloud.octavia, on.cloud.neutron
    body: wire.Json = {
        "loadbalancer": {
            "name": "kube_service_kubernetes_default_web",
            "provider": "amphora",
            "vip_subnet_id": on.subnet_id,
            "tags": ["kube_service_kubernetes_default_web"],
            "listeners": [{"name": "l", "protocol": "TCP", "protocol_port": 80}],
        }
    }
    call = wire.call_of(
        "load-balancer", "POST", "fake://load-balancer/lbaas/loadbalancers", body, {}
    )
    balancer = octavia._new_balancer(call)
    octavia.finish()
    listener = next(iter(octavia.listeners.values()))
    ip: wire.Json = {
        "id": "foreign-ip",
        "floating_ip_address": "198.51.100.7",
        "floating_network_id": on.external_id,
        "port_id": None,
        "description": "Floating IP for Kubernetes external service default/web"
        " from cluster kubernetes",
        "tags": [],
    }
    neutron.floating_ips["foreign-ip"] = ip
    return lambda: repr(
        (balancer, listener, ip, balancer["id"] in octavia.load_balancers)
    )


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    first=desired_states(),
    second=desired_states(),
    drifts=strategies.lists(_values(DRIFTS), max_size=3),
    managed=strategies.booleans(),
    foreign=strategies.booleans(),
    lies=strategies.lists(_values(LIES), max_size=3),
)
def test_any_state_converges_to_any_wish_and_leaves_others_alone(
    first: dict[str, object],
    second: dict[str, object],
    drifts: list[str],
    managed: bool,
    foreign: bool,
    lies: list[str],
) -> None:
    """From one wish through drift by hand to another: at rest, and nothing foreign."""
    on = driver.ground()
    nodes = tuple(on.node(number) for number in range(1, 5))
    show = add_foreign(on) if foreign else lambda: ""
    before = show()
    config = settings.LoadBalancer(manage_security_groups=managed)
    driven = driver.Driver(on, driver.service(nodes), config)

    def request(desired: dict[str, object]) -> None:
        chosen = desired["nodes"]
        assert isinstance(chosen, set)
        values = desired["annotations"]
        assert isinstance(values, dict)
        written = (keys.LOAD_BALANCER_ID, keys.OWNED_ID, keys.LOAD_BALANCER_ADDRESS)
        kept = {k: v for k, v in driven.facts.annotations.items() if k in written}
        more: dict[str, object] = {
            "annotations": {**values, **kept},
            "nodes": tuple(nodes[number] for number in sorted(chosen)),
        }
        driven.change(**desired | more)

    request(first)
    driven.settle()
    for lie in lies:
        endure(driven, lie)
    if not foreign:
        for what in drifts:
            by_hand(driven.cloud, what)
    driven.depth = Depth.FULL
    request(second)
    driven.settle()
    assert_at_rest(driven)
    assert {m["address"] for m in driven.members} == (
        {node.addresses[0].address for node in driven.facts.nodes}
        if _first_port(driven).node_port
        else set()
    )
    assert show() == before
    driven.annotate({keys.KEEP_FLOATING_IP: None})
    driven.settle(gone=True)
    if not foreign:
        assert_empty(driven.cloud)
    assert show() == before


def _first_port(driven: driver.Driver) -> Port:
    shown = driven.listener
    return next(
        port
        for port in driven.facts.ports
        if (port.port, str(port.protocol) == "UDP")
        == (shown["protocol_port"], shown["protocol"] == "UDP")
    )


@pytest.mark.parametrize("lead", range(6))
def test_two_processes_at_once_end_with_one_of_each(lead: int) -> None:
    """Both see nothing and make one; later both see both, and agree on which stays.

    lead: so many passes the first one makes before the second wakes up.
    """
    first = start()
    second = driver.Driver(first.ground, first.facts, first.config)
    for _ in range(lead):
        first.one_pass()
        second.facts = first.facts
    plans = [first.plan(), second.plan()]
    for driven, plan in zip((first, second), plans, strict=True):
        if isinstance(plan, Plan) and plan.steps:
            driven._apply(plan)
    for _ in range(40):
        for driven, other in ((first, second), (second, first)):
            driven.one_pass()
            other.facts = driven.facts
    octavia, neutron = first.cloud.octavia, first.cloud.neutron
    assert first.settle() == second.settle() == []
    assert len(octavia.load_balancers) == 1
    assert len(neutron.floating_ips) == len(neutron.groups) == 1
    assert first.facts.ingress[0].ip == first.floating_ip["floating_ip_address"]
    first.settle(gone=True)
    assert_empty(first.cloud)

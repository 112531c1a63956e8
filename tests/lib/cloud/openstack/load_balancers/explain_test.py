"""Plans in words: each kind of request says what was and what would be."""

import re
from collections.abc import Callable

import pytest

from lib.cloud.explained import Explanation, Touched
from lib.cloud.load_balancers import (
    Depth,
    Observed,
    Plan,
    Port,
    PortProtocol,
    Spec,
    Target,
)
from lib.cloud.model import Seen
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.explain import explain
from lib.cloud.openstack.load_balancers.plan import requests
from lib.cloud.openstack.load_balancers.spec import annotations as keys

CONFIG = settings.LoadBalancer(create_monitor=True, manage_security_groups=True)
FREE_ADDRESS = "198.51.100.7"
NAME = "kube_service_kubernetes_default_web"
LISTENER = f"load balancer {NAME} / listener listener_0_{NAME} (TCP 80)"
POOL = f"{LISTENER} / pool pool_0_{NAME}"
PORTS = (Port(80, PortProtocol.TCP, 30080), Port(53, PortProtocol.UDP, 30053))


def look(row: driver.Driver, *, gone: bool = False) -> tuple[Target, Observed, Plan]:
    spec = None if gone else row.balancers.parse(row.facts)
    assert spec is None or isinstance(spec, Spec)
    target = Target(row.balancers.refer(row.facts), spec)
    observation = row.balancers.observe([target], row.depth)[target.ref]
    assert isinstance(observation, Seen)
    return (
        target,
        observation.value,
        row.balancers.plan(target, observation.value, driver.NOW),
    )


def explained(driven: driver.Driver, *, gone: bool = False) -> Explanation:
    return explain.explain(driven.config, *look(driven, gone=gone))


def served(config: settings.LoadBalancer = CONFIG) -> driver.Driver:
    on = driver.ground()
    row = driver.Driver(on, driver.service((on.node(1), on.node(2))), config)
    row.settle()
    return row


def line(touched: Touched) -> str:
    changes = "; ".join(
        f"{c.field}: {c.old or 'none'} -> {c.new or 'none'}" for c in touched.changes
    )
    later = " (later)" if touched.is_later else ""
    return f"{touched.verb} {' / '.join(touched.path)}{later}: {changes}"


def lines(explanation: Explanation) -> list[str]:
    return [line(touched) for touched in explanation.touched]


Situation = Callable[[driver.Driver], None]


def new_listener(driven: driver.Driver) -> None:
    driven.change(ports=(*driven.facts.ports, PORTS[1]))


def no_pool(driven: driver.Driver) -> None:
    key = str(driven.pool["id"])
    driven.listener["default_pool_id"] = None
    driven.cloud.octavia.pools.pop(key)
    driven.cloud.octavia.members.pop(key)


def no_monitor(driven: driver.Driver) -> None:
    driven.cloud.octavia.monitors.pop(str(driven.pool["healthmonitor_id"]))
    driven.pool["healthmonitor_id"] = None


def no_floating_ip(driven: driver.Driver) -> None:
    driven.cloud.neutron.floating_ips.clear()


def no_group(driven: driver.Driver) -> None:
    driven.cloud.neutron.groups.clear()
    for port in driven.cloud.neutron.ports.values():
        port["security_groups"] = []


def another_address(driven: driver.Driver) -> None:
    """The wanted one is there and free: the old one goes, this one comes."""
    driven.cloud.neutron.floating_ips["free"] = {
        "id": "free",
        "floating_ip_address": FREE_ADDRESS,
        "floating_network_id": driven.ground.external_id,
        "port_id": None,
        "description": "",
        "tags": [],
    }
    driven.change(load_balancer_ip=FREE_ADDRESS)


def failed(driven: driver.Driver) -> None:
    driven.annotate({keys.ON_ERROR: "failover"})
    driven.balancer["provisioning_status"] = "ERROR"


def untagged(driven: driver.Driver) -> None:
    driven.balancer["tags"] = []


def another_port(driven: driver.Driver) -> None:
    driven.change(ports=(Port(80, PortProtocol.TCP, 30081),))


def other_nodes(driven: driver.Driver) -> None:
    driven.change(nodes=(driven.facts.nodes[0], driven.ground.node(3)))


CHANGED: dict[str, tuple[Situation, str]] = {
    "POST lbaas/listeners": (
        new_listener,
        f"create load balancer {NAME} / listener listener_1_{NAME} (UDP 53): protocol:",
    ),
    "POST lbaas/pools": (no_pool, f"create {POOL}: protocol: none -> TCP;"),
    "POST lbaas/healthmonitors": (
        no_monitor,
        f"create {POOL} / monitor: type: none -> TCP; delay: none -> 5",
    ),
    "PUT lbaas/listeners": (
        lambda driven: driven.annotate({keys.TIMEOUT_CLIENT_DATA: "9"}),
        f"change {LISTENER}: timeout_client_data: 50000 -> 9",
    ),
    "PUT lbaas/pools": (
        lambda driven: driven.change(has_affinity=True),
        f"change {POOL}: session_persistence: none -> SOURCE_IP",
    ),
    "PUT lbaas/healthmonitors": (
        lambda driven: driven.annotate({keys.MONITOR_TIMEOUT: "4"}),
        f"change {POOL} / monitor: timeout: 3 -> 4",
    ),
    "PUT lbaas/pools/members": (
        other_nodes,
        f"change {POOL} / members: 10.0.0.3:30080: none -> node-3;"
        " 10.0.0.2:30080: node-2 -> none",
    ),
    "DELETE lbaas/listeners": (
        lambda driven: driven.change(ports=PORTS[1:]),
        f"delete {LISTENER}: ",
    ),
    "DELETE lbaas/pools": (
        lambda driven: driven.change(ports=PORTS[1:]),
        f"delete {POOL} / members: 10.0.0.1:30080: node-1 -> none; 10.0.0.2:30080:",
    ),
    "DELETE lbaas/healthmonitors": (
        lambda driven: driven.annotate({keys.ENABLE_MONITOR: "false"}),
        f"delete {POOL} / monitor: ",
    ),
    "PUT lbaas/loadbalancers": (
        untagged,
        f"change load balancer {NAME} / tags: tags: none -> {NAME}, mooring:",
    ),
    "PUT lbaas/loadbalancers/failover": (failed, f"change load balancer {NAME}: "),
    "POST floatingips": (
        no_floating_ip,
        "create floating IP: floating_network_id: none -> ",
    ),
    "PUT floatingips": (
        another_address,
        f"change floating IP {FREE_ADDRESS}: port_id: none -> ",
    ),
    "DELETE floatingips": (
        another_address,
        "delete floating IP 198.51.100.100: port_id: ",
    ),
    "POST security-groups": (no_group, "create security group lb-sg-"),
    "POST security-group-rules": (
        another_port,
        "rules: tcp 30081 from 10.0.0.0/16: none -> ingress",
    ),
    "DELETE security-group-rules": (
        another_port,
        ": tcp 30080 from 10.0.0.0/16: ingress -> none",
    ),
    "PUT ports": (other_nodes, "security groups: security_groups: none -> lb-sg-"),
}
GONE = {
    "DELETE lbaas/loadbalancers": f"delete load balancer {NAME}: ",
    "DELETE security-groups": "delete security group lb-sg-",
}


def sent(plan: Plan) -> set[str]:
    """Return the kinds of requests of a plan, without ids."""
    names_: set[str] = set()
    for step in plan.steps:
        for write in requests.writes(step):
            path = re.sub(r"/([0-9a-f-]{36}|free)", "", write.path)
            names_.add(f"{write.method} {path}")
    return names_


def test_each_kind_of_request_says_what_was_and_what_would_be() -> None:
    """A table, request x what is told; each thing touched is one that a step is of."""
    kinds: set[str] = {"POST lbaas/loadbalancers"}
    for kind, (arrange, desired) in CHANGED.items():
        driven = served()
        driven.depth = Depth.FULL
        arrange(driven)
        target, observed, plan = look(driven)
        assert kind in sent(plan), kind
        kinds |= sent(plan)
        explanation = explain.explain(driven.config, target, observed, plan)
        shown = [each for each in lines(explanation) if desired in each]
        print(f"{kind:30} {(shown or lines(explanation))[0]}")
        assert shown, kind
        now = [each for each in explanation.touched if not each.is_later]
        assert len(now) >= len(plan.steps)
    for kind, desired in GONE.items():
        driven = served()
        target, observed, plan = look(driven, gone=True)
        kinds |= sent(plan)
        explanation = explain.explain(driven.config, target, observed, plan)
        assert [each for each in lines(explanation) if desired in each], kind
    rows = {"POST lbaas/loadbalancers", *CHANGED, *GONE}
    assert kinds <= rows, "a kind of request without a row"


def test_all_that_is_well_touches_nothing() -> None:
    explanation = explained(served())
    assert explanation.touched == ()
    assert explanation.waits_for == ""


@pytest.mark.parametrize("serial", [False, True])
def test_a_new_one_shows_the_same_tree_where_it_takes_many_calls(serial: bool) -> None:
    """All at once, or the listeners afterwards."""
    config = settings.LoadBalancer(
        create_monitor=True,
        manage_security_groups=True,
        provider_requires_serial_api_calls=serial,
    )
    on = driver.ground()
    row = driver.Driver(on, driver.service((on.node(1),), ports=PORTS), config)
    explanation = explained(row)
    listeners = [each for each in explanation.touched if " / ".join(each.path[1:2])]
    under = {each.path[1:] for each in listeners if each.path[0].startswith("load")}
    assert len(under) == 2 * 4, "listener, pool, members and monitor of each port"
    assert {each.is_later for each in listeners[:8]} == {serial}
    afterwards = [each.path[0].split()[0] for each in explanation.touched[9:]]
    assert afterwards == ["floating", "security", "security", "security"]


def test_a_floating_ip_that_is_there_is_told_as_the_one_to_come() -> None:
    on = driver.ground()
    row = driver.Driver(on, driver.service((on.node(1),)), CONFIG)
    another_address(row)
    assert f"change floating IP {FREE_ADDRESS} (later): port_id: none -> port of" in (
        "\n".join(lines(explained(row)))
    )


def test_what_octavia_is_at_is_waited_for() -> None:
    """And so is one in ERROR that is only reported, and one that is going."""
    driven = served(settings.LoadBalancer())
    driven.balancer["provisioning_status"] = "PENDING_UPDATE"
    assert explained(driven).waits_for == (
        f"load balancer {NAME} ({driven.balancer['id']}): provisioning_status is"
        " PENDING_UPDATE"
    )
    driven.balancer["provisioning_status"] = "ERROR"
    assert explained(driven).waits_for.endswith("provisioning_status is ERROR")
    driven.balancer["provisioning_status"] = "PENDING_DELETE"
    assert "PENDING_DELETE" in explained(driven, gone=True).waits_for


def test_a_shared_one_is_told_as_such() -> None:
    first = served(settings.LoadBalancer())
    facts = driver.service(first.facts.nodes, name="second", uid="2", ports=PORTS[1:])
    second = driver.Driver(first.ground, facts)
    second.annotate({keys.LOAD_BALANCER_ID: str(first.balancer["id"])})
    explanation = explained(second)
    assert "the Service only owns listeners on it" in explanation.load_balancer
    assert not any(
        "listener_0" in each and "(TCP 80)" in each for each in lines(explanation)
    )


def test_what_goes_at_a_former_place_is_told_with_its_names_there() -> None:
    """Listeners, members and tags of the one that the Service has left."""
    row = served()
    other = driver.Driver(
        row.ground, driver.service(row.facts.nodes, name="other", uid="2"), CONFIG
    )
    other.settle()
    facts = driver.service(row.facts.nodes, name="guest", uid="3", ports=PORTS[1:])
    guest = driver.Driver(row.ground, facts, CONFIG)
    guest.annotate({keys.LOAD_BALANCER_ID: str(row.balancer["id"])})
    guest.settle()
    guest.annotate({keys.LOAD_BALANCER_ID: str(other.balancer["id"])})
    while not any(step.verb == "delete" for step in look(guest)[2].steps):
        guest.one_pass()
    at = f"load balancer {NAME}"
    listener = "listener listener_0_kube_service_kubernetes_default_guest (UDP 53)"
    result = lines(explained(guest))
    assert result[0].startswith(f"delete {at} / {listener} / pool ")
    assert f"delete {at} / {listener}: " in result
    assert "10.0.0.1:30053: node-1 -> none" in "".join(result)
    assert result[-1].startswith(f"change {at} / tags: tags: {NAME}, ")
    assert {touched.why for touched in explained(guest).touched if touched.why} == {
        f"the Service has moved to load balancer {other.balancer['id']}"
    }


def test_members_that_are_not_shown_whole_are_taken_to_be_right() -> None:
    """A status tree shows neither weight nor monitor port, nor what is off."""
    driven = served()
    for member in driven.members:
        member["weight"] = 7
    driven.members[1]["admin_state_up"] = False
    assert explained(driven).touched == ()
    driven.depth = Depth.FULL
    (touched,) = explained(driven).touched
    assert [(c.field, c.old, c.new) for c in touched.changes] == [
        ("10.0.0.1:30080", "node-1, weight 7", "node-1"),
        ("10.0.0.2:30080", "node-2, weight 7, switched off", "node-2"),
    ]

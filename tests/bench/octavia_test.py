"""What observing many load balancers costs, on the fake with 100 ms a call.

Counts are asserted; seconds are those of the fake's clock, one call after the other.
"""

import dataclasses

import pytest

from lib.cloud.load_balancers import (
    Depth,
    Port,
    PortProtocol,
    Spec,
    Target,
)
from lib.cloud.model import Seen
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers

LATENCY_S = 0.1
SERVICES, PORTS, NODES = 100, 10, 3


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of one observation of everything: calls, and seconds of the fake's clock."""

    calls: int
    seconds: float
    steps: int


def observe(served: list[driver.Driver], depth: Depth) -> Cost:
    """Observe all at once, with a process that knows nothing yet."""
    cloud = served[0].cloud
    room = OctaviaLoadBalancers(cloud.client(), served[0].config)
    targets: list[Target] = []
    for driven in served:
        spec = room.parse(driven.facts)
        assert isinstance(spec, Spec)
        targets.append(Target(room.refer(driven.facts), spec))
    before, began = len(cloud.calls), cloud.clock.now
    cloud.latency_s = LATENCY_S
    observations = room.observe(targets, depth)
    cloud.latency_s = 0.0
    steps = 0
    for target in targets:
        observation = observations[target.ref]
        assert isinstance(observation, Seen)
        steps += len(room.plan(target, observation.value, driver.NOW).steps)
    return Cost(len(cloud.calls) - before, cloud.clock.now - began, steps)


@pytest.fixture(scope="module")
def hundred() -> list[driver.Driver]:
    """Return 100 Services of 10 ports that are well."""
    on = driver.ground()
    on.cloud.octavia.build_s = 0.0
    nodes = tuple(on.node(number) for number in range(1, NODES + 1))
    ports = tuple(Port(80 + at, PortProtocol.TCP, 30080 + at) for at in range(PORTS))
    drivers: list[driver.Driver] = []
    for at in range(SERVICES):
        facts = driver.service(nodes, name=f"s-{at}", uid=f"uid-{at}", ports=ports)
        drivers.append(driver.Driver(on, facts, settings.LoadBalancer()))
        drivers[-1].settle()
    return drivers


def test_a_restart_with_many_services(hundred: list[driver.Driver]) -> None:
    """At most 120 calls and 30 s until it is known that nothing is to be done."""
    for depth in (Depth.CHANGED, Depth.TREE):
        cost = observe(hundred, depth)
        print(f"{SERVICES} Services x {PORTS} ports, {depth.name}: {cost}")
        assert cost.steps == 0
        assert cost.calls <= 120
        assert cost.seconds <= 30


def test_an_idle_day(hundred: list[driver.Driver]) -> None:
    """A drift check every ten minutes, a deep one every hour."""
    tree, full = observe(hundred, Depth.TREE), observe(hundred, Depth.FULL)
    day = 120 * tree.calls + 24 * full.calls
    print(f"drift {tree.calls}, deep {full.calls} calls; in a day {day}")
    assert full.steps == 0
    assert full.calls <= SERVICES * PORTS + 20


def test_managed_groups_cost_the_same_with_a_thousand_nodes() -> None:
    """One list of ports and one of groups, whatever the number of Nodes."""
    costs: list[int] = []
    for nodes in (2, 1000):
        on = driver.ground()
        for number in range(nodes):
            address = f"10.0.{number // 250}.{number % 250 + 1}"
            on.cloud.neutron.add_port(on.subnet_id, address, f"server-{number}")
        usual = on.node(251)
        many = tuple(
            dataclasses.replace(
                usual,
                name=f"node-{number}",
                addresses=(
                    dataclasses.replace(
                        usual.addresses[0],
                        address=f"10.0.{number // 250}.{number % 250 + 1}",
                    ),
                ),
            )
            for number in range(nodes)
        )
        config = settings.LoadBalancer(manage_security_groups=True)
        served = driver.Driver(on, driver.service(many), config)
        served.settle()
        costs.append(observe([served], Depth.TREE).calls)
    print(f"managed groups: {costs[0]} calls with 2 Nodes, {costs[1]} with 1,000")
    assert costs[0] == costs[1] <= 9

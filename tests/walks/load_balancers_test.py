"""One observation of a load balancer enters at most five files of its package."""

import functools
from pathlib import Path

import pytest

from lib.cloud.load_balancers import Depth, Facts, Port, PortProtocol, Spec, Target
from lib.cloud.model import Seen
from lib.cloud.openstack import load_balancers as package
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from tests.walks import tracing

PACKAGE = Path(package.__file__).parent
OBSERVE = "an observation of a load balancer, in its package"
PLAN = "a plan without changes, in its package"
OBSERVE_FILES = 7
"""An eighth file fails, whatever the page says."""

PORTS = (Port(80, PortProtocol.TCP, 30080), Port(53, PortProtocol.UDP, 30053))
SERVICES = {
    "plain": ({}, settings.LoadBalancer()),
    "internal": ({keys.INTERNAL: "true"}, settings.LoadBalancer()),
    "monitors and security groups": (
        {keys.ENABLE_MONITOR: "true"},
        settings.LoadBalancer(manage_security_groups=True),
    ),
}


def served(name: str, *, settles: bool) -> driver.Driver:
    annotations, config = SERVICES[name]
    on = driver.ground()
    nodes = (on.node(1), on.node(2))
    facts = Facts(
        driver.CLUSTER,
        "default",
        "web",
        driver.UID,
        annotations=annotations,
        ports=PORTS,
        nodes=nodes,
    )
    driven = driver.Driver(on, facts, config)
    if settles:
        driven.settle()
        driven.restart()
    return driven


def target_of(driven: driver.Driver, *, deletes: bool) -> Target:
    spec = driven.balancers.parse(driven.facts)
    assert isinstance(spec, Spec)
    return Target(driven.balancers.refer(driven.facts), None if deletes else spec)


def report(what: str, walk: tracing.Walk) -> None:
    print(f"{what:45} {len(walk.files):2} files {walk.returns:4} returns", end="")
    print(f" {walk.calls:4} calls: {' '.join(walk.files)}")


@pytest.mark.parametrize("state", ["new", "settled", "deleted"])
@pytest.mark.parametrize("name", SERVICES)
def test_an_observation_enters_few_files(name: str, state: str) -> None:
    """At every depth, of a Service in any of its states."""
    for depth in Depth:
        driven = served(name, settles=state != "new")
        target = target_of(driven, deletes=state == "deleted")
        observation, walk = tracing.traced(
            functools.partial(driven.balancers.observe, [target], depth), PACKAGE
        )
        assert isinstance(observation[target.ref], Seen)
        report(f"observe, {name}, {state}, {depth.name}", walk)
        assert len(walk.files) <= OBSERVE_FILES == tracing.drawn(OBSERVE)


@pytest.mark.parametrize("name", SERVICES)
def test_a_plan_of_a_settled_service_enters_few_files(name: str) -> None:
    """More only with what is to be changed: the requests are made by `apply`."""
    driven = served(name, settles=True)
    target = target_of(driven, deletes=False)
    observation = driven.balancers.observe([target], Depth.FULL)[target.ref]
    assert isinstance(observation, Seen)
    plan, walk = tracing.traced(
        lambda: driven.balancers.plan(target, observation.value, driver.NOW), PACKAGE
    )
    report(f"plan, {name}", walk)
    assert plan.settled
    assert len(walk.files) <= tracing.drawn(PLAN)

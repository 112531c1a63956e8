"""What somebody has switched off (admin_state_up is false) is switched on again."""

import pytest

from lib.cloud.load_balancers import Depth, Port
from lib.cloud.openstack.fake import driver, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason


def start() -> driver.Driver:
    on = driver.ground()
    facts = driver.service((on.node(1), on.node(2)))
    driven = driver.Driver(on, facts)
    driven.annotate({keys.ENABLE_MONITOR: "true"})
    driven.settle()
    return driven


def things(driven: driver.Driver) -> dict[str, wire.Json]:
    return {
        "load balancer": driven.balancer,
        "listener": driven.listener,
        "pool": driven.pool,
        "monitor": driven.monitor,
        "member": driven.members[0],
    }


@pytest.mark.parametrize(
    "kind", ["load balancer", "listener", "pool", "monitor", "member"]
)
def test_a_look_for_drift_switches_it_on_with_one_write(kind: str) -> None:
    """Lists show all but members, which a deep look shows; it costs no call more."""
    driven = start()
    before = len(driven.cloud.calls)
    assert driven.settle() == []
    usual = len(driven.cloud.calls) - before
    things(driven)[kind]["admin_state_up"] = False
    if kind == "member":
        before = len(driven.cloud.calls)
        assert driven.settle() == []  # no list shows it
        assert len(driven.cloud.calls) - before == usual
        driven.depth = Depth.FULL
    assert len(driven.settle()) == 1
    assert things(driven)[kind]["admin_state_up"] is True
    assert driven.settle() == []


def test_a_change_of_members_leaves_one_that_is_switched_off_behind() -> None:
    """Of a batch that says nothing of it Octavia takes that it is on."""
    driven = start()
    driven.members[0]["admin_state_up"] = False
    driven.change(ports=(Port(80, node_port=30081),))
    driven.settle()
    assert [member["admin_state_up"] for member in driven.members] == [True, True]


def test_one_of_others_is_left_as_it_is_and_it_is_said() -> None:
    """Only listeners and pools of the Service's own are switched on there."""
    owner = start()
    owned = str(owner.balancer["id"])
    facts = driver.service(
        owner.facts.nodes,
        name="second",
        uid="second-uid",
        ports=(Port(443, node_port=30443),),
        annotations={keys.LOAD_BALANCER_ID: owned},
    )
    second = driver.Driver(owner.ground, facts)
    second.settle()
    owner.balancer["admin_state_up"] = False
    assert second.settle() == []
    assert [problem.reason for problem in second.problems] == [CommonReason.DRIFT]
    assert f"{owned} is disabled" in second.problems[0].message
    owner.settle()
    second.settle()
    assert list(second.problems) == []

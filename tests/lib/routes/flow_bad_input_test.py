"""Bad input at run time: one Event and a metric each; the other Nodes are served."""

import pytest

from lib.cloud.openstack.fake import session, wire
from lib.kube.nodes import UNINITIALIZED_TAINT
from lib.routes.model import TABLE, Topic
from tests.harness.routing import bad_inputs, memory
from tests.harness.routing.bad_inputs import ROWS, SERVED, UNSERVED, Row

GOOD = ("10.100.1.0/24", "fd00:100:1::/64")
CHECKS = 5
MOST_CALLS = 3 * CHECKS
"""Of the cloud, for so many checks for drift while the problem lasts."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_bad_input(row: Row) -> None:
    ground = memory.Ground()
    ground.node("good", *GOOD, age_s=3600)
    row.arrange(ground)
    is_overlap = row.reason == "PodCIDROverlapsSubnet"
    process = memory.Process(ground, bad_inputs.PODS if is_overlap else memory.PODS)
    process.settle()
    process.drift()
    problems = process.flow.problems()
    assert {str(r): n for r, n in problems.items() if n} == {row.reason: 1}
    events = process.tell()
    assert len(events) == 1, events
    assert events[0].startswith(f"{row.subject} ")
    assert row.says in events[0]
    assert ground.condition("bad") == row.condition
    assert ground.condition("good") == (SERVED if row.is_good_served else None)
    before = len(ground.cloud.calls), len(ground.cloud.writes)
    for _ in range(CHECKS):
        process.drift()
    assert process.tell() == events, "one Event, whatever comes"
    assert len(ground.cloud.calls) - before[0] <= MOST_CALLS
    assert len(ground.cloud.writes) == before[1]
    print(f"{row.what:36} {row.reason:26} {ground.condition('bad')}")


def test_every_reason_has_a_row() -> None:
    """But those of writes that are refused; see flow_lasting_test.py."""
    process = memory.Process(memory.Ground())
    reasons = {str(reason) for reason in process.flow.reasons}
    assert reasons - {"RefusedByCloud", "DeniedByAPIServer"} == {
        row.reason for row in ROWS
    }


def test_a_new_node_without_addresses_is_no_problem() -> None:
    """Of each Node in its first seconds; it gets its route with its addresses."""
    ground = memory.Ground()
    new = {"addresses": [], "taints": [UNINITIALIZED_TAINT]}
    ground.node("bad", "10.100.2.0/24", **new)  # type: ignore[arg-type]
    process = memory.Process(ground)
    process.settle()
    process.drift()
    assert process.tell() == []
    assert not any(process.flow.problems().values())
    assert ground.condition("bad") in (None, UNSERVED)
    ground.node("bad", "10.100.2.0/24", addresses=ground.port("server-bad"))
    process.nodes.relist()
    process.settle()
    assert ground.condition("bad") == SERVED


def test_a_problem_that_ends_is_forgotten() -> None:
    ground = memory.Ground()
    bad_inputs.conflict(ground)
    process = memory.Process(ground)
    process.settle()
    assert ground.condition("bad") == UNSERVED
    ground.router()["routes"] = []
    ground.router()["revision_number"] += 1
    process.drift()
    assert ground.condition("bad") == SERVED
    assert not any(process.flow.problems().values())


def test_a_cloud_without_extra_routes_is_left_as_it_is() -> None:
    """Reported once; no condition, no Event, and no calls but every five minutes."""
    ground = memory.Ground()
    ground.neutron.l3.has_routes = False
    ground.node("node-1", *GOOD)
    process = memory.Process(ground)
    process.settle()
    assert len(process.disabled) == 1
    for _ in range(3):
        assert process.drift() == []
    assert process.drift(Topic.DEEP_DRIFT) == ["GET routers"]
    assert len(process.disabled) == 1
    assert (process.tell(), ground.condition("node-1")) == ([], None)
    ground.neutron.l3.has_routes = True
    process.drift(Topic.DEEP_DRIFT)
    assert ground.condition("node-1") == SERVED


def test_the_oldest_nodes_keep_their_routes_at_the_limit() -> None:
    """35 Nodes, 30 routes; an older Node that comes later takes none away."""
    ground = memory.Ground("10.42.0.0/16")
    ground.neutron.l3.max_routes = 30
    for number in range(35):
        ground.node(f"node-{number:02}", f"10.100.{number}.0/24", age_s=100 - number)
    process = memory.Process(ground)
    process.settle()
    served = {f"10.100.{number}.0/24" for number in range(30)}
    assert {destination for destination, _ in ground.routes()} == served
    states = {n: ground.condition(f"node-{n:02}") for n in range(35)}
    assert set(list(states.values())[:30]) == {SERVED}
    assert set(list(states.values())[30:]) == {UNSERVED}
    writes = [c for c in ground.cloud.writes if c.parts[0] == "routers"]
    print(f"{len(writes)} writes of the router until the limit was found")
    assert len(writes) <= 10
    ground.node("elder", "10.100.99.0/24", age_s=10_000)
    process.settle()
    assert {destination for destination, _ in ground.routes()} == served
    ground.delete("node-00")
    process.settle()
    process.drift()
    assert "10.100.99.0/24" in {destination for destination, _ in ground.routes()}


def test_a_refused_route_does_not_keep_others_from_theirs() -> None:
    """Neutron refuses the whole list for the sake of one."""
    ground = memory.Ground()
    for number in (1, 2, 3):
        ground.node(f"node-{number}", f"10.100.{number}.0/24")

    def refuse(call: wire.Call) -> session.Fault | None:
        if "10.100.2.0/24" in str(call.body) and call.parts[0] == "routers":
            return session.Fault(400, message="Invalid format for routes")
        return None

    ground.fault = refuse
    process = memory.Process(ground)
    process.settle()
    assert {d for d, _ in ground.routes()} == {"10.100.1.0/24", "10.100.3.0/24"}
    assert ground.condition("node-2") == UNSERVED
    assert ground.condition("node-3") == SERVED


@pytest.mark.parametrize("status", [409, 412, 429, 503])
def test_a_pause_that_the_cloud_asks_for_is_kept(status: int) -> None:
    """Checks for drift in the meantime read, and write nothing."""
    ground = memory.Ground()
    ground.node("node-1", *GOOD)

    def refuse(call: wire.Call) -> session.Fault | None:
        if call.method == "PUT" and call.parts[0] == "routers":
            return session.Fault(status, headers={"Retry-After": "120"})
        return None

    ground.fault = refuse
    process = memory.Process(ground)
    process.turn()
    assert len(ground.cloud.writes) == 1
    for _ in range(10):
        process.queue.add(TABLE, Topic.DRIFT)
        process.turn()
        ground.cloud.clock.sleep(10)
    assert len(ground.cloud.writes) == 1
    ground.fault = session.nothing
    process.settle(quiet_s=150)
    assert ground.condition("node-1") == SERVED


def test_a_check_before_the_ports_of_a_new_node_are_read_reports_nothing() -> None:
    """A check for drift uses ports as of the last whole read; the Node is newer."""
    ground = memory.Ground()
    ground.node("node-1", *GOOD)
    process = memory.Process(ground)
    process.settle()
    assert process.drift() != []
    assert process.drift() == ["GET routers"]
    ground.node("node-2", "10.100.2.0/24")
    process.nodes.relist()
    process.queue.add(TABLE, Topic.DRIFT)
    process.turn()
    assert not any(process.flow.problems().values())
    process.settle()
    assert (process.tell(), ground.condition("node-2")) == ([], SERVED)


def test_a_router_that_disappears_taints_no_node() -> None:
    """Nor do ports that a list lacks."""
    ground = memory.Ground()
    ground.node("node-1", *GOOD)
    process = memory.Process(ground)
    process.settle()
    router = ground.neutron.l3.routers.pop(ground.router_id)
    process.drift(Topic.DEEP_DRIFT)
    assert ground.condition("node-1") == SERVED
    ground.neutron.l3.routers[ground.router_id] = router
    ports = dict(ground.neutron.ports)
    ground.neutron.ports.clear()
    process.drift(Topic.DEEP_DRIFT)
    assert ground.condition("node-1") == SERVED
    assert ground.routes(), "what exists is kept"
    ground.neutron.ports.update(ports)
    process.drift(Topic.DEEP_DRIFT)
    assert ground.condition("node-1") == SERVED


def test_ports_without_port_security_get_no_pair() -> None:
    ground = memory.Ground()
    ground.port("server-node-1")
    ground.port_of("node-1")["port_security_enabled"] = False
    ground.node("node-1", *GOOD)
    memory.Process(ground).settle()
    assert (ground.pairs(), len(ground.routes())) == ({}, 2)
    assert ground.condition("node-1") == SERVED


def test_address_pairs_alone() -> None:
    """[Route] address-pairs-only: no router is read, no condition is written."""
    ground = memory.Ground()
    ground.config_router = ""
    ground.node("node-1", *GOOD)
    process = memory.Process(ground)
    process.settle()
    assert ground.pairs() == {"server-node-1": set(GOOD)}
    assert ground.condition("node-1") is None
    assert process.drift() == ["GET ports"]
    assert not [c for c in ground.cloud.calls if c.parts[0] == "routers"]
    ground.delete("node-1")
    process.settle()
    assert ground.pairs() == {}

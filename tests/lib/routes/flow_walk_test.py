"""The flow converges from any state, also when it is killed at every single call."""

import collections
from collections.abc import Callable, Iterator

import pytest

from lib.cloud.openstack.fake import session, wire
from lib.routes import model
from lib.routes.model import Topic
from tests.harness.routing import memory

LIVES_MAX = 30
BACKOFF_S = 400.0
"""Longer than the longest backoff."""


def first(ground: memory.Ground) -> None:
    """Nodes that need routes, one that has none to get, and entries of others."""
    for number in (1, 2, 3):
        ground.node(
            f"node-{number}", f"10.100.{number}.0/24", f"fd00:100:{number}::/64"
        )
    ground.node("bare")
    (stranger, *_) = ground.port("server-stranger")
    ground.put_route("192.0.2.0/24", stranger)
    ground.put_route("10.100.99.0/24", stranger)
    ground.put_pair("node-1", "198.51.100.7/32")


def second(ground: memory.Ground) -> None:
    """A Node goes, one comes, one gets another address, and the router is another."""
    ground.delete("node-1")
    ground.node("node-4", "10.100.4.0/24", "fd00:100:4::/64")
    ground.port_of("node-3")["device_id"] = "server-gone"
    ground.node("node-3", "10.100.3.0/24", "fd00:100:3::/64", addresses=None)
    ground.config_router = ground.neutron.add_router(*ground.subnets)


def live(ground: memory.Ground, quiet_s: float = memory.QUIET_S) -> None:
    """Run processes, each until it is killed, until one settles and stays so."""
    for _ in range(LIVES_MAX):
        try:
            process = memory.Process(ground)
            process.settle(quiet_s)
            for topic in (Topic.DEEP_DRIFT,) * 4:
                process.drift(topic)
        except memory.Killed:
            continue
        return
    raise AssertionError("the flow does not settle")


def ok(call: wire.Call) -> session.Fault | None:
    del call
    return None


def story(
    kill_at: int | None = None, fault: Callable[[wire.Call], session.Fault | None] = ok
) -> memory.Ground:
    ground = memory.Ground()
    first(ground)
    ground.kill_at, ground.fault = kill_at, fault
    quiet_s = memory.QUIET_S if fault is ok else BACKOFF_S
    live(ground, quiet_s)
    second(ground)
    live(ground, quiet_s)
    return ground


@pytest.fixture(scope="module")
def undisturbed() -> memory.Ground:
    return story()


def test_every_node_gets_what_it_needs(undisturbed: memory.Ground) -> None:
    """And entries of others are as they were."""
    state = undisturbed.state()
    new, old = undisturbed.config_router, undisturbed.router_id
    assert {d for d, _ in state["routes"][new]} == {
        *(f"10.100.{n}.0/24" for n in (2, 3, 4)),
        *(f"fd00:100:{n}::/64" for n in (2, 3, 4)),
    }
    assert {d for d, _ in state["routes"][old]} == {"192.0.2.0/24", "10.100.99.0/24"}
    assert state["pairs"] == {
        "server-node-1": {"198.51.100.7/32"},
        **{
            f"server-node-{n}": {f"10.100.{n}.0/24", f"fd00:100:{n}::/64"}
            for n in (2, 3, 4)
        },
    }
    served = ("False", "RouteCreated")
    assert state["conditions"] == {
        "bare": None,
        **{f"node-{n}": served for n in (2, 3, 4)},
    }
    assert [key.split(".")[0] for key in state["record"]] == [new]


def test_a_settled_cluster_is_not_written(undisturbed: memory.Ground) -> None:
    """Also right after a start; the second reconciliation is empty."""
    before = len(undisturbed.api.calls), len(undisturbed.cloud.writes)
    process = memory.Process(undisturbed)
    process.settle()
    assert not [c for c in undisturbed.api.calls[before[0] :] if c.is_write]
    assert len(undisturbed.cloud.writes) == before[1]
    assert process.drift() == ["GET routers"]


def kills() -> Iterator[tuple[int, memory.Ground]]:
    at = 0
    while (ground := story(at)).killed_in:
        yield at, ground
        at += 1


def test_a_kill_before_and_after_every_call_ends_the_same(
    undisturbed: memory.Ground,
) -> None:
    """Prints what was being done and how often; each action that calls must appear."""
    expected = undisturbed.state()
    table = collections.Counter[str]()
    for at, ground in kills():
        assert ground.state() == expected, f"killed at {at}, in {ground.killed_in}"
        table[ground.killed_in] += 1
    for name, count in sorted(table.items()):
        print(f"{name:16} killed {count:3} times, converged {count:3}")
    without_calls = {"Publish", "ReportProblems", "Disable", "RecordEvent"}
    calling = {kind.__name__ for kind in model.Action.__args__} - without_calls
    assert set(table) == {"reading", *calling}


FAULTS = {
    "refused: 409": session.Fault(409),
    "refused: 412": session.Fault(412),
    "refused: 429": session.Fault(429, headers={"Retry-After": "3"}),
    "refused: 500": session.Fault(500),
    "refused: 503": session.Fault(503),
    "no connection": session.Fault(),
    "answer lost": session.Fault(is_done=True),
    "500 although it was done": session.Fault(500, is_done=True),
}


@pytest.mark.parametrize("every", [2, 3])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_calls_that_fail_end_the_same(
    undisturbed: memory.Ground, fault: session.Fault, every: int
) -> None:
    """Every second, or third, call of the cloud; the first eight such."""
    count = 0

    def some(call: wire.Call) -> session.Fault | None:
        nonlocal count
        count += 1
        del call
        return fault if count % every == 0 and count <= 8 * every else None

    assert story(fault=some).state() == undisturbed.state()
    assert count >= 10

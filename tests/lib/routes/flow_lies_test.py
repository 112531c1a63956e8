"""Whatever lists of ports and reads of routers lack, no route is removed or changed."""

import dataclasses
import zlib

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.openstack.fake import session, wire
from lib.cloud.routes import Reason
from lib.routes.model import Topic
from tests.harness.routing import memory

NODES = 8


def ground_with(nodes: int) -> memory.Ground:
    """Return a cluster whose Nodes all have their routes."""
    ground = memory.Ground()
    for number in range(1, nodes + 1):
        ground.node(f"node-{number}", f"10.100.{number}.0/24")
    memory.Process(ground).settle()
    assert len(ground.routes()) == nodes
    return ground


@dataclasses.dataclass(frozen=True)
class Lie:
    """What answers lack during one check. restarts: the daemon starts before it."""

    ports: str
    router: bool
    hidden: int
    restarts: bool

    def forge(self, call: wire.Call, answer: wire.Answer) -> wire.Answer:
        body = answer.body or {}
        if call.method != "GET":
            return answer
        if "router" in body and self.router:
            return wire.Answer(404, {"NeutronError": {"message": "not found"}})
        if "ports" not in body:
            return answer
        items = wire.objects(body, "ports")
        match self.ports:
            case "empty":
                items = []
            case "partial":
                items = [item for item in items if not self._lacks(item["id"])]
            case "truncated":
                items = items[: len(items) // 2]
            case "doubled":
                items = [*items, *items]
        return dataclasses.replace(answer, body={"ports": items})

    def _lacks(self, id_: object) -> bool:
        return zlib.crc32(f"{self.hidden}{id_}".encode()) % 2 == 0


LIES = strategies.builds(
    Lie,
    ports=strategies.sampled_from(["true", "empty", "partial", "truncated", "doubled"]),
    router=strategies.booleans(),
    hidden=strategies.integers(0, 5),
    restarts=strategies.booleans(),
)


@hypothesis.given(
    nodes=strategies.sampled_from([1, 3, NODES]),
    lies=strategies.lists(LIES, min_size=1, max_size=6),
)
@hypothesis.settings(max_examples=40, deadline=None)
def test_no_route_is_removed_or_replaced(nodes: int, lies: list[Lie]) -> None:
    """For lists that are empty, partial, truncated or double, and for 404s."""
    ground = ground_with(nodes)
    before, process = ground.state(), memory.Process(ground)
    for lie in lies:
        if lie.restarts:
            process = memory.Process(ground)
        ground.cloud.forge = lie.forge
        for topic in (Topic.DEEP_DRIFT, Topic.DRIFT, Topic.DEEP_DRIFT):
            process.drift(topic)
        assert ground.routes() >= before["routes"][ground.router_id]
        assert ground.pairs() == before["pairs"]
    ground.cloud.forge = session.genuine
    process.drift(Topic.DEEP_DRIFT)
    process.settle()
    assert ground.state() == before


@pytest.mark.parametrize("ports", ["empty", "truncated"])
def test_nodes_stay_reachable_while_most_ports_seem_absent(ports: str) -> None:
    """One Event and a metric; the condition of each Node is as it was."""
    ground = ground_with(NODES)
    before, process = ground.state(), memory.Process(ground)
    ground.cloud.forge = Lie(ports, router=False, hidden=0, restarts=False).forge
    for _ in range(5):
        process.drift(Topic.DEEP_DRIFT)
    assert ground.state() == before
    assert process.flow.problems()[Reason.TABLE_UNAVAILABLE] == 1
    assert sum("are absent at the same time" in event for event in process.tell()) == 1
    ground.cloud.forge = session.genuine
    process.drift(Topic.DEEP_DRIFT)
    assert process.flow.problems()[Reason.TABLE_UNAVAILABLE] == 0

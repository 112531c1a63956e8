"""Which changes of Nodes bring the table in, and that many are one reconciliation."""

from collections.abc import Callable

import pytest

from lib.kube import resources
from lib.routes import flow
from lib.routes.model import TABLE
from tests.harness.routing import memory

FEW_CALLS = 4
"""Of the cloud for many new Nodes, but for one write of each port."""


def changed_label(ground: memory.Ground) -> None:
    node = ground.get("node-1")
    assert node is not None
    node["metadata"]["labels"] = {"a": "b"}
    ground.api.put(resources.NODES, node)


def changed_address(ground: memory.Ground) -> None:
    ground.node("node-1", "10.100.1.0/24", addresses=["10.42.7.7"])


def changed_cidr(ground: memory.Ground) -> None:
    ground.node("node-1", "10.100.9.0/24")


ROWS: dict[str, tuple[Callable[[memory.Ground], object], bool]] = {
    "a Node is added": (lambda ground: ground.node("node-2", "10.100.2.0/24"), True),
    "a Node is deleted": (lambda ground: ground.delete("node-1"), True),
    "podCIDRs": (changed_cidr, True),
    "addresses": (changed_address, True),
    "a label": (changed_label, False),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_concerns_routes(row: str) -> None:
    change, concerns = ROWS[row]
    ground = memory.Ground()
    ground.node("node-1", "10.100.1.0/24")
    process = memory.Process(ground)
    process.settle()
    change(ground)
    process.nodes.relist()
    process.clock.sleep(2 * flow.GATHER_S)
    due = {claim.key for claim in process.queue.take_due(100)}
    print(f"{row:20} {sorted(due)}")
    assert (TABLE in due) == concerns


def test_many_changes_are_one_reconciliation() -> None:
    """Gathered for half a second after the first."""
    ground = memory.Ground()
    process = memory.Process(ground)
    process.settle()
    for number in range(20):
        ground.node(f"node-{number}", f"10.100.{number}.0/24")
        process.nodes.relist()
        process.clock.sleep(flow.GATHER_S / 25)
    before = len(ground.cloud.calls)
    assert process.turn() == 0
    process.settle()
    calls = [call for call in ground.cloud.calls[before:] if call.method == "PUT"]
    ports = [call for call in calls if call.parts[0] == "ports"]
    print(f"{len(calls) - len(ports)} writes of the router, {len(ports)} of ports")
    assert (len(calls) - len(ports), len(ports)) == (1, 20)
    assert len(ground.cloud.calls) - before - len(ports) <= FEW_CALLS

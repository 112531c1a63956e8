"""Nodes converge to the VMs of a parent, through death at every call.

Child and parent are API servers in memory. Calls are those of the process itself: the
watch of the parent only reads.
"""

import collections
import contextlib

import pytest

from lib.kube import nodes as kube_nodes
from tests.harness.nodes import walk
from tests.lib.cloud.dvp.child_and_parent import VMS, ZONE, Ground


def everything() -> Ground:
    """Set up one Node for every thing the flow does, and two it must leave alone."""
    ground = Ground()
    for name in ("new-1", "new-2", "steady", "back"):
        ground.vm(name)
    ground.vm("renumbered", ipAddress="10.0.0.2")
    ground.vm("off", phase="Stopped")
    for name in ("new-1", "gone"):  # equal names in another cluster of the project
        ground.vm(name, cluster="uuid-b", ipAddress="10.9.9.9")
    ground.node("new-1", walk.NEW, walk.MINE)
    ground.node("new-2", walk.NEW)
    ground.node("steady", walk.MINE)
    ground.node("renumbered")
    ground.node("off", walk.MINE, ready="Unknown")
    ground.node("back", walk.SHUT)
    ground.node("gone", ready="Unknown")
    ground.node("gone-new", walk.NEW, ready="Unknown")
    ground.node("static", ready="Unknown", provider_id="static://a/b")
    return ground


@pytest.fixture(scope="module")
def undisturbed() -> Ground:
    ground = everything()
    walk.settle(ground, walk.SETTINGS)
    ground.end()
    return ground


def test_every_node_ends_as_its_vm_says(undisturbed: Ground) -> None:
    state = undisturbed.state()
    keys = {name: [t["key"] for t in n["spec"]["taints"]] for name, n in state.items()}
    assert keys == {
        "new-1": ["mine"],
        "new-2": [],
        "steady": ["mine"],
        "renumbered": [],
        "off": ["mine", kube_nodes.SHUTDOWN_TAINT],
        "back": [],
        "static": [],
    }
    assert state["new-1"]["spec"]["providerID"] == "dvp://vm-new-1"
    assert state["new-1"]["labels"][ZONE] == "zone-1"
    assert state["new-1"]["labels"]["node.kubernetes.io/instance-type"] == "generic"
    assert [a["address"] for a in state["renumbered"]["status"]["addresses"]] == [
        "10.0.0.2",
        "10.0.0.2",
        "renumbered",
    ]
    assert state["static"] == everything().state()["static"]


def test_nothing_of_the_parent_is_written(undisturbed: Ground) -> None:
    """A Node needs reads only; the VMs of both clusters are as they were."""
    verbs = collections.Counter(call.verb for call in undisturbed.parent.calls)
    print(dict(verbs))
    assert set(verbs) <= {"get", "list", "watch"}
    assert undisturbed.parent.all(VMS) == everything().parent.all(VMS)


def test_death_at_every_call_ends_the_same(undisturbed: Ground) -> None:
    """Each action that DVP's Nodes need appears among those that died."""
    with contextlib.ExitStack() as stack:

        def begin() -> Ground:
            stack.close()  # the watch of the ground before ends
            ground = everything()
            stack.callback(ground.end)
            return ground

        table = walk.converges(begin, undisturbed.state())
    assert table == {"reading", *walk.kinds_of_writes()} - {"SetLabels"}


def test_two_processes_end_the_same(undisturbed: Ground) -> None:
    """They take turns, each with what it read before the other's write."""
    ground = everything()
    first = walk.NodesProcess(ground, walk.SETTINGS)
    kept, ground._opened = ground._opened, []
    second = walk.NodesProcess(ground, walk.SETTINGS)
    for _ in range(walk.ROUNDS_MAX):
        for process in (first, second):
            process.round()
    ground.end()
    for access in kept:
        access.close()
    assert ground.state() == undisturbed.state()


def test_a_new_node_is_one_list_of_the_parent() -> None:
    """Whatever the number of Nodes: the requests of 1 and of 100 are the same."""
    counts = []
    for number in (1, 100):
        ground = Ground()
        for n in range(number):
            ground.vm(f"node-{n}")
            ground.node(f"node-{n}", walk.NEW)
        walk.NodesProcess(ground, walk.SETTINGS).round()
        ground.end()
        verbs = [call.verb for call in ground.parent.calls if call.verb != "watch"]
        counts.append(len(verbs))
    print(counts)
    assert counts[0] == counts[1]

"""Nodes converge to the VMs of a parent, through death at every call.

Child and parent are API servers in memory. Calls are those of the process itself: the
watch of the parent only reads.
"""

import collections
import threading
from typing import Any

import pytest

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.instances import cloud
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from tests.harness.nodes import walk

NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES.resource
ZONE = "topology.kubernetes.io/zone"


class Ground:
    """Implements `walk.WalkGround`: a child and its parent."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(lambda: walk.NOW)
        self.parent = fake_api.FakeApi(lambda: walk.NOW)
        self.acting = "reading"
        self.actions = collections.Counter[str]()
        self.passed = 0
        self.die_at: int | None = None
        self.died_in = ""
        for api in (self.api, self.parent):
            api.before_call = self._at_call
            api.after_call = self._at_call
        self._opened: list[parent.Parent] = []

    def _at_call(self, call: object) -> None:
        del call
        if threading.current_thread() is not threading.main_thread():
            return  # of a watch, which only reads
        self.passed += 1
        if self.passed - 1 == self.die_at:
            self.died_in = self.acting
            raise walk.Death

    def open(self) -> cloud.ParentInstances:
        """Open the cloud; the access of the process before ends with it."""
        for access in self._opened:
            access.close()
        access = parent.Parent(self.parent, NAMESPACE, UUID, clock=lambda: self.now_s)
        self._opened = [access]
        access.items(kinds.VIRTUAL_MACHINES)
        return cloud.ParentInstances(access)

    def end(self) -> None:
        for access in self._opened:
            access.close()

    def state(self) -> Any:
        return walk.state(self.api)

    def vm(self, name: str, cluster: str = UUID, **status: object) -> None:
        labels = {ownership.CLUSTER: cluster, ownership.HOSTNAME: name}
        self.parent.put(
            VMS,
            {
                "metadata": {
                    "name": f"vm-{name}" if cluster == UUID else f"other-{name}",
                    "namespace": NAMESPACE,
                    "labels": labels,
                },
                "spec": {
                    "virtualMachineClassName": "generic",
                    "nodeSelector": {ZONE: "zone-1"},
                },
                "status": {"phase": "Running", "ipAddress": "10.0.0.1", **status},
            },
        )

    def node(
        self,
        name: str,
        *taints: dict[str, str],
        ready: str = "True",
        provider_id: str = "",
    ) -> None:
        named = provider_id or f"dvp://vm-{name}"
        walk.put_node(self.api, name, taints, ready, named)


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
    table = walk.converges(everything, undisturbed.state())
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

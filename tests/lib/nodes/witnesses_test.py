"""A process that starts with credentials of another project deletes no Node."""

import collections
import dataclasses

import pytest

from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Instance, InstanceId, Phase
from lib.kube import nodes as kube_nodes
from lib.kube import resources, store
from lib.kube.fake import api as fake_api
from lib.nodes import decide, deletion_budget, model, observe, witnesses
from lib.reconcile import runner

LIVENESS = frozenset({model.Topic.LIVENESS})
LOOK_S = 5.0
LONG = 8
"""Passes, which is more than twice the time between the two looks."""
LOOK, CONFIRM = "read instance", "get instance"


class World:
    """Nodes, their instances and one process that was just started."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi()
        self.cloud = fake_instances.FakeInstances()
        self.nodes = store.Store(self.api, resources.NODES, kube_nodes.Node)
        clocks = runner.Clocks(monotonic=lambda: self.now_s)
        self.settings = model.NodeSettings()
        self.observer = observe.NodeObserver(
            self.nodes, self.api, lambda: self.cloud, self.settings, clocks
        )

    def node(self, name: str, ready: str = "Unknown", owner: str = "") -> None:
        ip = {"type": "InternalIP", "address": "10.0.0.1"}
        self.api.put(
            resources.NODES,
            {
                "metadata": {"name": name},
                "spec": {"providerID": owner or fake_instances.provider_id(name)},
                "status": {
                    "addresses": [ip],
                    "conditions": [{"type": "Ready", "status": ready}],
                },
            },
        )

    def boot(self, name: str) -> None:
        owner = fake_instances.provider_id(name)
        self.cloud.put(Instance(InstanceId(name), name, Phase.RUNNING, owner, ()))

    def confirm(self, name: str) -> None:
        """Confirm as a user that a Node may be deleted."""
        (node,) = (
            node
            for node in self.api.all(resources.NODES)
            if node["metadata"]["name"] == name  # type: ignore[index]
        )
        annotations = {deletion_budget.CONFIRM_ANNOTATION: ""}
        metadata = {**node["metadata"], "annotations": annotations}  # type: ignore[dict-item]
        self.api.put(resources.NODES, {**node, "metadata": metadata})

    def run(self, passes: int = LONG) -> collections.Counter[str]:
        """Look at all Nodes so often; return what was decided, by kind and Node."""
        decided: collections.Counter[str] = collections.Counter()
        for _ in range(passes):
            self.nodes.relist()
            names = [
                name for name, node in self.nodes.items().items() if not node.is_ready
            ]
            snapshots = self.observer.observe([(name, LIVENESS) for name in names])
            for name, snapshot in snapshots.items():
                for action in decide.decide(snapshot, self.settings).actions:
                    decided[f"{type(action).__name__} {name}"] += 1
                    self._carry_out(name, snapshot, action)
            self.now_s += LOOK_S
        return decided

    def _carry_out(
        self, name: str, snapshot: model.Snapshot, action: model.Action
    ) -> None:
        assert snapshot.node is not None
        match action:
            case model.DeleteNode():
                self.api.delete(resources.NODES, name, timeout_s=1)
                self.observer.forget(snapshot.node)
            case model.HoldNodeBack(message):
                assert "another project" in message
                self.observer.memory.reported(snapshot.node.metadata.uid)


@pytest.fixture()
def world() -> World:
    return World()


def deleted(decided: collections.Counter[str]) -> list[str]:
    return [key for key in decided if key.startswith("DeleteNode")]


def test_where_no_instance_was_observed_no_node_is_deleted(world: World) -> None:
    """Whether others are Ready or not; each Node is told once a minute."""
    for name in ("one", "two"):
        world.node(name)
    decided = world.run(3 * LONG)
    assert decided == {"HoldNodeBack one": 2, "HoldNodeBack two": 2}
    assert world.observer.memory.suspended == 2
    for number in range(20):
        world.node(f"ready-{number}", "True")
    assert deleted(world.run()) == []


def test_it_costs_three_calls_a_minute_at_most(world: World) -> None:
    """Beside those that any Node that is not Ready costs."""
    world.node("gone")
    for number in range(20):
        world.node(f"ready-{number}", "True")
    passes = int(2 * witnesses.EVERY_S / LOOK_S)
    world.run(passes)
    assert world.cloud.calls.count(CONFIRM) == 0
    assert world.cloud.calls.count(LOOK) == passes + 2 * witnesses.AT_MOST


def test_one_instance_that_is_there_is_enough(world: World) -> None:
    """One call more, once."""
    world.node("gone")
    for number in range(20):
        world.node(f"ready-{number}", "True")
        world.boot(f"ready-{number}")
    assert deleted(world.run(1)) == []
    assert collections.Counter(world.cloud.calls) == {LOOK: 2, CONFIRM: 1}
    assert deleted(world.run()) == ["DeleteNode gone"]


def test_a_node_that_joins_releases_the_others(world: World) -> None:
    world.node("gone")
    assert deleted(world.run()) == []
    world.node("new")
    world.boot("new")
    assert deleted(world.run()) == ["DeleteNode gone"]


def test_a_user_s_confirmation_is_enough(world: World) -> None:
    world.node("gone")
    world.node("other")
    world.run(1)
    world.confirm("gone")
    assert deleted(world.run()) == ["DeleteNode gone"]


def test_foreign_nodes_are_no_witnesses_and_cost_nothing(world: World) -> None:
    world.node("gone")
    for number in range(20):
        world.node(f"foreign-{number}", "True", owner=f"static://{number}")
    world.node("there", "True")
    world.boot("there")
    assert deleted(world.run()) == ["DeleteNode gone"]


def test_what_cannot_be_read_proves_nothing(world: World) -> None:
    world.node("gone")
    world.node("there", "True")
    world.boot("there")
    away = errors.Unavailable("away", operation="get server")
    world.cloud.faults = [None, away]
    assert deleted(world.run()) == []
    assert deleted(world.run(2 * LONG)) == ["DeleteNode gone"]


def test_a_name_is_no_proof(world: World) -> None:
    """Names repeat among projects; only an instance found by its ID is one."""
    world.node("gone")
    world.boot("same-name")
    (instance,) = world.cloud.instances.values()
    other = dataclasses.replace(instance, provider_id="openstack:///other")
    world.cloud.put(other)
    world.node("same-name", "True")
    assert deleted(world.run()) == []

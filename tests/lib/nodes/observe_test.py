"""Each answer about an instance is counted by what it says."""

import prometheus_client
import pytest

from lib.ccm import metrics
from lib.cloud import errors
from lib.cloud.fake import instances as fake
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import nodes as kube_nodes
from lib.kube import resources, store
from lib.kube.fake import api as fake_api
from lib.nodes import model, observe

LIVENESS = frozenset({model.Topic.LIVENESS})
ADDRESSES = frozenset({model.Topic.ADDRESSES})
NAMES = ("here", "gone", "elsewhere")


class World:
    """Three Nodes that are not Ready: of a server, of none, and of another cloud."""

    def __init__(self) -> None:
        self.cloud = fake.FakeInstances()
        address = Address(AddressType.INTERNAL_IP, "10.0.0.1")
        here = fake.provider_id("here")
        self.cloud.put(
            Instance(InstanceId("here"), "here", Phase.RUNNING, here, (address,))
        )
        api = fake_api.FakeApi()
        for name, owner in zip(
            NAMES, (here, fake.provider_id("gone"), "static://elsewhere"), strict=True
        ):
            api.put(
                resources.NODES,
                {
                    "metadata": {"name": name},
                    "spec": {"providerID": owner},
                    "status": {
                        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                        "conditions": [{"type": "Ready", "status": "Unknown"}],
                    },
                },
            )
        nodes = store.Store(api, resources.NODES, kube_nodes.Node)
        nodes.relist()
        self.registry = prometheus_client.CollectorRegistry()
        self.observer = observe.NodeObserver(
            nodes,
            api,
            lambda: self.cloud,
            model.NodeSettings(),
            count=metrics.InstanceMetrics(self.registry).observed,
        )

    def observe(self, topics: frozenset[model.Topic]) -> None:
        self.observer.observe([(name, topics) for name in NAMES])

    def counts(self) -> list[float | None]:
        return [
            self.registry.get_sample_value(
                "mooring_instance_observations_total", {"result": result}
            )
            for result in ("present", "absent", "other_provider", "unknown")
        ]


@pytest.fixture()
def world() -> World:
    return World()


def test_lists_and_looks_are_counted_by_what_they_say(world: World) -> None:
    """The read that confirms an absence is not one of them."""
    assert world.counts() == [0, 0, 0, 0]
    world.observe(ADDRESSES)
    assert world.cloud.calls == ["list instances"]
    world.observe(LIVENESS)
    assert "read instance" in world.cloud.calls
    assert "get instance" in world.cloud.calls
    assert world.counts() == [2, 2, 2, 0]


def test_what_could_not_be_read_is_unknown_for_each_node(world: World) -> None:
    world.cloud.faults.append(errors.Unavailable("away", operation="list servers"))
    world.observe(ADDRESSES)
    assert world.counts() == [0, 0, 0, len(NAMES)]

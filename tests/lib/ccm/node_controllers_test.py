"""Nodes that wait for another try are looked at when the cloud was replaced."""

import threading
import time
from collections.abc import Callable

import prometheus_client

from lib.ccm import node_controllers, options
from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import events, resources
from lib.kube.fake import api as fake_api
from lib.nodes import model
from lib.process import flags, probes
from lib.reconcile import loops

WANTED = options.read(
    flags.parse(
        options.FLAGS,
        [
            "--cloud-provider=openstack",
            "--node-monitor-period=1h",
            "--node-status-update-frequency=1h",
        ],
    ),
    "openstack",
)
NODE: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "spec": {"taints": [{"key": model.UNINITIALIZED_TAINT, "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
REFUSED = errors.Unauthenticated("refused", operation="list servers")
INSTANCE = Instance(
    InstanceId("id-1"),
    "node-1",
    Phase.RUNNING,
    fake_instances.provider_id("id-1"),
    (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
    "m1.small",
    "az1",
    "RegionOne",
)


def until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_node_that_waits_a_minute_for_good_credentials_is_initialised_at_once() -> (
    None
):
    """Refused credentials are tried again slowly; a new file ends the wait."""
    api = fake_api.FakeApi()
    api.put(resources.NODES, NODE)
    # The first one is the greeting at the start.
    instances = fake_instances.FakeInstances(faults=[REFUSED, REFUSED])
    instances.put(INSTANCE)
    registry = prometheus_client.CollectorRegistry()
    recorders = {
        source: events.Recorder(api, component=source, host="here")
        for source in model.Source
    }
    parts = node_controllers.Parts(api, api, recorders, registry, probes.Probes())
    nodes = node_controllers.NodeControllers(instances, parts, WANTED, model.Settings())
    stop = threading.Event()
    running = loops.Loops(stop)
    nodes.watch(running)
    nodes.start(running)
    try:
        until(lambda: not instances.faults)
        time.sleep(0.5)
        assert is_new(nodes), "it waits, or this test shows nothing"
        nodes.look_again()
        until(lambda: not is_new(nodes))
    finally:
        stop.set()
        assert running.join(10) == ()


def is_new(nodes: node_controllers.NodeControllers) -> bool:
    node = nodes.nodes.get("node-1")
    return node is not None and node.has_taint(model.UNINITIALIZED_TAINT)

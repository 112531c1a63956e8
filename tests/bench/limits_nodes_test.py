"""openstack-ccm with 5,000 Nodes: the PEX, a real API server, a cloud over HTTP.

They are initialised, and their addresses refreshed. Printed is where calls, time and
memory go.
"""

import functools
import json
import pathlib
import time
import typing

from lib.kube import client, resources
from lib.kube import nodes as kube_nodes
from lib.lab import places
from lib.lab.run import waiting
from tests.bench import limits, scenes

if typing.TYPE_CHECKING:
    from tests.bench import conftest

INITIALISE_CALLS, PASS_CALLS = 40, 20


def test_nodes_at_the_limits_of_kubernetes(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """Calls, memory and heartbeats."""
    scene = scenes.scene_of(ground, cloud, pex)
    cloud.latency_s = 0.01
    scenes.run(scene, (initialise, address_pass))


def register(api: client.Api, number: int) -> None:
    """Register a Node as a kubelet does."""
    taint = {
        "key": kube_nodes.UNINITIALIZED_TAINT,
        "value": "true",
        "effect": "NoSchedule",
    }
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": scenes.name(number), "labels": scenes.labels(number)},
        "spec": {"taints": [taint]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    api.create(resources.NODES, json.dumps(body).encode(), timeout_s=60)


def uninitialised(api: client.Api) -> int:
    page = api.list_page(resources.NODES, query={}, timeout_s=120)
    return page.count(kube_nodes.UNINITIALIZED_TAINT.encode())


def initialise(scene: scenes.Scene) -> None:
    began = time.monotonic()
    for number in range(limits.NODES):
        scene.add_server(number)
    scenes.each(functools.partial(register, scene.api), range(limits.NODES))
    print(
        f"{limits.NODES} Nodes registered in {time.monotonic() - began:.0f} s",
        flush=True,
    )
    with limits.watched(scene, limits.QUIETLY, scenes.NEVER) as daemon:
        meter = scene.meter(daemon)
        waiting.until(
            "all are initialised",
            lambda: not uninitialised(scene.api),
            poll_s=2.0,
        )
        spent = meter.until_quiet()
        what = f"initialise {limits.NODES} Nodes"
        scene.table.spent(what, spent, f"{INITIALISE_CALLS} calls")
    assert spent.calls <= INITIALISE_CALLS


def address_pass(scene: scenes.Scene) -> None:
    """The second one: the first follows the start."""
    flags = ("--node-status-update-frequency=20s", "--controllers=cloud-node")
    with scene.running(scenes.NEVER, *flags) as daemon:
        meter = scene.meter(daemon)
        waiting.until("the first pass", lambda: bool(meter.calls()))
        meter.until_quiet()
        meter.again()
        waiting.until("the next pass", lambda: bool(meter.calls()))
        spent = meter.until_quiet()
        scene.table.spent("one address pass", spent, f"{PASS_CALLS} calls")
    assert spent.calls <= PASS_CALLS
    assert spent.writes == 0

"""What 1,000 Nodes cost: calls are asserted, seconds and megabytes are printed.

The API server is real, the cloud is the fake one: it counts calls, and answers at once.
"""

import concurrent.futures
import json
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

import prometheus_client
import psutil
import pytest
import rich.console
import rich.table

from lib.ccm import metrics, node_controllers, options
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import client, config, events, resources
from lib.lab import control_plane, places, processes, programs, progress
from lib.nodes import model
from lib.process import flags, probes
from lib.reconcile import loops

NODES = 1000
PORT_BASE = 22200
SETTLE_S = 3
"""Until the watch has brought every write of ours back and each was looked at."""


@pytest.fixture()
def kubeconfig(tmp_path: pathlib.Path) -> Iterator[str]:
    where = places.Places(places.default().cache, tmp_path, PORT_BASE)
    shown = progress.Lines(sys.stderr)
    programs.build(where, [control_plane.GROUP], shown)
    try:
        control_plane.up(where, shown)
        yield str(control_plane.admin_kubeconfig(where))
    finally:
        control_plane.down(where)
        processes.stop(where, processes.names(where))


def name(number: int) -> str:
    return f"node-{number:04}"


def cloud() -> fake_instances.FakeInstances:
    there = fake_instances.FakeInstances()
    for number in range(NODES):
        ip = f"10.0.{number // 250}.{number % 250 + 1}"
        there.put(
            Instance(
                InstanceId(f"id-{number}"),
                name(number),
                Phase.RUNNING,
                fake_instances.provider_id(f"id-{number}"),
                (Address(AddressType.INTERNAL_IP, ip),),
                "m1.small",
                "az1",
                "RegionOne",
            )
        )
    return there


def register(api: client.Api) -> None:
    """Make all Nodes as kubelets do, several at once."""
    taint = {"key": model.UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}

    def make(number: int) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name(number)},
            "spec": {"taints": [taint]},
            "status": {
                "addresses": [{"type": "Hostname", "address": name(number)}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        api.create(resources.NODES, json.dumps(body).encode(), timeout_s=30)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(NODES)))


def until(seen: Callable[[], bool], timeout_s: float) -> float:
    began = time.monotonic()
    while not seen():
        assert time.monotonic() - began < timeout_s
        time.sleep(0.05)
    return time.monotonic() - began


def writes(registry: prometheus_client.CollectorRegistry) -> int:
    found = registry.get_sample_value(
        "rest_client_requests_total",
        {"code": "200", "method": "PATCH", "resource": "nodes"},
    )
    return int(found or 0)


def test_a_thousand_nodes(kubeconfig: str) -> None:
    registry = prometheus_client.CollectorRegistry()
    counted = metrics.KubeMetrics(registry)
    api = client.Client(
        config.load(kubeconfig, env={}), user_agent="bench", observer=counted.observe
    )
    there = cloud()
    register(api)
    wanted = options.read(
        flags.parse(
            options.FLAGS,
            ["--cloud-provider=openstack", "--node-status-update-frequency=1h"],
        ),
        "openstack",
    )
    recorders = {s: events.Recorder(api, component=s, host="") for s in model.Source}
    parts = node_controllers.Parts(api, api, recorders, registry, probes.Probes())
    stop = threading.Event()
    group = loops.Loops(stop)
    # Nobody reports for these Nodes: in seconds they are not Ready, another matter.
    settings = model.Settings(watches_lifecycle=False)
    nodes = node_controllers.NodeControllers(there, parts, wanted, settings)
    process = psutil.Process()
    before_mib = process.memory_info().rss / 2**20
    table = rich.table.Table("what", "seconds", "cloud calls", "Node writes", "RSS MiB")

    def row(what: str, seconds: float) -> None:
        grown = process.memory_info().rss / 2**20 - before_mib
        calls, patches = len(there.calls), writes(registry)
        shown = (f"{seconds:.1f}", str(calls), str(patches), f"+{grown:.0f}")
        table.add_row(what, *shown)

    def all_initialised() -> bool:
        return all(
            not node.has_taint(model.UNINITIALIZED_TAINT)
            for node in nodes.nodes.items().values()
        )

    try:
        nodes.watch(group)
        until(nodes.nodes.synced.is_set, 30)
        nodes.start(group)
        row("all initialised", until(all_initialised, 120))
        assert len(nodes.nodes.items()) == NODES
        assert len(there.calls) <= 10
        # The watch may show a write before its answer is counted.
        time.sleep(SETTLE_S)
        assert writes(registry) == 2 * NODES
        settled = len(there.calls)
        nodes.refresh_addresses()
        row("one address pass", until(lambda: len(there.calls) > settled, 30))
        time.sleep(1)
        assert len(there.calls) == settled + 1
        assert writes(registry) == 2 * NODES
    finally:
        stop.set()
        group.join(30)
        rich.console.Console(width=100).print(table)

"""openstack-ccm with 2,000 Services of 3 ports and 5,000 Nodes: the PEX, a real API
server, and a cloud over HTTP. The Services were served before: all but the first are
copies, in the API server and in the cloud.

Each Service selects the Nodes of one label, as clusters of this size do: members on all
Nodes would be 30 million. Printed is where calls, time and memory go.
"""

import dataclasses
import functools
import json
import pathlib
import time
import typing
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from lib.cloud.openstack.fake import copies
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import resources
from lib.lab import places
from lib.lab.kube import control_plane, kube_objects
from lib.lab.run import processes, waiting
from lib.lab.slots import leases
from tests.bench import limits, scenes
from tests.harness import testing
from tests.harness.daemons import measured
from tests.harness.services import services

if typing.TYPE_CHECKING:
    from tests.bench import conftest

EDGE = 10
"""Nodes with the label."""
SERVICES, PORTS = 2000, 3
NEW = 3
"""Services created while all others are compared."""
LOOKS = 6
"""In an hour."""
PERIOD_S = 30.0
"""Between two looks here."""
LABEL = ("pool", "edge")
FIRST_NODE_PORT = 20000
API = (f"--service-node-port-range={FIRST_NODE_PORT}-32767",)
"""The usual range has 2,768 ports."""
SETTINGS = "node-selector = pool=edge\n"
RESTART_CALLS, HOUR_CALLS = 2100, 2100
BEGUN_S = 2.0
CREATION = "POST /load-balancer/v2/lbaas/loadbalancers"
Json = dict[str, typing.Any]


@pytest.fixture()
def wide(lease: leases.Lease, tmp_path: pathlib.Path) -> Iterator[places.Places]:
    """Run an API server with node ports for all."""
    where = testing.second(lease, tmp_path.name, offset=200)
    try:
        control_plane.up(where, testing.shown(), api_arguments=API)
        processes.stop(where, ["kube-controller-manager"])
        yield where
    finally:
        control_plane.down(where)
        processes.stop(where, processes.names(where))


@dataclasses.dataclass(frozen=True)
class Ground:
    """The scene, and the Services as their users see them."""

    scene: scenes.Scene
    objects: kube_objects.Objects

    def name(self, number: int) -> str:
        return f"s-{number:04}"

    def serve(self, number: int, metadata: Mapping[str, object]) -> Json:
        """Create a Service of 3 ports."""
        first = FIRST_NODE_PORT + PORTS * number
        ports = [
            {**services.port(8000 + at), "nodePort": first + at} for at in range(PORTS)
        ]
        spec = {"type": "LoadBalancer", "ports": ports}
        return self.objects.make(
            resources.SERVICES, self.name(number), metadata, spec=spec
        )

    def copy(self, first: Json, copier: copies.Copier, number: int) -> None:
        """Create a Service that was served before, as the first one was."""
        address = f"198.18.{number // 250}.{number % 250}"
        written = {
            key: (
                address
                if key == keys.LOAD_BALANCER_ADDRESS
                else copier.id_of(value, number)
            )
            for key, value in services.annotations(first).items()
        }
        finalizers = first["metadata"]["finalizers"]
        created = self.serve(number, {"annotations": written, "finalizers": finalizers})
        status = {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}
        self.scene.api.patch(
            resources.SERVICES,
            self.name(number),
            json.dumps({"status": status}).encode(),
            self.objects.namespace,
            subresource="status",
            timeout_s=60,
        )
        names = {
            self.name(0): self.name(number),
            first["metadata"]["uid"]: created["metadata"]["uid"],
        }
        ports = {
            FIRST_NODE_PORT + at: FIRST_NODE_PORT + PORTS * number + at
            for at in range(PORTS)
        }
        copier.add(number, functools.partial(replaced, names), address, ports)


def replaced(names: Mapping[str, str], text: str) -> str:
    """Return a text with names of the first Service replaced."""
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def test_services_at_the_limits_of_kubernetes(
    wide: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """Calls, memory, heartbeats, and how soon a new Service is begun."""
    scene = dataclasses.replace(scenes.scene_of(wide, cloud, pex), settings=SETTINGS)
    octavia = scene.ground.cloud.octavia
    octavia.build_s, octavia.update_s = 1.0, 0.2
    cloud.latency_s = 0.01
    ground = Ground(scene, kube_objects.Objects(scene.api, "default"))
    steps = (first, copy_all, restart, idle_hour)
    scenes.run(scene, [functools.partial(at, ground) for at in steps])


def first(ground: Ground, scene: scenes.Scene) -> None:
    """Create all Nodes, and have the first Service served."""
    for number in range(limits.NODES):
        scene.add_server(number)

    def add(number: int) -> None:
        scene.add_node(number, dict([LABEL]) if number < EDGE else None)

    scenes.each(add, range(limits.NODES))
    with scene.running(limits.QUIETLY, scenes.NEVER):
        ground.serve(0, {})
        waiting.until("it is served", lambda: scene.served() == 1, poll_s=1.0)


def copy_all(ground: Ground, scene: scenes.Scene) -> None:
    began = time.monotonic()
    served = ground.objects.get(resources.SERVICES, ground.name(0))
    assert served is not None
    copier = copies.Copier(scene.ground.cloud)
    copy = functools.partial(ground.copy, served, copier)
    scenes.each(copy, range(1, SERVICES))
    assert scene.served() == SERVICES
    took_s = time.monotonic() - began
    print(f"{SERVICES} Services copied in {took_s:.0f} s", flush=True)


def restart(ground: Ground, scene: scenes.Scene) -> None:
    """Then a Node is added to all."""
    with limits.watched(scene, limits.QUIETLY, scenes.NEVER) as daemon:
        meter = scene.meter(daemon)
        scenes.until_well(daemon, SERVICES)
        spent = meter.spent()
        what = f"restart, until all {SERVICES} are known well"
        scene.table.spent(what, spent, f"{RESTART_CALLS} calls, no write")
        print_kinds(meter)
        one_node_added(scene, daemon)
    assert spent.calls <= RESTART_CALLS
    assert spent.writes == 0


def idle_hour(ground: Ground, scene: scenes.Scene) -> None:
    often = f"--lb-drift-period={PERIOD_S:g}s"
    with limits.watched(scene, limits.QUIETLY, often) as daemon:
        meter = scene.meter(daemon)
        scenes.until_well(daemon, SERVICES)
        # What was read right after a change may be stale, so it is read once more.
        first = scenes.look(meter, daemon, SERVICES)
        scene.table.spent("the first drift check", first)
        looks = [scenes.look(meter, daemon, SERVICES) for _ in range(2)]
        for look in looks:
            scene.table.spent("a drift check", look, "no write")
        hour = LOOKS * max(look.calls for look in looks)
        scene.table.row("an idle hour", f"{hour} calls", f"{HOUR_CALLS} calls")
        new_services(ground, scene, meter, daemon)
    assert hour <= HOUR_CALLS
    assert sum(look.writes for look in looks) == 0


def print_kinds(meter: scenes.Meter) -> None:
    for kind, count in Counter(meter.calls()).most_common(12):
        print(f"{count:6} {kind}")


def new_services(
    ground: Ground,
    scene: scenes.Scene,
    meter: scenes.Meter,
    daemon: measured.MeasuredDaemon,
) -> None:
    """Create some while all others are compared."""
    meter.until_quiet()
    meter.again()
    waiting.until("it looks", lambda: bool(meter.calls()), poll_s=0.02)
    took: list[float] = []
    for number in range(NEW):
        before, began = scenes.ended(daemon), time.monotonic()
        ground.serve(SERVICES + number, {})
        begun = functools.partial(lambda n: meter.calls().count(CREATION) > n, number)
        waiting.until("it is begun", begun, poll_s=0.01)
        took.append(time.monotonic() - began)
        compared = scenes.ended(daemon) - before
        print(f"begun after {took[-1]:.2f} s; {compared} others ended since")
    shown = ", ".join(f"{seconds:.2f} s" for seconds in took)
    scene.table.row("a new Service is begun after", shown, f"{BEGUN_S} s")
    waiting.until("served", lambda: scene.served() == SERVICES + NEW, poll_s=1.0)
    meter.until_quiet()
    assert max(took) <= BEGUN_S * scenes.PATIENCE


def one_node_added(scene: scenes.Scene, daemon: measured.MeasuredDaemon) -> None:
    meter, pools = scene.meter(daemon), PORTS * SERVICES
    number = limits.NODES
    scene.add_server(number)
    scene.add_node(number, dict([LABEL]))
    want = pools * (EDGE + 1)
    waiting.until("members", lambda: scene.members() == want, poll_s=1.0)
    spent = meter.until_quiet()
    scene.table.spent(f"one Node added to {pools} pools", spent, f"{pools} writes")
    print_kinds(meter)
    assert spent.writes <= pools
    assert spent.calls - spent.writes <= pools, "polls"

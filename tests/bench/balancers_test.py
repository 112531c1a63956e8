"""What load balancers cost: the PEX, a real API server, and a cloud over HTTP that
takes 100 ms a call and has Octavia's state machine. Calls and writes are asserted;
seconds and megabytes are printed, and asserted only where they are far from what they
should be.

For each change the cloud is at it for a second, and for five while it builds. With it
one Node added to 20 ports is 20 writes, a poll after each, and 12 calls to look.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import pathlib
import time
import typing
from collections.abc import Callable, Iterator, Sequence

import rich.console
import rich.table

from lib.cloud.openstack.fake import driver
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import cluster, control_plane, measured, places, waiting
from tests.bench import balancing

if typing.TYPE_CHECKING:
    from tests.bench import conftest

BUILD_S, UPDATE_S = 5.0, 1.0
FEW, MANY = 10, 1000
"""Nodes."""
SERVICES, PORTS, WIDE_PORTS = 100, 10, 20
MANY_PORTS = 2
"""Of each Service where there are many Nodes: so there are 200,000 members."""
DRIFT_S = 10.0
DAY_S = 86400.0
USUAL_DRIFT_S = 600.0
LOOKS = 6
"""One of so many looks for drift is a deep one."""
MOST_MIB = 150
RESTART_S = 30.0
PATIENCE = 5
"""So many times slower than it should be is a failure, on whatever machine."""
QUIET_S = 4.0
"""Without a call for so long, nothing is under way."""
OFTEN = f"--lb-drift-period={DRIFT_S:g}s"
NEVER = "--lb-drift-period=1h"
CONTROLLER = "balancers"


def name(number: int) -> str:
    return f"node-{number:04}"


def address(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250 + 1}"


def each(fn: Callable[[int], object], numbers: Sequence[int]) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(fn, numbers))


@dataclasses.dataclass(frozen=True)
class Spent:
    """What something cost: calls, writes among them, MB answered, CPU and time."""

    calls: int
    writes: int
    megabytes: float
    cpu_s: float
    seconds: float


class Meter:
    """Reads what a daemon spends in between."""

    def __init__(self, cloud: "conftest.Cloud", daemon: measured.Daemon) -> None:
        self._cloud = cloud
        self._daemon = daemon
        self.again()

    def again(self) -> None:
        """Begin anew."""
        self._calls = len(self._cloud.calls)
        self._bytes = self._cloud.sent_bytes
        self._cpu_s = self._daemon.cpu_s()
        self._began = time.monotonic()

    def calls(self) -> list[str]:
        return self._cloud.calls[self._calls :]

    def spent(self) -> Spent:
        """Give what was spent so far."""
        calls = self.calls()
        return Spent(
            len(calls),
            sum(not call.startswith("GET") and "/auth/" not in call for call in calls),
            (self._cloud.sent_bytes - self._bytes) / 1e6,
            self._daemon.cpu_s() - self._cpu_s,
            time.monotonic() - self._began,
        )

    def until_quiet(self) -> Spent:
        """Wait until nothing is under way; its time does not count what was idle."""
        count, since = len(self._cloud.calls), time.monotonic()
        while time.monotonic() - since < QUIET_S:
            if len(self._cloud.calls) != count:
                count, since = len(self._cloud.calls), time.monotonic()
            time.sleep(0.05)
        return dataclasses.replace(self.spent(), seconds=since - self._began)


class Table:
    """What is printed in the end, also when something fails."""

    def __init__(self) -> None:
        self._table = rich.table.Table("what", "ours", "bound", "MB", "CPU s", "s")

    def row(self, what: str, ours: str, bound: str = "-", *more: str) -> None:
        self._table.add_row(what, ours, bound, *more)

    def spent(self, what: str, spent: Spent, bound: str = "-") -> None:
        calls = f"{spent.calls} calls, {spent.writes} of them writes"
        parts = (spent.megabytes, spent.cpu_s, spent.seconds)
        self.row(what, calls, bound, *(f"{part:.1f}" for part in parts))

    def show(self) -> None:
        rich.console.Console(width=120).print(self._table)


@dataclasses.dataclass(frozen=True)
class Scene:
    """Where it all happens."""

    where: places.Places
    cloud: "conftest.Cloud"
    pex: pathlib.Path
    api: client.Api
    table: Table
    ground: driver.Ground

    @contextlib.contextmanager
    def running(
        self, *words: str, manages_groups: bool = False
    ) -> Iterator[measured.Daemon]:
        """Run a daemon of its own for the block."""
        conf = self.where.state / "cloud.conf"
        conf.write_text(
            f"{self.cloud.conf()}[LoadBalancer]\ncreate-monitor = true\n"
            f"subnet-id = {self.ground.subnet_id}\n"
            f"floating-network-id = {self.ground.external_id}\n"
            f"manage-security-groups = {str(manages_groups).lower()}\n"
        )
        daemon = measured.Daemon(self.where, self.pex, conf, words)
        try:
            yield daemon
        finally:
            daemon.end()

    def meter(self, daemon: measured.Daemon) -> Meter:
        return Meter(self.cloud, daemon)

    def boot(self, number: int) -> None:
        """Make a server with its port, and its Node, long since initialised."""
        self.cloud.boot(name(number), number)
        ground = self.ground
        server_id = f"id-{number:04}"
        ground.cloud.neutron.add_port(ground.subnet_id, address(number), server_id)
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name(number), "labels": labels(number)},
            "spec": {"providerID": f"openstack:///{server_id}"},
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": address(number)},
                    {"type": "Hostname", "address": name(number)},
                ],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.api.create(resources.NODES, json.dumps(body).encode(), timeout_s=30)

    def create(self, service: str, ports: int) -> None:
        """Make a Service of type LoadBalancer."""
        listed = [
            {"name": f"p{at}", "port": 8000 + at, "protocol": "TCP"}
            for at in range(ports)
        ]
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, "namespace": "default"},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": service},
                "ports": listed,
            },
        }
        sent = json.dumps(body).encode()
        self.api.create(resources.SERVICES, sent, "default", timeout_s=30)

    def delete(self, service: str) -> None:
        """Delete a Service and wait until it is gone."""
        self.api.delete(resources.SERVICES, service, "default", timeout_s=30)
        waiting.until("it is gone", lambda: not self.exists(service), 120)

    def exists(self, service: str) -> bool:
        try:
            self.api.read(resources.SERVICES, service, "default", timeout_s=30)
        except kube_errors.NotFound:
            return False
        return True

    def served(self) -> int:
        """Count the Services that show an address."""
        body = self.api.list_page(resources.SERVICES, query={}, timeout_s=30)
        return body.count(b'"ipMode"')

    def patch_node(self, number: int, body: object, subresource: str = "") -> None:
        self.api.patch(
            resources.NODES,
            name(number),
            json.dumps(body).encode(),
            subresource=subresource or None,
            timeout_s=30,
        )

    def carry(self) -> int:
        """Count the ports that carry a security group."""
        ports = self.ground.cloud.neutron.ports.values()
        return sum(bool(port["security_groups"]) for port in list(ports))

    def members(self) -> int:
        """Count the members that Octavia has."""
        pools = list(self.ground.cloud.octavia.members.values())
        return sum(map(len, pools))


def labels(number: int) -> dict[str, str]:
    """Give the labels that a Node of a cloud usually has."""
    return {
        "kubernetes.io/hostname": name(number),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m1.small",
        "topology.kubernetes.io/region": "RegionOne",
        "topology.kubernetes.io/zone": "az1",
        "node-group": "worker",
    }


def ended(daemon: measured.Daemon, outcome: str = "") -> int:
    """Count the passes that have ended, in some way."""
    chosen = {"outcome": outcome} if outcome else {}
    counted = daemon.counted("reconcile_total", controller=CONTROLLER, **chosen)
    return int(counted)


def until_well(daemon: measured.Daemon, services: int) -> None:
    """Wait until so many more passes have found all well."""
    wanted = ended(daemon, "success") + services
    waiting.until("all are well", lambda: ended(daemon, "success") >= wanted, 300, 0.25)


def look(meter: Meter, daemon: measured.Daemon, services: int) -> Spent:
    """Wait for the next look for drift; give what it costs from its first call on."""
    meter.until_quiet()
    meter.again()
    waiting.until("it looks", lambda: bool(meter.calls()), 60, 0.02)
    waited_s = meter.spent().seconds
    until_well(daemon, services)
    spent = meter.spent()
    return dataclasses.replace(spent, seconds=spent.seconds - waited_s)


def until_started(scene: Scene, daemon: measured.Daemon, services: int) -> Meter:
    """Wait until so many are known well since the start."""
    meter = scene.meter(daemon)
    waiting.until(
        "all are well", lambda: ended(daemon, "success") >= services, 300, 0.25
    )
    return meter


def scene_of(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> Scene:
    cloud.balancing = offered = balancing.FakeBalancing()
    octavia = offered.ground.cloud.octavia
    octavia.build_s, octavia.update_s = BUILD_S, UPDATE_S
    api = cluster.connect(control_plane.admin_kubeconfig(ground))
    return Scene(ground, cloud, pex, api, Table(), offered.ground)


def run(scene: Scene, steps: Sequence[Callable[[Scene], None]]) -> None:
    try:
        for step in steps:
            step(scene)
    finally:
        scene.table.show()


def test_a_hundred_services(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """Of ten ports, ten Nodes: from the first Service to an idle day."""
    scene = scene_of(ground, cloud, pex)
    each(scene.boot, range(FEW))
    run(scene, (one_node_added, created_at_once, restart, tried, idle_day))


def test_a_thousand_nodes(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """And a hundred Services: memory, and what changes of Nodes cost."""
    scene = scene_of(ground, cloud, pex)
    run(scene, (managed_groups, crowd, crowd_restart))


def one_node_added(scene: Scene) -> None:
    with scene.running(NEVER) as daemon:
        daemon.ready_s()
        meter = scene.meter(daemon)
        scene.create("wide", WIDE_PORTS)
        waiting.until("it is served", lambda: scene.served() == 1, 60)
        what = f"create a Service of {WIDE_PORTS} ports, {FEW} Nodes"
        scene.table.spent(what, meter.until_quiet())
        meter.again()
        scene.boot(FEW)
        waiting.until("members", lambda: scene.members() == WIDE_PORTS * (FEW + 1), 300)
        added = meter.until_quiet()
        scene.table.spent("one Node added to it", added, "65 calls")
        meter.again()
        scene.delete("wide")
        scene.table.spent("delete it", meter.until_quiet())
    assert added.calls <= 65


def created_at_once(scene: Scene) -> None:
    with scene.running(NEVER) as daemon:
        daemon.ready_s()
        meter = scene.meter(daemon)
        each(lambda number: scene.create(f"s-{number:03}", PORTS), range(SERVICES))
        waiting.until("all are served", lambda: scene.served() == SERVICES, 600)
        spent = meter.until_quiet()
        what = f"create {SERVICES} Services of {PORTS} ports at once"
        scene.table.spent(what, spent)
        scene.table.row("  resident memory", f"{daemon.rss_mib():.0f} MiB")
        failed = ended(daemon, "failure") + ended(daemon, "bug")
        scene.table.row("  passes that failed", str(failed))
        assert spent.writes <= 2 * SERVICES  # the load balancer, the floating IP


def restart(scene: Scene) -> None:
    with scene.running(NEVER) as daemon:
        spent = until_started(scene, daemon, SERVICES).spent()
        what = f"restart, until all {SERVICES} are known well"
        scene.table.spent(what, spent, f"120 calls, {RESTART_S:g} s")
        lines = [line for line in daemon.lines() if CONTROLLER in line]
        scene.table.row("  lines logged of it", str(len(lines)), "0")
    assert spent.calls <= 120
    assert spent.writes == 0
    assert spent.seconds <= RESTART_S * PATIENCE
    assert not lines


def tried(scene: Scene) -> None:
    """A dry run upon what is well has nothing to say."""
    with scene.running(NEVER, "--dry-run") as daemon:
        until_started(scene, daemon, SERVICES)
        lines = [line for line in daemon.lines() if "left out" in line]
        scene.table.row("actions that a dry run leaves out", str(len(lines)), "0")
    assert not lines


def idle_day(scene: Scene) -> None:
    usual: list[Spent] = []
    with scene.running(OFTEN) as daemon:
        meter = until_started(scene, daemon, SERVICES)
        while (deep := look(meter, daemon, SERVICES)).calls < SERVICES * PORTS:
            usual.append(deep)
            assert len(usual) < 2 * LOOKS
    for one in usual:
        scene.table.spent("a look for drift", one, "120 calls, no write")
    scene.table.spent("a deep look", deep, "no write")
    deep_day = DAY_S / USUAL_DRIFT_S / LOOKS
    day = (usual[-1].calls * (LOOKS - 1) + deep.calls) * deep_day
    scene.table.row("calls of an idle day", f"{day:,.0f}")
    assert max(one.calls for one in usual) <= 120
    assert sum(one.writes for one in (*usual, deep)) == 0


def is_guarded(scene: Scene, nodes: int) -> bool:
    return scene.served() == 1 and scene.carry() == nodes


def managed_groups(scene: Scene) -> None:
    """A sync costs the same, however many Nodes have the group on their ports."""
    costs: list[Spent] = []
    for first, last in ((0, 2), (2, MANY)):
        each(scene.boot, range(first, last))
        scene.cloud.latency_s = 0.0  # the group gets to each port by a write of its own
        with scene.running(NEVER, manages_groups=True) as daemon:
            if not first:
                scene.create("guarded", 1)
            waiting.until(
                "it is guarded", functools.partial(is_guarded, scene, last), 600
            )
            scene.meter(daemon).until_quiet()
        scene.cloud.latency_s = 0.1
        with scene.running(OFTEN, manages_groups=True) as daemon:
            meter = until_started(scene, daemon, 1)
            costs.append(look(meter, daemon, 1))
        scene.table.spent(f"a sync with managed groups, {last} Nodes", costs[-1])
    with scene.running(NEVER, manages_groups=True) as daemon:
        scene.cloud.latency_s = 0.0
        daemon.ready_s()
        scene.delete("guarded")
        scene.cloud.latency_s = 0.1
    assert costs[0].calls == costs[1].calls
    assert sum(one.writes for one in costs) == 0


def crowd(scene: Scene) -> None:
    with scene.running(NEVER) as daemon:
        daemon.ready_s()
        meter = scene.meter(daemon)
        each(lambda number: scene.create(f"s-{number:03}", MANY_PORTS), range(SERVICES))
        waiting.until("all are served", lambda: scene.served() == SERVICES, 600)
        what = f"create {SERVICES} Services of {MANY_PORTS} ports, {MANY} Nodes"
        scene.table.spent(what, meter.until_quiet())
        scene.table.row("  resident memory", f"{daemon.rss_mib():.0f} MiB")


def crowd_restart(scene: Scene) -> None:
    rss: dict[str, float] = {}
    with scene.running(OFTEN) as daemon:
        meter = until_started(scene, daemon, SERVICES)
        scene.table.spent("restart", meter.spent(), "120 calls")
        rss["after the start"] = daemon.rss_mib()
        found = look(meter, daemon, SERVICES)
        scene.table.spent("a look for drift", found, "120 calls")
        rss["after a look for drift"] = daemon.rss_mib()
    with scene.running(NEVER) as daemon:
        meter = until_started(scene, daemon, SERVICES)
        meter.until_quiet()
        label(scene, daemon)
        heartbeats(scene, daemon)
        meter.again()
        scene.boot(MANY)
        wanted = SERVICES * MANY_PORTS * (MANY + 1)
        waiting.until("members", lambda: scene.members() == wanted, 600)
        scene.table.spent(f"one Node added to all {SERVICES}", meter.until_quiet())
        rss["after a Node for all"] = daemon.rss_mib()
    for when, mib in rss.items():
        scene.table.row(f"resident memory {when}", f"{mib:.0f} MiB", f"{MOST_MIB} MB")
    assert max(rss.values()) <= MOST_MIB


def label(scene: Scene, daemon: measured.Daemon) -> None:
    """A label that no selector names costs no call, and little of the processor."""
    meter, before = scene.meter(daemon), ended(daemon)
    scene.patch_node(7, {"metadata": {"labels": {"irrelevant": "yes"}}})
    waiting.until(
        "all are looked at", lambda: ended(daemon) - before >= SERVICES, 60, 0.5
    )
    spent = meter.spent()
    scene.table.spent("one label of one Node", spent, "no call, 1 CPU s")
    assert not spent.calls
    assert spent.cpu_s <= PATIENCE


def heartbeats(scene: Scene, daemon: measured.Daemon) -> None:
    """What kubelets say of themselves all the time brings no Service in."""
    meter, before = scene.meter(daemon), ended(daemon)
    beat = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }
    body = {"status": {"conditions": [beat]}}
    each(lambda number: scene.patch_node(number, body, "status"), range(MANY))
    spent = meter.until_quiet()
    passes = ended(daemon) - before
    scene.table.spent(f"heartbeats of {MANY} Nodes", spent, "no call")
    scene.table.row("  passes of it", str(passes), "0")
    assert not spent.calls
    assert not passes

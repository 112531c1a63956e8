"""A cluster and a cloud for benches of load balancers, and what things cost there."""

import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

import rich.console
import rich.table

from lib.cloud.openstack.fake import driver
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.kube import cluster, control_plane
from lib.lab.run import waiting
from tests.bench import balancing
from tests.harness.daemons import measured

if typing.TYPE_CHECKING:
    from tests.bench import conftest

BUILD_S, UPDATE_S = 2.0, 0.5
QUIET_S = 4.0
"""Without a call for so long, nothing is under way."""
NEVER, OFTEN = "--lb-drift-period=1h", "--lb-drift-period=10s"
PATIENCE = 5
"""So many times slower than it should be is a failure, on whatever machine."""
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

    def __init__(
        self, cloud: "conftest.Cloud", daemon: measured.MeasuredDaemon
    ) -> None:
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
        """Return what was spent so far."""
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

    def row(self, what: str, mooring: str, bound: str = "-", *more: str) -> None:
        self._table.add_row(what, mooring, bound, *more)

    def spent(self, what: str, spent: Spent, bound: str = "-") -> None:
        calls = f"{spent.calls} calls, {spent.writes} of them writes"
        parts = (spent.megabytes, spent.cpu_s, spent.seconds)
        self.row(what, calls, bound, *(f"{part:.1f}" for part in parts))

    def show(self) -> None:
        rich.console.Console(width=120).print(self._table)


@dataclasses.dataclass(frozen=True)
class Scene:
    """Where it all happens. settings: lines of [LoadBalancer]."""

    where: places.Places
    cloud: "conftest.Cloud"
    pex: pathlib.Path
    api: client.Api
    table: Table
    ground: driver.Ground
    settings: str = "create-monitor = true\n"

    @contextlib.contextmanager
    def running(
        self, *words: str, manages_groups: bool = False
    ) -> Iterator[measured.MeasuredDaemon]:
        """Run a daemon of its own for the block."""
        conf = self.where.state / "cloud.conf"
        conf.write_text(
            f"{self.cloud.conf()}[LoadBalancer]\n{self.settings}"
            f"subnet-id = {self.ground.subnet_id}\n"
            f"floating-network-id = {self.ground.external_id}\n"
            f"manage-security-groups = {str(manages_groups).lower()}\n"
        )
        daemon = measured.MeasuredDaemon(self.where, self.pex, conf, words)
        try:
            yield daemon
        finally:
            daemon.end()

    def meter(self, daemon: measured.MeasuredDaemon) -> Meter:
        return Meter(self.cloud, daemon)

    def add_server(self, number: int) -> None:
        """Make a server with its port."""
        self.cloud.boot(name(number), number)
        ground = self.ground
        server_id = f"id-{number:04}"
        ground.cloud.neutron.add_port(ground.subnet_id, address(number), server_id)

    def boot(self, number: int) -> None:
        """Make a server, and its Node, long since initialised."""
        self.add_server(number)
        self.add_node(number)

    def add_node(
        self, number: int, more_labels: Mapping[str, str] | None = None
    ) -> None:
        """Make the Node of a server."""
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name(number),
                "labels": {**labels(number), **(more_labels or {})},
            },
            "spec": {"providerID": f"openstack:///id-{number:04}"},
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

    def create_at_once(
        self, daemon: measured.MeasuredDaemon, services: int, ports: int
    ) -> Meter:
        """Create many Services, and wait until all are served; what that costs."""
        daemon.ready_s()
        meter = self.meter(daemon)
        each(lambda number: self.create(f"s-{number:03}", ports), range(services))
        waiting.until("all are served", lambda: self.served() == services)
        return meter

    def delete(self, service: str) -> None:
        """Delete a Service and wait until it is gone."""
        self.api.delete(resources.SERVICES, service, "default", timeout_s=30)
        waiting.until("it is gone", lambda: not self.exists(service))

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
    """Return the labels that a Node of a cloud usually has."""
    return {
        "kubernetes.io/hostname": name(number),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m1.small",
        "topology.kubernetes.io/region": "RegionOne",
        "topology.kubernetes.io/zone": "az1",
        "node-group": "worker",
    }


def ended(daemon: measured.MeasuredDaemon, outcome: str = "") -> int:
    """Count the passes that have ended, in some way."""
    chosen = {"outcome": outcome} if outcome else {}
    counted = daemon.counted("mooring_reconcile_total", controller=CONTROLLER, **chosen)
    return int(counted)


def until_well(daemon: measured.MeasuredDaemon, services: int) -> None:
    """Wait until so many more passes have found all well."""
    expected = ended(daemon, "success") + services
    waiting.until(
        "all are well", lambda: ended(daemon, "success") >= expected, poll_s=0.25
    )


def look(meter: Meter, daemon: measured.MeasuredDaemon, services: int) -> Spent:
    """Wait for the next drift check; return its cost from its first call on."""
    meter.until_quiet()
    meter.again()
    waiting.until("it looks", lambda: bool(meter.calls()), poll_s=0.02)
    waited_s = meter.spent().seconds
    until_well(daemon, services)
    spent = meter.spent()
    return dataclasses.replace(spent, seconds=spent.seconds - waited_s)


def until_started(
    scene: Scene, daemon: measured.MeasuredDaemon, services: int
) -> Meter:
    """Wait until so many are known well since the start."""
    meter = scene.meter(daemon)
    waiting.until(
        "all are well", lambda: ended(daemon, "success") >= services, poll_s=0.25
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

"""openstack-ccm, the PEX, in a storm: many changes, and many crashes.

It runs under the chart's rights against a real API server, Octavia and Neutron, which
it reaches through an entrance that sees all its calls. Things of others lie in the same
project, some with names like ours; they have to stay as they are to the last field.
"""

import contextlib
import functools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import errors as kube_errors
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness import testing
from tests.harness.services import balancing, convergence, services
from tests.harness.services.balancing import Counted
from tests.harness.services.convergence import Ground

STORM_S = testing.by_tier(15.0, 60.0)
"""How long the daemons are killed, unless MOORING_STORM_S says otherwise."""
PAUSES_S = testing.by_tier((0.5, 4.0), (2.0, 10.0))
"""Between two kills."""
KILLS = testing.by_tier(3, 8)
"""Number of killed processes that ends the storm."""
CHANGE_S = 1.5
"""Between two changes of Services and Nodes."""
ALIVE = testing.by_tier(4, 10)
"""Most Services that exist at a time in the storm."""
SEED = 20261121
MANAGED = {"manage-security-groups": "true"}


@pytest.fixture(scope="module")
def ground(open_room: balancing.Open) -> Ground:
    return convergence.open_ground(open_room, "storm")


class Storm:
    """Changes Services and Nodes, and kills, until its time is over."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.room = ground.room
        self.lasts_s = float(os.environ.get("MOORING_STORM_S", STORM_S))
        self.changes: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        self._random = random.Random(SEED)  # noqa: S311 # no secret
        self._killing = random.Random(SEED + 1)  # noqa: S311
        self._stop = threading.Event()
        self._wrote = threading.Event()
        self._made = 0

    def run(self, replicas: Sequence[balancing.Replica]) -> None:
        jobs = (self._change, lambda: self._kill(replicas))
        threads = [threading.Thread(target=job) for job in jobs]
        self.room.entrance.came = self._noticed
        for replica in replicas:
            replica.launch()
        for thread in threads:
            thread.start()
        time.sleep(self.lasts_s)
        waiting.until("it kills", lambda: sum(self.kills.values()) >= KILLS)
        self._stop.set()
        for thread in threads:
            thread.join()
        self.room.entrance.came = lambda service, method, path: None

    def _noticed(self, service: str, method: str, path: str) -> None:
        if service != layout.KEYSTONE and method in balancing.WRITES:
            self._wrote.set()

    def _kill(self, replicas: Sequence[balancing.Replica]) -> None:
        """Kill one at a moment of chance, or both in the middle of a write."""
        while not self._stop.wait(self._killing.uniform(*PAUSES_S)):
            is_in_write = self._killing.random() < 0.4
            dying: Sequence[balancing.Replica] = replicas
            if is_in_write:
                self._wrote.clear()
                if not self._wrote.wait(15.0):
                    continue
                self._stop.wait(self._killing.choice([0.0, 0.1, 0.5]))
            else:
                dying = [self._killing.choice(list(replicas))]
            for replica in dying:
                if replica.kill():
                    self.kills["in a write" if is_in_write else "at random"] += 1
            self._stop.wait(self._killing.uniform(0.0, 2.0))
            for replica in replicas:
                replica.launch()

    def _change(self) -> None:
        while not self._stop.wait(CHANGE_S):
            alive = [
                name
                for name, service in self.room.services.all().items()
                if "deletionTimestamp" not in service["metadata"]
            ]
            choices: list[Callable[[], None]] = [self._nodes]
            if len(alive) < ALIVE:
                choices += [self._make] * 3
            if alive:
                chosen = self._random.choice(alive)
                choices += [functools.partial(self._alter, chosen)] * 3
            if len(alive) > 2:
                choices += [functools.partial(self._delete, chosen)]
            with contextlib.suppress(kube_errors.KubeError):
                self._random.choice(choices)()

    def _make(self) -> None:
        self._made += 1
        shared = [key for key in self.room.services.all() if "shared" in key]
        kind = self._random.choice([*convergence.KINDS, convergence.SHARED])
        if kind.is_shared and len(shared) >= 2:
            kind = convergence.KINDS[0]
        name = f"storm-{self._made}{'-shared' if kind.is_shared else ''}"
        self.room.services.make(
            name,
            kind.all_annotations(self.ground.own_id),
            kind.ports(1000 + 10 * self._made),
        )
        self.changes[f"Service made: {kind.name}"] += 1

    def _alter(self, name: str) -> None:
        port = 20000 + 10 * int("".join(filter(str.isdecimal, name)))
        choices: Mapping[str, Callable[[], None]] = {
            "ports": lambda: self.room.services.change(
                name,
                ports=[
                    services.port(port + at, self._random.choice(["TCP", "UDP"]))
                    for at in range(self._random.randint(1, 3))
                ],
            ),
            "a timeout": lambda: self._annotate(
                name, keys.TIMEOUT_CLIENT_DATA, str(self._random.randint(1000, 9000))
            ),
            "monitors": lambda: self._annotate(
                name, keys.ENABLE_MONITOR, self._random.choice(["true", "false"])
            ),
            "internal or not": lambda: self._turn(name),
        }
        chosen = self._random.choice(sorted(choices))
        choices[chosen]()
        self.changes[f"Service changed: {chosen}"] += 1

    def _annotate(self, name: str, key: str, value: str) -> None:
        self.room.services.change(name, {key: value})

    def _turn(self, name: str) -> None:
        if "shared" not in name:
            self._annotate(name, keys.INTERNAL, self._random.choice(["true", "false"]))

    def _delete(self, name: str) -> None:
        self.room.services.delete([name])
        self.changes["Service deleted"] += 1

    def _nodes(self) -> None:
        """Add, remove, or exclude one Node; the first always stays."""
        name = self._random.choice(list(self.room.nodes)[1:])
        node_labels = services.node_labels(self.room.api)
        if name not in node_labels:
            self.room.add_nodes([name])
            self.changes["Node added"] += 1
        elif self._random.random() < 0.5:
            services.delete_nodes(self.room.api, [name])
            self.changes["Node removed"] += 1
        else:
            value = None if convergence.EXCLUDED in node_labels[name] else "true"
            services.label_node(self.room.api, name, {convergence.EXCLUDED: value})
            self.changes["Node excluded, or included again"] += 1


def test_deaths_in_a_storm_of_changes(ground: Ground) -> None:
    """Then all converges, a restart writes nothing, and nothing is left over."""
    room = ground.room
    for replica in room.replicas.values():
        replica.stop()
    room.add_nodes(list(room.nodes)[:3])
    storm = Storm(ground)
    counted = Counted(room.entrance)
    replicas = [room.replica(number, convergence.LEASE, MANAGED) for number in (1, 2)]
    try:
        storm.run(replicas)
        for replica in replicas:
            replica.launch()
        took_s = convergence.settle(ground, is_managed=True)
    finally:
        for what, number in (*storm.kills.items(), *sorted(storm.changes.items())):
            print(f"{number:5} {what}")
        print(f"{len(counted.calls()):5} calls, {len(counted.writes())} writes")
    print(f"all is as desired {took_s:.0f} s after the storm of {storm.lasts_s:.0f} s")
    assert ground.changed() == []
    counted = convergence.started(room, 1, MANAGED)
    counted.rest(convergence.QUIET_S)
    print(f"a restart: {len(counted.calls())} calls, {len(counted.writes())} writes")
    assert counted.writes() == []
    room.services.delete(room.services.all())
    waiting.until("all are gone", lambda: not room.services.all())
    assert ground.left() == []

"""openstack-ccm, the PEX, in a storm: many Services at once, and many deaths.

It runs under the chart's rights against a real API server, Octavia and Neutron, which
it reaches through an entrance that sees all its calls. Things of others lie in the same
project, some with names like ours; they have to stay as they are to the last field.
"""

import contextlib
import dataclasses
import functools
import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.kube.kube_objects import Json
from lib.lab.openstack import layout, tenant
from tests.harness import testing, waiting
from tests.harness.openstack import balancer_watch, balancers, census
from tests.harness.openstack.balancers import ADDRESSES, BALANCERS, GROUPS, PORTS
from tests.harness.openstack.census import Census
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

AT_ONCE = testing.by_tier(10, 30)
STORM_S = testing.by_tier(25.0, 90.0)
"""How long the daemons are killed, unless MOORING_STORM_S says otherwise."""
PAUSES_S = testing.by_tier((1.0, 6.0), (2.0, 15.0))
"""Between two deaths."""
KILLS = testing.by_tier(3, 8)
"""The storm goes on until so many processes have been killed."""
CHANGE_S = 1.5
"""Between two changes of Services and Nodes."""
ALIVE = 10
"""So many Services are there at a time, at most, in the storm."""
NODES = 6
WITHIN_S = 600.0
QUIET_S = 6.0
SEED = 20261121
LEASE = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
MANAGED = {"manage-security-groups": "true"}
USERS_OWN = "users-own"
"""A load balancer that its user lets Services share, by its id."""
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
POLL_MEDIAN_S, POLL_LONGEST_S = 1.5, 5.0


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a Service asks for. is_shared: on the user's own load balancer."""

    name: str
    protocols: tuple[str, ...]
    is_internal: bool = False
    is_shared: bool = False
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def ports(self, first: int) -> list[Mapping[str, Any]]:
        return [services.port(first + at, one) for at, one in enumerate(self.protocols)]

    def all_annotations(self, own_id: str) -> Mapping[str, str]:
        found = dict(self.annotations)
        if self.is_internal:
            found[keys.INTERNAL] = "true"
        if self.is_shared:
            found[keys.LOAD_BALANCER_ID] = own_id
        return found


MONITORED = {keys.ENABLE_MONITOR: "true"}
KINDS = (
    Kind("one port", ("TCP",)),
    Kind("three, monitored", ("TCP", "TCP", "TCP"), annotations=MONITORED),
    Kind("internal", ("TCP",), is_internal=True),
    Kind("TCP and UDP", ("TCP", "UDP")),
    Kind("internal UDP", ("UDP",), is_internal=True),
)
SHARED = Kind("shared", ("TCP", "TCP"), is_shared=True)


def stranger(room: Room, name: str, tags: Sequence[str] = ()) -> str:
    """Have a load balancer with one listener and pool; give its id."""
    network = room.mine.connection.network
    inside = network.find_network(tenant.NETWORK, ignore_missing=False)
    pool = {"name": name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    listener = {"name": name, "protocol": "TCP", "protocol_port": 7}
    made = room.mine.connection.load_balancer.create_load_balancer(
        name=name,
        tags=list(tags),
        vip_subnet_id=inside.subnet_ids[0],
        listeners=[{**listener, "default_pool": pool}],
    )
    return str(made.id)


def inactive(room: Room, ids: Collection[str]) -> list[str]:
    """Say which of these load balancers is not ACTIVE, and what it is."""
    there = balancers.listed(room.mine.connection, BALANCERS)
    states = {id_: there[id_]["provisioning_status"] for id_ in ids if id_ in there}
    return [
        f"{id_} is {state}"
        for id_, state in states.items()
        if state != balancers.ACTIVE
    ]


def plant(room: Room, cluster_name: str) -> str:
    """Have things of others; give the id of the one load balancer for all to share."""
    namespace, network = room.services.namespace, room.mine.connection.network
    own = stranger(room, USERS_OWN)
    namesake = f"kube_service_{cluster_name}_{namespace}_at-once-0"
    other = stranger(room, namesake, [namesake, "mooring:another-cluster:uid"])
    foreign = [other, stranger(room, "somebody", ["kube_service_somebody"])]
    waiting.until("ACTIVE", lambda: not inactive(room, [own, *foreign]), WITHIN_S)
    there = balancers.listed(room.mine.connection, BALANCERS)
    text = (
        f"Floating IP for Kubernetes external service {namespace}/at-once-0"
        f" from cluster {cluster_name}"
    )
    outside = next(iter(network.networks(is_router_external=True)))
    for description, more in (
        ("of its user", {"port_id": there[own]["vip_port_id"]}),
        (
            f"{text} (mooring:another-cluster:uid)",
            {"port_id": there[other]["vip_port_id"]},
        ),
        (text, {}),
        ("", {}),
    ):
        network.create_ip(
            floating_network_id=outside.id, description=description, **more
        )
    network.create_security_group(
        name=f"lb-sg-uid-{namespace}-at-once-0",
        description="Security Group for a Service",
    )
    network.create_security_group(name="somebody")
    return own


@dataclasses.dataclass(frozen=True)
class Ground:
    """The room with what was there before. own_id: of the user's own load balancer."""

    room: Room
    own_id: str
    before: Census

    def changed(self) -> list[str]:
        """Say what of others has been changed or deleted."""
        changes = census.changes(self.before, census.take(self.room.mine.connection))
        foreign = self.before[BALANCERS].keys() - {self.own_id}
        return inactive(self.room, foreign) + [
            str(change)
            for change in changes
            if change.id in self.before[change.kind] and not self._is_lent(change)
        ]

    def _is_lent(self, change: census.Change) -> bool:
        """Nodes' ports get our groups, what is shared gets our tags, for a while."""
        nodes = self.room.nodes.values()
        if change.kind == PORTS:
            fixed = self.before[PORTS][change.id]["fixed_ips"]
            return any(one["ip_address"] in nodes for one in fixed)
        return change.kind == BALANCERS and change.id == self.own_id

    def left(self) -> list[str]:
        """Say what is there beyond what was there before, or otherwise than it was."""
        changes = census.changes(self.before, census.take(self.room.mine.connection))
        found = inactive(self.room, self.before[BALANCERS])
        return found + [str(change) for change in changes]


@pytest.fixture(scope="module")
def ground(open_room: balancing.Open) -> Ground:
    room = open_room("storm", NODES)
    own = plant(room, "mooring-lab")
    return Ground(room, own, census.take(room.mine.connection))


def wrong(ground: Ground, *, is_managed: bool) -> list[str]:
    """Say what in the cloud is not as the Services want it."""
    room = ground.room
    now = census.take(room.mine.connection)
    there = room.services.all()
    found = []
    for name, service in there.items():
        found += [f"{name}: {one}" for one in _wrong(ground, now, service)]
        if is_managed:
            found += [f"{name}: {one}" for one in _wrong_group(ground, now, service)]
    uids = {one["metadata"]["uid"] for one in there.values()}
    for kind in (BALANCERS, ADDRESSES, GROUPS):
        found += [
            f"{kind} of nobody: {one.get('name')} {one.get('description')}"
            for id_, one in now[kind].items()
            if id_ not in ground.before[kind] and not _is_of(one, uids)
        ]
    return found


def _is_of(one: Json, uids: set[str]) -> bool:
    said = [*one.get("tags", []), one.get("description") or ""]
    return any(uid in text for uid in uids for text in said)


def receivers(room: Room) -> set[str]:
    """Give the addresses of the Nodes that receive traffic."""
    return {
        room.nodes[name]
        for name, labels in services.node_labels(room.api).items()
        if EXCLUDED not in labels and name in room.nodes
    }


def _wrong(ground: Ground, now: Census, service: Json) -> Iterator[str]:
    uid = service["metadata"]["uid"]
    annotations = services.annotations(service)
    own = [
        one
        for one in now[BALANCERS].values()
        if any(tag.endswith(uid) for tag in one["tags"])
    ]
    if keys.LOAD_BALANCER_ID in annotations and not own:
        own = [now[BALANCERS][ground.own_id]]
    if len(own) != 1:
        yield f"{len(own)} load balancers"
        return
    (balancer,) = own
    if balancer["provisioning_status"] != balancers.ACTIVE:
        yield f"it is {balancer['provisioning_status']}"
    yield from _wrong_ports(ground, now, service, balancer)
    shown = services.addresses(service)
    port_id = balancer["vip_port_id"]
    ips = [
        one["floating_ip_address"]
        for one in now[ADDRESSES].values()
        if one["port_id"] == port_id
    ]
    is_internal = annotations.get(keys.INTERNAL) == "true"
    if shown != ([balancer["vip_address"]] if is_internal else ips):
        yield f"{shown} in its status, {ips} before {balancer['vip_address']}"
    if is_internal and ips:
        yield f"internal, with {ips}"


def _wrong_ports(
    ground: Ground, now: Census, service: Json, balancer: Json
) -> Iterator[str]:
    """Compare listeners and members with ports and Nodes."""
    tag = f"_{service['metadata']['namespace']}_{service['metadata']['name']}"
    listeners = {
        (one["protocol"], one["protocol_port"]): one
        for one in now[balancers.LISTENERS].values()
        if one["loadbalancers"][0]["id"] == balancer["id"]
        and (balancer["id"] != ground.own_id or tag in "".join(one["tags"]))
    }
    wanted = {(one["protocol"], one["port"]): one for one in service["spec"]["ports"]}
    if listeners.keys() != wanted.keys():
        yield f"listeners {sorted(listeners)}, ports {sorted(wanted)}"
        return
    for key, port in wanted.items():
        if not listeners[key]["default_pool_id"]:
            yield f"port {key}: no pool"
            continue
        members = {
            (one["address"], one["protocol_port"])
            for one in balancers.members(
                ground.room.mine.connection, listeners[key]["default_pool_id"]
            )
        }
        expected = {(one, port["nodePort"]) for one in receivers(ground.room)}
        if members != expected:
            yield f"port {key}: members {sorted(members)}, not {sorted(expected)}"


def _wrong_group(ground: Ground, now: Census, service: Json) -> Iterator[str]:
    """Compare security groups with ports, and who carries them with the Nodes."""
    uid = service["metadata"]["uid"]
    own = {id_ for id_, one in now[GROUPS].items() if f"lb-sg-{uid}" in one["name"]}
    if len(own) != 1:
        yield f"{len(own)} security groups"
        return
    (id_,) = own
    rules = {
        (one["protocol"].upper(), one["port_range_min"])
        for one in now[GROUPS][id_]["security_group_rules"]
        if one["direction"] == "ingress"
    }
    ports = service["spec"]["ports"]
    if rules != {(one["protocol"], one["nodePort"]) for one in ports}:
        yield f"rules {sorted(rules)}"
    carriers = {
        fixed["ip_address"]
        for port in now[PORTS].values()
        for fixed in port["fixed_ips"]
        if id_ in port["security_groups"]
    }
    if carriers != receivers(ground.room):
        yield f"its group is carried by {sorted(carriers)}"


def settle(ground: Ground, *, is_managed: bool = False) -> float:
    """Wait until all is as the Services want it; give the seconds that took."""
    began = time.monotonic()
    found: list[str] = []
    while time.monotonic() - began < WITHIN_S:
        waiting = [
            name
            for name, one in ground.room.services.all().items()
            if not services.addresses(one) or "deletionTimestamp" in one["metadata"]
        ]
        try:
            found = [f"{name} waits" for name in waiting]
            found = found or wrong(ground, is_managed=is_managed)
        except errors.LabError as error:
            found = [str(error)]  # what was just listed may be gone
        if not found:
            return time.monotonic() - began
        time.sleep(2.0)
    raise AssertionError("\n".join(found))


def started(room: Room, number: int, settings: Mapping[str, str]) -> Counted:
    """Have one replica only, with a new process; give its calls."""
    for one in room.replicas.values():
        one.stop()
    counted = Counted(room.entrance)
    room.replica(number, LEASE, settings).start()
    if room.services.all():
        asked = layout.OCTAVIA
        waiting.until(
            "it looks", lambda: any(call.service == asked for call in counted.calls())
        )
    return counted


def check_lags(lags: Sequence[float]) -> None:
    """Assert in the long tier only: it may have the machine for itself.

    The bound on the fake clock is tests/lib/balancers/flow_test.py's.
    """
    median, longest = statistics.median(lags), max(lags)
    print(
        f"median {median:.1f} s of {POLL_MEDIAN_S}, {longest:.1f} of {POLL_LONGEST_S}"
    )
    assert testing.by_tier(True, median <= POLL_MEDIAN_S and longest <= POLL_LONGEST_S)


def test_many_services_at_once(ground: Ground, where: places.Places) -> None:
    """All are served, each wait for Octavia ends soon, and deletion leaves nothing."""
    room = ground.room
    room.add_nodes(room.nodes)
    started(room, 1, {})
    counted = Counted(room.entrance)
    began = time.monotonic()
    with balancer_watch.Watch(layout.of(where)).opened() as watch:
        for at in range(AT_ONCE):
            is_shared = at in (AT_ONCE // 4, AT_ONCE // 2)
            kind = SHARED if is_shared else KINDS[at % len(KINDS)]
            name = f"at-once-{at}{'-shared' if is_shared else ''}"
            annotations = kind.all_annotations(ground.own_id)
            room.services.make(name, annotations, kind.ports(1000 + 10 * at))
        settle(ground)
        took_s = time.monotonic() - began
        counted.rest(QUIET_S)
    print(f"{AT_ONCE} Services are served after {took_s:.0f} s:")
    for what, number in sorted(counted.by_kind().items(), key=lambda one: -one[1]):
        print(f"{number:5} {what}")
    print(f"{len(counted.calls()):5} in all; {len(watch.turned)} times ACTIVE")
    lags = balancing.lags(watch.turned, counted.calls())
    print(f"asked after ACTIVE: {[round(lag, 1) for lag in sorted(lags)]} s")
    assert ground.changed() == []
    check_lags(lags)

    counted = started(room, 1, {})
    counted.rest(QUIET_S)
    assert counted.writes() == []
    began = time.monotonic()
    room.services.delete(room.services.all())
    waiting.until("all are gone", lambda: not room.services.all(), WITHIN_S)
    print(f"and gone after {time.monotonic() - began:.0f} s")
    assert ground.left() == []


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
        for one in replicas:
            one.launch()
        for thread in threads:
            thread.start()
        time.sleep(self.lasts_s)
        waiting.until("it kills", lambda: sum(self.kills.values()) >= KILLS, WITHIN_S)
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
            for one in dying:
                if one.kill():
                    self.kills["in a write" if is_in_write else "at random"] += 1
            self._stop.wait(self._killing.uniform(0.0, 2.0))
            for one in replicas:
                one.launch()

    def _change(self) -> None:
        while not self._stop.wait(CHANGE_S):
            there = [
                name
                for name, one in self.room.services.all().items()
                if "deletionTimestamp" not in one["metadata"]
            ]
            choices: list[Callable[[], None]] = [self._nodes]
            if len(there) < ALIVE:
                choices += [self._make] * 3
            if there:
                one = self._random.choice(there)
                choices += [functools.partial(self._alter, one)] * 3
            if len(there) > 2:
                choices += [functools.partial(self._delete, one)]
            with contextlib.suppress(kube_errors.KubeError):
                self._random.choice(choices)()

    def _make(self) -> None:
        self._made += 1
        shared = [one for one in self.room.services.all() if "shared" in one]
        kind = self._random.choice([*KINDS, SHARED])
        if kind.is_shared and len(shared) >= 2:
            kind = KINDS[0]
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
        """Let one Node come, go, or refuse traffic; the first always stays."""
        name = self._random.choice(list(self.room.nodes)[1:])
        there = services.node_labels(self.room.api)
        if name not in there:
            self.room.add_nodes([name])
            self.changes["Node added"] += 1
        elif self._random.random() < 0.5:
            services.delete_nodes(self.room.api, [name])
            self.changes["Node removed"] += 1
        else:
            value = None if EXCLUDED in there[name] else "true"
            services.label_node(self.room.api, name, {EXCLUDED: value})
            self.changes["Node excluded, or let in again"] += 1


def test_deaths_in_a_storm_of_changes(ground: Ground) -> None:
    """Then all converges, a restart writes nothing, and nothing is left over."""
    room = ground.room
    for one in room.replicas.values():
        one.stop()
    room.add_nodes(list(room.nodes)[:3])
    storm = Storm(ground)
    counted = Counted(room.entrance)
    replicas = [room.replica(number, LEASE, MANAGED) for number in (1, 2)]
    try:
        storm.run(replicas)
        for one in replicas:
            one.launch()
        took_s = settle(ground, is_managed=True)
    finally:
        for what, number in (*storm.kills.items(), *sorted(storm.changes.items())):
            print(f"{number:5} {what}")
        print(f"{len(counted.calls()):5} calls, {len(counted.writes())} writes")
    print(f"all is as wanted {took_s:.0f} s after the storm of {storm.lasts_s:.0f} s")
    assert ground.changed() == []
    counted = started(room, 1, MANAGED)
    counted.rest(QUIET_S)
    print(f"a restart: {len(counted.calls())} calls, {len(counted.writes())} writes")
    assert counted.writes() == []
    room.services.delete(room.services.all())
    waiting.until("all are gone", lambda: not room.services.all(), WITHIN_S)
    assert ground.left() == []

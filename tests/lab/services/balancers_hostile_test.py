"""openstack-ccm, the PEX, with a hostile tenant: Services with all bad values.

An editor of Services in one namespace writes what stopped or misled an earlier version:
patterns, IDs and owners of others, values of 200 KiB that change without end. Beside
them Services of others have to be served.
"""

import contextlib
import dataclasses
import functools
import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import psutil
import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import errors as kube_errors
from lib.lab.daemons import ccm
from lib.lab.run import processes, waiting
from tests.harness.daemons import probing
from tests.harness.openstack import balancers, inventory
from tests.harness.openstack.inventory import Inventory
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

HEALTHY = 24
TIMES = 2
"""Number of Services with each bad value; 26 in all."""
MOST_TIMES = 2
"""Longer than alone the healthy ones may take."""
MOST_BYTES = 200e6
"""Resident memory."""
HUGE = 200_000
"""Characters of a value. Source: Kubernetes, annotations: 256 KiB in all."""
EDIT_S = 0.5
EVENT_CHARACTERS = 1024
CALLS_EACH = 5
"""Of one bad Service in WATCH_S: a retry or two, with its reads."""
WATCH_S = 10.0
WITHIN_S = waiting.LIMIT_S
NOBODY = "00000000-0000-4000-8000-0000000000ee"
API_PORTS = (6443, 80)
"""Of the load balancer of others; the bad Services ask for the second one."""
INTERNAL: Mapping[str, str] = {keys.INTERNAL: "true"}


def bad_values(others: str) -> Mapping[str, Mapping[str, str]]:
    """Return annotations by name. others: ID of a load balancer of others."""
    taken = {keys.LOAD_BALANCER_ID: others, keys.OWNED_ID: others}
    pattern = keys.FLOATING_SUBNET
    return {
        "taken": taken,
        "taken-internal": {**taken, **INTERNAL},
        "repeats": {pattern: "~(.?){60}!"},
        "groups": {pattern: "*{,}" * 20 + "!"},
        "counter": {pattern: "~a{4294967296}"},
        "deep": {pattern: "~" + "(" * 3000 + ")" * 3000},
        "nested": {pattern: "~(((a{30}){30}){30})"},
        "huge": {keys.SUBNET_ID: "x" * HUGE},
        "huge-served": {keys.METHOD: "x" * HUGE, **INTERNAL},
        "container": {keys.TLS_REF: f"https://keys.example/v1/containers/{NOBODY}"},
        "path": {keys.SUBNET_ID: "../lbaas/%2f?x=#"},
        "terminal": {keys.CLASS: "\x1b[2K\x1b[1G\x07\u202egold"},
        "ranges": {keys.MEMBER_CIDR: ",".join(["10.0.0.0/8"] * 1000)},
    }


@dataclasses.dataclass(frozen=True)
class Ground:
    """The room, with a load balancer of others, and the tenant's namespace."""

    room: Room
    tenant: services.Services
    bad: Mapping[str, Mapping[str, str]]
    before: Inventory

    def changed(self) -> list[str]:
        """Return what of others is otherwise than before, field by field."""
        now = inventory.take(self.room.mine.connection)
        return [
            str(change)
            for change in inventory.changes(self.before, now)
            if change.id in self.before[change.kind]
        ]

    def process(self) -> psutil.Process:
        process = processes.find(self.room.replicas[1].place, ccm.NAME)
        assert process is not None, "it has exited"
        return process

    def unreported(self) -> list[str]:
        """Return the bad Services without a warning."""
        events = self.tenant.events()
        return [
            name
            for name in self.bad
            if not any(event.type == "Warning" for event in events.get(name, ()))
        ]


class Edits:
    """Replaces a value of 200 KiB by another one, without end."""

    def __init__(self, tenant: services.Services, names: Sequence[str]) -> None:
        self.count = 0
        self._tenant = tenant
        self._names = itertools.cycle(names)
        self._stop = threading.Event()

    def _run(self) -> None:
        while not self._stop.wait(EDIT_S):
            value = f"{self.count}".ljust(HUGE, "y")
            with contextlib.suppress(kube_errors.KubeError):
                self._tenant.change(next(self._names), {keys.METHOD: value})
                self.count += 1

    @contextlib.contextmanager
    def running(self) -> Iterator["Edits"]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(60)


@pytest.fixture(scope="module")
def ground(open_room: balancing.Open) -> Iterator[Ground]:
    room = open_room("hostile", 2)
    connection, network = room.mine.connection, room.mine.connection.network
    others = room.mine.add_load_balancer("kubernetes-api", API_PORTS)
    outside = next(iter(network.networks(is_router_external=True)))

    def balancer() -> balancers.Json:
        return balancers.look(connection).balancers[others]

    waiting.until(
        "ACTIVE", lambda: balancer()["provisioning_status"] == balancers.ACTIVE
    )
    network.create_ip(floating_network_id=outside.id, port_id=balancer()["vip_port_id"])
    room.add_nodes(room.nodes)
    bad = {
        f"{name}-{number}": values
        for name, values in bad_values(others).items()
        for number in range(TIMES)
    }
    tenant = services.Services(room.api, f"{room.services.namespace}-tenant")
    room.replica(1).start()
    try:
        yield Ground(room, tenant, bad, inventory.take(connection))
    finally:
        room.replicas[1].stop()
        tenant.abandon()


def served_s(room: Room) -> float:
    """Create the healthy Services; return the seconds until all are served."""
    names = [f"healthy-{number}" for number in range(HEALTHY)]
    counted, began = Counted(room.entrance), time.monotonic()
    for name in names:
        room.services.make(name, INTERNAL)

    def all_served() -> bool:
        existing = room.services.all()
        return all(services.addresses(existing[name]) for name in names)

    waiting.until("the healthy ones are served", all_served, poll_s=0.5)
    took_s = time.monotonic() - began
    print(f"{HEALTHY} Services: {took_s:.1f} s, {len(counted.calls())} calls")
    return took_s


def beside_bad_ones(ground: Ground) -> float:
    """Have all bad Services, of which some change without end, and healthy ones.

    Healthy ones of before are deleted first.
    """
    ground.room.services.delete(ground.room.services.all())
    for name, values in ground.bad.items():
        ground.tenant.make(name, values)
    waiting.until("each is reported", lambda: not ground.unreported(), poll_s=1.0)
    ground.room.services.clear()
    assert ground.changed() == []
    edited = [name for name in ground.bad if name.startswith("huge")]
    with Edits(ground.tenant, edited).running() as edits:
        took_s = served_s(ground.room)
        print(f"{edits.count} edits of {HUGE} characters")
        assert edits.count
    return took_s


def messages(ground: Ground) -> list[str]:
    return [
        event.message
        for recorded in ground.tenant.events().values()
        for event in recorded
    ]


def calls_of_bad_ones(ground: Ground) -> int:
    """Count the calls for all bad Services in WATCH_S."""
    counted = Counted(ground.room.entrance)
    time.sleep(WATCH_S)
    calls = len(counted.calls())
    print(f"{calls} calls in {WATCH_S:.0f} s for {len(ground.bad)} bad Services")
    return calls


def test_a_hostile_tenant_harms_nobody_else(ground: Ground) -> None:
    """The others are served, probes are answered, and what is of others stays."""
    room, process = ground.room, ground.process()
    ask = functools.partial(ccm.ask, room.replicas[1].place, timeout_s=60)
    with probing.Prober(ask, ("/livez", "/healthz")).running() as prober:
        alone_s = served_s(room)
        beside_s = beside_bad_ones(ground)
        calls = calls_of_bad_ones(ground)
        size = process.memory_info().rss
        print(
            f"{len(ground.bad)} bad Services; healthy ones {alone_s:.1f} s alone,"
            f" {beside_s:.1f} s beside them; RSS {size / 1e6:.0f} MB;"
            f" {prober.probed} probes, {len(prober.unanswered)} without an answer"
        )
        assert ground.changed() == []
        texts = messages(ground)
        for namespace in (room.services, ground.tenant):
            namespace.delete(namespace.all())
        for namespace in (room.services, ground.tenant):
            namespace.clear()
    assert prober.unwell == []
    assert ground.process().pid == process.pid, "it was restarted"
    assert calls <= CALLS_EACH * len(ground.bad)
    assert [text for text in texts if len(text) > EVENT_CHARACTERS] == []
    assert [text for text in texts if not text.isprintable()] == []
    assert ground.changed() == []
    now = inventory.take(room.mine.connection)
    assert now[balancers.BALANCERS].keys() == ground.before[balancers.BALANCERS].keys()
    assert size <= MOST_BYTES
    if beside_s > MOST_TIMES * alone_s:
        # The tenant, or a machine that has more to do by now?
        assert beside_s <= MOST_TIMES * served_s(room)

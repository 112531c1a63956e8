"""openstack-ccm, the PEX, when its Lease is deleted: who writes to the cloud.

Two replicas stand behind an entrance each, so the calls show their author. Services
are changed without end, so the leader has to write without end.
"""

import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Iterator

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab.daemons import ccm
from lib.lab.kube import kube_objects
from lib.lab.run import processes, waiting
from tests.harness.openstack import balancers, front
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

LEASE = ("kube-system", "cloud-controller-manager")
LEASE_S = 4.0
FLAGS = (
    f"--leader-elect-lease-duration={LEASE_S:.0f}s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
SERVICES = ("one", "two")
WRITES = 4
"""Of each leader, before its Lease is deleted and after it was taken over."""
TURNS = ("first", "second")
LOST = '"msg": "lost leadership"'


@dataclasses.dataclass(frozen=True)
class Held:
    """Holder of the Lease; empty: not held. since: after it was read; until: before the
    next read, by the monotonic clock."""

    holder: str
    asked_at: float
    seen_at: float


class Watch:
    """Reads the Lease repeatedly."""

    def __init__(self, api: client.Api) -> None:
        self._leases = kube_objects.Objects(api, LEASE[0])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.history: list[Held] = []

    def holder(self) -> str:
        lease = self._leases.get(resources.LEASES, LEASE[1]) or {}
        return str(lease.get("spec", {}).get("holderIdentity") or "")

    def delete(self) -> None:
        self._leases.delete(resources.LEASES, LEASE[1])

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            asked_at = time.monotonic()
            with contextlib.suppress(kube_errors.KubeError):
                holder = self.holder()
                self.history.append(Held(holder, asked_at, time.monotonic()))

    @contextlib.contextmanager
    def opened(self) -> Iterator["Watch"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(60)


class Changes:
    """Changes a setting of each Service's listener without end."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        value = 10_000
        while not self._stop.wait(1.0):
            value += 1
            for name in SERVICES:
                with contextlib.suppress(kube_errors.KubeError):
                    self._room.services.change(
                        name, {keys.TIMEOUT_CLIENT_DATA: str(value)}
                    )

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(60)


@pytest.fixture(scope="module")
def rooms(open_room: balancing.Open) -> Iterator[dict[int, Room]]:
    """Return one project behind two entrances; the replica of that number uses each."""
    room = open_room("lease", 2)
    room.add_nodes(room.nodes)
    with front.of(room.where).opened() as entrance:
        second = dataclasses.replace(room, entrance=entrance, replicas={})
        try:
            yield {1: room, 2: second}
        finally:
            for replica in second.replicas.values():
                replica.stop()


def is_served(room: Room, name: str) -> bool:
    return services.addresses(room.services.get(name)) != []


def is_lost(room: Room, number: int) -> bool:
    log = room.replicas[number].place.log / f"{ccm.NAME}.log"
    return LOST in log.read_text()


def has_exited(room: Room, number: int) -> bool:
    return processes.find(room.replicas[number].place, ccm.NAME) is None


def one_round(rooms: dict[int, Room], watch: Watch, leader: int, follower: int) -> str:
    """Delete the Lease under a leader that writes."""
    before = Counted(rooms[leader].entrance)
    waiting.until("the leader writes", lambda: len(before.writes()) >= WRITES)
    name = watch.holder()
    assert name
    old, new = Counted(rooms[leader].entrance), Counted(rooms[follower].entrance)
    deleted_at = time.monotonic()
    watch.delete()
    gone_at = time.monotonic()  # a read that began before may show the old holder
    waiting.until("the follower writes", lambda: len(new.writes()) >= WRITES)
    waiting.until("it exits", lambda: has_exited(rooms[leader], leader))
    assert is_lost(rooms[leader], leader)
    taken = [row for row in watch.history if row.asked_at > gone_at and row.holder]
    assert taken
    assert name not in {row.holder for row in taken}, "it led without a new start"
    last_write = max((call.at for call in old.writes()), default=deleted_at)
    first_write = min(call.at for call in new.writes())
    assert last_write < taken[0].seen_at, "a write after another one held the Lease"
    assert first_write > deleted_at
    free = [h for h in watch.history if deleted_at < h.asked_at < taken[0].asked_at]
    assert free, "the Lease was never seen without a holder"
    assert first_write > free[-1].asked_at, "a write before it held the Lease"
    return (
        f"replica {leader}: last write {last_write - deleted_at:.1f} s after the"
        f" deletion; replica {follower}: holds the Lease after"
        f" {taken[0].seen_at - deleted_at:.1f} s, first write after"
        f" {first_write - deleted_at:.1f} s"
    )


def test_a_leader_whose_lease_is_deleted_writes_no_more(rooms: dict[int, Room]) -> None:
    """It exits; only the next leader writes, and only once it holds the Lease."""
    room = rooms[1]
    shown: dict[str, str] = {}
    room.replica(1, FLAGS).start()
    with Watch(room.api).opened() as watch:
        waiting.until("the first one leads", watch.holder)
        rooms[2].replica(2, FLAGS).start()
        for name in SERVICES:
            room.services.make(name, {keys.INTERNAL: "true"})
        for name in SERVICES:
            waiting.until(
                f"{name} is served",
                functools.partial(is_served, room, name),
            )
        try:
            with Changes(room).opened():
                shown["first"] = one_round(rooms, watch, 1, 2)
                if "second" in TURNS:
                    room.replica(1, FLAGS).start()
                    idle = Counted(room.entrance)
                    shown["second"] = one_round(rooms, watch, 2, 1)
                    assert idle.writes()
        finally:
            for turn in TURNS:
                print(f"{turn:7} {shown.get(turn, 'MISSING')}")
    assert shown.keys() == set(TURNS)
    load_balancers = balancers.listed(room.mine.connection, balancers.BALANCERS)
    assert len(load_balancers) == len(SERVICES)

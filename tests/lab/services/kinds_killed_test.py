"""Octavia is killed while it changes load balancers: their states never end.

One is being created, one changed and one deleted. An administrator's remedy ends it.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.openstack import lab as openstack
from lib.lab.openstack import layout
from lib.lab.run import processes, progress, waiting
from lib.lab.slots import leases
from tests.harness.openstack import balancers
from tests.harness.services import balancing, kinds, services
from tests.harness.services.balancing import Room

INTERNAL = {keys.INTERNAL: "true"}
FLAGS = ("--lb-drift-period=10s",)
PENDING = "LoadBalancerPending"
REMEDY = "an administrator must set its provisioning_status to ERROR"


@dataclasses.dataclass(frozen=True)
class Stuck:
    """A write of a Service's load balancer during which Octavia is killed."""

    name: str
    state: str
    method: str
    begin: Callable[[Room], object]


def is_created(room: Room) -> None:
    room.services.make("created", INTERNAL)


def is_changed(room: Room) -> None:
    ports = [services.port(80), services.port(443)]
    room.services.change("changed", ports=ports)


def is_deleted(room: Room) -> None:
    room.services.delete(["deleted"])


STUCK: Sequence[Stuck] = (
    Stuck("created", "PENDING_CREATE", "POST", is_created),
    Stuck("changed", "PENDING_UPDATE", "POST", is_changed),
    Stuck("deleted", "PENDING_DELETE", "DELETE", is_deleted),
)


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Iterator[Room]:
    room = open_room("killed", 2)
    room.add_nodes(room.nodes)
    room.replica(1, FLAGS).start()
    leases.mark_damaged(room.where, "load balancers stay in PENDING_*")
    yield room
    release(room)


def states(room: Room) -> dict[str, str]:
    with room.states() as read:
        return dict(read.all())


def release(room: Room) -> None:
    """Do what the Event asks of an administrator."""
    for id_, state in states(room).items():
        if state.startswith("PENDING_"):
            balancers.set_status(layout.of(room.where), id_, "ERROR")


def kill_during(room: Room, stuck: Stuck) -> float:
    """Kill Octavia when it has accepted a write; return when. It is started again."""
    killed: list[float] = []

    def kill(
        service: str, method: str, path: str, status: int, body: bytes
    ) -> tuple[int, bytes]:
        is_write = service == layout.OCTAVIA and method == stuck.method
        if is_write and status < 300 and not killed:
            octavia = processes.find(room.where, layout.OCTAVIA)
            assert octavia is not None
            octavia.kill()
            octavia.wait(10)
            killed.append(time.monotonic())
        return status, body

    room.entrance.forge, usual = kill, room.entrance.forge
    try:
        stuck.begin(room)
        waiting.until(f"Octavia is killed: {stuck.name}", lambda: killed)
    finally:
        room.entrance.forge = usual
    openstack.up(room.where, progress.Silent())
    return killed[0]


def test_a_killed_octavia_leaves_states_that_are_reported(room: Room) -> None:
    """An Event on each Service after five minutes, until an administrator acts."""
    for name in ("changed", "deleted"):
        room.services.make(name, INTERNAL)
        kinds.served(room, name)
    began = {stuck.name: kill_during(room, stuck) for stuck in STUCK}
    assert sorted(states(room).values()) == sorted(stuck.state for stuck in STUCK)
    for stuck in STUCK:
        (message,) = kinds.reported(room, stuck.name, PENDING)
        took_s = time.monotonic() - began[stuck.name]
        print(f"{took_s:.0f} s after the kill: {message}")
        assert stuck.state in message
        assert REMEDY in message
    assert sorted(states(room).values()) == sorted(stuck.state for stuck in STUCK)
    release(room)
    waiting.until("deleted is deleted", lambda: "deleted" not in room.services.all())
    room.services.clear()
    waiting.until("no load balancer is left", lambda: not states(room))

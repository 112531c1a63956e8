"""Kinds of faults that take minutes: a killed Octavia, and long lies about absence."""

import json
import time
from collections.abc import Iterator

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.openstack import lab as openstack
from lib.lab.openstack import layout
from lib.lab.run import processes, progress, waiting
from lib.lab.slots import leases
from tests.harness.openstack import balancers, front
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

INTERNAL = {keys.INTERNAL: "true"}
FLAGS = ("--lb-drift-period=10s",)
LIE_S = 300.0
PENDING = "LoadBalancerPending"


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Iterator[Room]:
    room = open_room("kinds-long", 2)
    room.add_nodes(room.nodes)
    room.replica(1, FLAGS).start()
    yield room
    leases.mark_damaged(room.where, "a load balancer is in PENDING_UPDATE for ever")


def served(room: Room, name: str) -> list[str]:
    waiting.until(
        f"{name} is served", lambda: services.addresses(room.services.get(name))
    )
    return services.addresses(room.services.get(name))


def ids(room: Room) -> set[str]:
    return set(balancers.listed(room.mine.connection, balancers.BALANCERS))


def hidden(share: str) -> front.Forge:
    """Return what hides load balancers: all, every second one, or pages of lists."""

    def forge(
        service: str, method: str, path: str, status: int, body: bytes
    ) -> tuple[int, bytes]:
        if service != layout.OCTAVIA or method != "GET" or status != 200:
            return status, body
        _, _, one = path.partition("?")[0].partition("/lbaas/loadbalancers/")
        if one:
            lacks = share == "all" or int(one.partition("-")[0], 16) % 2
            fault = {
                "faultcode": "Client",
                "faultstring": "Not found.",
                "debuginfo": "",
            }
            return (404, json.dumps(fault).encode()) if lacks else (status, body)
        document = json.loads(body)
        items = document.get("loadbalancers")
        if items is None:
            return status, body
        kept = [] if share == "all" else items[: len(items) // 2]
        return status, json.dumps({"loadbalancers": kept}).encode()

    return forge


@pytest.mark.parametrize("share", ["all", "some"])
def test_absence_for_minutes_and_over_a_restart(room: Room, share: str) -> None:
    names = [f"{share}-{number}" for number in range(6)]
    for name in names:
        room.services.make(name, INTERNAL)
    before = {name: served(room, name) for name in names}
    existing, counted = ids(room), Counted(room.entrance)
    room.entrance.forge, usual = hidden(share), room.entrance.forge
    try:
        time.sleep(LIE_S / 2)
        room.replicas[1].kill()
        room.replicas[1].start()
        time.sleep(LIE_S / 2)
    finally:
        room.entrance.forge = usual
    time.sleep(30)
    assert counted.writes() == []
    assert {name: served(room, name) for name in names} == before
    assert ids(room) == existing
    room.services.clear()


def test_a_killed_octavia_leaves_a_state_that_is_reported(room: Room) -> None:
    """PENDING_UPDATE never ends: an Event after five minutes, with the remedy."""
    room.services.make("stuck", INTERNAL)
    served(room, "stuck")
    killed: list[float] = []

    def kill(
        service: str, method: str, path: str, status: int, body: bytes
    ) -> tuple[int, bytes]:
        is_change = service == layout.OCTAVIA and method in ("POST", "PUT")
        if is_change and status < 300 and not killed:
            octavia = processes.find(room.where, layout.OCTAVIA)
            assert octavia is not None
            octavia.kill()
            octavia.wait(10)
            killed.append(time.monotonic())
        return status, body

    room.entrance.forge, usual = kill, room.entrance.forge
    try:
        ports = [services.port(80), services.port(443)]
        room.services.change("stuck", ports=ports)
        waiting.until("Octavia is killed", lambda: killed)
    finally:
        room.entrance.forge = usual
    openstack.up(room.where, progress.Silent())
    (balancer_id,) = ids(room)
    with room.states() as states:
        assert states.all()[balancer_id] == "PENDING_UPDATE"
        waiting.until(
            "it is reported",
            lambda: [
                event
                for event in room.services.events().get("stuck", ())
                if event.reason == PENDING
            ],
        )
        took_s = time.monotonic() - killed[0]
        assert states.all()[balancer_id] == "PENDING_UPDATE"
    (event,) = (e for e in room.services.events()["stuck"] if e.reason == PENDING)
    print(f"{took_s:.0f} s after the kill: {event.message}")
    assert balancer_id in event.message
    assert "an administrator must set its provisioning_status to ERROR" in event.message

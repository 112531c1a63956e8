"""Octavia is killed while it changes a load balancer: the state never ends."""

import time
from collections.abc import Iterator

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.openstack import lab as openstack
from lib.lab.openstack import layout
from lib.lab.run import processes, progress, waiting
from lib.lab.slots import leases
from tests.harness.openstack import balancers
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Room

INTERNAL = {keys.INTERNAL: "true"}
FLAGS = ("--lb-drift-period=10s",)
PENDING = "LoadBalancerPending"


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Iterator[Room]:
    room = open_room("killed", 2)
    room.add_nodes(room.nodes)
    room.replica(1, FLAGS).start()
    leases.mark_damaged(room.where, "a load balancer stays in PENDING_UPDATE")
    yield room
    room.services.abandon()


def ids(room: Room) -> set[str]:
    return set(balancers.listed(room.mine.connection, balancers.BALANCERS))


def test_a_killed_octavia_leaves_a_state_that_is_reported(room: Room) -> None:
    """PENDING_UPDATE never ends: an Event after five minutes, with the remedy."""
    room.services.make("stuck", INTERNAL)
    waiting.until(
        "stuck is served", lambda: services.addresses(room.services.get("stuck"))
    )
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

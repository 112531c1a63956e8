"""Octavia hides load balancers for minutes, with a restart of the daemon between."""

import json
import time

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.openstack import layout
from tests.harness.openstack import front
from tests.harness.services import balancing, kinds
from tests.harness.services.balancing import Counted, Room

INTERNAL = {keys.INTERNAL: "true"}
FLAGS = ("--lb-drift-period=10s",)
LIE_S = 120.0


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    room = open_room("hidden", 2)
    room.add_nodes(room.nodes)
    room.replica(1, FLAGS).start()
    return room


def hidden(share: str) -> front.Forge:
    """Return what hides load balancers: all, every second one, or pages of lists."""

    def forge(
        service: str, method: str, path: str, status: int, body: bytes
    ) -> tuple[int, bytes]:
        if service != layout.OCTAVIA or method != "GET" or status != 200:
            return status, body
        _, _, id_ = path.partition("?")[0].partition("/lbaas/loadbalancers/")
        if id_:
            lacks = share == "all" or int(id_.partition("-")[0], 16) % 2
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
    before = {name: kinds.served(room, name) for name in names}
    existing, counted = kinds.ids(room), Counted(room.entrance)
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
    assert {name: kinds.served(room, name) for name in names} == before
    assert kinds.ids(room) == existing
    room.services.clear()

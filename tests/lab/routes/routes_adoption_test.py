"""A cluster's routes pass from the reference to openstack-ccm and back.

podCIDRs are of IPv4 alone: of two address pairs of one port, which the reference writes
at the same time and without a revision, one may be lost, and it adds none to a route
that exists.
"""

import time

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.run import ports, processes, waiting
from tests.harness import testing
from tests.harness.routing import real
from tests.harness.services import reference

NODES = range(1, 6)
PASSES_S = 8.0
"""So long the reference looks for something to change, every two seconds."""


@pytest.fixture(scope="module")
def room(where: places.Places, open_room: real.Open) -> real.RoutingRoom:
    programs.build(where, [reference.GROUP], testing.shown())
    new_room = open_room("adoption")
    new_room.families = 1
    return new_room


def start_reference(room: real.RoutingRoom) -> None:
    """Start the reference's route controller alone, behind the entrance."""
    where, file = room.where, room.where.state / "reference-routes.conf"
    file.write_text(room.conf())
    program = programs.path(where, reference.CCM)
    words = [
        word
        for word in reference.arguments(
            where, program, file, "kubernetes", ("node-route-controller",)
        )
        if not word.startswith("--configure-cloud-routes")
    ]
    words += [
        "--configure-cloud-routes=true",
        "--allocate-node-cidrs=true",
        f"--cluster-cidr={real.PODS.split(',')[0]}",
        "--route-reconciliation-period=2s",
    ]
    processes.start(where, reference.CCM, words)
    port = where.port(reference.PORT)
    processes.wait_for(where, reference.CCM, lambda: not ports.free(port))


def writes(room: real.RoutingRoom, since: float) -> list[str]:
    return [c for c in room.neutron_calls(since) if not c.startswith("GET")]


def test_the_reference_ours_and_the_reference_again(room: real.RoutingRoom) -> None:
    """openstack-ccm writes its record alone; the reference finds nothing to change."""
    for number in NODES:
        room.add(number)
    start_reference(room)
    room.served(NODES)
    reference.stop_ccm(room.where)
    routes, pairs = room.inside.routes(), room.inside.pairs()
    nodes = room.conditions()
    assert len(routes) == len(NODES)

    at = time.monotonic()
    replica = room.replica()
    replica.start()
    waiting.until("the record is there", room.record)
    time.sleep(PASSES_S)
    assert writes(room, at) == []
    ((_, text),) = room.record().items()
    assert (text.count('["route"'), text.count('["pair"')) == (5, 5)
    assert (room.inside.routes(), room.inside.pairs()) == (routes, pairs)
    assert room.conditions() == nodes

    print("openstack-ccm: 0 writes of Neutron, 5 routes and 5 pairs recorded")

    room.add(9)
    room.served([*NODES, 9])
    replica.stop()
    at = time.monotonic()
    start_reference(room)
    waiting.until("it reads", lambda: room.neutron_calls(at))
    time.sleep(PASSES_S)
    assert writes(room, at) == []
    print(f"the reference again: {len(room.neutron_calls(at))} calls, 0 writes")
    reference.stop_ccm(room.where)

    replica.start()
    room.delete(room.name(9))
    room.served(NODES)
    waiting.until(
        "its pairs are removed",
        lambda: f"server-{room.name(9)}" not in room.inside.pairs(),
    )

"""openstack-ccm, the PEX, when Octavia fails, and when a leader crashes in between.

It reaches the lab's real Octavia and Neutron through an entrance that can refuse and
hold back calls.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.openstack import balancers
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

WINDOW_S = 12.0
"""How long Octavia refuses, at least."""
CALLS_MAX = 12
"""In that time, of all services: a circuit opens soon, and is probed now and then."""
CALL_S = 12.0
LOST_S = CALL_S + 3
"""A creation reaches Octavia after the time-out of its request."""
HELD_S = 8.0
"""A creation arrives this long after the crash of its sender: past the Lease."""
SYNC_FAILED = "SyncLoadBalancerFailed"
LEASE = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
INTERNAL = {keys.INTERNAL: "true"}


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    new_room = open_room("balancer-faults", 2)
    new_room.add_nodes(new_room.nodes)
    return new_room


@contextlib.contextmanager
def creation_held(room: Room, release: threading.Event) -> Iterator[threading.Event]:
    """Keep the next creation from reaching Octavia until `release`; set the event."""
    arrived = threading.Event()

    def hold(service: str, method: str, path: str) -> None:
        is_creation = method == "POST" and path.endswith("/lbaas/loadbalancers")
        if is_creation and not arrived.is_set():
            arrived.set()
            release.wait(120)

    usual, room.entrance.came = room.entrance.came, hold
    try:
        yield arrived
    finally:
        release.set()
        room.entrance.came = usual


def served(room: Room, name: str) -> float:
    return waiting.until(
        f"{name} is served",
        lambda: services.addresses(room.services.get(name)) != [],
    )


def made(room: Room) -> set[str]:
    """Return the ids of all load balancers that there are."""
    return set(balancers.listed(room.mine.connection, balancers.BALANCERS))


def creations(counted: Counted) -> list[int]:
    """Return the answers to creations."""
    return [
        call.status
        for call in counted.calls()
        if call.method == "POST" and call.path.endswith("/lbaas/loadbalancers")
    ]


def delete(room: Room, name: str) -> None:
    room.services.delete([name])
    waiting.until(f"{name} is gone", lambda: room.services.get(name) is None)
    assert made(room) == set()


def failures(room: Room, name: str) -> list[str]:
    return [
        f"{event.message} (x {event.count})"
        for event in room.services.events().get(name, ())
        if event.reason == SYNC_FAILED
    ]


def test_an_answer_comes_too_late(room: Room) -> None:
    """A creation that Octavia receives after the time-out is adopted."""
    room.replica(1, LEASE, timeout_s=CALL_S).start()
    counted = Counted(room.entrance)
    release = threading.Event()
    with creation_held(room, release) as arrived:
        room.services.make("late", INTERNAL)
        assert arrived.wait(60)
        time.sleep(LOST_S)
        release.set()
        took_s = served(room, "late")
    waiting.until("one load balancer", lambda: len(made(room)) == 1)
    print(
        f"{failures(room, 'late')}; served {took_s:.1f} s after that;"
        f" creations: {creations(counted)}"
    )
    assert len(failures(room, "late")) == 1
    assert creations(counted) == [201]
    delete(room, "late")


def test_octavia_refuses_while_a_service_waits(room: Room) -> None:
    """One Event reports it; it costs few calls, and is served once Octavia recovers."""
    counted = Counted(room.entrance)
    tried = 0

    def count(service: str, method: str, path: str) -> None:
        del service, method, path
        nonlocal tried
        tried += 1

    usual, room.entrance.came = room.entrance.came, count
    room.entrance.down.add(layout.OCTAVIA)
    try:
        room.services.make("refused", INTERNAL)
        waiting.until(SYNC_FAILED, lambda: failures(room, "refused") != [])
        before = tried
        time.sleep(WINDOW_S)
        calls, reported = tried - before, failures(room, "refused")
    finally:
        room.entrance.down.clear()
        room.entrance.came = usual
    took_s = served(room, "refused")
    print(f"{reported}; {calls} calls; served {took_s:.1f} s after that")
    assert len(reported) == 1
    assert calls <= CALLS_MAX
    assert len(creations(counted)) == 1
    delete(room, "refused")


def test_a_leader_dies_while_it_makes_a_load_balancer(room: Room) -> None:
    """The next one waits for what may still appear, and one load balancer is made."""
    room.replica(1, LEASE, timeout_s=CALL_S).start()
    waiting.until("the first one leads", lambda: is_leading(room, 1))
    room.replica(2, LEASE, timeout_s=CALL_S).start()
    counted = Counted(room.entrance)
    release = threading.Event()
    with creation_held(room, release) as arrived:
        room.services.make("orphan", INTERNAL)
        assert arrived.wait(60)
        died = time.monotonic()
        room.replicas[1].kill()
        # Octavia gets it when another one leads already.
        time.sleep(HELD_S)
        release.set()
        served(room, "orphan")
    print(f"served {time.monotonic() - died:.1f} s after the crash of the leader")
    assert is_leading(room, 2)
    assert creations(counted) == [201]
    assert len(made(room)) == 1
    delete(room, "orphan")


def is_leading(room: Room, number: int) -> bool:
    log = room.replicas[number].place.log / "openstack-ccm.log"
    return '"msg": "became leader"' in log.read_text()

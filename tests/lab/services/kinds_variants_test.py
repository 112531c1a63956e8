"""More of each kind of fault than the default tier has, on Octavia and API server."""

import dataclasses
import time
from collections.abc import Callable

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import resources
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.kube import denying_webhook
from tests.harness.services import balancing, kinds, services
from tests.harness.services.balancing import Counted, Room

INTERNAL = {keys.INTERNAL: "true"}
FLAGS = ("--lb-drift-period=10s",)
CALL_S = 10.0
BODY_S = 30.0
OTHERS_S = 40.0
MOST_WRITES = 12
CLASS = "example.org/other"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    room = open_room("variants", 2)
    room.add_nodes(room.nodes)
    room.replica(1, FLAGS, timeout_s=CALL_S).start()
    return room


@pytest.fixture(autouse=True)
def _cleared(room: Room) -> None:
    """Begin without Services and load balancers, with a daemon that runs."""
    room.services.clear()
    waiting.until("no load balancer is left", lambda: not kinds.ids(room))


# ---------------------------------------------------------------- denied writes


def test_denied_annotations_are_an_event(room: Room) -> None:
    """The load balancer is made once, and its address is shown later."""
    namespace = room.services.namespace
    with denying_webhook.denying(room.api, namespace, resources.SERVICES):
        room.services.make("noted", INTERNAL)
        (message,) = kinds.reported(room, "noted", kinds.SYNC_FAILED)
        print(message)
        assert denying_webhook.MESSAGE in message
        time.sleep(15)
        assert len(kinds.ids(room)) == 1
    kinds.served(room, "noted")
    assert len(kinds.ids(room)) == 1


def test_a_denied_end_of_a_service_is_an_event(room: Room) -> None:
    room.services.make("ends", INTERNAL)
    kinds.served(room, "ends")
    namespace = room.services.namespace
    with denying_webhook.denying(room.api, namespace, resources.SERVICES, "status"):
        room.services.delete(["ends"])
        (message,) = kinds.reported(room, "ends", kinds.SYNC_FAILED)
        print(message)
        assert "failed to remove load balancer cleanup finalizer" in message
        assert denying_webhook.MESSAGE in message
    waiting.until("it is deleted", lambda: not room.services.all())


def test_a_webhook_that_is_down_is_an_event(room: Room) -> None:
    namespace = room.services.namespace
    with denying_webhook.denying(
        room.api, namespace, resources.SERVICES, "status", is_down=True
    ) as name:
        room.services.make("down", INTERNAL)
        (message, *_) = kinds.reported(room, "down", kinds.SYNC_FAILED)
        print(message)
        assert f'failed calling webhook "{name}"' in message
    kinds.served(room, "down")


# ---------------------------------------------------------------- slow bodies


@dataclasses.dataclass(frozen=True)
class Slow:
    """Which answers arrive at a byte a second."""

    service: str
    methods: tuple[str, ...]

    def pace(self, service: str, method: str, path: str) -> float:
        del path
        is_slow = service == self.service and method in self.methods
        return 1.0 if is_slow else 0.0


@pytest.mark.parametrize(
    "slow",
    [
        Slow(layout.NEUTRON, ("GET",)),
        Slow(layout.KEYSTONE, ("GET", "POST")),
        Slow(layout.OCTAVIA, ("POST", "PUT", "DELETE")),
    ],
    ids=["Neutron's reads", "tokens", "Octavia's writes"],
)
def test_answers_without_an_end(room: Room, slow: Slow) -> None:
    """A write of unknown outcome is not sent twice, and nobody else waits for it."""
    room.services.make("before", INTERNAL)
    before = kinds.served(room, "before")
    room.entrance.pace, usual = slow.pace, room.entrance.pace
    names = [f"during-{number}" for number in range(3)]
    try:
        for name in names:
            room.services.make(name, INTERNAL)
        time.sleep(BODY_S)
    finally:
        room.entrance.pace = usual
    began = time.monotonic()
    for name in names:
        kinds.served(room, name)
    print(f"served {time.monotonic() - began:.1f} s after the answers were whole again")
    assert kinds.served(room, "before") == before
    assert len(kinds.ids(room)) == len(names) + 1


# ---------------------------------------------------------------- two writers

_UNKNOWN = "another client, perhaps "
"""A client that only removes fields manages none."""
WRITERS: dict[str, tuple[dict[str, object], str, str]] = {
    "it removes an annotation": (
        {"metadata": {"annotations": {keys.OWNED_ID: None}}},
        f"annotation {keys.OWNED_ID}",
        _UNKNOWN,
    ),
    "it removes the finalizer": (
        {"metadata": {"finalizers": None}},
        f"finalizer {FINALIZER}",
        _UNKNOWN,
    ),
    "it writes another address as annotation": (
        {"metadata": {"annotations": {keys.LOAD_BALANCER_ADDRESS: "192.0.2.98"}}},
        f"annotation {keys.LOAD_BALANCER_ADDRESS}",
        kinds.OTHER,
    ),
}


@pytest.mark.parametrize("row", WRITERS)
def test_two_writers_of_metadata(room: Room, row: str) -> None:
    patch, field, other = WRITERS[row]
    name = f"contested-{[*WRITERS].index(row)}"
    room.services.make(name, INTERNAL)
    kinds.served(room, name)
    counted = Counted(room.entrance)
    with kinds.other_writer(room, name, patch) as times:
        (message,) = kinds.reported(room, name, kinds.CONTESTED)
        time.sleep(max(0.0, OTHERS_S - (time.monotonic() - times[0])))
        count = len(times)
    print(f"{count} writes; {message}")
    assert message.startswith(field)
    assert f"is changed back by {other}" in message
    assert count <= MOST_WRITES
    assert counted.writes() == []


# ---------------------------------------------------------------- class after type


def _at_once(room: Room) -> None:
    room.services.change("moved", type="ClusterIP")
    room.services.change("moved", type="LoadBalancer", loadBalancerClass=CLASS)


def _deleted(room: Room) -> None:
    _at_once(room)
    room.services.delete(["moved"])


def _there_and_back(room: Room) -> None:
    _at_once(room)
    room.services.change("moved", type="ClusterIP", loadBalancerClass=None)


@pytest.mark.parametrize("is_down", [False, True], ids=["it runs", "it is down"])
@pytest.mark.parametrize(
    "change", [_at_once, _deleted, _there_and_back], ids=["class", "deleted", "back"]
)
def test_a_class_after_the_type(
    room: Room, change: Callable[[Room], None], is_down: bool
) -> None:
    """Nothing is left of the load balancer, and the Service can be deleted."""
    room.services.make("moved", INTERNAL)
    kinds.served(room, "moved")
    if is_down:
        room.replicas[1].stop()
    change(room)
    if is_down:
        room.replicas[1].start()
    waiting.until("its load balancer is deleted", lambda: not kinds.ids(room))

    def is_left() -> bool:
        service = room.services.get("moved")
        return service is not None and bool(
            service["metadata"].get("finalizers") or services.addresses(service)
        )

    waiting.until("nothing of it is left on the Service", lambda: not is_left())

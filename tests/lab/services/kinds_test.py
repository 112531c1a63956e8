"""Kinds of faults that cost addresses or hide from users, on Octavia and API server.

One of each kind: a cloud that lies about absence, a Service that changes hands, writes
that a webhook denies, answers without an end, and two writers of one field.
"""

import json
import time

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
"""Time-out of one call of the cloud."""
LIE_S = 40.0
"""Twice as long as it took until everything was created again."""
BODY_S = 20.0
OTHERS_S = 40.0
MOST_WRITES = 12
"""Of a contested field in so long."""
OTHER_ADDRESS = "192.0.2.99"


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    room = open_room("kinds", 2)
    room.add_nodes(room.nodes)
    room.replica(1, FLAGS, timeout_s=CALL_S).start()
    return room


def absent(
    service: str, method: str, path: str, status: int, body: bytes
) -> tuple[int, bytes]:
    """Answer as if there were no load balancers: what an empty read replica does."""
    if service != layout.OCTAVIA or method != "GET" or status != 200:
        return status, body
    _, is_one, _ = path.partition("?")[0].partition("/lbaas/loadbalancers/")
    if is_one:
        fault = {"faultcode": "Client", "faultstring": "Load Balancer not found."}
        return 404, json.dumps(fault | {"debuginfo": None}).encode()
    if "loadbalancers" in json.loads(body):
        return status, b'{"loadbalancers": [], "loadbalancers_links": []}'
    return status, body


def test_a_cloud_that_reports_all_as_absent_costs_no_address(room: Room) -> None:
    """Lists are empty and each read is a 404, for longer than two drift checks."""
    names = [f"here-{number}" for number in range(4)]
    for name in names:
        room.services.make(name, INTERNAL)
    before = {name: kinds.served(room, name) for name in names}
    existing = kinds.ids(room)
    counted = Counted(room.entrance)
    room.entrance.forge, usual = absent, room.entrance.forge
    try:
        began = time.monotonic()
        waiting.until(
            "the absences are reported",
            lambda: all(
                "absent at the same time"
                in "".join(kinds.warnings(room, name, kinds.SYNC_FAILED))
                for name in names
            ),
        )
        time.sleep(max(0.0, LIE_S - (time.monotonic() - began)))
    finally:
        room.entrance.forge = usual
    counted.rest(0.5)
    time.sleep(12)
    assert counted.writes() == []
    assert {name: kinds.served(room, name) for name in names} == before
    assert kinds.ids(room) == existing
    room.services.clear()


def test_a_class_after_the_type_leaks_nothing(room: Room) -> None:
    """Type ClusterIP, then LoadBalancer with a class, while the daemon is down."""
    room.services.make("moved", INTERNAL)
    kinds.served(room, "moved")
    assert len(kinds.ids(room)) == 1
    room.replicas[1].stop()
    room.services.change("moved", type="ClusterIP")
    room.services.change(
        "moved", type="LoadBalancer", loadBalancerClass="example.org/other"
    )
    room.replicas[1].start()
    waiting.until("its load balancer is deleted", lambda: not kinds.ids(room))
    waiting.until(
        "the finalizer is removed",
        lambda: not (room.services.get("moved") or {})["metadata"].get("finalizers"),
    )
    service = room.services.get("moved") or {}
    assert services.addresses(service) == []
    assert not [key for key in services.annotations(service) if "mooring" in key]
    room.services.clear()


def test_a_denied_write_is_an_event_of_its_service(room: Room) -> None:
    """A real validating webhook denies the status; once it allows it, all goes on."""
    namespace = room.services.namespace
    with denying_webhook.denying(
        room.api, namespace, resources.SERVICES, "status"
    ) as name:
        room.services.make("denied", INTERNAL)
        (message,) = kinds.reported(room, "denied", kinds.SYNC_FAILED)
        print(message)
        text = f'admission webhook "{name}" denied the request'
        assert f"{text}: {denying_webhook.MESSAGE}" in message
        assert services.addresses(room.services.get("denied")) == []
    kinds.served(room, "denied")
    room.services.clear()


def slow(service: str, method: str, path: str) -> float:
    """Send a byte a second of what Octavia answers to reads."""
    is_read = service == layout.OCTAVIA and method == "GET" and "lbaas" in path
    return 1.0 if is_read else 0.0


def test_answers_without_an_end_stop_no_service(room: Room) -> None:
    """Each is given up at its deadline: with whole bodies a new Service is served."""
    room.services.make("before", INTERNAL)
    before = kinds.served(room, "before")
    room.entrance.pace, usual = slow, room.entrance.pace
    try:
        room.services.make("during", INTERNAL)
        time.sleep(BODY_S)
    finally:
        room.entrance.pace = usual
    began = time.monotonic()
    kinds.served(room, "during")
    print(f"served {time.monotonic() - began:.1f} s after the answers were whole again")
    assert kinds.served(room, "before") == before
    room.services.clear()


def test_two_writers_do_not_write_without_end(room: Room) -> None:
    """The field is left to the other for a while, and an Event names both."""
    room.services.make("contested", INTERNAL)
    kinds.served(room, "contested")
    ingress = {"loadBalancer": {"ingress": [{"ip": OTHER_ADDRESS}]}}
    with kinds.other_writer(room, "contested", {"status": ingress}, "status") as times:
        (message,) = kinds.reported(room, "contested", kinds.CONTESTED)
        time.sleep(max(0.0, OTHERS_S - (time.monotonic() - times[0])))
        count = len(times)
    print(f"{count} writes; {message}")
    assert kinds.OTHER in message
    assert "status.loadBalancer" in message
    assert count <= MOST_WRITES
    room.services.clear()

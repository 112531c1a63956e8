"""What tests of the kinds of faults share: events of Services, and another writer."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator

from lib.kube import resources
from lib.lab.run import waiting
from tests.harness.openstack import balancers
from tests.harness.services import services
from tests.harness.services.balancing import Room

SYNC_FAILED = "SyncLoadBalancerFailed"
CONTESTED = "FieldContested"
OTHER = "other-controller"
WRITE_S = 10.0


def served(room: Room, name: str) -> list[str]:
    """Wait until a Service has an address; return its addresses."""
    waiting.until(
        lambda: f"{name} is served: {room.services.events().get(name)}",
        lambda: services.addresses(room.services.get(name)),
    )
    return services.addresses(room.services.get(name))


def warnings(room: Room, name: str, reason: str) -> list[str]:
    """Return the messages of a Service's Events of one reason."""
    events = room.services.events().get(name, ())
    return [event.message for event in events if event.reason == reason]


def reported(room: Room, name: str, reason: str) -> set[str]:
    """Wait for an Event of a Service; return the messages of that reason."""
    waiting.until(f"{name}: {reason}", lambda: warnings(room, name, reason))
    return set(warnings(room, name, reason))


def ids(room: Room) -> set[str]:
    """Return the IDs of the project's load balancers."""
    return set(balancers.listed(room.mine.connection, balancers.BALANCERS))


@contextlib.contextmanager
def other_writer(
    room: Room, name: str, patch: dict[str, object], subresource: str | None = None
) -> Iterator[list[float]]:
    """Have another controller repeat a patch each time it was changed back.

    Yields the times of its writes.
    """
    times: list[float] = []
    stop = threading.Event()
    body = json.dumps(patch).encode()

    def write() -> None:
        last = ""
        while not stop.wait(0.1):
            service = room.services.get(name)
            version = service["metadata"]["resourceVersion"] if service else last
            if version == last:
                continue
            answer = room.api.patch(
                resources.SERVICES,
                name,
                body,
                room.services.namespace,
                subresource=subresource,
                timeout_s=WRITE_S,
                query={"fieldManager": OTHER},
            )
            last = json.loads(answer)["metadata"]["resourceVersion"]
            if last != version:
                times.append(time.monotonic())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield times
    finally:
        stop.set()
        thread.join()

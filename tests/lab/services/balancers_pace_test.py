"""Ten Services of two ports on the real Octavia: how long users wait, and calls.

Side by side: as many load balancers in progress as Octavia can take, one, and all ten
from the beginning. Seconds and calls are printed, since both depend on the machine.
"""

import statistics
import time

import pytest

from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.services import balancing, convergence, services
from tests.harness.services.balancing import Counted, Room

COUNT = 10
NODES = 3
QUIET_S = 6.0


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    return open_room("pace", NODES)


def served(room: Room) -> int:
    """Count the Services with an address."""
    return sum(bool(services.ingress(each)) for each in room.services.all().values())


def shown(room: Room, counted: Counted) -> str:
    """Return calls, polls, and what POST and DELETE of Octavia took."""
    texts = [f"{len(counted.calls())} calls, {len(counted.polls())} of them polls"]
    for method in ("POST", "DELETE"):
        took = [
            call.ended - call.at
            for call in counted.writes()
            if call.method == method and call.service == layout.OCTAVIA
        ]
        if took:
            median, most = statistics.median(took), max(took)
            texts.append(f"{len(took)} {method}: median {median:.1f}, max {most:.1f} s")
    return "; ".join(texts)


@pytest.mark.parametrize(
    "flags",
    [("--lb-max-writes=1",), ("--concurrent-service-syncs=10",), ()],
    ids=["one at a time", "all ten at a time", "as many as it can take"],
)
def test_ten_services_created_and_deleted_together(
    room: Room, flags: tuple[str, ...]
) -> None:
    """All get an address and no request times out; deletion leaves nothing."""
    room.add_nodes(room.nodes)
    room.replica(1, (*convergence.LEASE, *flags), {}).start()
    counted = Counted(room.entrance)
    began = time.monotonic()
    for number in range(COUNT):
        ports = [services.port(1000 + number), services.port(2000 + number)]
        room.services.make(f"pace-{number}", {}, ports)
    addresses: list[float] = []

    def all_served() -> bool:
        new = served(room) - len(addresses)
        addresses.extend([time.monotonic() - began] * new)
        return len(addresses) == COUNT

    waiting.until("all have an address", all_served, poll_s=0.5)
    counted.rest(QUIET_S)
    first, mean, last = min(addresses), statistics.mean(addresses), max(addresses)
    print(f"{flags or 'usual'}: first {first:.0f}, mean {mean:.0f}, last {last:.0f} s")
    print(shown(room, counted))
    assert all(call.ended - call.at < 60 for call in counted.calls())
    gone = Counted(room.entrance)
    began = time.monotonic()
    room.services.delete(room.services.all())
    waiting.until("all are gone", lambda: not room.services.all(), poll_s=0.5)
    print(f"deleted after {time.monotonic() - began:.0f} s; {shown(room, gone)}")

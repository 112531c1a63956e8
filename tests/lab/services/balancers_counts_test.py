"""What openstack-ccm, the PEX, asks of the lab's real Octavia and Neutron, in calls.

All calls are counted at an entrance to the cloud, with polls, authentication and
discovery of API versions. The reference's figures were counted in the same way.
"""

import dataclasses
import time
from collections.abc import Callable

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab import places
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch, balancers
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

NODES = 10
PORTS = 20
MANY = 10
CHANGES = 5
MOST_CREATE = 40
MOST_CREATE_MANY = 140
MOST_RESTART_MANY = 30
MOST_DELETE_MANY = 90
"""Bounds that grow with the numbers above, in calls."""
QUIET_S = 4.0
IDLE_S = 20.0
DRIFT_S = 12
MONITORED = {keys.ENABLE_MONITOR: "true"}
TWO = (services.port(80), services.port(443))


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table. bound: calls, at most.

    reference: what it needs, for the numbers of the long tier.
    """

    what: str
    bound: int
    reference: str


CREATE = Row(f"create: {PORTS} ports, monitors, {NODES} Nodes", MOST_CREATE, "82-90")
NO_CHANGE = Row("a change that changes nothing", 8, "64")
RESTART = Row("restart with this one", 20, "110")
DRIFT = Row("a drift check of this one", 20, "-")
DELETE = Row("delete it", 12, "12-16")
NODE = Row("one Node added, 2 ports", 14, "27")
CREATE_MANY = Row(f"create {MANY} of 2 ports, {NODES} Nodes", MOST_CREATE_MANY, "242")
NOTHING = Row(f"{IDLE_S:.0f} s of nothing, with these {MANY}", 0, "0")
RESTART_MANY = Row(f"restart with these {MANY}", MOST_RESTART_MANY, "146")
DELETE_MANY = Row(f"delete these {MANY}", MOST_DELETE_MANY, "111")
ROWS = (
    CREATE,
    NO_CHANGE,
    RESTART,
    DRIFT,
    DELETE,
    NODE,
    CREATE_MANY,
    NOTHING,
    RESTART_MANY,
    DELETE_MANY,
)


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Room:
    new_room = open_room("counts", NODES + 1)
    new_room.add_nodes(list(new_room.nodes)[:NODES])
    return new_room


class Story:
    """Counts step by step; what was counted, by row."""

    def __init__(self, room: Room, watch: balancer_watch.Watch) -> None:
        self.room = room
        self.watch = watch
        self.services = room.services
        self.shown: dict[Row, tuple[int, int, float, str]] = {}

    def count(self, row: Row, do: Callable[[], object]) -> None:
        """Do something, wait until it has ended, and count the calls."""
        began = time.monotonic()
        counted = Counted(self.room.entrance)
        do()
        took_s = time.monotonic() - began
        counted.rest(QUIET_S)
        kinds = sorted(counted.by_kind().items(), key=lambda item: -item[1])
        shown = ", ".join(f"{number} {kind}" for kind, number in kinds)
        late = counted.late_polls()
        self.shown[row] = (len(counted.calls()) - late, late, took_s, shown)

    def show(self) -> None:
        print(f"{'':38} ours bound reference late polls")
        for row in ROWS:
            calls, late, took_s, kinds = self.shown.get(row, (-1, 0, 0.0, "MISSING"))
            print(
                f"{row.what:38} {calls:4} {row.bound:5} {row.reference:>9} {late:10}"
                f" {took_s:6.1f} s  {kinds}"
            )

    def restart(self, *flags: str) -> None:
        """Restart the daemon, and wait until it has read the cloud."""
        replica = self.room.replica(1, flags)
        counted = Counted(self.room.entrance)
        replica.start()
        waiting.until("it looks", lambda: is_looked(counted))

    def make(self, *names: str) -> None:
        for name in names:
            self.services.make(name, ports=TWO)
        self.served(*names)

    def served(self, *names: str) -> None:
        def all_have() -> bool:
            existing = self.services.all()
            return all(services.addresses(existing[name]) for name in names)

        waiting.until("they have addresses", all_have)

    def delete(self, *names: str) -> None:
        self.services.delete(names)
        gone = set(names)
        waiting.until("gone", lambda: not gone & self.services.all().keys())


def is_looked(counted: Counted) -> bool:
    return any(call.service == layout.OCTAVIA for call in counted.calls())


def one_large(story: Story) -> None:
    """A Service of many ports from its creation to its end."""
    ports = [services.port(1000 + number) for number in range(PORTS)]

    def create() -> None:
        story.services.make("large", MONITORED, ports)
        story.served("large")

    story.count(CREATE, create)
    with story.room.states() as states:
        assert states.members() == PORTS * NODES
    connection = story.room.mine.connection
    assert len(balancers.listed(connection, balancers.MONITORS)) == PORTS
    story.count(
        NO_CHANGE, lambda: story.services.change("large", {"example.com/note": "x"})
    )
    story.count(RESTART, lambda: story.restart(f"--lb-drift-period={DRIFT_S}s"))
    counted = Counted(story.room.entrance)
    story.count(
        DRIFT,
        lambda: waiting.until("a drift check", lambda: is_looked(counted)),
    )
    counted = Counted(story.room.entrance)
    story.restart()
    counted.rest(QUIET_S)
    story.count(DELETE, lambda: story.delete("large"))


def one_small(story: Story) -> None:
    """One Node more, and then some changes of which each makes Octavia busy."""
    story.make("small")
    (last,) = list(story.room.nodes)[NODES:]

    def add() -> None:
        story.room.add_nodes([last])
        want = len(TWO) * (NODES + 1)
        with story.room.states() as states:
            waiting.until("members", lambda: states.members() == want)

    story.count(NODE, add)
    for value in range(1, CHANGES + 1):
        counted = Counted(story.room.entrance)
        change = {keys.TIMEOUT_CLIENT_DATA: str(10000 + value)}
        story.services.change("small", change)
        counted.rest(QUIET_S)
    story.delete("small")
    services.delete_nodes(story.room.api, [last])


def many(story: Story) -> None:
    names = [f"many-{number}" for number in range(MANY)]
    story.count(CREATE_MANY, lambda: story.make(*names))
    story.count(NOTHING, lambda: time.sleep(IDLE_S))
    story.count(RESTART_MANY, story.restart)
    story.count(DELETE_MANY, lambda: story.delete(*names))


def test_calls_of_the_cloud_are_few(room: Room, where: places.Places) -> None:
    """Each bound holds, and Octavia is asked only a few times for each change."""
    with balancer_watch.Watch(layout.of(where)).opened() as watch:
        story, counted = Story(room, watch), Counted(room.entrance)
        try:
            room.replica(1).start()
            one_large(story)
            one_small(story)
            lags = balancing.lags(watch.turned, room.entrance.calls)
            many(story)
            polls_each = counted.polls_each(len(watch.turned))
        finally:
            story.show()
    print(balancing.promptness(lags))
    print(f"{polls_each:.1f} polls for each of {len(watch.turned)} times ACTIVE")
    assert len(lags) >= 5, "the watch has seen changes"
    assert polls_each <= balancing.POLLS_EACH
    assert story.shown.keys() == set(ROWS)
    over = {
        row.what: shown for row, shown in story.shown.items() if shown[0] > row.bound
    }
    assert over == {}
    left = balancers.look(room.mine.connection)
    assert (left.balancers, left.floating_ips) == ({}, {})

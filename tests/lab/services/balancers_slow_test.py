"""openstack-ccm, the PEX, with an Octavia that takes long for each change.

The polls of a load balancer back off with the time that its own changes took, so calls
do not grow with that time. Octavia itself is made slow, in its database: the write that
ends a change of this project takes some seconds more.
"""

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from lib.lab.openstack import database, layout
from lib.lab.run import waiting
from tests.harness.services import balancing, services
from tests.harness.services.balancing import Counted, Room

SLOW_S = 5
"""That a change takes more than usual."""
NODES = 4
"""Of which the last ones are added later."""
LATER = 2
MANY = 10
NODE_CALLS, CREATE_CALLS = 14, 140
"""At most: of one Node added to 2 ports, and of MANY new Services. Polls for which only
a busy machine is the reason are printed and not counted."""
FIRST_CALLS = 44
"""Without a history; see the changelog of openstack-ccm."""
QUIET_S = 2.5 * SLOW_S
TWO = (services.port(80), services.port(443))
TRIGGER = "octavia.slow_changes"
EACH_CHANGE = "BEFORE UPDATE ON octavia.load_balancer FOR EACH ROW"


@contextlib.contextmanager
def slow(home: layout.Layout, project_id: str) -> Iterator[None]:
    """Delay the changes of a project's load balancers in Octavia.

    Other projects do not notice, also when this process is killed.

    Source: MariaDB, CREATE TRIGGER; SLEEP.
    """
    if not project_id.isalnum():
        raise ValueError("the ID of a project is required")
    ends = (
        f"NEW.project_id = '{project_id}' AND NEW.provisioning_status = 'ACTIVE'"
        " AND OLD.provisioning_status LIKE 'PENDING%'"
    )
    database.run(
        home,
        f"CREATE OR REPLACE TRIGGER {TRIGGER} {EACH_CHANGE}"
        f" SET @slept = IF({ends}, SLEEP({SLOW_S}), 0)",
    )
    try:
        yield
    finally:
        database.run(home, f"DROP TRIGGER IF EXISTS {TRIGGER}")


@pytest.fixture(scope="module")
def room(open_room: balancing.Open) -> Iterator[Room]:
    new_room = open_room("slow", NODES)
    project_id = str(new_room.mine.connection.current_project_id)
    with slow(layout.of(new_room.where), project_id):
        new_room.add_nodes(list(new_room.nodes)[:-LATER])
        new_room.replica(1).start()
        yield new_room


def cost(room: Room, do: Callable[[], object], done: Callable[[], object]) -> Counted:
    """Do something; return the calls until it is done and nothing is in progress."""
    counted = Counted(room.entrance)
    do()
    waiting.until("done", done, poll_s=0.5)
    counted.rest(QUIET_S)
    return counted


def told(what: str, counted: Counted, most: int) -> int:
    late = counted.late_polls(SLOW_S)
    calls, polls = len(counted.calls()) - late, len(counted.polls())
    kinds = sorted(counted.by_kind().items(), key=lambda item: -item[1])
    print(f"{what}: {calls} calls of {most}, {polls} polls, {late} late; {kinds}")
    return calls


def add_node(room: Room, name: str) -> Counted:
    with room.states() as states:
        count = states.members() + len(TWO)
        return cost(
            room, lambda: room.add_nodes([name]), lambda: states.members() == count
        )


def test_a_slow_octavia_costs_no_more_calls(room: Room) -> None:
    """One Node for 2 ports; then several Services in parallel.

    The first change of a load balancer shows how long its changes take.
    """

    def all_served(*names: str) -> Callable[[], bool]:
        def seen() -> bool:
            existing = room.services.all()
            return all(services.addresses(existing[name]) for name in names)

        return seen

    began = time.monotonic()
    cost(room, lambda: room.services.make("two", ports=TWO), all_served("two"))
    assert time.monotonic() - began > SLOW_S, "Octavia is not slow"
    first, second = list(room.nodes)[-LATER:]
    told("the first Node", add_node(room, first), FIRST_CALLS)
    node = told("one Node added, 2 ports", add_node(room, second), NODE_CALLS)
    names = [f"new-{number}" for number in range(MANY)]

    def create() -> None:
        for name in names:
            room.services.make(name, ports=TWO)

    what = f"{MANY} Services of 2 ports"
    created = cost(room, create, all_served(*names))
    create_calls = told(what, created, CREATE_CALLS)
    assert node <= NODE_CALLS
    assert create_calls <= CREATE_CALLS

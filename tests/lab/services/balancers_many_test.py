"""openstack-ccm, the PEX, with many Services in parallel.

It runs under the chart's rights against a real API server, Octavia and Neutron, which
it reaches through an entrance that sees all its calls. Things of others lie in the same
project, some with names like ours; they have to stay as they are to the last field.
"""

import time

import pytest

from lib.lab import places
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch
from tests.harness.services import balancing, convergence
from tests.harness.services.balancing import Counted
from tests.harness.services.convergence import Ground

AT_ONCE = 30
"""The last two are on one load balancer."""


@pytest.fixture(scope="module")
def ground(open_room: balancing.Open) -> Ground:
    return convergence.open_ground(open_room, "many")


def test_many_services_at_once(ground: Ground, where: places.Places) -> None:
    """All are served, few polls wait for each change, and deletion leaves nothing."""
    room = ground.room
    room.add_nodes(room.nodes)
    convergence.started(room, 1, {})
    counted = Counted(room.entrance)
    began = time.monotonic()
    with balancer_watch.Watch(layout.of(where)).opened() as watch:
        for at in range(AT_ONCE):
            is_shared = at >= AT_ONCE - 2
            usual = convergence.KINDS[at % len(convergence.KINDS)]
            kind = convergence.SHARED if is_shared else usual
            name = f"at-once-{at}{'-shared' if is_shared else ''}"
            annotations = kind.all_annotations(ground.own_id)
            room.services.make(name, annotations, kind.ports(1000 + 10 * at))
        convergence.settle(ground)
        took_s = time.monotonic() - began
        counted.rest(convergence.QUIET_S)
    print(f"{AT_ONCE} Services are served after {took_s:.0f} s:")
    for what, number in sorted(counted.by_kind().items(), key=lambda item: -item[1]):
        print(f"{number:5} {what}")
    print(f"{len(counted.calls()):5} in all; {len(watch.turned)} times ACTIVE")
    lags = balancing.lags(watch.turned, counted.calls())
    polls_each = counted.polls_each(len(watch.turned))
    print(f"{polls_each:.1f} polls each; {balancing.promptness(lags)}")
    assert ground.changed() == []
    assert polls_each <= balancing.POLLS_EACH

    counted = convergence.started(room, 1, {})
    counted.rest(convergence.QUIET_S)
    assert counted.writes() == []
    began = time.monotonic()
    room.services.delete(room.services.all())
    waiting.until("all are gone", lambda: not room.services.all())
    print(f"and gone after {time.monotonic() - began:.0f} s")
    assert ground.left() == []

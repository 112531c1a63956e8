"""openstack-ccm, the PEX, keeps routes through faults of the lab's real Neutron.

Forced 409, 412 and 429, a Neutron that hangs, a limit that is reached, a daemon that is
killed at random, and bad input: the other Nodes are served, and retries are few.
"""

import contextlib
import os
import random
import threading
import time
import uuid
from collections import Counter

import pytest

from lib.cloud.routes import Route
from lib.kube import resources
from lib.lab.daemons import ccm
from lib.lab.openstack import cloud, layout
from lib.lab.run import waiting
from tests.harness.openstack import testing
from tests.harness.routing import real

NODES = range(1, 7)
CALL_S, HANG_S = 8.0, 20.0
"""A call may take so long, and Neutron hangs longer."""
RELOADED = '"msg": "configuration reloaded"'
STORM_S = 40.0
KILLS, SLOW_S = 3, 180.0
"""Kills at least; where processes start slowly, so much time more than STORM_S."""
REFUSED_S = 10.0
PERIOD_S = 2.0
CALLS_OF_CHECK = 4
"""Of a check for drift that finds a write to be due: the router, all again, a write."""
RETRIES = 8
"""With backoff, beside the checks for drift: of 1 s, 2 s, and so on."""
LIMIT = 30
"""Routes of a router, Neutron's own default. Source: neutron, router_route quota."""
FULL = 54
"""The Node whose port takes no more address pairs."""
WITHOUT_CIDR = 59
"""The Node that has no podCIDR."""
PAIRS = 10
"""Address pairs of a port. Source: neutron, max_allowed_address_pair."""


@pytest.fixture(scope="module")
def room(open_room: real.Open) -> real.RoutingRoom:
    new_room = open_room("faults")
    for number in NODES:
        new_room.add(number)
    new_room.replica().start()
    new_room.served(NODES)
    return new_room


@pytest.fixture(scope="module")
def without_cidr(room: real.RoutingRoom) -> int:
    """Register a Node without podCIDR, which is reported after a minute; its number.

    Earlier tests that ask for it let that minute pass.
    """
    addresses = room.inside.add_port(f"server-{room.name(WITHOUT_CIDR)}")
    room.register(room.name(WITHOUT_CIDR), addresses, [])
    return WITHOUT_CIDR


@pytest.mark.parametrize("status", [409, 412, 429])
def test_refused_writes_are_retried(room: real.RoutingRoom, status: int) -> None:
    """For 10 s every write is refused: checks go on, and retries are few."""
    number = {409: 11, 412: 12, 429: 13}[status]

    def refuse(service: str, method: str, path: str) -> int:
        del path
        return status if (service, method) == (layout.NEUTRON, "PUT") else 0

    room.entrance.refuse = refuse
    at = time.monotonic()
    try:
        room.add(number)
        time.sleep(REFUSED_S)
        calls, took = Counter(room.neutron_calls(at)), time.monotonic() - at
    finally:
        room.entrance.refuse = lambda service, method, path: 0
    most = CALLS_OF_CHECK * (took / PERIOD_S + 1 + RETRIES)
    print(f"{status}: {calls.total()} calls in {took:.0f} s, at most {most:.0f}")
    print(calls)
    room.served([*NODES, number])
    room.delete(room.name(number))
    room.served(NODES)
    assert calls.total() <= most
    assert [c for c in calls if c.startswith("PUT")], "nothing was refused"


def test_a_port_that_keepalived_writes_keeps_all_pairs(room: real.RoutingRoom) -> None:
    """Its pair comes between the read and the write: a 412 of Neutron's own."""
    name = f"server-{room.name(14)}"
    once = threading.Event()

    def came(service: str, method: str, path: str) -> None:
        is_write = (service, method) == (layout.NEUTRON, "PUT") and "/ports/" in path
        if is_write and not once.is_set():
            once.set()
            room.inside.put_pair(name, "198.51.100.77/32")

    usual, room.entrance.came = room.entrance.came, came
    try:
        room.add(14)
        room.served([*NODES, 14])
    finally:
        room.entrance.came = usual
    assert once.is_set()
    statuses = [c.status for c in list(room.entrance.calls) if c.method == "PUT"]
    assert 412 in statuses
    assert room.inside.pairs()[name] == {*room.cidrs(14), "198.51.100.77/32"}
    room.delete(room.name(14))
    waiting.until(
        "its own pair is left",
        lambda: room.inside.pairs().get(name) == {"198.51.100.77/32"},
    )


def reload(room: real.RoutingRoom, text: str) -> None:
    """Change cloud.conf, and wait until the daemon has read it."""
    log = room.replicas[0].place.log / f"{ccm.NAME}.log"
    before = log.read_text().count(RELOADED)
    room.file().write_text(text)
    waiting.until("reloaded", lambda: log.read_text().count(RELOADED) > before)


def test_neutron_hangs(room: real.RoutingRoom, token: str) -> None:
    """No condition changes; what came in the meantime is served afterwards."""
    reload(room, room.conf(call_s=CALL_S))
    before = room.conditions()
    release = threading.Event()

    def came(service: str, method: str, path: str) -> None:
        del method, path
        if service == layout.NEUTRON:
            release.wait(HANG_S)

    usual, room.entrance.came = room.entrance.came, came
    try:
        room.add(15)
        time.sleep(HANG_S)
        now = room.conditions()
        now.pop(room.name(15))
        assert now == before
        assert ccm.ask(room.replicas[0].place, "/livez")[0] == 200
    finally:
        release.set()
        room.entrance.came = usual
    room.served([*NODES, 15])
    reload(room, room.conf())
    room.delete(room.name(15))
    room.served(NODES)
    waiting.until(
        "no problem is left", lambda: not room.problems(room.replicas[0], token)
    )


def test_the_limit_of_routes(room: real.RoutingRoom, token: str) -> None:
    """30 are Neutron's default: 15 Nodes keep theirs, the 16th gets them later."""
    older, last = [*NODES, *range(21, 30)], 30
    assert 2 * len(older) == LIMIT
    for number in older[len(NODES) :]:
        room.add(number)
    time.sleep(1.5)  # creation times are whole seconds
    room.add(last)
    waiting.until(
        "the last is not served",
        lambda: room.conditions()[room.name(last)] == ("True", "NoRouteCreated"),
    )
    waiting.until(
        "the others are", lambda: room.inside.routes() == room.expected(older)
    )
    served = {room.conditions()[room.name(n)] for n in older}
    assert served == {real.SERVED}
    events = [e for e in room.events(room.name(last)) if "takes no more routes" in e]
    assert len(events) == 2, "one for each family"
    problems = room.problems(room.replicas[0], token)
    print(problems)
    assert set(problems) == {"RouteLimitReached"}
    real.quiet(room)
    at = time.monotonic()
    time.sleep(3 * PERIOD_S)
    calls = room.neutron_calls(at)
    print(f"{len(calls)} calls in {3 * PERIOD_S:.0f} s at the limit: {Counter(calls)}")
    assert not [call for call in calls if not call.startswith("GET")]
    room.delete(room.name(older[-1]))
    room.served([*older[:-1], last])
    for number in (*older[len(NODES) : -1], last):
        room.delete(room.name(number))
    room.served(NODES)


def test_killed_at_random(room: real.RoutingRoom, without_cidr: int) -> None:
    """Nodes come, go and change without end while the daemon is killed."""
    del without_cidr
    seed = int(os.environ.get("MOORING_SEED", "7"))
    rng = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    (hop, _) = room.inside.add_port("server-other")
    room.inside.write_routes("add_extraroutes", Route("10.112.222.0/24", hop))
    present = set[int]()
    end, kills = time.monotonic() + STORM_S, 0
    while time.monotonic() < (end if kills >= KILLS else end + SLOW_S):
        number = rng.randrange(31, 37)
        if number in present:
            present.discard(number)
            room.delete(room.name(number))
            room.inside.delete_ports(f"server-{room.name(number)}")
        else:
            present.add(number)
            room.add(number)
        time.sleep(rng.uniform(0.1, 1.5))
        if rng.random() < 0.5:
            kills += room.replicas[0].kill()
            room.replicas[0].launch()
    room.replicas[0].start()
    print(f"{kills} kills in {STORM_S:.0f} s or longer")
    assert kills >= KILLS
    room.served([*NODES, *present])
    assert ("10.112.222.0/24", hop) in room.inside.routes()
    for number in present:
        room.delete(room.name(number))
    room.served(NODES)
    waiting.until(
        "records hold what exists and nothing else",
        lambda: sum(text.count("node") for text in room.record().values()) == 0
        and sum(t.count('["route"') for t in room.record().values()) == 2 * len(NODES),
    )
    room.inside.write_routes("remove_extraroutes", Route("10.112.222.0/24", hop))


def test_two_daemons_without_a_lease(room: real.RoutingRoom) -> None:
    """Both act at the same time; the result is the same."""
    room.replicas[0].stop()
    both = [room.replica(number, ["--leader-elect=false"]) for number in (2, 3)]
    for replica in both:
        replica.start()
    for number in (41, 42):
        room.add(number)
    room.served([*NODES, 41, 42])
    room.delete(room.name(41))
    room.served([*NODES, 42])
    for replica in both:
        replica.stop()
    room.replicas[0].start()
    room.delete(room.name(42))
    room.served(NODES)


def test_bad_input(room: real.RoutingRoom, token: str, without_cidr: int) -> None:
    """Each mistake: one Event and a metric; the other Nodes are served.

    But for InvalidPodCIDR: this kube-apiserver accepts no such podCIDR.
    """
    inside = room.inside
    others = inside.add_port("server-others")
    inside.write_routes("add_extraroutes", Route("10.112.55.0/24", others[0]))
    inside.add_subnet("10.112.53.0/24")
    rows = {
        51: (["10.9.1.0/24"], "PodCIDROutsideClusterCIDR"),
        52: (["10.112.1.0/24"], "PodCIDRNotUnique"),
        53: (["10.112.53.0/24"], "PodCIDROverlapsSubnet"),
        FULL: ([f"10.112.{FULL}.0/24"], "EntryRefused"),
        55: (["10.112.55.0/24"], "RouteConflict"),
    }
    for number, (cidrs, _) in rows.items():
        addresses = inside.add_port(f"server-{room.name(number)}")
        if number == FULL:
            port_id = inside.port_id(f"server-{room.name(number)}")
            full = [{"ip_address": f"198.51.100.{n}/32"} for n in range(PAIRS)]
            inside.write_pairs(port_id, full)
        room.register(room.name(number), addresses, cidrs)
    room.register(room.name(56), ["10.46.14.200"], ["10.112.56.0/24"])
    room.register(room.name(57), ["192.0.2.200"], ["10.112.57.0/24"])
    reasons = {**{n: r for n, (_, r) in rows.items()}, 56: "NextHopWithoutPort"}
    reasons |= {57: "NoNextHop", without_cidr: "NoPodCIDR"}
    replica = room.replicas[0]
    waiting.until(
        "all are reported",
        lambda: room.problems(replica, token) == dict.fromkeys(reasons.values(), 1.0),
    )
    real.quiet(room)
    lacking = []
    for number, reason in sorted(reasons.items()):
        name = room.name(number)
        # Without podCIDRs there is no route whose absence could be reported.
        has_route = number != without_cidr
        event = "FailedToCreateRoute" if has_route else reason
        events = [e for e in room.events(name) if e.startswith(f"{event}: ")]
        if not has_route:
            # Each process that ran in the meantime has reported it.
            events = sorted({*events})
        condition = room.conditions()[name]
        print(f"{reason:28} {condition} {events}")
        expected = ("True", "NoRouteCreated") if has_route else None
        if (len(events), condition) != (1, expected):
            lacking.append(reason)
    assert lacking == []
    assert room.expected(NODES) <= room.inside.routes()
    at = time.monotonic()
    time.sleep(3 * PERIOD_S)
    calls = room.neutron_calls(at)
    print(f"{len(calls)} calls in {3 * PERIOD_S:.0f} s: {Counter(calls)}")
    assert not [call for call in calls if not call.startswith("GET")]
    for number in reasons:
        room.delete(room.name(number))
    inside.write_routes("remove_extraroutes", Route("10.112.55.0/24", others[0]))
    waiting.until("no problem is left", lambda: not room.problems(replica, token))
    room.served(NODES)


def test_a_router_that_cannot_be_read(
    room: real.RoutingRoom, token: str, project: testing.MakeProject
) -> None:
    """Absent, or of another project: one Event, a metric, and no condition changes."""
    account, _ = project("others")
    replica, conditions = room.replicas[0], room.conditions()
    with contextlib.closing(cloud.connect(room.where, account)) as connection:
        other = real.Network(connection)
        try:
            for what, router_id in (
                ("absent", str(uuid.UUID(int=1))),
                ("of another project", other.router_id),
            ):
                room.file().write_text(room.conf(router_id))
                waiting.until(
                    f"{what}: it is reported",
                    lambda: room.problems(replica, token)
                    == {"RouteTableUnavailable": 1.0},
                )
                time.sleep(3 * PERIOD_S)
                events = [
                    e for e in room.events(f"ccm-{room.prefix}") if router_id in e
                ]
                print(f"router {what:20} {events}")
                assert len(events) == 1
                assert room.conditions() == conditions
                assert other.routes() == set()
                room.file().write_text(room.conf())
                waiting.until(
                    "no problem is left", lambda: not room.problems(replica, token)
                )
        finally:
            other.clear()
    room.served(NODES)


def test_an_edited_record_removes_nothing(room: real.RoutingRoom, token: str) -> None:
    """The text is kept for a person; routes of present Nodes are recorded again."""
    replica = room.replicas[0]
    replica.stop()
    ((key, text),) = room.record().items()
    edited = {key: text.replace("checksum", "sum")}
    room.objects.patch(resources.CONFIG_MAPS, real.RECORD, data=edited)
    before = room.inside.routes()
    room.delete(room.name(6))
    replica.start()
    waiting.until(
        "it is reported",
        lambda: room.problems(replica, token) == {"RouteRecordUnreadable": 1.0},
    )
    real.quiet(room)
    assert room.inside.routes() == before, "also the route of the Node that is gone"
    assert room.record()[f"{key}.unreadable"] == edited[key]
    assert room.record()[key].count('["route"') == 2 * (len(NODES) - 1)

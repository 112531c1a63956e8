"""openstack-ccm, the PEX, keeps routes on the lab's real Neutron.

It runs under the ServiceAccount of its chart, behind an entrance at which calls are
counted. Nodes with two address families share the router with entries of others.
"""

import json
import time
from collections import Counter

import pytest

from lib.cloud.routes import Route
from lib.lab.daemons import ccm
from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness import testing
from tests.harness.kube import audit
from tests.harness.routing import real
from tests.harness.services import balancing

NODES = range(1, testing.by_tier(9, 21))
REST = NODES[:-2]
"""Those that no test deletes."""
IDLE_S = 12.0
CHECK = f"GET    {layout.NEUTRON} v2.0/routers/*"
"""The one call of a check for drift."""
ROUTE_RIGHTS = {
    ("", "configmaps", "create"),
    ("", "configmaps", "get"),
    ("", "configmaps", "patch"),
    ("", "nodes/status", "patch"),
}


@pytest.fixture(scope="module")
def room(open_room: real.Open) -> real.RoutingRoom:
    new_room = open_room("routes")
    real.allow_routes(new_room, 100)
    return new_room


class Others:
    """Entries that other clients own, field by field."""

    def __init__(self, room: real.RoutingRoom) -> None:
        inside = room.inside
        self._room = room
        self._router_id = inside.router_id
        (self._hop, _) = inside.add_port("server-of-others")
        self.routes = {
            ("192.0.2.0/24", self._hop),
            ("10.112.200.0/24", self._hop),  # within the cluster CIDR
        }
        for destination, hop in self.routes:
            inside.write_routes("add_extraroutes", Route(destination, hop))

    def add_pairs(self, name: str) -> None:
        self._room.inside.put_pair(f"server-{name}", "198.51.100.9/32")

    def check(self, name: str) -> None:
        routes = self._room.inside.routes(self._router_id)
        assert self.routes <= routes, "routes of others"
        pairs = self._room.inside.pairs()
        assert "198.51.100.9/32" in pairs[f"server-{name}"]
        assert "server-of-others" not in pairs


def test_nodes_with_two_families(room: real.RoutingRoom) -> None:
    """Prints the calls of Neutron for each step."""
    others = Others(room)
    for number in NODES:
        room.add(number)
    kept = room.name(1)
    others.add_pairs(kept)
    replica = room.replica()
    replica.start()
    room.served(NODES)
    real.quiet(room)
    _show(f"start with {len(NODES)} Nodes", room, 0)
    others.check(kept)
    (key,) = room.record()
    assert key == f"{room.inside.router_id}.{room.prefix}"
    entries = json.loads(room.record()[key])["entries"]
    kinds = Counter(row[0] for row in entries)
    assert kinds == {"route": 2 * len(NODES), "pair": 2 * len(NODES)}
    written = [
        balancing.kind(call)
        for call in list(room.entrance.calls)
        if call.service == layout.NEUTRON and call.method == "PUT" and call.status < 400
    ]
    routes = [kind for kind in written if "extraroutes" in kind]
    assert len(routes) <= 2, "Nodes are listed in one page: one write, or two"
    assert len(written) - len(routes) == len(NODES), "one write for each port"
    _idle(room)
    replica.stop()
    at = time.monotonic()
    replica.start()
    waiting.until(
        "it reads", lambda: [c for c in room.neutron_calls(at) if "/ports" in c]
    )
    time.sleep(5)  # the first check for drift is one call more
    calls = [c for c in room.neutron_calls(at) if "GET" not in c or "ports" in c]
    _show("restart", room, at)
    assert [c.split("/")[-1] for c in calls] == ["ports"], "no write, one list"
    others.check(kept)


def _idle(room: real.RoutingRoom) -> None:
    # The first check after a write reads the ports: the router's revision is new.
    waiting.until(
        "a check for drift reads the router alone",
        lambda: set(room.neutron_calls(time.monotonic() - 5)) == {CHECK},
    )
    at = time.monotonic()
    time.sleep(IDLE_S)
    calls = room.neutron_calls(at)
    _show(f"{IDLE_S:.0f} s of nothing", room, at)
    assert calls, "no check for drift"
    assert set(calls) == {CHECK}


def _show(what: str, room: real.RoutingRoom, since: float) -> None:
    calls = Counter(room.neutron_calls(since))
    shown = ", ".join(f"{number} {kind}" for kind, number in calls.most_common())
    print(f"{what:24} {calls.total():4} calls: {shown}")


def test_nodes_are_replaced(room: real.RoutingRoom) -> None:
    """One goes with its server, one without; one comes back with another address."""
    gone, left, moved = (room.name(number) for number in reversed(NODES[-3:]))
    room.inside.delete_ports(f"server-{gone}")
    for name in (gone, left, moved):
        room.delete(name)
    room.inside.delete_ports(f"server-{moved}")
    room.add(REST[-1])
    room.served(REST)
    waiting.until(
        "pairs of a deleted Node are removed",
        lambda: f"server-{left}" not in room.inside.pairs(),
    )


def test_drift_is_repaired(room: real.RoutingRoom) -> None:
    """A route that another client removes."""
    destination, hop = sorted(room.expected([1]))[0]
    room.inside.write_routes("remove_extraroutes", Route(destination, hop))
    room.served(REST)


def test_another_router(room: real.RoutingRoom) -> None:
    """cloud.conf names another one while the daemon runs: it gets all routes first."""
    old = room.inside.router_id
    before = room.inside.routes(old)
    kept = {row for row in before if row[0] in ("192.0.2.0/24", "10.112.200.0/24")}
    room.inside.router_id = new = room.inside.add_router()
    at = time.monotonic()
    room.file().write_text(room.conf(new))
    room.served(REST)
    waiting.until(
        "the former router has only what others own",
        lambda: room.inside.routes(old) == kept,
    )
    waiting.until("one record", lambda: len(room.record()) == 1)
    (key,) = room.record()
    assert key.startswith(new)
    writes = [
        (call.path.split("/")[3], call.path.rpartition("/")[2])
        for call in list(room.entrance.calls)
        if call.service == layout.NEUTRON and call.at >= at and call.method == "PUT"
    ]
    assert writes == [(new, "add_extraroutes"), (old, "remove_extraroutes")], writes


def test_only_rights_of_the_chart_are_used(room: real.RoutingRoom) -> None:
    """No right is used that is not granted; those for the record are all used."""
    rows = audit.rows(room.where, ccm.ACCOUNT)
    asked = {
        (row.group, "/".join(filter(None, (row.resource, row.subresource))), row.verb)
        for row in rows
    }
    granted = ccm.granted("ClusterRole", "Role")
    for right in sorted(asked):
        print(f"{right[2]:8} {right[1]}")
    assert asked <= granted
    assert asked >= ROUTE_RIGHTS
    of_record = {right for right in granted if right[1] == "configmaps"}
    assert of_record == {right for right in asked if right[1] == "configmaps"}
    denied = [row for row in rows if row.code == 403]
    assert denied == []


def test_metrics_report_no_problem(room: real.RoutingRoom, token: str) -> None:
    """Nor has any Node an Event of a failure."""
    assert room.problems(room.replicas[0], token) == {}
    for number in REST:
        events = [e for e in room.events(room.name(number)) if e.startswith("Failed")]
        assert events == []

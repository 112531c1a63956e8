"""Clusters and processes that share a router; any routes, Nodes and records."""

import ipaddress

import hypothesis
import hypothesis.strategies as st

from lib.cloud import route_records
from lib.cloud.openstack.fake import wire
from lib.cloud.routes import AddressPair, Entry, Record, Recorded, Route
from lib.routes.model import Topic
from tests.harness.routing import memory

SERVED = ("False", "RouteCreated")


def entries(ground: memory.Ground) -> set[Entry]:
    """Return all routes and address pairs that exist."""
    observed: set[Entry] = {Route(*row) for row in ground.routes()}
    for port_id, port in ground.neutron.ports.items():
        for pair in wire.objects(port, "allowed_address_pairs"):
            observed.add(AddressPair(port_id, str(pair["ip_address"])))
    return observed


def test_a_cluster_inside_the_cidr_of_another() -> None:
    """Each has its routes; neither touches the other's, also when Nodes go."""
    outer = memory.Ground()
    inner = memory.Ground(beside=outer)
    for number in (1, 2):
        outer.node(f"outer-{number}", f"10.100.{number}.0/24")
        inner.node(f"inner-{number}", f"10.100.{128 + number}.0/24")
    within = (ipaddress.ip_network("10.100.128.0/17"),)
    of_outer, of_inner = memory.Process(outer), memory.Process(inner, within)
    for process in (of_outer, of_inner, of_outer, of_inner):
        process.settle()
        process.drift(Topic.DEEP_DRIFT)
    expected = {f"10.100.{n}.0/24" for n in (1, 2, 129, 130)}
    assert {destination for destination, _ in outer.routes()} == expected
    inner.delete("inner-2")
    outer.delete("outer-2")
    for process in (of_outer, of_inner, of_outer):
        process.settle()
    left = {destination for destination, _ in outer.routes()}
    assert left == {"10.100.1.0/24", "10.100.129.0/24"}
    assert outer.condition("outer-1") == inner.condition("inner-1") == SERVED


def test_two_clusters_with_one_pod_cidr_are_a_conflict() -> None:
    """The first keeps its route; the second reports the conflict."""
    first = memory.Ground()
    second = memory.Ground(beside=first)
    first.node("first", "10.100.1.0/24")
    second.node("second", "10.100.1.0/24")
    of_first, of_second = memory.Process(first), memory.Process(second)
    of_first.settle()
    before = first.routes()
    of_second.settle()
    of_first.drift(Topic.DEEP_DRIFT)
    assert first.routes() == before
    assert first.condition("first") == SERVED
    assert second.condition("second") == ("True", "NoRouteCreated")
    assert of_second.tell()[0].startswith("second FailedToCreateRoute: podCIDR")


def test_a_route_through_the_other_family_is_not_adopted() -> None:
    """It leads to the Node's own address, and is a conflict all the same."""
    ground = memory.Ground()
    (_, second) = ground.node("node-1", "10.100.1.0/24")
    ground.put_route("10.100.1.0/24", second)
    before = ground.routes()
    process = memory.Process(ground)
    process.settle()
    process.drift(Topic.DEEP_DRIFT)
    assert ":" in second
    assert ground.routes() == before
    assert ground.condition("node-1") == ("True", "NoRouteCreated")


def test_two_processes_of_one_cluster() -> None:
    """They do not know of one another, take turns, and Nodes come and go."""
    ground = memory.Ground()
    for number in (1, 2, 3):
        ground.node(f"node-{number}", f"10.100.{number}.0/24")
    (hop, _) = ground.port("server-other")
    ground.put_route("192.0.2.0/24", hop)
    both = [memory.Process(ground), memory.Process(ground)]
    gone = {10: "node-1", 40: "node-2"}
    new = {20: ("node-4", "10.100.4.0/24"), 30: ("node-1", "10.100.1.0/24")}
    for turn in range(60):
        if turn in gone:
            ground.delete(gone[turn])
        if turn in new:
            ground.node(*new[turn])
        for process in both:
            process.nodes.relist()
            process.turn()
        ground.cloud.clock.sleep(0.5)
    for process in both:
        process.settle()
        process.drift(Topic.DEEP_DRIFT)
    expected = {"192.0.2.0/24", *(f"10.100.{n}.0/24" for n in (1, 3, 4))}
    assert {destination for destination, _ in ground.routes()} == expected
    assert ground.pairs() == {
        f"server-node-{n}": {f"10.100.{n}.0/24"} for n in (1, 3, 4)
    }


CIDRS = st.sampled_from(
    "10.100.1.0/24 10.100.2.0/24 10.100.3.0/24 10.100.2.128/25 fd00:100:1::/64"
    " 10.42.1.0/24 192.0.2.0/24 10.100.1.7/24 x".split()
)
NAMES = st.sampled_from(["node-1", "node-2", "node-3", "node-4"])
ALL = ("node-1", "node-2", "node-3", "node-4")


@st.composite
def cases(draw: st.DrawFn) -> tuple[memory.Ground, set[Entry]]:
    """Return a cluster and a cloud in any state, and what is recorded."""
    ground = memory.Ground()
    hops: list[str] = []
    for name in ALL:
        hops += ground.port(f"server-{name}")
    nodes = draw(st.dictionaries(NAMES, st.lists(CIDRS, max_size=2, unique=True)))
    for name, cidrs in nodes.items():
        ground.node(name, *cidrs)
    valid = ["10.100.1.0/24", "10.100.2.0/24", "192.0.2.0/24"]
    rows = st.tuples(st.sampled_from(valid), st.sampled_from(hops))
    for cidr, hop in draw(st.sets(rows, max_size=5)):
        ground.put_route(cidr, hop)
    for name, cidr in draw(st.sets(st.tuples(NAMES, st.sampled_from(valid)))):
        ground.put_pair(name, cidr)
    port_ids = [str(ground.port_of(name)["id"]) for name in ALL]
    recorded = draw(
        st.sets(
            st.one_of(
                rows.map(lambda row: Route(*row)),
                st.builds(
                    AddressPair, st.sampled_from(port_ids), st.sampled_from(valid)
                ),
            ),
            max_size=6,
        )
    )
    owned: set[Entry] = set(recorded)
    record = Record(
        ground.router_id,
        ground.cluster_id,
        tuple(Recorded(entry, draw(NAMES), 1) for entry in sorted(owned, key=str)),
    )
    text = route_records.written(record)
    kind = draw(st.sampled_from(["whole", "whole", "lost", "edited"]))
    if kind != "lost":
        text = text if kind == "whole" else text.replace("1", "2", 1) + " "
        ground.edit_record({route_records.key(record): text})
    return ground, owned if kind == "whole" else set()


@hypothesis.settings(max_examples=120, deadline=None)
@hypothesis.given(cases())
def test_any_state_converges_and_nothing_of_others_is_changed(
    case: tuple[memory.Ground, set[Entry]],
) -> None:
    """The second reconciliation is empty, also in a new process."""
    ground, owned = case
    before = entries(ground)
    process = memory.Process(ground)
    process.settle()
    for _ in range(3):
        process.drift(Topic.DEEP_DRIFT)
    after = entries(ground)
    assert before - after <= owned, "only recorded entries are removed"
    names = {port["device_id"]: port for port in ground.neutron.ports.values()}
    for entry in after - before:
        cidr = entry.destination if isinstance(entry, Route) else entry.address
        holders = [n for n in ALL if cidr in _cidrs(ground, n)]
        assert any(_leads_to(entry, names[f"server-{n}"]) for n in holders), entry
    writes = len(ground.cloud.writes), _kube_writes(ground)
    again = memory.Process(ground)
    again.settle()
    again.drift(Topic.DEEP_DRIFT)
    assert (len(ground.cloud.writes), _kube_writes(ground)) == writes


def _cidrs(ground: memory.Ground, name: str) -> list[str]:
    node = ground.get(name)
    return list(node["spec"]["podCIDRs"]) if node else []


def _leads_to(entry: Entry, port: memory.Json) -> bool:
    if isinstance(entry, AddressPair):
        return bool(entry.port_id == port["id"])
    return entry.next_hop in {ip["ip_address"] for ip in port["fixed_ips"]}


def _kube_writes(ground: memory.Ground) -> int:
    return len([call for call in ground.api.calls if call.is_write])

"""The record of routes is split before it outgrows a ConfigMap, and nothing is lost."""

import collections
import ipaddress
from collections.abc import Iterator

import pytest

from lib.cloud import route_records
from lib.cloud.openstack.fake import wire
from lib.cloud.routes import AddressPair, Entry, Route
from lib.kube import errors, resources
from lib.kube.fake import calls, objects
from lib.routes.model import Topic
from tests.harness.routing import memory

MANY = 700
FEW = 12
SPLIT_BYTES = 1000
"""For clusters of a few Nodes."""
LIVES_MAX = 5


def ground_of(nodes: int) -> memory.Ground:
    ground = memory.Ground("10.42.0.0/16")
    for number in range(nodes):
        join(ground, number)
    return ground


def join(ground: memory.Ground, number: int) -> None:
    address = ipaddress.ip_address("10.100.0.0") + 32 * number
    ground.node(f"node-{number}", f"{address}/27")


def recorded(ground: memory.Ground) -> set[Entry]:
    records = route_records.read(ground.records().values(), ground.cluster_id)
    return {entry for record in records.values() for entry in record.owned}


def entries(ground: memory.Ground) -> set[Entry]:
    observed: set[Entry] = {
        Route(*row) for id_ in ground.neutron.l3.routers for row in ground.routes(id_)
    }
    for port_id, port in ground.neutron.ports.items():
        for pair in wire.objects(port, "allowed_address_pairs"):
            observed.add(AddressPair(port_id, str(pair["ip_address"])))
    return observed


def test_nodes_whose_record_is_larger_than_a_config_map_get_their_routes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With both limits a tenth of the real ones: one text of all would be refused."""
    monkeypatch.setattr(objects, "CONFIG_MAP_BYTES", objects.CONFIG_MAP_BYTES // 10)
    monkeypatch.setattr(route_records, "SPLIT_BYTES", route_records.SPLIT_BYTES // 10)
    ground = ground_of(MANY)
    process = memory.Process(ground)
    process.settle()
    assert len(ground.routes()) == MANY
    assert len(ground.records()) == route_records.PARTS
    texts = [text for data in ground.records().values() for text in data.values()]
    assert sum(map(len, texts)) > objects.CONFIG_MAP_BYTES
    assert recorded(ground) == entries(ground)


@pytest.fixture()
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_records, "SPLIT_BYTES", SPLIT_BYTES)


def unsplit(monkeypatch: pytest.MonkeyPatch) -> memory.Ground:
    """Return a cluster with one ConfigMap, as former versions wrote it."""
    ground = ground_of(FEW)
    with monkeypatch.context() as former:
        former.setattr(route_records, "SPLIT_BYTES", 1_000_000)
        memory.Process(ground).settle()
    assert set(ground.records()) == {route_records.NAME}
    assert recorded(ground) == entries(ground)
    return ground


def change(ground: memory.Ground) -> None:
    """A Node joins, two are deleted, and one is replaced under another name."""
    join(ground, FEW)
    ground.delete("node-1")
    ground.delete("node-2")
    ground.delete("node-3")
    ground.node("node-3b", "10.100.0.96/27", addresses=ground.addresses("node-3"))


def settle(ground: memory.Ground) -> memory.Process:
    """Run a process until the record has no entry that does not exist."""
    process = memory.Process(ground)
    process.settle()
    process.drift(Topic.DEEP_DRIFT)
    return process


@pytest.mark.usefixtures("small")
def test_one_config_map_of_a_former_version_is_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All parts together own the same as before, and the first part shrinks."""
    ground = unsplit(monkeypatch)
    before = len("".join(ground.record().values()))
    change(ground)
    settle(ground)
    assert len(ground.routes()) == FEW - 1
    assert len(ground.records()) == route_records.PARTS
    assert recorded(ground) == entries(ground)
    assert len("".join(ground.record().values())) < before / 2


def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[memory.Ground]:
    """Kill the process before and after each call, and run it again to its end."""
    at = 0
    while True:
        ground = unsplit(monkeypatch)
        change(ground)
        ground.points, ground.kill_at, ground.killed_in = 0, at, ""
        for _ in range(LIVES_MAX):
            try:
                settle(ground)
            except memory.Killed:
                assert entries(ground) <= recorded(ground), f"killed at {at}"
                continue
            break
        if not ground.killed_in:
            return
        yield ground
        at += 1


@pytest.mark.usefixtures("small")
def test_a_kill_at_any_call_leaves_no_entry_without_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also between the parts; each ends as without a kill."""
    undisturbed = unsplit(monkeypatch)
    change(undisturbed)
    settle(undisturbed)
    expected = undisturbed.state() | {"record": {}}
    table = collections.Counter[str]()
    for ground in killed(monkeypatch):
        assert ground.state() | {"record": {}} == expected
        assert recorded(ground) == entries(ground)
        table[ground.killed_in] += 1
    print(dict(table))
    assert table["WriteRecord"] >= 2 * route_records.PARTS


@pytest.mark.usefixtures("small")
def test_a_node_that_joins_writes_one_part() -> None:
    """And a check for drift that finds nothing writes none."""
    ground = ground_of(FEW)
    process = memory.Process(ground)
    process.settle()
    before = ground.records()
    join(ground, FEW)
    process.settle()
    after = ground.records()
    assert sum(before[name] != after[name] for name in after) == 1
    writes = [call for call in ground.api.calls if call.is_write]
    process.drift(Topic.DEEP_DRIFT)
    assert [call for call in ground.api.calls if call.is_write] == writes


@pytest.mark.usefixtures("small")
def test_a_split_record_of_a_former_router_is_removed_from_all_parts() -> None:
    """Its routes are removed, and its mark is the last that goes."""
    ground = ground_of(FEW)
    memory.Process(ground).settle()
    ground.config_router = ground.neutron.add_router(*ground.subnets)
    process = memory.Process(ground)
    for _ in range(4):
        process.settle()
        process.drift(Topic.DEEP_DRIFT)
    assert not ground.routes()
    keys = {key for data in ground.records().values() for key in data}
    assert not any(key.startswith(ground.router_id) for key in keys)
    assert recorded(ground) == entries(ground)


@pytest.mark.usefixtures("small")
def test_a_part_that_others_change_is_read_again() -> None:
    """A second process of the cluster writes in between; no entry is lost."""
    ground = ground_of(FEW)
    first, second = memory.Process(ground), memory.Process(ground)
    for number in range(FEW, FEW + 6):
        first.settle()
        join(ground, number)
        second.nodes.relist()
        second.settle()
        ground.delete(f"node-{number - FEW}")
    first.settle()
    second.settle()
    settle(ground)
    assert recorded(ground) == entries(ground)
    assert len(ground.routes()) == FEW


@pytest.mark.usefixtures("small")
def test_an_edited_part_is_kept_and_written_again() -> None:
    """What it had is adopted where a Node has it; the other parts stay owned."""
    ground = ground_of(FEW)
    memory.Process(ground).settle()
    name, data = next(
        (name, data)
        for name, data in ground.records().items()
        if name != route_records.NAME and any("node-" in t for t in data.values())
    )
    ((key, text),) = data.items()
    meta = {"name": name, "namespace": route_records.NAMESPACE}
    edited = {key: text.replace("node-", "edited-")}
    ground.api.put(resources.CONFIG_MAPS, {"metadata": meta, "data": edited})
    before = ground.records()
    process = settle(ground)
    after = ground.records()
    assert after[name][f"{key}{route_records.UNREADABLE}"] == edited[key]
    assert {n for n in after if after[n] != before[n]} == {name}
    assert recorded(ground) == entries(ground)
    (event,) = (e for e in process.tell() if "RecordUnreadable" in e)
    assert f"ConfigMap kube-system/{name}: {key}" in event


@pytest.mark.usefixtures("small")
def test_without_the_rights_of_the_chart_the_record_stays_in_one_config_map() -> None:
    """The image is newer than the chart, whose Role names the first ConfigMap alone."""
    ground = ground_of(FEW)

    def deny(call: calls.Call) -> None:
        if call.name and call.name.startswith(f"{route_records.NAME}-"):
            raise errors.Forbidden("no", operation="GET", status=403)

    ground.api.before_call = deny
    process = memory.Process(ground)
    process.settle()
    assert set(ground.records()) == {route_records.NAME}
    assert recorded(ground) == entries(ground)
    assert len(ground.routes()) == FEW
    assert process.tell() == []

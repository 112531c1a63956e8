"""Records of owned routes are read as they were written, or not at all."""

import json

import hypothesis
import hypothesis.strategies as st
import pytest

from lib.cloud import route_records
from lib.cloud.routes import AddressPair, Record, Recorded, Route

ROUTE = Recorded(Route("10.1.0.0/24", "10.0.0.5"), "node-1", 1_700_000_000)
PAIR = Recorded(AddressPair("port-1", "10.1.0.0/24"), "node-1", 1_700_000_000)
RECORD = Record("router-1", "cluster.1", (PAIR, ROUTE))


def _data(record: Record) -> dict[str, str]:
    return {route_records.key(record): route_records.written(record)}


def test_a_record_is_read_as_it_was_written() -> None:
    """Also with a cluster ID that holds dots."""
    assert route_records.read([_data(RECORD)], "cluster.1") == {"router-1": RECORD}


def test_records_of_other_clusters_are_ignored() -> None:
    """One ConfigMap may hold several clusters' records after a restore."""
    other = Record("router-1", "cluster.2", (ROUTE,))
    data = _data(RECORD) | _data(other)
    assert route_records.read([data], "cluster.2") == {"router-1": other}


_TEXT = route_records.written(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version":1}',
        _TEXT[:-2],
        _TEXT.replace("10.0.0.5", "10.0.0.6"),
        _TEXT.replace('"version":1', '"version":2'),
        json.dumps({**json.loads(_TEXT), "checksum": 0}),
        json.dumps({**json.loads(_TEXT), "entries": []}),
        json.dumps({**json.loads(_TEXT), "entries": "x"}),
    ],
)
def test_an_edited_record_is_not_readable(text: str) -> None:
    """Nothing in it is known to be owned."""
    data = {route_records.key(RECORD): text}
    record = route_records.read([data], "cluster.1")["router-1"]
    assert (record.is_readable, record.entries) == (False, ())


_NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
_ENTRIES = st.one_of(
    st.builds(Route, st.sampled_from(["10.1.0.0/24", "fd00::/64"]), st.just("::5")),
    st.builds(AddressPair, _NAMES, st.just("10.1.0.0/24")),
)
_RECORDED = st.builds(Recorded, _ENTRIES, _NAMES, st.integers(0, 2**40))


@hypothesis.given(
    st.lists(_RECORDED, max_size=8, unique_by=lambda recorded: recorded.entry),
)
def test_order_makes_no_difference(entries: list[Recorded]) -> None:
    """The same entries have the same text, whatever the order, and read back."""
    record = Record("t", "c", tuple(entries))
    turned = Record("t", "c", tuple(reversed(entries)))
    assert route_records.written(record) == route_records.written(turned)
    read = route_records.read([_data(record)], "c")["t"]
    assert read.owned == record.owned


def _cluster(nodes: int) -> Record:
    """Return the record of Nodes with long names and two families."""
    uuid = "0d4b9a2e-6c7f-4c53-9f3e-2d7a1c5b8e90"
    rows = [
        Recorded(entry, f"cluster-worker-0123456789-{number:04}", 1_700_000_000)
        for number in range(nodes)
        for cidr in (
            f"10.{number // 256}.{number % 256}.0/24",
            f"fd00:{number + 1:x}::/64",
        )
        for entry in (
            Route(cidr, f"fd00:1234:5678:9abc::{number + 1:x}"),
            AddressPair(f"{uuid[:-4]}{number:04}", cidr),
        )
    ]
    return Record(uuid, uuid, tuple(rows))


def test_five_thousand_nodes_of_two_families_fit_into_config_maps() -> None:
    """Each part has room for the text of a former table and for unreadable texts.

    Source: Kubernetes core/v1 ConfigMap: 1 MiB.
    """
    record = _cluster(5000)
    shares = route_records.shares(record)
    sizes = [len(route_records.written(share)) for share in shares]
    whole = len(route_records.written(record))
    print(f"{whole // 1024} KiB for 20,000 entries, {max(sizes) // 1024} KiB a part")
    assert whole > 1024 * 1024
    assert max(sizes) < 300 * 1024
    data = [_data(share) for share in shares]
    read = route_records.read(data, record.cluster_id)[record.table]
    assert read.owned == record.owned


def test_the_entries_of_a_node_are_in_one_part_per_family() -> None:
    """So a Node that joins changes one text."""
    shares = route_records.shares(_cluster(1))
    parts = [share.entries for share in shares if share.entries]
    assert all(len(entries) % 2 == 0 for entries in parts)


def test_one_unreadable_text_leaves_the_others_readable() -> None:
    """The record is not readable, and what the other parts have stays owned."""
    first, *others = (_data(share) for share in route_records.shares(_cluster(50)))
    broken = {key: text.replace("worker", "w") for key, text in first.items()}
    uuid = _cluster(1).table
    record = route_records.read([broken, *others], uuid)[uuid]
    lost = route_records.shares(_cluster(50))[0].owned
    assert lost
    assert not record.is_readable
    assert record.owned.keys() == _cluster(50).owned.keys() - lost.keys()


def test_a_text_in_its_part_is_newer_than_the_former_text() -> None:
    """A Node was replaced by one with the same podCIDR while the record was split."""
    old = Record("t", "c", (Recorded(ROUTE.entry, "node-old", 1),))
    new = Record("t", "c", (Recorded(ROUTE.entry, "node-new", 2),))
    read = route_records.read([_data(old), {}, _data(new)], "c")["t"]
    assert read.owned[ROUTE.entry].node == "node-new"

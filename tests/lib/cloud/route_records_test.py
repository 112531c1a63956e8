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
    assert route_records.read(_data(RECORD), "cluster.1") == {"router-1": RECORD}


def test_records_of_other_clusters_are_ignored() -> None:
    """One ConfigMap may hold several clusters' records after a restore."""
    other = Record("router-1", "cluster.2", (ROUTE,))
    data = _data(RECORD) | _data(other)
    assert route_records.read(data, "cluster.2") == {"router-1": other}


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
    record = route_records.read(data, "cluster.1")["router-1"]
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
    read = route_records.read(_data(record), "c")["t"]
    assert read.owned == record.owned


def test_thousand_nodes_of_two_families_fit_into_a_config_map() -> None:
    """Source: Kubernetes core/v1 ConfigMap: 1 MiB."""
    uuid = "0d4b9a2e-6c7f-4c53-9f3e-2d7a1c5b8e90"
    rows = [
        Recorded(entry, f"cluster-worker-0123456789-{number:04}", 1_700_000_000)
        for number in range(1000)
        for family in ("10.100.0.0/24", "fd00:1234:5678::/64")
        for entry in (
            Route(family, f"fd00:1234:5678:9abc::{number:x}"),
            AddressPair(f"{uuid[:-4]}{number:04}", family),
        )
    ]
    size = len(route_records.written(Record(uuid, uuid, tuple(rows))))
    print(f"{size / 1024:.0f} KiB for 4,000 entries")
    assert size < 600 * 1024

"""Records of owned routes as texts of ConfigMaps: written and read back. Pure.

One ConfigMap holds the records of all tables of a cluster, one key each. A record with
a longer text than SPLIT_BYTES is divided among PARTS ConfigMaps: an entry is in the
part of its podCIDR, under the same key, and a key in the first ConfigMap shows that the
record is split. A record is the union of its texts, so that a text may be written to
its part before it is removed from another.

A text whose checksum is not that of its entries was edited by hand: it is not readable,
and nothing in it is known to be owned.
"""

import dataclasses
import hashlib
import ipaddress
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from lib.cloud.routes import AddressPair, Entry, Record, Recorded, Route

NAMESPACE = "kube-system"
NAME = "mooring-routes"
KEY = f"{NAMESPACE}/{NAME}"
"""The ConfigMap of every cluster, and the first part of a record that is split."""
PARTS = 8
"""ConfigMaps of a split record: 5,000 Nodes with two families need 2.4 MB together.

The Role of the chart has their names."""
SPLIT_BYTES = 256 * 1024
"""Longest text that is not split; a record with a former table and its unreadable texts
fits into a ConfigMap as well.

Source: Kubernetes core/v1 ConfigMap: at most 1 MiB of data."""
SPLIT = ".parts"
"""Suffix of the key of a record that is split; its value is PARTS."""
VERSION = 1
UNREADABLE = ".unreadable"
"""Suffix of the key that keeps a text which could not be read."""
_KEY = re.compile(r"[A-Za-z0-9-]+\.[A-Za-z0-9._-]+")


def key(record: Record) -> str:
    """Return the key of a record in the ConfigMap: table and cluster ID.

    Source: Kubernetes core/v1 ConfigMap: letters, digits, '-', '_' and '.'.
    """
    return f"{record.table}.{record.cluster_id}"


def name(part: int) -> str:
    """Return the name of the ConfigMap of a part."""
    return f"{NAME}-{part}" if part else NAME


def has_parts(data: Mapping[str, str]) -> bool:
    """Report whether the first ConfigMap shows a record that is split."""
    return any(map(is_split_key, data))


def is_split_key(key: str) -> bool:
    """Report whether a key shows that a record is split."""
    return key.endswith(SPLIT)


def is_split(record: Record, data: Mapping[str, str]) -> bool:
    """Report whether a record is split. data: of the first ConfigMap."""
    return f"{key(record)}{SPLIT}" in data


def shares(record: Record) -> Sequence[Record]:
    """Divide a record among PARTS, each entry by its podCIDR.

    An entry never moves to another part, and all entries of a Node that joins are
    written together.
    """
    entries: list[list[Recorded]] = [[] for _ in range(PARTS)]
    for recorded in record.entries:
        entries[_part(recorded.entry)].append(recorded)
    return [dataclasses.replace(record, entries=tuple(some)) for some in entries]


def _part(entry: Entry) -> int:
    cidr = entry.destination if isinstance(entry, Route) else entry.address
    return hashlib.sha256(cidr.encode()).digest()[0] % PARTS


def written(record: Record) -> str:
    """Return the text of a record; the same for the same record."""
    rows = [_row(recorded) for recorded in sorted(record.entries, key=_order)]
    return json.dumps(
        {"version": VERSION, "checksum": _checksum(rows), "entries": rows},
        separators=(",", ":"),
    )


def read(parts: Iterable[Mapping[str, str]], cluster_id: str) -> Mapping[str, Record]:
    """Return the records of one cluster by table; other keys are ignored.

    parts: data of the ConfigMaps. A record with an unreadable text is not readable;
    its entries are those of its other texts.
    """
    records: dict[str, Record] = {}
    for data in parts:
        for name, text in data.items():
            table, _, owner = name.partition(".")
            if owner == cluster_id and _KEY.fullmatch(name):
                record = of_text(table, cluster_id, text)
                records[table] = _union(records.get(table, record), record)
    return records


def _union(first: Record, second: Record) -> Record:
    """Return both together; the second one knows the Node of a common entry better.

    While a record is being split, its former text is in the first ConfigMap.
    """
    entries = {**first.owned, **second.owned}.values()
    return dataclasses.replace(
        first,
        entries=tuple(sorted(entries, key=_order)),
        is_readable=first.is_readable and second.is_readable,
    )


def of_text(table: str, cluster_id: str, text: str) -> Record:
    """Return the record of one text."""
    try:
        document = json.loads(text)
        rows = document["entries"]
        is_whole = document["version"] == VERSION
        if not is_whole or document["checksum"] != _checksum(rows):
            raise ValueError("not as it was written")
        entries = tuple(sorted((_recorded(row) for row in rows), key=_order))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return Record(table, cluster_id, is_readable=False)
    return Record(table, cluster_id, entries)


def _order(recorded: Recorded) -> tuple[str, ...]:
    match recorded.entry:
        case Route(destination, next_hop):
            return ("route", destination, next_hop)
        case AddressPair(port_id, address):
            return ("pair", port_id, address)


def _row(recorded: Recorded) -> list[object]:
    """Return an entry as a row: few bytes, for there are as many as Nodes."""
    return [*_order(recorded), recorded.node, recorded.since]


def _recorded(row: list[object]) -> Recorded:
    kind, first, second, node, since = row
    if not (isinstance(node, str) and isinstance(since, int)):
        raise ValueError("malformed entry")
    return Recorded(_entry(str(kind), str(first), str(second)), node, since)


def _entry(kind: str, first: str, second: str) -> Entry:
    if kind == "route":
        network, address = ipaddress.ip_network(first), ipaddress.ip_address(second)
        return Route(str(network), str(address))
    if kind == "pair":
        return AddressPair(first, str(ipaddress.ip_network(second)))
    raise ValueError("unknown kind of entry")


def _checksum(rows: object) -> str:
    text = json.dumps(rows, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

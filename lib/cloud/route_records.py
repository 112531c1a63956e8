"""Records of owned routes as the texts of a ConfigMap: written and read back. Pure.

One ConfigMap holds the records of all tables of a cluster, one key each. A text whose
checksum is not that of its entries was edited by hand: it is not readable, and nothing
in it is known to be owned.
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping

from lib.cloud.routes import AddressPair, Entry, Record, Recorded, Route

NAMESPACE = "kube-system"
NAME = "mooring-routes"
KEY = f"{NAMESPACE}/{NAME}"
"""The ConfigMap of every cluster."""
VERSION = 1
UNREADABLE = ".unreadable"
"""Suffix of the key that keeps a text which could not be read."""
_KEY = re.compile(r"[A-Za-z0-9-]+\.[A-Za-z0-9._-]+")


def key(record: Record) -> str:
    """Return the key of a record in the ConfigMap: table and cluster ID.

    Source: Kubernetes core/v1 ConfigMap: letters, digits, '-', '_' and '.'.
    """
    return f"{record.table}.{record.cluster_id}"


def written(record: Record) -> str:
    """Return the text of a record; the same for the same record."""
    rows = [_row(recorded) for recorded in sorted(record.entries, key=_order)]
    return json.dumps(
        {"version": VERSION, "checksum": _checksum(rows), "entries": rows},
        separators=(",", ":"),
    )


def read(data: Mapping[str, str], cluster_id: str) -> Mapping[str, Record]:
    """Return the records of one cluster by table; other keys are ignored."""
    records: dict[str, Record] = {}
    for name, text in data.items():
        table, _, owner = name.partition(".")
        if owner == cluster_id and _KEY.fullmatch(name):
            records[table] = _record(table, cluster_id, text)
    return records


def _record(table: str, cluster_id: str, text: str) -> Record:
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

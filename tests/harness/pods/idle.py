"""Requests of idle pods: a row for each program, by account and user agent."""

import collections
from collections.abc import Collection, Mapping, Sequence

from tests.harness.kube import audit

Sender = tuple[str, str, str]
"""Cluster, account and program; no program: the account has sent no request."""
Log = Mapping[tuple[str, str], Sequence[audit.Row]]
"""All requests since the start, by cluster and account."""
Rows = Mapping[Sender, Sequence[audit.Row]]

WATCHES, LEASES, DISCOVERY, OTHERS = "watches", "Leases", "discovery", "others"
NO_PROGRAM = "-"


def kind_of(row: audit.Row) -> str:
    """Return the kind of a request; only others are work."""
    if row.verb == "watch":
        return WATCHES
    if row.resource == "leases":
        return LEASES
    return OTHERS if row.resource else DISCOVERY


def between(before: Log, after: Log) -> Rows:
    """Return the requests of each program between two reads of the logs.

    A program that has sent none in the meantime has an empty row.
    """
    table: dict[Sender, list[audit.Row]] = {}
    for (cluster, account), requests in after.items():
        for program in set(map(_program, requests)) or {NO_PROGRAM}:
            table[cluster, account, program] = []
        for row in requests[len(before[cluster, account]) :]:
            table[cluster, account, _program(row)].append(row)
    return table


def _program(row: audit.Row) -> str:
    return row.agent.partition("/")[0]


def check(table: Rows, expected: Collection[Sender]) -> None:
    """Print the row of each program. A watch counts when it starts and when it ends.

    Raises:
        AssertionError: a program has sent other requests than watches, Leases and
            discovery, or the programs are not those that are expected.
    """
    for sender in sorted(table.keys() | set(expected)):
        counts = collections.Counter(map(kind_of, table.get(sender, ())))
        numbers = (WATCHES, LEASES, DISCOVERY, OTHERS)
        shown = ", ".join(f"{counts[kind]} {kind}" for kind in numbers)
        print(f"{sender[0]:7} {sender[1]:26} {sender[2]:22} {shown}")
    work = [
        (*sender, row.verb, row.resource)
        for sender, rows in table.items()
        for row in rows
        if kind_of(row) == OTHERS
    ]
    assert not work, work
    different = sorted(table.keys() ^ set(expected))
    assert not different, f"missing or additional: {different}"

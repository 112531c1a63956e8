"""capdvp between two API servers, with its requests counted by their audit logs.

The core of Cluster API does not run: `CoreObjects` writes what it writes.
"""

import collections
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

from lib.kube import client
from lib.lab import places
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.kube import audit
from tests.harness.machines import capdvp_replicas
from tests.harness.machines.capdvp_replicas import CapdvpReplicas
from tests.harness.machines.core_objects import CoreObjects

QUIET_S = 2.0
"""Without a request, until those before are all in the audit log."""
_READS = ("get", "list", "watch")
MIB = 2**20

Counts = collections.Counter[tuple[str, str]]
"""Requests by verb and resource."""


@dataclasses.dataclass(frozen=True, slots=True)
class CapdvpBench:
    """What runs. account: of capdvp in the parent."""

    core: CoreObjects
    parent: DvpParent
    project: Project
    capdvp: CapdvpReplicas
    account: tuple[str, str]

    def to_parent(self) -> Counts:
        """Count the requests to the parent, once no more come."""
        where = self.parent.where
        return _settled(lambda: _counted(audit.rows(where, self.account)))

    def to_child(self) -> Counts:
        """Count the requests to the child, once no more come: without the Lease."""
        return _settled(lambda: _counted(self.child_rows()))

    def child_rows(self) -> tuple[audit.Row, ...]:
        """Return the requests to the child."""
        return audit.rows(self.core.where, capdvp_replicas.ACCOUNT)

    def rss_mib(self) -> float:
        """Return the memory of capdvp."""
        return float(self.capdvp.process().memory_info().rss) / MIB


def _counted(rows: tuple[audit.Row, ...]) -> Counts:
    return collections.Counter(
        (row.verb, "/".join(filter(None, (row.resource, row.subresource))))
        for row in rows
        if row.resource != "leases"
    )


def _settled(read: Callable[[], Counts]) -> Counts:
    known, changed_at = read(), time.monotonic()

    def is_quiet() -> bool:
        nonlocal known, changed_at
        now = read()
        if without_watches(now) != without_watches(known):
            changed_at = time.monotonic()
        known = now
        return time.monotonic() - changed_at >= QUIET_S

    waiting.until("no requests", is_quiet, poll_s=0.5)
    return known


def without_watches(counts: Counts) -> Counts:
    """Return the requests that are no watch: API servers end watches by time."""
    return collections.Counter({k: n for k, n in counts.items() if k[0] != "watch"})


def writes(counts: Counts) -> dict[tuple[str, str], int]:
    """Return the writes."""
    return {key: count for key, count in counts.items() if key[0] not in _READS}


def shown(counts: Counts) -> str:
    """Return counts in words, for tables."""
    return ", ".join(f"{n} {verb} {what}" for (verb, what), n in sorted(counts.items()))


@contextlib.contextmanager
def opened(
    where: places.Places,
    api: client.Api,
    parent: DvpParent,
    project: Project,
    *flags: str,
) -> Iterator[CapdvpBench]:
    """Install what capdvp needs; it is stopped at the end. where: of the child."""
    core = CoreObjects(where, api)
    core.install()
    kubeconfig = capdvp_replicas.child_kubeconfig(where, api)
    of_parent = where.state / "capdvp-parent.kubeconfig"
    account = capdvp_replicas.parent_kubeconfig(parent, project, of_parent)
    capdvp = CapdvpReplicas(where, project, kubeconfig, of_parent, flags)
    try:
        yield CapdvpBench(core, parent, project, capdvp, account)
    finally:
        capdvp.stop()

"""Requests and status writes of capdvp per machine, by the audit logs.

Parent and child are real API servers, and the parent is simulated; the test writes what
the core of Cluster API writes.
"""

import collections
import time
from collections.abc import Iterator

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.dvp import project as projects
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness.dvp import parent_fixtures
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import capdvp_bench, vm_starts
from tests.harness.machines.capdvp_bench import CapdvpBench, Counts
from tests.harness.machines.vm_starts import VmStarts

where = parent_fixtures.where
parent = parent_fixtures.parent
project = parent_fixtures.project

REQUESTS_MAX = 6
DELETION = 4
"""VM, disks, Secret, and the read of the VM; five with attached volumes."""
STATUS_WRITES_MAX = 3
RSS_MAX_MIB = 150
NUMBER = 200
VM_S = 2.0
WAITS_S = 40.0
"""The reference polls a VM every 30 s, and a disk every second."""
DISK = {"size": "32Mi", "storageClass": projects.STORAGE_AT_ONCE}


@pytest.fixture(scope="module")
def bench(
    where: places.Places, api: client.Api, parent: DvpParent, project: Project
) -> Iterator[CapdvpBench]:
    with capdvp_bench.opened(where, api, parent, project) as opened:
        opened.capdvp.start()
        create(opened, "first")
        yield opened


def create(bench: CapdvpBench, name: str, disks: int = 0) -> None:
    bench.core.create(name, additionalDisks=[DISK] * disks)
    waiting.until(f"{name} runs", lambda: name in bench.core.provisioned())


def delete(bench: CapdvpBench, name: str) -> None:
    bench.core.delete(name)
    waiting.until(f"{name} is deleted", lambda: bench.core.is_gone(name))


def sent(bench: CapdvpBench, before: Counts) -> Counts:
    return capdvp_bench.without_watches(bench.to_parent() - before)


@pytest.mark.parametrize("disks", [0, 3, 8])
def test_requests_to_the_parent_per_machine(bench: CapdvpBench, disks: int) -> None:
    """At most six, and one per additional disk; a deletion is four with any number."""
    name = f"counted-{disks}"
    before = bench.to_parent()
    create(bench, name, disks)
    created = sent(bench, before)
    before = bench.to_parent()
    delete(bench, name)
    deleted = sent(bench, before)
    print(f"{disks} additional disks, created: {capdvp_bench.shown(created)}")
    print(f"{disks} additional disks, deleted: {capdvp_bench.shown(deleted)}")
    assert created.total() == 3 + disks <= REQUESTS_MAX + disks
    assert deleted.total() == DELETION <= REQUESTS_MAX


def test_nothing_is_polled(bench: CapdvpBench) -> None:
    """A VM that does not start, and one that does not end, cost no request."""
    create(bench, "ends-late")
    with bench.parent.holding("machine-running starts-late", "machine-gone ends-late"):
        bench.core.create("starts-late")
        bench.core.delete("ends-late")
        before = bench.to_parent(), bench.to_child()
        time.sleep(WAITS_S)
        after = bench.to_parent(), bench.to_child()
        assert "starts-late" not in bench.core.provisioned()
        assert not bench.core.is_gone("ends-late")
    for title, old, new in zip(("parent", "child"), before, after, strict=True):
        used = capdvp_bench.without_watches(new - old)
        print(f"{WAITS_S:.0f} s of waiting, {title}: {used.total()} requests")
        assert not used
    waiting.until("both are done", lambda: is_done(bench))


def is_done(bench: CapdvpBench) -> bool:
    is_gone = bench.core.is_gone("ends-late")
    return is_gone and "starts-late" in bench.core.provisioned()


def test_two_hundred_machines_in_parallel(bench: CapdvpBench) -> None:
    """At most three writes of the status of each; seconds and memory are printed.

    VMs are started by the test: each runs two seconds after its parts exist.
    """
    names = [f"many-{number:03}" for number in range(NUMBER)]
    before = bench.to_parent()
    starts = VmStarts(bench.parent, bench.project, VM_S)
    with vm_starts.stopped(bench.parent), starts.running():
        began = time.monotonic()
        bench.core.create_all(names)
        created_s = time.monotonic() - began
        waiting.until(
            "they run",
            lambda: bench.core.provisioned().issuperset(names),
            poll_s=0.5,
        )
        took_s = time.monotonic() - began
    used = sent(bench, before)
    counts = status_writes(bench)
    print(
        f"{NUMBER} machines, {VM_S:.0f} s per VM: objects created in {created_s:.0f} s,"
        f" all Running after {took_s:.0f} s; {bench.rss_mib():.0f} MiB"
    )
    print(f"parent: {capdvp_bench.shown(used)}")
    print(f"writes of a status: {collections.Counter(counts[n] for n in names)}")
    plurals = ("secrets", "virtualdisks", "virtualmachines")
    assert used == {("create", plural): NUMBER for plural in plurals}
    assert set(names) <= set(counts)
    assert max(counts[name] for name in names) <= STATUS_WRITES_MAX
    assert bench.rss_mib() <= RSS_MAX_MIB


def status_writes(bench: CapdvpBench) -> collections.Counter[str]:
    """Count the writes of the status of each machine."""
    return collections.Counter(
        row.name
        for row in bench.child_rows()
        if (row.verb, row.resource, row.subresource)
        == ("patch", "deckhousemachines", "status")
    )

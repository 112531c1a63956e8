"""capdvp with 1,000 machines: adopted, idle, restarted; by the audit logs.

The parent's API server is real, its simulator is stopped: the test writes each VM that
runs. It writes what the core of Cluster API writes, too.
"""

import concurrent.futures
import time
from collections.abc import Iterator, Sequence

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.dvp import kinds
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness.dvp import parent_fixtures
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import capdvp_bench, vm_starts
from tests.harness.machines.capdvp_bench import CapdvpBench
from tests.harness.machines.reference_machines import (
    WHOLE,
    ReferenceMachines,
    Size,
)

where = parent_fixtures.where
parent = parent_fixtures.parent
project = parent_fixtures.project

NUMBER = 1000
NAMES = tuple(f"many-{number:04}" for number in range(NUMBER))
REQUESTS_MAX = 12
RSS_MAX_MIB = 150
SYNC = "--sync-period=10s"
IDLE_S = 65.0
"""Six drift checks: those of an hour with the default period."""
SETTLE_S = 20.0


@pytest.fixture(scope="module")
def bench(
    where: places.Places, api: client.Api, parent: DvpParent, project: Project
) -> Iterator[CapdvpBench]:
    """Leave the machines as the reference does; capdvp does not run yet."""
    with (
        vm_starts.stopped(parent),
        capdvp_bench.opened(where, api, parent, project, SYNC) as opened,
    ):
        opened.core.create_all(NAMES)
        leave(parent, project, NAMES)
        yield opened


def leave(parent: DvpParent, project: Project, names: Sequence[str]) -> None:
    """Create VMs that run, with their disks and Secrets."""
    reference = ReferenceMachines(parent, project, Size(1, "10%", "256Mi"))

    def leave_one(name: str, address: str) -> None:
        reference.leave(name, *WHOLE)
        status = {"phase": "Running", "ipAddress": address, "nodeName": "hypervisor-1"}
        parent.set_status(kinds.MACHINES, project, name, status)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(leave_one, names, vm_starts.addresses()))


def test_a_thousand_machines_are_adopted(bench: CapdvpBench) -> None:
    """One write for each object of the parent; no VM is created or deleted."""
    bench.capdvp.start()
    took_s = waiting.until(
        "all are provisioned",
        lambda: bench.core.provisioned().issuperset(NAMES),
        poll_s=2.0,
    )
    used = bench.to_parent()
    print(f"{NUMBER} machines adopted in {took_s:.0f} s, {bench.rss_mib():.0f} MiB")
    print(f"parent: {capdvp_bench.shown(used)}")
    print(f"child: {capdvp_bench.shown(bench.to_child())}")
    plurals = ("secrets", "virtualdisks", "virtualmachines")
    adopted = {("patch", plural): NUMBER for plural in plurals}
    assert capdvp_bench.writes(used) == adopted
    assert bench.rss_mib() <= RSS_MAX_MIB


def test_an_idle_hour_is_no_request(bench: CapdvpBench) -> None:
    before = bench.to_parent(), bench.to_child()
    time.sleep(IDLE_S)
    after = bench.to_parent(), bench.to_child()
    for title, old, new in zip(("parent", "child"), before, after, strict=True):
        used = new - old
        print(f"{IDLE_S:.0f} s with {SYNC}, {title}: {capdvp_bench.shown(used)}")
        assert not capdvp_bench.without_watches(used)


def test_a_restart_writes_nothing(bench: CapdvpBench) -> None:
    bench.capdvp.stop()
    # The audit log has the end of a watch, too.
    before = bench.to_parent(), bench.to_child()
    bench.capdvp.start()
    time.sleep(SETTLE_S)
    used = bench.to_parent() - before[0]
    of_child = bench.to_child() - before[1]
    print(f"restart, parent: {used.total()} requests: {capdvp_bench.shown(used)}")
    print(f"child: {capdvp_bench.shown(of_child)}; {bench.rss_mib():.0f} MiB")
    assert used[("list", "virtualmachines")]
    assert used.total() <= REQUESTS_MAX
    assert not capdvp_bench.writes(used)
    assert not capdvp_bench.writes(of_child)
    assert bench.rss_mib() <= RSS_MAX_MIB

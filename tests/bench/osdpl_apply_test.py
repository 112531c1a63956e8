"""What osdpl-controller costs: runs of helm, calls, child processes, memory.

On the fakes, as the numbers are those of decisions; runs and calls are asserted.
"""

import gc
import pathlib
import threading
import time
import tracemalloc
from typing import Any

import pytest

from lib.kube import resources
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Process

RECONCILIATIONS = 200
GROWTH_MAX = 200_000
"""Bytes between the 50th and the last reconciliation."""


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    """Return a cluster with all releases, of the version before the newest."""
    created = Cluster(tmp_path)
    created.create(openstack_version="flamingo")
    Process(created).settle()
    created.helm.runs.clear()
    created.api.calls.clear()
    return created


def test_runs_of_helm(cluster: Cluster) -> None:
    """One per value, at most one per release and version, one per deletion."""
    process = Process(cluster)
    value = {"values": {"of_the_test": 1}}
    rows: dict[str, int] = {}
    acts: tuple[tuple[str, Any], ...] = (
        ("nothing", lambda: None),
        (
            "one value",
            lambda: cluster.change(services={"identity": {"keystone": value}}),
        ),
        ("OpenStack version", lambda: cluster.change(openstack_version="gazpacho")),
        (
            "deletion",
            lambda: cluster.api.remove(
                resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE
            ),
        ),
    )
    for name, act in acts:
        cluster.helm.runs.clear()
        act()
        process.settle(120)
        rows[name] = len(cluster.helm.runs)
        assert len(cluster.helm.runs) == len(set(cluster.helm.runs)), name
        print(f"{name:18} {rows[name]:3} runs of helm")
    assert rows["nothing"] == 0
    assert rows["one value"] == 1
    assert rows["OpenStack version"] <= len(RELEASES)
    assert rows["deletion"] == len(RELEASES)


def test_calls_while_waiting(tmp_path: pathlib.Path) -> None:
    """At most one call for each object that has changed."""
    cluster = Cluster(tmp_path)
    cluster.opens_gates = False
    cluster.create()
    process = Process(cluster)
    for _ in range(40):
        _, wait_s = process.step()
        cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)
    counts = []
    for number in range(40):
        # A workload that no release waits for becomes ready, or is not any more.
        cluster.workload("openstack-libvirt", "libvirt-x", ready=number % 2)
        cluster.api.calls.clear()
        process.step()
        cluster.clock.seconds += 60
        counts.append(len(cluster.api.calls))
    print(f"{len(counts)} changes: {sum(counts)} calls, at most {max(counts)} for one")
    assert max(counts) <= 1


def test_no_reconciliation_waits_for_helm(cluster: Cluster) -> None:
    """Each one ends within a second while a run of helm does not end."""
    process, held = Process(cluster), threading.Event()

    def hook(moment: str, release: str) -> None:
        del release
        if moment == "pending":
            held.wait(60)

    cluster.helm.hook = hook
    times = []
    try:
        for number in range(100):
            value = {"values": {"of_the_test": number}}
            cluster.change(services={"identity": {"keystone": value}})
            process.refresh()
            began = time.monotonic()
            for snapshot in process.observer.observe([ground.KEY]).values():
                process.act_on(snapshot)
            times.append(time.monotonic() - began)
            cluster.clock.seconds += 1
        running = process.jobs.running()
    finally:
        held.set()
        process.idle()
    print(f"{len(times)} reconciliations, the longest {max(times):.3f} s")
    assert running == {"openstack-keystone"}
    assert max(times) < 1.0


def test_memory_of_many_reconciliations(cluster: Cluster) -> None:
    process = Process(cluster)
    process.settle()
    sizes = []
    tracemalloc.start()
    try:
        for number in range(RECONCILIATIONS):
            cluster.workload("openstack-glance", "glance-api", ready=number % 2)
            value = {"values": {"of_the_test": number % 3}}
            if number % 10 == 0:
                cluster.change(services={"identity": {"keystone": value}})
            process.step()
            cluster.clock.seconds += 30
            for log in (cluster.api.calls, cluster.helm.runs):
                log.clear()
            cluster.api.compact()  # the history of the fake is none of the process
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    growth = sizes[-1] - sizes[49]
    print(f"{RECONCILIATIONS} reconciliations: {growth / 1000:+.0f} kB after the 50th")
    assert growth < GROWTH_MAX


@pytest.mark.parametrize("slots", [1, 2, 4, 7])
def test_concurrent_runs_of_helm(tmp_path: pathlib.Path, slots: int) -> None:
    """Never more than slots, while all are in use."""
    cluster = Cluster(tmp_path)
    cluster.create()
    process = Process(cluster, slots)
    lock, running, most = threading.Lock(), set[str](), [0]
    inner = cluster.helm.hook

    def hook(moment: str, release: str) -> None:
        with lock:
            if moment == "begin":
                running.add(release)
            most[0] = max(most[0], len(running))
        time.sleep(0.02)
        if moment == "end":
            with lock:
                running.discard(release)
        if inner is not None:
            inner(moment, release)

    cluster.helm.hook = hook
    process.settle(200)
    print(f"{slots} slots: at most {most[0]} at the same time")
    assert 1 <= most[0] <= slots
    assert cluster.deployed() == RELEASES

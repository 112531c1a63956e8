"""The spec is edited while helm runs: it is seen at once, and no run is interrupted."""

import threading
import time
from collections.abc import Callable

import pytest

from lib.helm import child, errors, outcome
from lib.kube import resources
from tests.lib.osdpl.ground import RELEASES, Cluster, Process

KEYSTONE, GLANCE = "openstack-keystone", "openstack-glance"
PATIENCE_S = 60.0


class Held:
    """A run of helm for a release that lasts until it is released."""

    def __init__(self, cluster: Cluster, release: str) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self._release = release
        self._inner = cluster.helm.hook
        cluster.helm.hook = self._hook

    def _hook(self, moment: str, release: str) -> None:
        if (moment, release) == ("pending", self._release):
            self.begun.set()
            self.released.wait(PATIENCE_S)
        if self._inner is not None:
            self._inner(moment, release)


def reconcile(process: Process) -> float:
    """Reconcile without waiting for the runs; return the seconds that it took."""
    process.refresh()
    began = time.monotonic()
    for key in process.deployments.by_age():
        for snapshot in process.observer.observe([key]).values():
            process.act_on(snapshot)
    elapsed_s = time.monotonic() - began
    process.cluster.clock.seconds += 1
    time.sleep(0.01)
    return elapsed_s


def until(process: Process, holds: Callable[[], bool]) -> list[float]:
    """Reconcile until something holds; return the seconds of each reconciliation."""
    deadline = time.monotonic() + PATIENCE_S
    times = []
    while not holds():
        assert time.monotonic() < deadline
        times.append(reconcile(process))
    return times


def change(cluster: Cluster, keystone: int, glance: int = 0) -> None:
    services = {"identity": {"keystone": {"values": {"of_the_test": keystone}}}}
    if glance:
        services["image"] = {"glance": {"values": {"of_the_test": glance}}}
    cluster.change(services=services)


@pytest.fixture()
def cluster(installed: Cluster) -> Cluster:
    """Return a cluster with all releases."""
    return installed


def test_an_edit_while_helm_runs(cluster: Cluster) -> None:
    """Others follow it immediately; the running one ends, then the new plan counts."""
    process, held = Process(cluster), Held(cluster, KEYSTONE)
    change(cluster, keystone=1)
    times = until(process, held.begun.is_set)
    change(cluster, keystone=2, glance=2)
    generation = cluster.deployment()["metadata"]["generation"]
    times += until(process, lambda: f"upgrade {GLANCE}" in cluster.helm.runs)
    assert KEYSTONE in process.jobs.running()
    assert cluster.helm.upgrades[GLANCE].values["of_the_test"] == 2
    times += until(
        process,
        lambda: cluster.condition("Applied")["observedGeneration"] == generation,
    )
    assert cluster.helm.upgrades[KEYSTONE].values["of_the_test"] == 1
    held.released.set()
    process.idle()
    process.settle()
    assert cluster.helm.upgrades[KEYSTONE].values["of_the_test"] == 2
    assert cluster.helm.runs.count(f"upgrade {KEYSTONE}") == 2
    assert cluster.deployed() == RELEASES
    print(f"{len(times)} reconciliations, the longest {max(times):.3f} s")


def test_an_edit_that_is_reverted_while_helm_runs(cluster: Cluster) -> None:
    process, held = Process(cluster), Held(cluster, KEYSTONE)
    change(cluster, keystone=1)
    until(process, held.begun.is_set)
    change(cluster, keystone=0)
    until(process, lambda: reconcile(process) >= 0 and held.begun.is_set())
    held.released.set()
    process.idle()
    process.settle()
    assert cluster.helm.upgrades[KEYSTONE].values["of_the_test"] == 0
    assert cluster.condition("Applied")["status"] == "True"


@pytest.mark.parametrize("kind", ["draft", "paused"])
def test_a_stop_while_helm_runs(cluster: Cluster, kind: str) -> None:
    """Reported immediately; the run ends, and nothing new is begun."""
    process, held = Process(cluster), Held(cluster, KEYSTONE)
    change(cluster, keystone=1)
    until(process, held.begun.is_set)
    document = cluster.deployment()
    if kind == "draft":
        cluster.change(draft=True)
    else:
        document["metadata"]["annotations"] = {"mooring.io/paused": "true"}
        cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    reason = kind.capitalize()
    until(process, lambda: cluster.condition("Applied")["reason"] == reason)
    runs = list(cluster.helm.runs)
    held.released.set()
    process.idle()
    process.settle()
    assert cluster.helm.runs == runs
    assert cluster.deployed() == RELEASES


def test_a_message_keeps_300_characters_without_secrets() -> None:
    """The first ones of the error, whatever comes before or after it."""
    secret = "s3cret-of-the-test"
    text = f"W1121 a warning\nError: UPGRADE FAILED: {secret} {'x' * 1000}\n"
    ended = child.Ended(code=1, output=b"", errors=text)
    with pytest.raises(errors.Failed) as observed:
        outcome.require(ended, "upgrade of x", frozenset((secret,)))
    message = str(observed.value).removeprefix("upgrade of x: ")
    print(len(message), message[:80])
    assert message.startswith("UPGRADE FAILED: ")
    assert secret not in message
    assert len(message.removesuffix("...")) == outcome.MESSAGE_MAX == 300

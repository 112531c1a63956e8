"""The process is killed before and after every single call, and runs beside another.

In the default tier every eighth call is used, in the long tier every call.
"""

import collections
import itertools
import os
import pathlib
from collections.abc import Callable

import pytest

from lib.kube import resources
from lib.kube.fake import calls
from lib.osdpl import graph, upgrade
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Death, Process

STRIDE = 1 if os.environ.get("MOORING_TIER") == "long" else 8
WHENS = ("before_call", "after_call")
ORDERED = [one for one in graph.UPGRADE_ORDER if one in graph.RELEASES]
SERVICES = {
    release: service
    for service, releases in graph.RELEASES.items()
    for release, _ in releases
}
Begin = Callable[[Cluster], None]


def install(cluster: Cluster) -> None:
    cluster.create()


def change(cluster: Cluster) -> None:
    """Change a value of each of two releases."""
    cluster.create()
    Process(cluster).settle()
    debug = {"values": {"conf": {"of_the_test": 1}}}
    services = {"identity": {"keystone": debug}, "image": {"glance": debug}}
    cluster.change(services=services)


def upgrade_openstack(cluster: Cluster) -> None:
    cluster.create(openstack_version="flamingo")
    Process(cluster).settle()
    cluster.change(openstack_version="gazpacho")


def delete(cluster: Cluster) -> None:
    cluster.create()
    Process(cluster).settle()
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)


BEGINNINGS: dict[str, Begin] = {
    "install": install,
    "change": change,
    "upgrade": upgrade_openstack,
    "deletion": delete,
}


def begin(name: str, folder: pathlib.Path) -> Cluster:
    """Return a cluster in which something is to be done; no call is counted yet."""
    cluster = Cluster(folder)
    BEGINNINGS[name](cluster)
    cluster.helm.runs.clear()
    cluster.api.calls.clear()
    return cluster


def kill(cluster: Cluster, number: int, when: str) -> calls.Call | None:
    """Run a process that is killed at one of its calls; None: it made fewer calls.

    Runs of helm that have begun end before: kills within a run are another test.
    """
    killed: list[calls.Call] = []
    count = itertools.count()

    def hook(call: calls.Call) -> None:
        if next(count) == number:
            killed.append(call)
            raise Death

    setattr(cluster.api, when, hook)
    process = Process(cluster)
    try:
        process.settle(120)
    except Death:
        process.idle()
    setattr(cluster.api, when, None)
    return killed[0] if killed else None


def require_converged(name: str, cluster: Cluster, killed: object) -> int:
    """Return how many runs of helm were needed beyond one for each release."""
    pending = [
        one["metadata"]["name"]
        for one in cluster.documents(resources.SECRETS)
        if one["metadata"].get("labels", {}).get("status", "").startswith("pending")
    ]
    assert pending == [], killed
    runs = cluster.helm.runs
    if name == "deletion":
        assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == [], killed
        assert cluster.documents(resources.HELM_BUNDLES) == [], killed
        assert cluster.deployed() == frozenset(), killed
    else:
        assert cluster.deployed() == RELEASES, killed
        assert cluster.condition("Applied")["status"] == "True", killed
    if name == "upgrade":
        names = [SERVICES[one.removeprefix("upgrade ")] for one in runs]
        ordered = [one for one in dict.fromkeys(names) if one in ORDERED]
        assert ordered == ORDERED, killed
        versions = {
            one["metadata"]["labels"][upgrade.VERSION_LABEL]
            for one in cluster.documents(resources.SECRETS)
            if one["metadata"].get("labels", {}).get("status") == "deployed"
        }
        assert versions == {"gazpacho"}, killed
    return len(runs) - len(set(runs))


@pytest.mark.parametrize("name", BEGINNINGS)
def test_killed_around_every_call(name: str, tmp_path: pathlib.Path) -> None:
    """It converges, and no run of helm is made twice that had ended."""
    whole = begin(name, tmp_path / "whole")
    Process(whole).settle(120)
    require_converged(name, whole, "not killed")
    made = list(whole.api.calls)
    expected = sorted(set(whole.helm.runs))
    rows: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for number, when in itertools.product(range(0, len(made), STRIDE), WHENS):
        cluster = begin(name, tmp_path / f"{when}-{number}")
        killed = kill(cluster, number, when)
        Process(cluster).settle(120)
        again = require_converged(name, cluster, (killed, when))
        assert again == 0, (killed, when, cluster.helm.runs)
        assert sorted(cluster.helm.runs) == expected, (killed, when)
        if killed is not None:
            part = killed.subresource or ""
            rows[when, killed.verb, f"{killed.resource} {part}".strip()] += 1
    print(f"{name}: {len(made)} calls, every {STRIDE}. of them; helm runs twice: 0")
    for (when, verb, resource), count in sorted(rows.items()):
        print(f"{count:4} {when:12} {verb:7} {resource}")
    assert sum(rows.values()) >= len(range(0, len(made), STRIDE))


@pytest.mark.parametrize("name", BEGINNINGS)
def test_beside_a_second_process(name: str, tmp_path: pathlib.Path) -> None:
    """Two processes that both act, step by step, as after a Lease that was lost."""
    cluster = begin(name, tmp_path)
    first, second = Process(cluster), Process(cluster)
    for _ in range(120):
        done = [process.step() for process in (first, second)]
        waits = [wait_s for _, wait_s in done if wait_s is not None]
        if not any(actions for actions, _ in done) and not waits:
            break
        cluster.clock.seconds += max(min(waits, default=0.1), ground.SHORTEST_S)
    assert require_converged(name, cluster, "two processes") == 0


@pytest.mark.parametrize("moment", ["begin", "pending", "end"])
@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_second_process_continues_at_once(
    name: str, moment: str, tmp_path: pathlib.Path
) -> None:
    """It has watched all along when the first one is killed in a run of helm."""
    cluster = begin(name, tmp_path)
    second = Process(cluster)
    second.refresh()
    kind = "uninstall" if name == "deletion" else "upgrade"
    if (kind, moment) == ("uninstall", "pending"):
        return  # an uninstall of the fake has no such moment
    cluster.death = (moment, "openstack-keystone")
    with pytest.raises(Death):
        Process(cluster).settle(120)
    second.settle(120)
    again = require_converged(name, cluster, moment)
    assert again == (0 if moment == "end" else 1)

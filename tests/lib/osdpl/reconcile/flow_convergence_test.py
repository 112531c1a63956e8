"""The process is killed before and after every single call, and runs beside another.

In the default tier it is killed before the first and after the last call of each kind.
"""

import collections
import itertools
import os
import pathlib
from collections.abc import Callable, Sequence

import pytest

from lib.kube import resources
from lib.kube.fake import calls
from lib.osdpl.reconcile import upgrade
from lib.osdpl.values import graph
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Death, Installed, Process

IS_LONG = os.environ.get("MOORING_TIER") == "long"
WHENS = ("before_call", "after_call")
GATES = ("openstack-mariadb", "openstack-keystone", "openstack-nova")
ORDERED = [service for service in graph.UPGRADE_ORDER if service in graph.RELEASES]
SERVICES = {
    release: service
    for service, releases in graph.RELEASES.items()
    for release, _ in releases
}
Kind = tuple[str, str, str]
"""Verb, resource and subresource of a call."""


def install(folder: pathlib.Path, installed: Installed) -> Cluster:
    """Return a cluster in which nothing is installed yet."""
    del installed
    cluster = Cluster(folder)
    cluster.create()
    return cluster


def change(folder: pathlib.Path, installed: Installed) -> Cluster:
    """Change a value of each of two releases."""
    del folder
    cluster = installed("gazpacho")
    debug = {"values": {"conf": {"of_the_test": 1}}}
    services = {"identity": {"keystone": debug}, "image": {"glance": debug}}
    cluster.change(services=services)
    return cluster


def upgrade_openstack(folder: pathlib.Path, installed: Installed) -> Cluster:
    """Change the OpenStack version of all releases."""
    del folder
    cluster = installed("flamingo")
    cluster.change(openstack_version="gazpacho")
    return cluster


def delete(folder: pathlib.Path, installed: Installed) -> Cluster:
    """Delete the OpenStackDeployment; three releases leave Jobs and claims behind."""
    del folder
    cluster = installed("gazpacho")
    for release in GATES:
        cluster.leave(release)
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)
    return cluster


BEGINNINGS: dict[str, Callable[[pathlib.Path, Installed], Cluster]] = {
    "install": install,
    "change": change,
    "upgrade": upgrade_openstack,
    "deletion": delete,
}


def kind_of(call: calls.Call) -> Kind:
    return call.verb, call.resource, call.subresource or ""


def moments(sent: Sequence[calls.Call]) -> list[tuple[Kind, int, str]]:
    """Return the moments of kills: kind of the call, number within it, and when."""
    counts = collections.Counter(map(kind_of, sent))
    if IS_LONG:
        return [
            (kind, number, when)
            for kind, count in counts.items()
            for number, when in itertools.product(range(count), WHENS)
        ]
    return [
        moment
        for kind, count in counts.items()
        for moment in ((kind, 0, WHENS[0]), (kind, count - 1, WHENS[1]))
    ]


def kill(cluster: Cluster, kind: Kind, number: int, when: str) -> bool:
    """Run a process that is killed at a call; return False if it made fewer of them.

    Runs of helm that have begun end before: kills within a run are another test.
    """
    killed = []
    count = itertools.count()

    def hook(call: calls.Call) -> None:
        if kind_of(call) == kind and next(count) == number:
            killed.append(call)
            raise Death

    setattr(cluster.api, when, hook)
    process = Process(cluster)
    try:
        process.settle(120)
    except Death:
        process.idle()
    setattr(cluster.api, when, None)
    return bool(killed)


def require_converged(name: str, cluster: Cluster, killed: object) -> int:
    """Return how many runs of helm were needed beyond one for each release."""
    pending = [
        document["metadata"]["name"]
        for document in cluster.documents(resources.SECRETS)
        if document["metadata"]
        .get("labels", {})
        .get("status", "")
        .startswith("pending")
    ]
    assert pending == [], killed
    runs = cluster.helm.runs
    if name == "deletion":
        assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == [], killed
        assert cluster.documents(resources.HELM_BUNDLES) == [], killed
        assert cluster.deployed() == frozenset(), killed
        assert cluster.documents(resources.JOBS) == [], killed
    else:
        assert cluster.deployed() == RELEASES, killed
        assert cluster.condition("Applied")["status"] == "True", killed
    if name == "upgrade":
        names = [SERVICES[run.removeprefix("upgrade ")] for run in runs]
        ordered = [fromkey for fromkey in dict.fromkeys(names) if fromkey in ORDERED]
        assert ordered == ORDERED, killed
        versions = {
            document["metadata"]["labels"][upgrade.VERSION_LABEL]
            for document in cluster.documents(resources.SECRETS)
            if document["metadata"].get("labels", {}).get("status") == "deployed"
        }
        assert versions == {"gazpacho"}, killed
    return len(runs) - len(set(runs))


@pytest.mark.parametrize("name", BEGINNINGS)
def test_killed_around_calls(
    name: str, tmp_path: pathlib.Path, installed_version: Installed
) -> None:
    """It converges, no ended run of helm is repeated, no credential is replaced."""
    begin = BEGINNINGS[name]
    whole = begin(tmp_path / "whole", installed_version)
    Process(whole).settle(120)
    require_converged(name, whole, "not killed")
    created = list(whole.api.calls)
    expected = sorted(set(whole.helm.runs))
    rows: collections.Counter[tuple[str, Kind]] = collections.Counter()
    for index, (kind, number, when) in enumerate(moments(created)):
        cluster = begin(tmp_path / str(index), installed_version)
        is_killed = kill(cluster, kind, number, when)
        before = cluster.credentials()
        Process(cluster).settle(120)
        killed = (kind, number, when)
        assert require_converged(name, cluster, killed) == 0, cluster.helm.runs
        assert sorted(cluster.helm.runs) == expected, killed
        after = cluster.credentials()
        assert {key: after[key] for key in before} == before, killed
        rows[when, kind] += is_killed
    print(f"{name}: {len(created)} calls, {rows.total()} kills; helm runs twice: 0")
    for (when, kind), count in sorted(rows.items()):
        print(f"{count:4} {when:12} {' '.join(kind)}")
    # The order of calls of concurrent runs differs: a last call may be an earlier one.
    assert all(rows[WHENS[0], kind_of(call)] for call in created)


@pytest.mark.parametrize("moment", ["begin", "pending", "end"])
@pytest.mark.parametrize("release", sorted(RELEASES) if IS_LONG else GATES)
def test_killed_during_a_run(tmp_path: pathlib.Path, moment: str, release: str) -> None:
    """A successor finds the pending release, repairs it and completes the rest."""
    cluster = Cluster(tmp_path)
    cluster.create()
    cluster.death = (moment, release)
    with pytest.raises(Death):
        Process(cluster).settle()
    Process(cluster).settle()
    assert cluster.deployed() == RELEASES
    again = sorted(set(cluster.upgrades()))
    assert again == sorted(f"upgrade {item}" for item in RELEASES)
    extra = len(cluster.upgrades()) - len(RELEASES)
    assert extra == (0 if moment == "end" else 1)


@pytest.mark.parametrize("name", BEGINNINGS)
def test_beside_a_second_process(
    name: str, tmp_path: pathlib.Path, installed_version: Installed
) -> None:
    """Two processes that both act, step by step, as after a Lease that was lost."""
    cluster = BEGINNINGS[name](tmp_path, installed_version)
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
    name: str, moment: str, tmp_path: pathlib.Path, installed_version: Installed
) -> None:
    """It has watched all along when the first one is killed in a run of helm."""
    cluster = BEGINNINGS[name](tmp_path, installed_version)
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

"""Deletion of an OpenStackDeployment: when it is refused, and what it does not need."""

import dataclasses
import pathlib
import threading
import time

import pytest

from lib.helm import errors as helm_errors
from lib.helm.fake import helm as fake_helm
from lib.kube import resources
from lib.osdpl.reconcile import applied, decide
from lib.osdpl.rules import table
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Process

STEPS = 15


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def delete(cluster: Cluster) -> None:
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)


def force(cluster: Cluster, text: str = "deletion") -> None:
    document = cluster.deployment()
    document["metadata"]["annotations"] = {"mooring.io/force": text}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)


def steps(process: Process, count: int = STEPS) -> None:
    for _ in range(count):
        _, wait_s = process.step()
        process.cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)


def waiting(cluster: Cluster) -> Process:
    """Return a process that waits for a gate."""
    cluster.opens_gates = False
    cluster.create()
    process = Process(cluster)
    steps(process)
    return process


def failed(cluster: Cluster) -> Process:
    """Return a process for which a release always fails."""
    error = helm_errors.Failed("upgrade of etcd: Job etcd-x failed")
    cluster.helm.faults += [fake_helm.Fault("etcd", error)] * 100
    cluster.create()
    process = Process(cluster)
    steps(process, 30)
    return process


def upgrading(cluster: Cluster) -> Process:
    """Return a process in the middle of an upgrade of OpenStack."""
    cluster.create(openstack_version="flamingo")
    Process(cluster).settle()
    cluster.workload("openstack-glance", "api-of-the-test", ready=0)
    cluster.change(openstack_version="gazpacho")
    process = Process(cluster)
    steps(process, 8)
    return process


STATES = {"WAITING": waiting, "FAILED": failed, "APPLYING": upgrading}


@pytest.mark.parametrize("is_status_lost", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_it_is_refused_before_all_is_applied(
    cluster: Cluster, name: str, is_status_lost: bool
) -> None:
    process = STATES[name](cluster)
    before, runs = cluster.deployed(), list(cluster.helm.runs)
    delete(cluster)
    if is_status_lost:  # a foreground deletion deletes what the object owns
        statuses = resources.OPENSTACK_DEPLOYMENT_STATUSES
        cluster.api.remove(statuses, "osh-dev", ground.NAMESPACE)
    steps(process)
    steps(Process(cluster))
    accepted = cluster.condition("Accepted")
    print(accepted["message"])
    assert accepted["reason"] == "DeletionRefused"
    assert "metadata.deletionTimestamp: " in accepted["message"]
    assert "mooring.io/force: deletion" in accepted["message"]
    assert cluster.deployed() == before
    assert cluster.helm.runs == runs
    force(cluster)
    Process(cluster).settle()
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []
    assert cluster.deployed() == frozenset()


def test_another_annotation_does_not_force_it(cluster: Cluster) -> None:
    process = waiting(cluster)
    force(cluster, "change")
    delete(cluster)
    steps(process)
    assert cluster.condition("Accepted")["reason"] == "DeletionRefused"


def test_an_unknown_order_is_reported(cluster: Cluster) -> None:
    cluster.create()
    force(cluster, "everything")
    process = Process(cluster)
    process.settle()
    accepted = cluster.condition("Accepted")
    assert accepted["reason"] == "FieldsIgnored"
    assert (
        'annotation mooring.io/force: unsupported value "everything"'
        in accepted["message"]
    )
    assert cluster.deployed() == RELEASES


@pytest.mark.parametrize("is_begun", [False, True])
def test_it_needs_no_source_of_charts(
    cluster: Cluster, tmp_path: pathlib.Path, is_begun: bool
) -> None:
    """Neither the source nor the cache exist any more, also after a restart."""
    cluster.create()
    process = Process(cluster)
    process.settle()
    if is_begun:
        delete(cluster)
        process.step()
    for folder in ("charts", "cache"):
        (tmp_path / folder).rename(tmp_path / f"{folder}-gone")
    if not is_begun:
        delete(cluster)
    Process(cluster).settle()
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []
    assert cluster.deployed() == frozenset()


def test_it_does_not_wait_for_a_source_that_hangs(cluster: Cluster) -> None:
    """What is only read is no reason to wait: no release comes of it."""
    cluster.create()
    process = Process(cluster)
    process.settle()
    answers = threading.Event()

    def job(cancel: threading.Event) -> None:
        del cancel
        answers.wait(30)

    process.worker.read("openstack-heat", "chart of the test", job)
    delete(cluster)
    limit = time.monotonic() + 20
    while cluster.documents(resources.OPENSTACK_DEPLOYMENTS):
        assert time.monotonic() < limit
        reconcile(process)
    assert "openstack-heat" in process.jobs.running()
    answers.set()


def reconcile(process: Process) -> None:
    """Reconcile once without waiting for the jobs."""
    process.refresh()
    for key in process.deployments.by_age():
        for snapshot in process.observer.observe([key]).values():
            process.act_on(snapshot)
    time.sleep(0.01)
    process.cluster.clock.seconds += 1


def test_the_webhook_s_rule_is_the_same(cluster: Cluster) -> None:
    """One function decides for both; see also the table of rules."""
    process = waiting(cluster)
    (snapshot,) = process.observer.observe(process.deployments.by_age()).values()
    (problem,) = decide.deletion_problems(snapshot)
    known = (snapshot.document, snapshot.status, snapshot.revisions)
    change = applied.change_of(*known)
    spec = snapshot.desired.spec
    whole = dataclasses.replace(change, spec=spec, is_deletion=True)
    assert table.problems(whole) == (problem,)

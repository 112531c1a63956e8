"""Objects beside other programs: the reference, another controller, a missed event."""

import pathlib
from typing import Any

import pytest

from lib.kube import resources
from lib.osdpl.reconcile import checks
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import Cluster, Installed, Process

REFERENCE = ["lcm.mirantis.com/rockoon.osdpl-finalizer"]


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def with_finalizers(cluster: Cluster, names: list[str]) -> None:
    document = cluster.deployment()
    own = document["metadata"].get("finalizers") or []
    document["metadata"]["finalizers"] = [*own, *names]
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)


def advance(process: Process, count: int) -> None:
    for _ in range(count):
        _, wait_s = process.step()
        process.cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)


@pytest.mark.parametrize("is_running", [True, False])
def test_finalizers_of_the_reference_are_removed_once_it_does_not_run(
    installed_version: Installed, is_running: bool
) -> None:
    cluster = installed_version("gazpacho")
    metadata = {"name": checks.ROCKOON, "namespace": checks.ROCKOON_NAMESPACE}
    if is_running:
        cluster.api.put(resources.DEPLOYMENTS, {"metadata": metadata})
    with_finalizers(cluster, REFERENCE)
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)
    advance(Process(cluster), 30)
    assert cluster.deployed() == frozenset()
    if is_running:
        assert REFERENCE[0] in cluster.condition("Applied")["message"]
        cluster.api.remove(resources.DEPLOYMENTS, *metadata.values())
        advance(Process(cluster), 3)
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []


def test_a_finalizer_of_an_unknown_program_is_named_and_kept(
    installed_version: Installed,
) -> None:
    cluster = installed_version("gazpacho")
    with_finalizers(cluster, ["example.com/backup"])
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)
    Process(cluster).settle()
    assert "example.com/backup" in cluster.condition("Applied")["message"]


def test_a_deletion_that_kopf_missed_does_not_block_the_next_object(
    cluster: Cluster,
) -> None:
    process = Process(cluster)
    draft: dict[str, Any] = {
        "apiVersion": "lcm.mirantis.com/v1alpha1",
        "kind": "OpenStackDeployment",
        "metadata": {
            "name": "draft",
            "namespace": ground.NAMESPACE,
            "uid": "gone",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {},
    }
    process.deployments.put(draft)
    cluster.create()
    process.refresh = lambda: None  # type: ignore[method-assign] # no list of Kopf
    for _, kept in process.caches.all():
        kept.relist()
    process.deployments.put(cluster.deployment())
    process.step()
    assert process.deployments.by_age() == (ground.KEY,)
    assert cluster.condition("Accepted").get("reason") != "SecondDeployment"


def test_two_controllers_do_not_overwrite_each_other(cluster: Cluster) -> None:
    """That of another namespace is silent beside the one that serves the object."""
    cluster.create()
    document = cluster.deployment()
    document["metadata"] = {"name": "osh-dev", "namespace": "elsewhere"}
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    advance(Process(cluster), 3)
    assert cluster.condition("Accepted")["reason"] == "NamespaceNotServed"
    document = cluster.deployment()
    document["status"]["conditions"][0]["reason"] = "Accepted"
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    before = cluster.deployment()
    advance(Process(cluster), 3)
    assert cluster.deployment() == before

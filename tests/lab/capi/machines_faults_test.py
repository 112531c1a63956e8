"""Machines on a parent that fails: no object is created twice, and nothing is left.

Each fault is a printed row, and ends when as many Machines as desired are Running.
"""

import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from lib.kube.resources import Resource
from lib.lab.dvp.kinds import GROUP
from lib.lab.run import waiting
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import cluster_objects, life, losing_parent
from tests.harness.machines.capdvp_replicas import CapdvpReplicas
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.losing_parent import LosingParent

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", True)
CREATED = ("secrets", "virtualdisks", "virtualmachines")


@pytest.fixture(scope="module")
def proxy(parent: DvpParent) -> Iterator[LosingParent]:
    with LosingParent(parent.where) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def capdvp(stage: CapiStage, proxy: LosingParent) -> Iterator[CapdvpReplicas]:
    """Run capdvp, which reaches the parent through the proxy, and 2 Machines."""
    replicas = CapdvpReplicas(
        stage.where,
        stage.project,
        stage.kubeconfig,
        proxy.kubeconfig(stage.parent_kubeconfig),
    )
    try:
        replicas.start()
        stage.fleet.create_cluster()
        stage.fleet.create_template("small")
        stage.fleet.create_deployment("small", 2)
        stage.fleet.until_whole(2)
        yield replicas
    finally:
        replicas.stop()


def lost_responses(stage: CapiStage, proxy: LosingParent) -> str:
    """The first create of each kind succeeds, and its response is lost."""
    with proxy.losing(losing_parent.first_creates(*CREATED)) as lost:
        stage.fleet.scale(3)
        after = stage.fleet.until_whole(3)
    assert sorted(sent.plural for sent in lost) == sorted(CREATED)
    return f"{len(lost)} responses lost; {after}"


def conflicts(stage: CapiStage, proxy: LosingParent) -> str:
    """The first write of each kind to each object is rejected with 409."""
    with proxy.rejecting(losing_parent.first_writes()) as rejected:
        stage.fleet.scale(4)
        stage.fleet.until_whole(4)
        stage.fleet.scale(2)
        after = stage.fleet.until_whole(2)
    methods = {sent.method for sent in rejected}
    assert {"POST", "DELETE"} <= methods
    return f"{len(rejected)} writes rejected ({', '.join(sorted(methods))}); {after}"


def quota(stage: CapiStage, proxy: LosingParent) -> str:
    """A third Machine waits with a condition until the quota is removed."""
    del proxy
    fleet = stage.fleet
    hard = {f"count/virtualmachines.{GROUP}": "2"}
    fleet.in_parent.make(QUOTAS, "vms", spec={"hard": hard})
    waiting.until(
        "the quota is known",
        lambda: (fleet.in_parent.get(QUOTAS, "vms") or {})
        .get("status", {})
        .get("used"),
    )
    fleet.scale(3)
    waiting.until("a condition names the quota", lambda: waits_for_quota(stage))
    message = waits_for_quota(stage)
    assert len(fleet.picture().vms) == 2
    fleet.in_parent.delete(QUOTAS, "vms")
    return f"{message!r}; {fleet.until_whole(3)}"


def waits_for_quota(stage: CapiStage) -> str:
    for machine in stage.fleet.objects.all(cluster_objects.DVP_MACHINES):
        for row in machine.get("status", {}).get("conditions", ()):
            if "exceeded quota" in row["message"]:
                return f"{row['reason']}: {row['message']}"
    return ""


def cluster_deleted(stage: CapiStage, proxy: LosingParent) -> str:
    """After all faults nothing of the Cluster remains; everything else does."""
    del proxy
    return life.delete_cluster(stage.fleet)


FAULTS: Mapping[str, Callable[[CapiStage, LosingParent], str]] = {
    "response to each create lost": lost_responses,
    "409 to the first of each write": conflicts,
    "quota reached and freed": quota,
    "none; the Cluster is deleted": cluster_deleted,
}


@pytest.mark.usefixtures("capdvp")
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_created_twice_or_left(
    stage: CapiStage, proxy: LosingParent, fault: str
) -> None:
    began = time.monotonic()
    result = FAULTS[fault](stage, proxy)
    print(f"{fault:34} {time.monotonic() - began:6.1f} s  {result}")
    assert not stage.duplicates()

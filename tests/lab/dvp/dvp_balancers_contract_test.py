"""DVP's load balancers on a real API server keep the contract; two children at once.

As the user of a project: with the rights that the reference's daemons have there.
"""

import dataclasses
import time
from collections.abc import Iterator

import pytest

from lib.cloud.dvp.load_balancers import lb_names
from lib.cloud.load_balancers import Node
from lib.kube import resources
from lib.lab.dvp.kinds import MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster
from tests.contract import load_balancers
from tests.contract.dvp_balancers import ParentBalancers
from tests.harness.dvp import dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent

HOSTS = ("member-1", "member-2")
NODES = tuple(Node(host, f"dvp://{host}") for host in HOSTS)
CHILDREN = (dvp_parent.CLUSTER, dvp_parent.OTHER_CLUSTER)


def pause(seconds: float) -> None:
    """Wait for the watch: nothing is polled."""
    time.sleep(min(seconds, 0.1))


def child_of(project: Project, cluster_uuid: str) -> ParentBalancers:
    """Return the load balancers of one child of the project."""
    api = cluster.connect(project.kubeconfig)
    return ParentBalancers(api, NODES, pause, project.namespace, cluster_uuid)


@pytest.fixture(scope="module", autouse=True)
def vms(parent: DvpParent, project: Project) -> None:
    """Create VMs with equal hostnames in both children."""
    parent.machines(project, HOSTS)
    for host in HOSTS:
        other = f"other-{host}"
        parent.machine(project, host, name=other, cluster=dvp_parent.OTHER_CLUSTER)


class TestOnARealParent(load_balancers.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, project: Project, vms: None) -> Iterator[load_balancers.Ground]:
        del vms
        ground = child_of(project, dvp_parent.CLUSTER)
        yield ground
        ground.close()


def test_two_children_with_equal_names_do_not_touch_each_other(
    parent: DvpParent, project: Project
) -> None:
    """Equal names of Services and Nodes, other UIDs; the other's JSON is unchanged."""
    objects = parent.objects(project)
    grounds = [child_of(project, uuid) for uuid in CHILDREN]
    served = []
    for number, ground in enumerate(grounds):
        facts = ground.facts("web")
        facts = dataclasses.replace(facts, uid=f"{number}-uid-of-web")
        own = load_balancers.Served(ground, facts)
        own.settle()
        served.append(own)

    def others() -> list[object]:
        name = lb_names.object_name(served[1].facts.uid)
        vms = [objects.get(MACHINES, f"other-{host}") for host in HOSTS]
        return [objects.get(resources.SERVICES, name), *vms]

    before = others()
    assert all(before)
    served[0].facts = dataclasses.replace(
        served[0].facts, nodes=NODES[:1], annotations={"a": "b"}
    )
    served[0].settle()
    served[0].settle(gone=True)
    assert others() == before
    served[1].settle()
    assert served[1].steps == []
    names = {row.id for row in grounds[0].balancers.owned(dvp_parent.CLUSTER)}
    assert lb_names.object_name(served[1].facts.uid) not in names
    for ground in grounds:
        ground.close()

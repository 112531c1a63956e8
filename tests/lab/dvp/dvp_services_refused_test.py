"""A Service of twenty Nodes of which one VM is refused by the parent.

The class of that VM does not allow its size any more: the parent refuses each write of
it, also of a label, as the real one does.
"""

from collections.abc import Iterator

import pytest

from lib.cloud.dvp.load_balancers import lb_names
from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp.kinds import CLASSES, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import simulated_kubelet
from lib.lab.run import waiting
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.services.services import Services, ingress

COUNT = 20
ODD = "odd-0"
RESTRICTED = "restricted"


class TwentyNodes:
    """The Nodes, one of them of a VM that may not be changed."""

    def __init__(self, api: client.Api, parent: DvpParent, project: Project) -> None:
        self.api, self.parent, self.project = api, parent, project
        self.objects = parent.objects(project)
        self.services = Services(api, "refused")
        self.objects.make(CLASSES, RESTRICTED, spec={"cpu": {"type": "Host"}})
        names = [
            *parent.seed(project, COUNT - 1, "node"),
            *parent.seed(project, 1, "odd", virtualMachineClassName=RESTRICTED),
        ]
        for name in names:
            simulated_kubelet.register(api, name, dvp_manager.utc_now())

    def restrict(self, *policies: object) -> None:
        """Change the sizing policies of the class."""
        spec = {"sizingPolicies": list(policies) or None}
        self.objects.patch(CLASSES, RESTRICTED, spec=spec)

    def labelled(self, key: str) -> set[str]:
        """Return the names of the VMs with a label."""
        metas = [vm["metadata"] for vm in self.objects.all(MACHINES)]
        return {meta["name"] for meta in metas if key in meta["labels"]}

    def refusals(self) -> int:
        """Count the writes of the VM that the parent has refused."""
        return sum(
            row.name == ODD and row.verb == "patch" and row.code == 403
            for row in self.parent.requests(self.project)
        )


@pytest.fixture(scope="module")
def nodes(
    where: places.Places, api: client.Api, parent: DvpParent, project: Project
) -> Iterator[TwentyNodes]:
    twenty = TwentyNodes(api, parent, project)
    flags = ["--leader-elect=false", "--lb-drift-period=10s"]
    words = dvp_manager.arguments(where, project.kubeconfig, flags)
    env = dvp_manager.environment(project)
    initialised = dvp_manager.SeenNodes(api)
    with dvp_manager.running(where, pexes.beside(dvp_manager.NAME), words, env):
        waiting.until("initialised", lambda: not initialised.new())
        yield twenty
    initialised.delete_all()


def test_the_others_receive_traffic_and_the_service_can_be_deleted(
    nodes: TwentyNodes,
) -> None:
    """Nineteen labels and an address; an Event names the VM; it follows when it may."""
    nodes.restrict({"cores": {"min": 4, "max": 8}})
    document = nodes.services.make("web")
    key = lb_names.label_key(lb_names.object_name(document["metadata"]["uid"]))
    took_s = waiting.until("labels", lambda: len(nodes.labelled(key)) == COUNT - 1)
    print(f"{COUNT - 1} of {COUNT} VMs are labelled after {took_s:.1f} s")
    assert ODD not in nodes.labelled(key)
    waiting.until("address", lambda: bool(ingress(nodes.services.get("web") or {})))
    texts: list[str] = []

    def is_named() -> bool:
        rows = nodes.services.events().get("web", [])
        texts[:] = [
            f"{row.reason}: {row.message}" for row in rows if ODD in row.message
        ]
        return bool(texts)

    waiting.until("an Event names the VM", is_named)
    print(texts[0], f"({nodes.refusals()} refused writes)")
    assert "sizing policy" in texts[0]
    nodes.restrict()
    took_s = waiting.until("all labels", lambda: len(nodes.labelled(key)) == COUNT)
    print(f"the last one {took_s:.1f} s after its class allows it again")
    nodes.restrict({"cores": {"min": 4, "max": 8}})
    nodes.services.delete(["web"])
    took_s = waiting.until("deleted", lambda: not nodes.services.all())
    print(f"deleted after {took_s:.1f} s; labels left: {nodes.labelled(key)}")
    assert nodes.labelled(key) <= {ODD}

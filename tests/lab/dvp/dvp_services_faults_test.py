"""A parent that fails in each way loses no load balancer, and gets what it missed.

During each fault a Service is created, another one is changed and a third one deleted.
"""

import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest

from lib.cloud.dvp.load_balancers import lb_names
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp.kinds import GROUP, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import kube_objects
from tests.harness import waiting
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.faulty_parent import FaultyParent
from tests.harness.faults import tcp_proxy
from tests.harness.services.services import Services

HOSTS = ("steady-1", "steady-2")
SERVICES = resources.SERVICES
FAULT_S = 10.0
LONG_S = 120.0
READS = ["get", "list", "watch"]
Json = dict[str, Any]


class FaultStage(FaultyParent):
    """A child, its parent behind a proxy, and Services that are served."""

    def __init__(
        self,
        parent: DvpParent,
        project: Project,
        api: client.Api,
        proxy: tcp_proxy.TcpProxy,
        kubeconfig: pathlib.Path,
    ) -> None:
        super().__init__(parent, project, proxy, kubeconfig)
        self.child = kube_objects.Objects(api, "faulty")
        self.services = Services(api, "faulty")

    def uid(self, service: str) -> str:
        """Return the UID of a Service's object in the parent."""
        return str(self.in_parent(service)["metadata"]["uid"])

    def in_parent(self, service: str) -> Json:
        document = self.services.get(service)
        assert document is not None
        name = lb_names.object_name(document["metadata"]["uid"])
        return self.objects.get(SERVICES, name) or {}

    def is_served(self, service: str) -> bool:
        """Report whether it has an address, and all VMs its label."""
        document = self.services.get(service) or {}
        ingress = document.get("status", {}).get("loadBalancer", {}).get("ingress")
        key = lb_names.label_key(lb_names.object_name(document["metadata"]["uid"]))
        vms = self.objects.all(MACHINES)
        labels = [vm["metadata"].get("labels", {}) for vm in vms]
        return bool(ingress) and all(key in label for label in labels)

    def forbidden(self) -> AbstractContextManager[None]:
        """Take the right to change VMs away."""
        return self.ruled(
            lambda rules: [
                {**rule, "verbs": READS if is_of_vms(rule) else rule["verbs"]}
                for rule in rules
            ]
        )


def is_of_vms(rule: Mapping[str, Any]) -> bool:
    return rule["apiGroups"] == [GROUP] and "virtualmachines" in rule["resources"]


@pytest.fixture(scope="module")
def stage(
    parent: DvpParent, project: Project, where: places.Places, api: client.Api
) -> Iterator[FaultStage]:
    parent.machines(project, HOSTS)
    kubelets = dvp_manager.Kubelets(api)
    kubelets.boot(*HOSTS)
    env = dvp_manager.environment(project)
    with parent.proxied(project) as (proxy, kubeconfig):
        new = FaultStage(parent, project, api, proxy, kubeconfig)
        words = dvp_manager.arguments(where, kubeconfig, ["--leader-elect=false"])
        with dvp_manager.running(where, pexes.beside("dvp-ccm"), words, env):
            yield new
    kubelets.end()


Fault = Callable[[FaultStage], AbstractContextManager[None]]
FAULTS: Mapping[str, tuple[Fault, float]] = {
    "no connection": (FaultStage.shut, FAULT_S),
    "silent": (FaultStage.silent, FAULT_S),
    "403 for VMs": (FaultStage.forbidden, FAULT_S),
    "token revoked": (FaultStage.revoked, FAULT_S),
    "API server restarted": (lambda stage: stage.parent.stopped(), FAULT_S),
    "down for two minutes": (lambda stage: stage.parent.stopped(), LONG_S),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_load_balancer_is_lost(stage: FaultStage, fault: str) -> None:
    """Existing objects keep their UID; what was requested in the fault is done."""
    names = {part: f"{part}-{slug(fault)}" for part in ("kept", "gone", "new")}
    for name in (names["kept"], names["gone"]):
        stage.services.make(name)
    for name in (names["kept"], names["gone"]):
        wait_served(stage, name)
    before = stage.uid(names["kept"])
    gone = stage.in_parent(names["gone"])["metadata"]["name"]
    breaks, lasts_s = FAULTS[fault]
    with breaks(stage):
        time.sleep(1.0)
        stage.services.make(names["new"])
        stage.services.change(names["kept"], {"example.com/changed": fault})
        stage.services.delete([names["gone"]])
        time.sleep(lasts_s)
    took_s = wait_served(stage, names["new"])
    waiting.until(
        "the deleted Service",
        lambda: stage.services.get(names["gone"]) is None,
        timeout_s=400,
    )
    waiting.until("the change", lambda: is_changed(stage, names["kept"], fault), 400)
    print(f"{fault:25} {lasts_s:4.0f} s, new Service {took_s:5.1f} s after its end")
    assert stage.uid(names["kept"]) == before
    assert stage.objects.get(SERVICES, gone) is None


def slug(fault: str) -> str:
    return fault.lower().replace(" ", "-")


def wait_served(stage: FaultStage, name: str) -> float:
    """Wait longer than the longest backoff of the queue."""

    def is_served() -> bool:
        try:
            return stage.is_served(name)
        except kube_errors.Unavailable:
            return False  # the parent has just been started

    return waiting.until(name, is_served, timeout_s=400)


def is_changed(stage: FaultStage, service: str, fault: str) -> bool:
    annotations = stage.in_parent(service)["metadata"].get("annotations", {})
    return bool(annotations.get("example.com/changed") == fault)

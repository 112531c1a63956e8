"""A parent that refuses, delays or misleads loses nothing, and is not asked in a loop.

A proxy in front of the real API server answers some requests itself; rights are taken
away in the parent; objects are deleted and relabelled there by hand. The table has a
row for each fault and flow.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from lib.cloud.dvp.load_balancers import lb_names
from lib.kube import client, resources
from lib.lab import places
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import kube_files
from tests.harness.dvp import dvp_parent, parent_proxy, three_flows
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.faulty_parent import FaultyParent
from tests.harness.dvp.parent_proxy import ParentProxy
from tests.harness.dvp.three_flows import HOSTS, SILENT, Asked, ThreeFlows

FAULT_S = 15.0
"""Longer than the two reads that confirm an absence are apart, with what precedes."""
SLOW_S = 2.0
MOST_PER_S = 8.0
"""Requests of both daemons in a fault, including those of three flows at work."""
SERVICES = resources.SERVICES
Rule = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Stage:
    """Three flows behind a proxy. faulty: changes the rights of the project's user."""

    flows: ThreeFlows
    proxy: ParentProxy
    faulty: FaultyParent

    def without(self, plural: str) -> AbstractContextManager[None]:
        """Take all rights on one kind away."""

        def change(rules: list[Rule]) -> list[Rule]:
            return [
                {**rule, "resources": [r for r in rule["resources"] if r != plural]}
                for rule in rules
                if rule["resources"] != [plural]
            ]

        return self.faulty.ruled(change)

    @contextlib.contextmanager
    def emptied(self) -> Iterator[None]:
        """Answer every list with no object."""
        with self.proxy.answering(parent_proxy.empty_lists(self.proxy)):
            self.proxy.cut()
            yield
        self.proxy.cut()


@pytest.fixture(scope="module")
def stage(
    parent: DvpParent,
    project: Project,
    where: places.Places,
    api: client.Api,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("csi")
    proxy = ParentProxy(
        parent.where.port("apiserver"),
        kube_files.certificates(parent.where) / "ca.crt",
    )
    kubeconfig = folder / "parent.kubeconfig"
    parent.redirect(project, f"http://127.0.0.1:{proxy.port}", kubeconfig)
    reached = dataclasses.replace(project, kubeconfig=kubeconfig)
    with parent.proxied(project) as (tcp, path):
        faulty = FaultyParent(parent, project, tcp, path)
        with three_flows.running(parent, reached, where, api, folder) as flows:
            yield Stage(flows, proxy, faulty)
    proxy.close()


Fault = Callable[[Stage], AbstractContextManager[None]]
FAULTS: Mapping[str, Fault] = {
    "429": lambda stage: stage.proxy.answering(parent_proxy.throttled),
    "slow": lambda stage: stage.proxy.answering(parent_proxy.slow(SLOW_S)),
    "an empty list": Stage.emptied,
    "403 for VMs": lambda stage: stage.without("virtualmachines"),
    "403 for Services": lambda stage: stage.without("services"),
    "403 for disks": lambda stage: stage.without(DISKS.plural),
    "403 for attachments": lambda stage: stage.without(ATTACHMENTS.plural),
}
CONFLICT = "409 at each write"
CONFLICTS = {
    *(("POST", "services"), ("PATCH", "services"), ("DELETE", "services")),
    ("PATCH", MACHINES.plural),
    *(("POST", DISKS.plural), ("PATCH", DISKS.plural), ("DELETE", DISKS.plural)),
    *(("POST", ATTACHMENTS.plural), ("DELETE", ATTACHMENTS.plural)),
}
"""Method and kind of every write of the three flows, but for adoption."""
BY_HAND = ("deleted by hand", "relabelled by hand")


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost(stage: Stage, fault: str) -> None:
    """Existing objects keep their UID, another child's stay, requests are few."""
    flows = stage.flows
    asked = flows.prepare()
    with FAULTS[fault](stage):
        before = len(stage.proxy.requests())
        flows.ask(asked)
        time.sleep(FAULT_S)
        flows.check()
        count = len(stage.proxy.requests()) - before
    flows.wait(fault, asked)
    print(f"{fault}: {count} requests in {FAULT_S:.0f} s")
    assert count <= MOST_PER_S * FAULT_S
    uid = flows.in_parent(asked.service("kept"))["metadata"]["uid"]
    assert uid == asked.uid


def test_each_write_may_conflict(stage: Stage) -> None:
    """The first attempt of every write is refused; the next one is done."""
    flows, conflict = stage.flows, parent_proxy.ConflictAtEachWrite()
    asked = flows.prepare()
    with stage.proxy.answering(conflict):
        flows.ask(asked)
        time.sleep(FAULT_S)
        flows.check()
        flows.until("volumes", asked.done.is_set)
    flows.wait(CONFLICT, asked)
    refused = {parent_proxy.method_and_kind(what) for what in conflict.refused}
    for method, kind in sorted(refused):
        print(f"{method:6} {kind:40} refused once, then done")
    assert refused == CONFLICTS


def test_what_is_deleted_by_hand_is_created_again(stage: Stage) -> None:
    """A Service's object, a VM's label, and the attachment of a volume."""
    flows, objects = stage.flows, stage.flows.objects
    asked = flows.prepare()
    service = flows.in_parent(asked.service("kept"))["metadata"]["name"]
    key = lb_names.label_key(service)
    objects.delete(SERVICES, service)
    objects.patch(MACHINES, HOSTS[1], metadata={"labels": {key: None}})
    objects.delete(ATTACHMENTS, f"vmbda-{asked.volume('kept')}-{HOSTS[0]}")
    objects.delete(DISKS, asked.volume("gone"))
    flows.until("created again", lambda: is_new(flows, asked))
    flows.driver.publish(asked.volume("kept"), HOSTS[0])
    flows.ask(asked)
    flows.wait(BY_HAND[0], asked)


def is_new(flows: ThreeFlows, asked: Asked) -> bool:
    metadata = flows.in_parent(asked.service("kept")).get("metadata", {})
    is_other = metadata.get("uid") not in (None, asked.uid)
    return is_other and flows.is_served(asked.service("kept"))


def test_what_is_relabelled_by_hand_stays(stage: Stage) -> None:
    """VMs, an object of a Service and a disk lose their labels, and get them back."""
    flows, objects = stage.flows, stage.flows.objects
    asked = flows.prepare()
    service = flows.in_parent(asked.service("kept"))["metadata"]["name"]
    for hostname in ("another", HOSTS[1], None, SILENT):
        label = {"labels": {dvp_parent.HOSTNAME_LABEL: hostname}}
        objects.patch(MACHINES, SILENT, metadata=label)
        time.sleep(3.0)
        flows.check()
    owner = {"labels": {"mooring.io/owner-uid": None}}
    objects.patch(SERVICES, service, metadata=owner)
    for value in (None, dvp_parent.CLUSTER):
        label = {"labels": {dvp_parent.CLUSTER_LABEL: value}}
        objects.patch(DISKS, asked.volume("kept"), metadata=label)
        objects.patch(MACHINES, SILENT, metadata=label)
        time.sleep(FAULT_S)
        flows.check()
    assert objects.get(ATTACHMENTS, f"vmbda-{asked.volume('kept')}-{HOSTS[0]}")
    flows.ask(asked)
    flows.wait(BY_HAND[1], asked)
    restored = flows.in_parent(asked.service("kept"))["metadata"]
    assert restored["uid"] == asked.uid
    assert "mooring.io/owner-uid" in restored["labels"]


def test_each_fault_has_a_row_for_each_flow(stage: Stage) -> None:
    faults: Sequence[str] = (CONFLICT, *FAULTS, *BY_HAND)
    stage.flows.table.check(faults)

"""What the reference leaves in a parent is adopted by labels alone, and is left to it.

dvp-ccm and csi-controller run on thirty objects of the reference's daemons, and on VMs
of Cluster API and Terraform. The reference itself cannot be run: its requests are
repeated afterwards with its rights, and each must find what its daemon expects.
"""

import collections
import contextlib
import datetime
import functools
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp.kinds import ATTACHMENTS, CHECKED_SERVICES, DISKS, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import kube_objects, simulated_kubelet
from tests.harness.dvp import csi_dvp, dvp_manager, dvp_parent, reference_state
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.reference_calls import ReferenceCalls
from tests.harness.dvp.reference_state import (
    BALANCERS,
    MASTERS,
    VOLUMES,
    WORKERS,
    Balancer,
    ReferenceDisk,
    ReferenceState,
)
from tests.harness.services.services import Services

HOSTS = (*WORKERS, *MASTERS)
NAMESPACE = "adopted"
LABELS = ".metadata.labels."
CLUSTER, OWNER, PUBLISHED = (
    f"{LABELS}{key}"
    for key in (
        dvp_parent.CLUSTER_LABEL,
        "mooring.io/owner-uid",
        "mooring.io/published-by",
    )
)
ADDED: Mapping[str, frozenset[str]] = {
    resources.SERVICES.kind: frozenset({CLUSTER, OWNER}),
    CHECKED_SERVICES.kind: frozenset({CLUSTER, OWNER}),
    ATTACHMENTS.kind: frozenset({OWNER, PUBLISHED}),
}
"""By kind, the labels that are added; those of a disk are already there."""
NEW_VOLUME = ReferenceDisk("pvc-0000aaaa-0000-4000-8000-000000000001", 2**30, "")
NEW_BALANCER = Balancer("created-by-dvp-ccm", CHECKED_SERVICES)
Json = dict[str, Any]


class Adoption:
    """The state of the reference, its child, and what is compared."""

    def __init__(
        self,
        parent: DvpParent,
        project: Project,
        where: places.Places,
        api: client.Api,
    ) -> None:
        self.parent, self.project, self.where = parent, project, where
        self.objects = parent.objects(project)
        self.child = kube_objects.Objects(api, NAMESPACE)
        self.services = Services(api, NAMESPACE)
        self.state = ReferenceState(parent, project, self.services)
        self.nodes = dvp_manager.SeenNodes(api)

    def add_nodes(self) -> None:
        """Create the Nodes as the reference's manager leaves them."""
        for host in HOSTS:
            vm = self.objects.get(MACHINES, reference_state.vm_name(host)) or {}
            address = vm["status"]["ipAddress"]
            rows = [("ExternalIP", address), ("InternalIP", address)]
            rows += [("Hostname", host)]
            shown = [{"type": type_, "address": text} for type_, text in rows]
            now = datetime.datetime.now(datetime.UTC)
            manifest = simulated_kubelet.manifest(host, now)
            spec = {"providerID": f"dvp://{reference_state.vm_name(host)}"}
            body = json.dumps({**manifest, "spec": spec}).encode()
            self.child.api.create(resources.NODES, body, timeout_s=30)
            status = json.dumps({"status": {"addresses": shown}}).encode()
            self.child.api.patch(
                resources.NODES, host, status, subresource="status", timeout_s=30
            )

    def add_endpoints(self) -> None:
        """Create a ready endpoint on one Node for Services with the policy Local."""
        for balancer in BALANCERS:
            if balancer.local:
                about = {"labels": {"kubernetes.io/service-name": balancer.name}}
                endpoint = {
                    "conditions": {"ready": True},
                    "addresses": ["10.244.0.9"],
                    "nodeName": WORKERS[0],
                }
                self.child.make(
                    resources.ENDPOINT_SLICES,
                    f"{balancer.name}-1",
                    about,
                    addressType="IPv4",
                    endpoints=[endpoint],
                )

    def add_another_child(self) -> None:
        """Create objects of another child, which nothing may change."""
        other = {dvp_parent.CLUSTER_LABEL: dvp_parent.OTHER_CLUSTER}
        self.parent.machine(self.project, "other-0", cluster=dvp_parent.OTHER_CLUSTER)
        labels = {**dvp_parent.MANAGED, **other, "virtualDiskName": "pvc-other"}
        claim = {"storageClassName": "local-immediate", "size": "1Gi"}
        self.objects.make(
            DISKS,
            "pvc-other",
            {"labels": labels},
            spec={"persistentVolumeClaim": claim},
        )
        spec = {
            "type": "LoadBalancer",
            "selector": {"dvp.deckhouse.io/aother": "loadbalancer"},
            "ports": [{"port": 80, "targetPort": 30080}],
        }
        self.objects.make(resources.SERVICES, "aother", {"labels": other}, spec=spec)
        self.parent.wait_phase(MACHINES, self.project, "other-0", "Running")
        self.parent.wait_phase(DISKS, self.project, "pvc-other", "Ready")
        self.parent.wait("its address", lambda: self.state.ingress("aother"))

    def settle(self) -> Mapping[tuple[str, str], Json]:
        """Return all objects of the project, once nothing moves them any more."""
        before = self.state.snapshot()

        def is_still() -> bool:
            nonlocal before
            now = self.state.snapshot()
            same, before = now == before, now
            return same

        self.parent.wait("nothing moves", is_still)
        return before

    def ingress(self, service: str) -> list[Json]:
        status = (self.services.get(service) or {}).get("status", {})
        return list(status.get("loadBalancer", {}).get("ingress") or [])

    def writes(self) -> collections.Counter[tuple[str, str]]:
        rows = self.parent.settled(self.project)
        return collections.Counter(
            (row.verb, row.resource) for row in rows if row.verb not in ("get", "list")
        )

    def is_owned(self, balancer: Balancer) -> bool:
        """Report whether a load balancer has the labels of its owner."""
        uid = self.state.services[balancer.name]["metadata"]["uid"]
        name = reference_state.lb_name(uid)
        document = self.objects.get(balancer.kind, name) or {"metadata": {}}
        labels = document["metadata"].get("labels") or {}
        return bool(labels.get("mooring.io/owner-uid") == uid)

    def is_served(self, balancer: Balancer) -> bool:
        """Report whether it also has its address in the child."""
        return self.is_owned(balancer) and bool(self.ingress(balancer.name))

    def is_absent(self, name: str) -> bool:
        """Report whether the parent has no Service of a name."""
        return self.objects.get(resources.SERVICES, name) is None


@pytest.fixture(scope="module")
def adoption(
    parent: DvpParent, project: Project, where: places.Places, api: client.Api
) -> Iterator[Adoption]:
    new = Adoption(parent, project, where, api)
    new.state.create()
    new.add_another_child()
    new.add_nodes()
    new.add_endpoints()
    kubelets = dvp_manager.Kubelets(api)
    kubelets.boot(*HOSTS)
    yield new
    kubelets.end()
    new.services.abandon()


@contextlib.contextmanager
def daemons(adoption: Adoption, state: pathlib.Path) -> Iterator[csi_dvp.CsiDvp]:
    """Run dvp-ccm with all controllers, and csi-controller. state: of its files."""
    project, where = adoption.project, adoption.where
    words = dvp_manager.arguments(
        where, project.kubeconfig, ["--lb-drift-period=1h", "--leader-elect=false"]
    )
    env = dvp_manager.environment(project)
    with (
        dvp_manager.running(where, pexes.beside("dvp-ccm"), words, env),
        csi_dvp.running(state, adoption.parent.where, project) as driver,
    ):
        yield driver


def changes(old: Json, new: Json) -> tuple[set[str], set[str]]:
    """Return the paths of fields that were added, and of those that changed."""
    before = dict(reference_state.fields(old))
    after = dict(reference_state.fields(new))
    kept = before.keys() & after.keys()
    changed = {path for path in kept if before[path] != after[path]}
    return after.keys() - before.keys(), changed | (before.keys() - after.keys())


def of_the_daemons() -> list[tuple[str, str]]:
    """Return kind and name of the volumes and attachments of the reference."""
    rows = [(DISKS.kind, volume.name) for volume in VOLUMES]
    rows += [(ATTACHMENTS.kind, v.attachment) for v in VOLUMES if v.host]
    return rows


def test_thirty_objects_are_adopted_by_labels_alone(
    adoption: Adoption, tmp_path: pathlib.Path
) -> None:
    """Each field of each object of the project is compared; a table is printed."""
    before, sent = adoption.settle(), adoption.writes()
    with daemons(adoption, tmp_path / "csi") as driver:
        adopt(adoption, driver, before)
        check_nodes(adoption)
    after = adoption.settle()
    assert after.keys() == before.keys()
    wrong = print_rows(before, after, adopted(adoption))
    assert not wrong
    writes = adoption.writes() - sent
    print("writes:", dict(writes))
    assert writes == {
        ("patch", resources.SERVICES.plural): 4,
        ("patch", CHECKED_SERVICES.plural): 4,
        ("patch", ATTACHMENTS.plural): 10,
    }


def adopt(
    adoption: Adoption,
    driver: csi_dvp.CsiDvp,
    before: Mapping[tuple[str, str], Json],
) -> None:
    """Wait for all load balancers, and publish as external-attacher does."""
    for balancer in BALANCERS:
        adoption.nodes.until(
            f"{balancer.name}: adopted",
            functools.partial(adoption.is_served, balancer),
        )
    for volume in VOLUMES:
        if volume.host:
            context = driver.publish(volume.name, volume.host)
            disk = before[DISKS.kind, volume.name]
            assert context == {csi_dvp.UID_KEY: disk["metadata"]["uid"]}
    published = driver.published()
    assert published == {v.name: [v.host] if v.host else [] for v in VOLUMES}


SERVICE = resources.SERVICES.kind


def adopted(adoption: Adoption) -> list[tuple[str, str]]:
    """Return kind and name of the thirty objects of the reference's daemons."""
    rows = of_the_daemons()
    for balancer in BALANCERS:
        uid = adoption.state.services[balancer.name]["metadata"]["uid"]
        rows.append((balancer.kind.kind, reference_state.lb_name(uid)))
    assert len(rows) == 30
    return rows


def print_rows(
    before: Mapping[tuple[str, str], Json],
    after: Mapping[tuple[str, str], Json],
    rows: Sequence[tuple[str, str]],
) -> list[str]:
    """Print what was added to each object; return what should not have happened."""
    wrong = []
    others = sorted(before.keys() - set(rows))
    for number, (kind, name) in enumerate((*rows, *others), 1):
        added, changed = changes(before[kind, name], after[kind, name])
        # Its controller copies labels to the Service that it has created.
        is_copy = kind == SERVICE and (CHECKED_SERVICES.kind, name) in rows
        is_meant = (kind, name) in rows or is_copy
        expected = ADDED.get(kind, frozenset()) if is_meant else frozenset()
        labels = " ".join(sorted(path.removeprefix(LABELS) for path in added))
        mark = f"{number:2}" if (kind, name) in rows else "  "
        print(f"{mark} {kind:35} {name:60} {labels or 'nothing added'}")
        if added != expected or changed:
            wrong.append(f"{kind} {name}: added {added}, changed {changed}")
    return wrong


def check_nodes(adoption: Adoption) -> None:
    """IDs and addresses of the Nodes are still those of the reference."""
    for host in HOSTS:
        node = adoption.nodes.get(host)
        assert node is not None
        name = reference_state.vm_name(host)
        vm = adoption.objects.get(MACHINES, name) or {}
        assert node["spec"]["providerID"] == f"dvp://{name}"
        assert ("InternalIP", vm["status"]["ipAddress"]) in adoption.nodes.addresses(
            host
        )
        labels = node["metadata"]["labels"]
        shown = labels.get("node.kubernetes.io/instance-type", "")
        zone = labels.get("topology.kubernetes.io/zone", "")
        print(f"Node {host:15} dvp://{name:25} type {shown or '-'} zone {zone or '-'}")


def test_the_reference_works_on_with_all_of_it(
    adoption: Adoption, tmp_path: pathlib.Path
) -> None:
    """Its requests, with its rights, once the daemons have ended.

    Also on what these have created themselves.
    """
    with daemons(adoption, tmp_path / "csi") as driver:
        create_more(adoption, driver)
    calls = ReferenceCalls(adoption.project)
    check_instances(adoption, calls)
    check_balancers(adoption, calls)
    check_volumes(calls)


def create_more(adoption: Adoption, driver: csi_dvp.CsiDvp) -> None:
    """Have the daemons create a load balancer and an attached volume."""
    service = adoption.services.make(NEW_BALANCER.name)
    adoption.state.services[NEW_BALANCER.name] = service
    adoption.nodes.until(
        "a new load balancer", lambda: adoption.ingress(NEW_BALANCER.name)
    )
    driver.create(NEW_VOLUME.name)
    driver.publish(NEW_VOLUME.name, MASTERS[1])


NEW_ATTACHED = ReferenceDisk(NEW_VOLUME.name, NEW_VOLUME.size, MASTERS[1])


def check_instances(adoption: Adoption, calls: ReferenceCalls) -> None:
    """InstanceID, addresses, existence and phase of each Node."""
    for host in HOSTS:
        name, address, phase = calls.instance(host)
        node = adoption.nodes.get(host) or {}
        print(f"Node {host:15} -> VM {name:25} {address:12} {phase}")
        assert f"dvp://{name}" == node["spec"]["providerID"]
        assert ("InternalIP", address) in adoption.nodes.addresses(host)
        assert phase == "Running"


def check_balancers(adoption: Adoption, calls: ReferenceCalls) -> None:
    """Each is updated as the reference does it: same addresses, same VMs."""
    for balancer in (*BALANCERS, NEW_BALANCER):
        service = adoption.state.services[balancer.name]
        name = reference_state.lb_name(service["metadata"]["uid"])
        before = calls.addresses(name)
        addresses, vms = calls.ensure(balancer, service)
        print(f"Service {balancer.name:20} -> {name} {addresses} {len(vms)} VMs")
        assert before
        assert addresses == before
        hosts = reference_state.hosts_of(balancer)
        assert vms == {reference_state.vm_name(host) for host in hosts}
    for balancer in (BALANCERS[0], BALANCERS[4], NEW_BALANCER):
        service = adoption.state.services[balancer.name]
        name = reference_state.lb_name(service["metadata"]["uid"])
        calls.ensure_deleted(service)
        adoption.parent.wait(
            f"{name} is deleted",
            functools.partial(adoption.is_absent, name),
        )
        assert calls.labelled(reference_state.lb_label(name)) == set()
        print(f"Service {balancer.name:20} -> deleted with the labels of its VMs")


def check_volumes(calls: ReferenceCalls) -> None:
    """Each disk is found once by its label, each attachment by its two."""
    for volume in (*VOLUMES, NEW_ATTACHED):
        assert calls.create_volume(volume) == volume.size
        attached = calls.attachments(volume) if volume.host else []
        expected = [(volume.attachment, "Attached")] if volume.host else []
        print(f"volume {volume.name} -> {volume.size} bytes, {attached or 'free'}")
        assert attached == expected


def test_the_reference_detaches_expands_and_deletes(adoption: Adoption) -> None:
    """Of an adopted volume, and of one that csi-controller has created."""
    calls = ReferenceCalls(adoption.project)
    for volume in (VOLUMES[0], VOLUMES[3], NEW_ATTACHED):
        meta = adoption.state.attachment_meta(volume)
        seconds = calls.unpublish(volume)
        calls.publish(volume, meta)
        calls.expand(volume, 4 * 2**30)
        calls.unpublish(volume)
        calls.delete(volume)
        print(f"volume {volume.name}: detached in {seconds:.1f} s of at most 15")


def test_and_back_again(adoption: Adoption, tmp_path: pathlib.Path) -> None:
    """What the reference has updated, which drops labels, is adopted once more.

    What it has deleted, although the Services exist, is created again.
    """
    assert not any(adoption.is_owned(balancer) for balancer in BALANCERS)
    with daemons(adoption, tmp_path / "csi"):
        for balancer in BALANCERS:
            adoption.nodes.until(
                f"{balancer.name}: owned again",
                functools.partial(adoption.is_owned, balancer),
            )
    adoption.nodes.show()

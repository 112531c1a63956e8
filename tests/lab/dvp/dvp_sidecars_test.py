"""csi-controller of DVP under the real provisioner, attacher, resizer and scheduler.

There is no kubelet: Nodes and what their node plugins would report of them (CSINode)
are created by hand, pods never run. Attaching needs neither.
"""

import dataclasses
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.daemons import csi
from lib.lab.dvp import project as projects
from lib.lab.dvp import quantities
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.run import processes, progress, waiting
from tests.harness import testing
from tests.harness.csi import csi_keeper
from tests.harness.dvp import csi_dvp
from tests.harness.dvp.dvp_parent import DvpParent

NODES = ("node-1", "node-2", "node-3", "node-4")
"""Of 15 volumes each: all claims have a place."""
CLAIMS = 50
KILLS = 4
SEED = 7
Json = dict[str, Any]


@dataclasses.dataclass
class Ground:
    """The child, its project in the parent, and what keeps the programs running."""

    where: places.Places
    objects: kube_objects.Objects
    parent: kube_objects.Objects
    keeper: csi_keeper.CsiKeeper

    def until(self, what: str, is_met: Any) -> None:
        seconds = waiting.until(what, is_met, poll_s=0.3)
        print(f"{what:60} {seconds:6.1f} s")

    def claim(self, name: str, gib: int = 1) -> None:
        self.objects.make(
            kube_objects.CLAIM,
            name,
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "dvp",
                "resources": {"requests": {"storage": f"{gib}Gi"}},
            },
        )

    def pod(self, name: str, claim: str) -> None:
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
        spec: Json = {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "none"}],
            "tolerations": [{"operator": "Exists"}],
            "volumes": [volume],
        }
        self.objects.make(kube_objects.POD, name, spec=spec)

    def handles(self) -> set[str]:
        volumes = self.objects.all(kube_objects.VOLUME)
        return {volume["spec"]["csi"]["volumeHandle"] for volume in volumes}

    def specified(self) -> dict[str, tuple[str, int, str, str]]:
        """Return what the child specifies: by volume its class, bytes, claim, Node.

        The claim is its UID; the Node is that of the VolumeAttachment.
        """
        nodes = {
            name: item["spec"]["nodeName"] for name, item in self.attached().items()
        }
        rows = {}
        for volume in self.objects.all(kube_objects.VOLUME):
            spec = volume["spec"]
            storage = self.objects.get(kube_objects.CLASS, spec["storageClassName"])
            assert storage is not None
            rows[spec["csi"]["volumeHandle"]] = (
                storage["parameters"][csi_dvp.CLASS_KEY],
                quantities.parse(spec["capacity"]["storage"]),
                spec["claimRef"]["uid"],
                nodes.get(volume["metadata"]["name"], ""),
            )
        return rows

    def held(self) -> dict[str, tuple[str, int, str, str]]:
        """Return the same by the parent's disks and attachments."""
        machines = {
            item["spec"]["blockDeviceRef"]["name"]: item["spec"]["virtualMachineName"]
            for item in self.parent.all(ATTACHMENTS)
            if item["status"]["phase"] == "Attached"
        }
        return {
            disk["metadata"]["name"]: (
                disk["spec"]["persistentVolumeClaim"]["storageClassName"],
                quantities.parse(disk["status"]["capacity"]),
                disk["metadata"]["labels"]["mooring.io/owner-uid"],
                machines.get(disk["metadata"]["name"], ""),
            )
            for disk in self.parent.all(DISKS)
            if disk["metadata"]["name"].startswith("pvc-")
        }

    def disks(self) -> set[str]:
        names = {disk["metadata"]["name"] for disk in self.parent.all(DISKS)}
        return {name for name in names if name.startswith("pvc-")}

    def attached(self) -> dict[str, Json]:
        """Return the attached VolumeAttachments by their volume."""
        return {
            item["spec"]["source"]["persistentVolumeName"]: item
            for item in self.objects.all(kube_objects.ATTACHMENT)
            if item.get("status", {}).get("attached")
        }


@pytest.fixture(scope="module")
def ground(
    where: places.Places, parent: DvpParent, project: Project
) -> Iterator[Ground]:
    """Start driver, sidecars and scheduler for three machines; end them."""
    programs.build(where, [csi.GROUP, control_plane.SCHEDULER_GROUP], testing.shown())
    parent.machines(project, NODES)
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    objects = kube_objects.Objects(api, "default")
    kubeconfig = csi.allow(where)
    control_plane.start_scheduler(where, progress.Silent())
    objects.make(kube_objects.CSI_DRIVER, csi_dvp.DRIVER, spec={"attachRequired": True})
    for name in NODES:
        add_node(objects, name)
    objects.make(
        kube_objects.CLASS,
        "dvp",
        provisioner=csi_dvp.DRIVER,
        parameters={csi_dvp.CLASS_KEY: projects.STORAGE_AT_ONCE},
        volumeBindingMode="WaitForFirstConsumer",
        allowVolumeExpansion=True,
    )
    driver = csi_dvp.CsiDvp(where, project)

    def start() -> None:
        driver.start()
        csi.start_sidecars(where, kubeconfig)

    chance = random.Random(SEED)  # noqa: S311 - when to kill
    keeper = csi_keeper.CsiKeeper(where, start, chance)
    try:
        yield Ground(where, objects, parent.objects(project), keeper)
    finally:
        keeper.end()
        csi.stop(where)
        processes.stop(where, [control_plane.SCHEDULER])


def add_node(objects: kube_objects.Objects, name: str) -> None:
    """Create what kubelet, dvp-ccm and csi-node would create."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    managed = "volumes.kubernetes.io/controller-managed-attach-detach"
    metadata: Mapping[str, Any] = {
        "labels": {"kubernetes.io/hostname": name},
        "annotations": {managed: "true"},
    }
    status = {"capacity": room, "allocatable": room}
    spec = {"providerID": f"dvp://{name}"}
    node: Mapping[str, Any] = {"metadata": metadata, "spec": spec, "status": status}
    objects.make(kube_objects.NODE, name, **node)
    allocatable = {"count": 15}
    driver = {"name": csi_dvp.DRIVER, "nodeID": name, "allocatable": allocatable}
    objects.make(kube_objects.CSI_NODE, name, spec={"drivers": [driver]})


def test_a_claim_lives_and_an_attachment_of_the_reference_is_adopted(
    ground: Ground,
) -> None:
    """Without its labels and publish context it is as the reference leaves it.

    external-attacher publishes it again by itself; nothing is detached.
    """
    ground.claim("one")
    ground.pod("first", "one")
    ground.until("the volume is attached", lambda: len(ground.attached()) == 1)
    ((volume, attachment),) = ground.attached().items()
    disk = ground.parent.get(DISKS, volume)
    assert disk is not None
    context = {csi_dvp.UID_KEY: disk["metadata"]["uid"]}
    assert attachment["status"]["attachmentMetadata"] == context
    larger = {"resources": {"requests": {"storage": "2Gi"}}}
    ground.objects.patch(kube_objects.CLAIM, "one", spec=larger)

    def is_expanded() -> bool:
        stored = ground.objects.get(kube_objects.VOLUME, volume)
        return bool(stored and stored["spec"]["capacity"]["storage"] == "2Gi")

    ground.until("it is expanded while attached", is_expanded)
    (before,) = ground.parent.all(ATTACHMENTS)
    name = before["metadata"]["name"]
    labels = {"mooring.io/published-by": None, "mooring.io/owner-uid": None}
    body = json.dumps({"metadata": {"labels": labels}}).encode()
    ground.parent.api.patch(
        ATTACHMENTS, name, body, ground.parent.namespace, timeout_s=30
    )
    body = json.dumps({"status": {"attachmentMetadata": None}}).encode()
    ground.objects.api.patch(
        kube_objects.ATTACHMENT,
        attachment["metadata"]["name"],
        body,
        subresource="status",
        timeout_s=30,
    )

    def is_adopted() -> bool:
        stored = ground.attached().get(volume)
        return bool(stored and stored["status"].get("attachmentMetadata") == context)

    ground.until("the VolumeAttachment has its context again", is_adopted)
    (after,) = ground.parent.all(ATTACHMENTS)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    ground.objects.delete(kube_objects.POD, "first")
    ground.until("without its pod it is detached", lambda: not ground.attached())
    ground.objects.delete(kube_objects.CLAIM, "one")
    ground.until("with the claim goes the disk", lambda: not ground.disks())


def test_many_claims_while_csi_controller_is_killed(ground: Ground) -> None:
    """The parent then holds exactly what the child's objects specify."""
    names = [f"claim-{number}" for number in range(CLAIMS)]
    for name in names:
        ground.claim(name)
    with ground.keeper.killing():
        for name in names:
            ground.pod(f"pod-{name}", name)
        ground.until("it is killed several times", lambda: ground.keeper.kills >= KILLS)
    ground.until("all are bound", lambda: len(ground.handles()) == CLAIMS)
    ground.until("and attached", lambda: len(ground.attached()) == CLAIMS)
    held, specified = ground.held(), ground.specified()
    print(f"kills: {ground.keeper.kills}, disks: {len(held)}")
    for node in NODES:
        print(f"{node}: {[row[-1] for row in held.values()].count(node)} volumes")
    claims = {
        item["metadata"]["uid"] for item in ground.objects.all(kube_objects.CLAIM)
    }
    assert {row[2] for row in specified.values()} == claims
    assert held == specified
    assert len(held) == len(ground.parent.all(ATTACHMENTS)) == CLAIMS
    for name in names:
        ground.objects.delete(kube_objects.POD, f"pod-{name}")
        ground.objects.delete(kube_objects.CLAIM, name)
    ground.until("no attachment is left", lambda: not ground.parent.all(ATTACHMENTS))
    ground.until("no disk is left", lambda: not ground.disks())
    ground.until("no volume is left", lambda: not ground.handles())

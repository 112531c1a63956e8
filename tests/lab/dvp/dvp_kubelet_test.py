"""Volumes of DVP on a real node: its kubelet, scheduler, sidecars and both programs.

The node is a VM of Terraform with two disks of its own; dvp-ccm initialises its Node.
Classes of parent and child bind late. The disks are loop devices.
"""

import functools
import json
import os
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from lib.cloud.dvp.volumes import disk_serial
from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane, kube_objects, kubelet, simulated_kubelet
from lib.lab.storage import file_system_tools, loop_disks
from tests.harness import testing
from tests.harness.dvp import csi_dvp, dvp_manager, dvp_node, recorder
from tests.harness.dvp.dvp_parent import DvpParent

GIB = 2**30
GROUPS = (control_plane.SCHEDULER_GROUP, csi.GROUP)
KINDS = ("ext4", "xfs", "block")
STATIC = 2
LIMIT = 16 - STATIC
Json = dict[str, Any]


class Ground:
    """The VM, its project in the parent, and the user of its volumes."""

    def __init__(self, parent: DvpParent, project: Project, node: str) -> None:
        self.parent, self.project, self.node = parent, project, node
        self.vm = f"{node}-0a1b2c"
        self.objects = parent.objects(project)
        self.user: dvp_node.DvpVolumeUser

    def boot(self) -> frozenset[str]:
        """Create the VM, with a disk for data; return the serials of its disks."""
        claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": "64Mi"}
        names = [f"{self.vm}-boot", f"{self.vm}-data"]
        spec = {"persistentVolumeClaim": claim}
        self.objects.make(DISKS, names[1], spec=spec)
        refs = [{"kind": DISKS.kind, "name": name} for name in names]
        self.parent.machine(self.project, self.node, name=self.vm, blockDeviceRefs=refs)
        self.parent.wait_phase(MACHINES, self.project, self.vm, "Running")
        disks = [self.objects.get(DISKS, name) or {} for name in names]
        serials = [disk_serial.of_uid(disk["metadata"]["uid"]) for disk in disks]
        folder = self.parent.attachments(self.node)
        self.parent.wait(
            "its disks are there",
            lambda: folder.exists()
            and {link.name for link in folder.iterdir()} == set(serials),
        )
        return frozenset(serials)

    def disk(self, claim: str) -> Json:
        """Return the disk of a claim."""
        document = self.objects.get(DISKS, self.user.volume(claim)[1])
        assert document is not None
        return document

    def attachment(self, claim: str) -> Json:
        """Return the parent's attachment of a claim."""
        name = f"vmbda-{self.user.volume(claim)[1]}-{self.node}"
        document = self.objects.get(ATTACHMENTS, name)
        assert document is not None
        return document

    def phase(self, claim: str) -> str:
        """Return the phase of the parent's attachment of a claim; empty: none."""
        name = f"vmbda-{self.user.volume(claim)[1]}-{self.node}"
        document = self.objects.get(ATTACHMENTS, name) or {}
        return str(document.get("status", {}).get("phase", ""))

    def context(self, claim: str) -> Json:
        """Return the publish context of a claim; empty until it is attached."""
        volume = self.user.volume(claim)[0]
        for item in self.user.objects.all(kube_objects.ATTACHMENT):
            status = item.get("status") or {}
            if item["spec"]["source"]["persistentVolumeName"] == volume:
                return dict(status.get("attachmentMetadata") or {})
        return {}


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    parent: DvpParent,
    project: Project,
    api: client.Api,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    """Run all of it outside of the mount namespace of other programs."""
    if reason := kubelet.unavailable(where) or loop_disks.unavailable():
        pytest.skip(reason)
    programs.build(where, GROUPS, testing.shown())
    kubelet.build(where, testing.shown())
    with testing.shown().step("File system tools") as step:
        file_system_tools.ensure(where, os.environ, step)
    new = Ground(parent, project, f"node-{secrets.token_hex(2)}")
    static = new.boot()
    loop_disks.enter_private_mounts()
    objects = kube_objects.Objects(api, "default")
    env = dvp_manager.environment(project)
    words = dvp_manager.arguments(where, project.kubeconfig, [dvp_manager.NODES_ONLY])
    with (
        dvp_manager.running(where, pexes.beside("dvp-ccm"), words, env),
        dvp_node.running(
            csi_dvp.CsiDvp(where, project),
            new.node,
            parent.attachments(new.node),
            file_system_tools.environment(where, os.environ),
            tmp_path_factory.mktemp("machine"),
        ) as (node, disks),
    ):
        new.user = dvp_node.DvpVolumeUser(objects, node, new.node, disks, static=static)
        new.user.add_classes()
        yield new
        new.user.clear()
        print(new.user.table())
    new.user.forget_node()


def create(user: dvp_node.DvpVolumeUser, kind: str, pod: str) -> None:
    """Create a pod for a claim of one of the kinds."""
    user.pod(pod, kind, is_block=kind == "block")


def test_the_node_is_registered(ground: Ground) -> None:
    """dvp-ccm initialises the Node; CSINode shows the limit without the VM's disks."""
    user = ground.user

    def driver() -> Json | None:
        info = user.objects.get(kube_objects.CSI_NODE, ground.node) or {"spec": {}}
        drivers = info["spec"].get("drivers") or []
        return next((row for row in drivers if row["name"] == csi_dvp.DRIVER), None)

    user.until("CSINode has the driver", driver)
    registered = driver() or {}
    assert registered["nodeID"] == ground.node
    assert not registered.get("topologyKeys")
    assert registered["allocatable"]["count"] == LIMIT

    def node() -> Json:
        return user.objects.get(kube_objects.NODE, ground.node) or {"spec": {}}

    def is_initialised() -> bool:
        taints = [taint["key"] for taint in node()["spec"].get("taints", ())]
        return simulated_kubelet.TAINT not in taints

    user.until("dvp-ccm has initialised the Node", is_initialised)
    assert node()["spec"]["providerID"] == f"dvp://{ground.vm}"
    user.note("nodeID", registered["nodeID"])
    user.note("provider ID", node()["spec"]["providerID"])
    user.note(f"attach limit with {STATIC} static disks", LIMIT)
    print(user.table())


def test_volumes_are_written_expanded_and_kept(ground: Ground) -> None:
    """By two pods one after the other; the VM migrates while they are mounted."""
    user = ground.user
    recorded = recorder.Recorder(ground.parent.api, ground.project.namespace)
    recorded.wait_synced(30)
    for kind in KINDS:
        storage_class = "xfs" if kind == "block" else kind
        user.claim(kind, storage_class, is_block=kind == "block")
        create(user, kind, f"{kind}-1")
    for kind in KINDS:
        written = functools.partial(user.has_written, f"{kind}-1")
        user.until(f"{kind}: the first pod has written", written)
    check_migration(ground)
    for kind in ("xfs", "block"):
        user.expand(kind, 2)
    larger = functools.partial(user.has_bytes, "xfs", 19 * GIB // 10)
    user.until("xfs: expanded while mounted", larger)
    for kind in ("xfs", "block"):
        shown = functools.partial(user.has_capacity, kind, "2Gi")
        user.until(f"{kind}: the claim shows the new size", shown)
        assert ground.disk(kind)["status"]["capacity"] == "2Gi"
    user.delete(*(f"{kind}-1" for kind in KINDS))
    for kind in KINDS:
        create(user, kind, f"{kind}-2")
    for kind in KINDS:
        written = functools.partial(user.has_written, f"{kind}-2")
        user.until(f"{kind}: the second pod has written", written)
        assert user.lines(f"{kind}-2") == [f"{kind}-1", "written"]
    user.delete(*(f"{kind}-2" for kind in KINDS))
    disks = [ground.disk(kind)["metadata"]["name"] for kind in KINDS]
    for kind in KINDS:
        user.objects.delete(kube_objects.CLAIM, kind, grace_s=None)
    user.until(
        "the parent has none of the disks",
        lambda: not [name for name in disks if ground.objects.get(DISKS, name)],
    )
    recorded.close()
    for name in disks:
        phases = recorded.phases(DISKS, name)
        user.note(name, " ".join(phases))
        assert "WaitForFirstConsumer" in phases
    print(user.table())


def check_migration(ground: Ground) -> None:
    """A live migration detaches nothing: the same loop device, the same attachment."""
    user = ground.user
    before = ground.attachment("xfs")["metadata"]["uid"]
    serial = disk_serial.of_uid(ground.disk("xfs")["metadata"]["uid"])
    device = user.disks.disks[serial].name

    def host() -> str:
        vm = ground.objects.get(MACHINES, ground.vm) or {}
        is_settled = vm["status"]["phase"] == "Running"
        return str(vm["status"]["nodeName"]) if is_settled else ""

    first = host()
    ground.parent.operate(ground.project, ground.vm, "Migrate")
    user.until("the VM has migrated", lambda: host() not in ("", first))
    assert user.disks.disks[serial].name == device
    assert ground.attachment("xfs")["metadata"]["uid"] == before
    assert user.mounted("xfs")


def test_an_attachment_of_the_reference_is_used(ground: Ground) -> None:
    """It is attached without a publish context before the node stages the volume.

    csi-node has no credentials of the parent: external-attacher publishes it again.
    """
    user = ground.user
    with ground.parent.holding("attachment-attached"):
        user.claim("left", "xfs")
        user.pod("left-1", "left")
        user.until("the volume is bound", functools.partial(is_bound, ground, "left"))
        user.until("it is being attached", lambda: ground.phase("left") == "InProgress")
        # Without csi-node the volume is not staged.
        user.node.stop_plugin()
    user.until("the volume is attached", lambda: ground.context("left"))
    uid = ground.attachment("left")["metadata"]["uid"]
    strip(ground, "left")
    assert ground.context("left") == {}
    assert not user.mounted("left")
    user.node.start()
    user.until("the pod has written", lambda: user.has_written("left-1"))
    attachment = ground.attachment("left")
    assert attachment["metadata"]["uid"] == uid
    assert attachment["metadata"]["labels"]["mooring.io/published-by"]
    disk = ground.disk("left")["metadata"]["uid"]
    assert ground.context("left") == {csi_dvp.UID_KEY: disk}
    user.delete("left-1")
    print(user.table())


def is_bound(ground: Ground, claim: str) -> bool:
    """Report whether a claim has a volume."""
    document = ground.user.objects.get(kube_objects.CLAIM, claim) or {"spec": {}}
    return bool(document["spec"].get("volumeName"))


def strip(ground: Ground, claim: str) -> None:
    """Leave an attachment and its VolumeAttachment as the reference does."""
    name = ground.attachment(claim)["metadata"]["name"]
    labels = {"mooring.io/published-by": None, "mooring.io/owner-uid": None}
    ground.objects.patch(ATTACHMENTS, name, metadata={"labels": labels})
    volume = ground.user.volume(claim)[0]
    objects = ground.user.objects
    for item in objects.all(kube_objects.ATTACHMENT):
        if item["spec"]["source"]["persistentVolumeName"] == volume:
            body = json.dumps({"status": {"attachmentMetadata": None}}).encode()
            objects.api.patch(
                kube_objects.ATTACHMENT,
                item["metadata"]["name"],
                body,
                subresource="status",
                timeout_s=30,
            )


def test_nothing_remains(ground: Ground) -> None:
    """Neither disks nor attachments in the parent, nor disks and mounts on the node."""
    user = ground.user
    user.clear()
    own = {f"{ground.vm}-boot", f"{ground.vm}-data"}
    assert {disk["metadata"]["name"] for disk in ground.objects.all(DISKS)} == own
    assert ground.objects.all(ATTACHMENTS) == []
    print(user.table())

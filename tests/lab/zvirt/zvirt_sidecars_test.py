"""csi-controller of zVirt under the real provisioner, attacher, resizer and scheduler.

There is no kubelet: Nodes and what their node plugins would report of them (CSINode)
are created by hand, pods never run. Attaching needs neither.
"""

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.daemons import csi
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.run import processes, progress, waiting
from tests.harness import testing
from tests.harness.csi import csi_keeper
from tests.harness.zvirt import csi_zvirt
from tests.harness.zvirt.vms_of_nodes import Vms
from tests.lib.lab.zvirt.served import Served, serving

NODES = ("node-1", "node-2", "node-3")
CLAIMS = 50
KILLS = 4
SEED = 7
GIB = 2**30
Json = dict[str, Any]
Row = tuple[str, int, str]
"""Name of a volume, its bytes, and the VM that has it."""


@dataclasses.dataclass
class Ground:
    """The cluster, the engine, and what keeps the programs running."""

    objects: kube_objects.Objects
    engine: Served
    keeper: csi_keeper.CsiKeeper
    vms: Mapping[str, str]

    def until(self, what: str, is_met: Any) -> None:
        seconds = waiting.until(what, is_met, poll_s=0.3)
        print(f"{what:60} {seconds:6.1f} s")

    def claim(self, name: str) -> None:
        self.objects.make(
            kube_objects.CLAIM,
            name,
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "zvirt",
                "resources": {"requests": {"storage": "1Gi"}},
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

    def attached(self) -> dict[str, str]:
        """Return the Nodes of attached VolumeAttachments by their volume."""
        return {
            item["spec"]["source"]["persistentVolumeName"]: item["spec"]["nodeName"]
            for item in self.objects.all(kube_objects.ATTACHMENT)
            if item.get("status", {}).get("attached")
        }

    def specified(self) -> dict[str, Row]:
        """Return what the cluster specifies, by the handle of each volume."""
        nodes = self.attached()
        rows = {}
        for volume in self.objects.all(kube_objects.VOLUME):
            name, spec = volume["metadata"]["name"], volume["spec"]
            size = int(spec["capacity"]["storage"].removesuffix("Gi")) * GIB
            vm = self.vms.get(nodes.get(name, ""), "")
            rows[spec["csi"]["volumeHandle"]] = (name, size, vm)
        return rows

    def held(self) -> dict[str, Row]:
        """Return the same by the engine's disks and active attachments."""
        engine = self.engine.service.engine
        with engine.lock:
            plugged = {
                row.entity.id: row.entity.vm.id
                for row in engine.records.all("disk_attachment")
                if row.entity.vm is not None and row.entity.active
            }
            disks = [row.entity for row in engine.records.all("disk")]
        return {
            disk.id: (disk.alias, disk.provisioned_size, plugged.get(disk.id, ""))
            for disk in disks
            if disk.alias.startswith("pvc-")
        }


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("engine"), "delay * 0.3") as served:
        yield served


@pytest.fixture(scope="module")
def ground(apart: places.Places, engine: Served) -> Iterator[Ground]:
    """Start driver, sidecars and scheduler for three VMs; end them."""
    programs.build(apart, [csi.GROUP, control_plane.SCHEDULER_GROUP], testing.shown())
    boot = Vms(engine.service).boot
    vms = {name: boot(name, 0) for name in NODES}
    api = cluster.connect(control_plane.admin_kubeconfig(apart))
    objects = kube_objects.Objects(api, "default")
    kubeconfig = csi.allow(apart, csi_zvirt.DRIVER)
    control_plane.start_scheduler(apart, progress.Silent())
    for name, vm in vms.items():
        add_node(objects, name, vm)
    objects.make(
        kube_objects.CLASS,
        "zvirt",
        provisioner=csi_zvirt.DRIVER,
        parameters=csi_zvirt.CLASS,
        volumeBindingMode="WaitForFirstConsumer",
        allowVolumeExpansion=True,
    )
    words = ("--cluster=sidecars", f"--kubeconfig={kubeconfig}")
    driver = csi_zvirt.CsiZvirt(apart, engine, words)

    def start() -> None:
        driver.start()
        csi.start_sidecars(apart, kubeconfig)

    chance = random.Random(SEED)  # noqa: S311 - when to kill
    keeper = csi_keeper.CsiKeeper(apart, start, chance)
    try:
        yield Ground(objects, engine, keeper, vms)
    finally:
        keeper.end()
        csi.stop(apart)
        processes.stop(apart, [control_plane.SCHEDULER])


def add_node(objects: kube_objects.Objects, name: str, vm: str) -> None:
    """Create what kubelet, zvirt-ccm and csi-node would create."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    managed = "volumes.kubernetes.io/controller-managed-attach-detach"
    metadata: Mapping[str, Any] = {
        "labels": {"kubernetes.io/hostname": name},
        "annotations": {managed: "true"},
    }
    status = {"capacity": room, "allocatable": room}
    spec = {"providerID": f"zvirt://{vm}"}
    objects.make(kube_objects.NODE, name, metadata=metadata, spec=spec, status=status)
    allocatable = {"count": 255}
    driver = {"name": csi_zvirt.DRIVER, "nodeID": vm, "allocatable": allocatable}
    objects.make(kube_objects.CSI_NODE, name, spec={"drivers": [driver]})


def test_a_claim_lives_from_its_pod_to_its_deletion(ground: Ground) -> None:
    """Created, attached, expanded while attached, detached, deleted."""
    ground.claim("one")
    ground.pod("first", "one")
    ground.until("the volume is attached", lambda: len(ground.attached()) == 1)
    assert ground.held() == ground.specified()
    larger = {"resources": {"requests": {"storage": "2Gi"}}}
    ground.objects.patch(kube_objects.CLAIM, "one", spec=larger)
    ground.until(
        "it is expanded while attached",
        lambda: [row[1] for row in ground.specified().values()] == [2 * GIB],
    )
    assert ground.held() == ground.specified()
    ground.objects.delete(kube_objects.POD, "first")
    ground.until("without its pod it is detached", lambda: not ground.attached())
    ground.objects.delete(kube_objects.CLAIM, "one")
    ground.until("with the claim goes the disk", lambda: not ground.held())


def test_many_claims_while_csi_controller_is_killed(ground: Ground) -> None:
    """The engine then holds exactly what the cluster's objects specify."""
    names = [f"claim-{number}" for number in range(CLAIMS)]
    for name in names:
        ground.claim(name)
    with ground.keeper.killing():
        for name in names:
            ground.pod(f"pod-{name}", name)
        ground.until("it is killed several times", lambda: ground.keeper.kills >= KILLS)
    ground.until("all are attached", lambda: len(ground.attached()) == CLAIMS)
    held, specified = ground.held(), ground.specified()
    print(f"kills: {ground.keeper.kills}, disks: {len(held)}")
    for node, vm in ground.vms.items():
        print(f"{node}: {[row[-1] for row in held.values()].count(vm)} volumes")
    assert held == specified
    assert len(held) == CLAIMS
    for name in names:
        ground.objects.delete(kube_objects.POD, f"pod-{name}")
        ground.objects.delete(kube_objects.CLAIM, name)
    ground.until("no disk is left", lambda: not ground.held())
    ground.until("no volume is left", lambda: not ground.specified())

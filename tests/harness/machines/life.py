"""The life of a cluster's Machines, action by action, as one table.

Each action is what a user does, and ends when the state is whole again: as many
Machines as desired are Running, each has its Node and its VM, and nothing else is left.
"""

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab.dvp import kinds, project
from lib.lab.kube import kube_objects
from tests.harness import waiting
from tests.harness.dvp import dvp_parent
from tests.harness.machines import cluster_objects
from tests.harness.machines.cluster_objects import Json
from tests.harness.machines.fleet import PATIENCE_S, Fleet, Picture
from tests.harness.machines.vm_kubelets import VmKubelets

UNHEALTHY_S = 2
HELD_S = 4.0
"""For how long nothing may happen, where that is shown."""
VOLUME = "pvc-mounted"
FINALIZER = "lab.invalid/detaching"
"""Stands for csi-attacher, which removes its own once a volume is detached."""


@dataclasses.dataclass(frozen=True, slots=True)
class LifeRow:
    """One action and what it led to."""

    action: str
    result: str
    took_s: float


class MachineLife:
    """Carries the actions out, in their order. See `rows`."""

    def __init__(self, fleet: Fleet, kubelets: VmKubelets) -> None:
        self.fleet = fleet
        self.kubelets = kubelets
        self.rows: list[LifeRow] = []

    def run(self) -> None:
        """Carry all actions out; a row is added for each.

        Raises:
            LabError, AssertionError: one did not lead to what it should.
        """
        for action, carry_out in ACTIONS.items():
            began = time.monotonic()
            result = carry_out(self)
            took_s = time.monotonic() - began
            self.rows.append(LifeRow(action, result, took_s))
            print(f"{action:34} {took_s:6.1f} s  {result}", flush=True)

    def _create(self) -> str:
        self.fleet.create_cluster()
        self.fleet.create_template("small")
        self.fleet.create_deployment("small", 3)
        return str(self.fleet.until_whole(3))

    def _grow(self) -> str:
        before = self.fleet.picture()
        self.fleet.scale(6)
        after = self.fleet.until_whole(6)
        assert after.machines > before.machines
        return str(after)

    def _shrink(self) -> str:
        before = self.fleet.picture()
        self.fleet.scale(1)
        after = self.fleet.until_whole(1)
        assert after.machines < before.machines
        self.fleet.scale(3)
        return f"{after}; then 3: {self.fleet.until_whole(3)}"

    def _roll_surge(self) -> str:
        self.fleet.create_template("larger", memory="320Mi")
        return self._rolled("larger", 1, "320Mi")

    def _roll_unavailable(self) -> str:
        self.fleet.create_template("largest", memory="384Mi")
        return self._rolled("largest", 0, "384Mi")

    def _rolled(self, template: str, surge: int, memory: str) -> str:
        before = self.fleet.picture()
        counts: list[int] = []

        def count(picture: Picture) -> None:
            machines = self.fleet.machines()
            kept = [m for m in machines if not m["metadata"].get("deletionTimestamp")]
            counts.append(len(kept))
            del picture

        self.fleet.roll(template, surge)
        after = self.fleet.until_whole(3, on_picture=count, without=before.machines)
        vms = self.fleet.in_parent.all(kinds.MACHINES)
        sizes = {
            vm["spec"]["memory"]["size"]
            for vm in vms
            if vm["metadata"]["name"] in after.vms
        }
        assert sizes == {memory}
        assert max(counts) <= 3 + surge
        return f"{after}; {min(counts)} to {max(counts)} Machines meanwhile"

    def _unhealthy(self) -> str:
        spec = cluster_objects.health_check_spec(self.fleet.name, UNHEALTHY_S)
        self.fleet.objects.make(cluster_objects.HEALTH_CHECKS, "nodes", spec=spec)
        lost = min(self.fleet.picture().machines)
        self.kubelets.fall_silent(lost)
        after = self.fleet.until_whole(3, without=[lost])
        return f"the Machine is replaced; {after}"

    def _vm_deleted(self) -> str:
        lost = min(self.fleet.picture().machines)
        self.fleet.in_parent.delete(kinds.MACHINES, lost)
        after = self.fleet.until_whole(3, without=[lost])
        return f"the Machine is replaced; {after}"

    def _drained(self) -> str:
        """A Machine is deleted while a volume is attached to its Node.

        The core waits for the end of that. The disk in the parent is still attached
        then, as if the CSI driver was late: it survives the VM.
        """
        fleet = self.fleet
        machine = min(fleet.picture().machines)
        with self._attached(machine):
            fleet.objects.delete(cluster_objects.MACHINES, machine, None)
            waiting.until(
                "the Machine waits for the volume",
                lambda: self._deleting_reason(machine) == "WaitingForVolumeDetach",
                PATIENCE_S,
            )
            time.sleep(HELD_S)
            vm = fleet.in_parent.get(kinds.MACHINES, machine) or {}
            assert "deletionTimestamp" not in vm["metadata"]
        after = fleet.until_whole(3, without=[machine])
        disk = fleet.in_parent.get(kinds.DISKS, VOLUME)
        assert disk is not None
        assert "deletionTimestamp" not in disk["metadata"]
        assert fleet.in_parent.get(kinds.ATTACHMENTS, VOLUME) is None
        return f"the VM waits, the disk of the volume stays; {after}"

    @contextlib.contextmanager
    def _attached(self, machine: str) -> Iterator[None]:
        """Have a volume attached to a Node and to its VM; detach it from the Node."""
        fleet = self.fleet
        attach_disk(fleet, machine)
        source = {"driver": "csi.lab.invalid", "volumeHandle": VOLUME}
        fleet.objects.make(
            resources.PERSISTENT_VOLUMES,
            VOLUME,
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": source,
            },
        )
        attachments = resources.VOLUME_ATTACHMENTS
        fleet.objects.make(
            attachments,
            VOLUME,
            {"finalizers": [FINALIZER]},
            spec={
                "attacher": "csi.lab.invalid",
                "nodeName": machine,
                "source": {"persistentVolumeName": VOLUME},
            },
        )
        fleet.api.patch(
            attachments,
            VOLUME,
            json.dumps({"status": {"attached": True}}).encode(),
            subresource="status",
            timeout_s=kube_objects.TIMEOUT_S,
        )
        yield
        with contextlib.suppress(kube_errors.NotFound):
            fleet.objects.patch(attachments, VOLUME, metadata={"finalizers": None})
        fleet.objects.delete(attachments, VOLUME)
        fleet.objects.delete(resources.PERSISTENT_VOLUMES, VOLUME)

    def _deleting_reason(self, machine: str) -> str:
        document = self.fleet.objects.get(cluster_objects.MACHINES, machine) or {}
        return str(condition(document, "Deleting").get("reason", ""))

    def _paused(self) -> str:
        """While the Cluster is paused nothing is written to the parent."""
        fleet = self.fleet
        machine = min(fleet.picture().machines)
        fleet.pause(True)
        waiting.until(
            "the DeckhouseMachine is paused",
            lambda: self._is_paused(machine),
            PATIENCE_S,
        )
        written = revisions(fleet)
        fleet.objects.delete(cluster_objects.DVP_MACHINES, machine, None)
        time.sleep(HELD_S)
        assert revisions(fleet) == written
        fleet.pause(False)
        after = fleet.until_whole(3, without=[machine])
        return f"a deletion waits until the end of the pause; {after}"

    def _is_paused(self, machine: str) -> bool:
        document = self.fleet.objects.get(cluster_objects.DVP_MACHINES, machine) or {}
        return condition(document, "Paused").get("status") == "True"

    def _cluster_deleted(self) -> str:
        """Nothing of the Cluster remains in the parent, everything else does."""
        fleet = self.fleet
        others = look_alikes(fleet)
        before = {name: fleet.in_parent.get(kind, name) for kind, name in others}
        fleet.delete_cluster()
        left = fleet.owned()
        assert not any(left.values()), left
        for kind, name in others:
            after = fleet.in_parent.get(kind, name)
            assert after is not None, f"{kind.kind} {name}"
            assert desired(after) == desired(before[name] or {})
        names = ", ".join(f"{kind.kind} {name}" for kind, name in others)
        return f"nothing is left; as before: {names}"


ACTIONS: Mapping[str, Callable[[MachineLife], str]] = {
    "MachineDeployment of 3": MachineLife._create,
    "scaled to 6": MachineLife._grow,
    "scaled to 1": MachineLife._shrink,
    "rolling update, maxSurge 1": MachineLife._roll_surge,
    "rolling update, maxSurge 0": MachineLife._roll_unavailable,
    "Node not Ready, MachineHealthCheck": MachineLife._unhealthy,
    "VM deleted manually": MachineLife._vm_deleted,
    "drained with a mounted volume": MachineLife._drained,
    "paused": MachineLife._paused,
    "Cluster deleted": MachineLife._cluster_deleted,
}


def condition(document: Json, type_: str) -> Json:
    """Return a condition of an object; empty: it has none of that type."""
    rows = document.get("status", {}).get("conditions", ())
    return next((row for row in rows if row["type"] == type_), {})


def attach_disk(fleet: Fleet, machine: str) -> None:
    """Have a disk attached to a VM while it runs, as csi-controller does."""
    own = {**dvp_parent.MANAGED, dvp_parent.CLUSTER_LABEL: dvp_parent.CLUSTER}
    claim = {"storageClassName": project.STORAGE_AT_ONCE, "size": "64Mi"}
    fleet.in_parent.make(
        kinds.DISKS,
        VOLUME,
        {"labels": {**own, "virtualDiskName": VOLUME}},
        spec={"persistentVolumeClaim": claim},
    )
    fleet.in_parent.make(
        kinds.ATTACHMENTS,
        VOLUME,
        {
            "labels": {
                **own,
                "virtualMachineDiskName": VOLUME,
                "virtualMachineName": machine,
            }
        },
        spec={
            "virtualMachineName": machine,
            "blockDeviceRef": {"kind": kinds.DISKS.kind, "name": VOLUME},
        },
    )
    fleet.parent.wait_phase(kinds.ATTACHMENTS, fleet.project, VOLUME, "Attached")


def look_alikes(fleet: Fleet) -> Sequence[tuple[resources.Resource, str]]:
    """Create objects of others in the project; return their kinds and names.

    A machine of another cluster with the names and labels of one of this cluster, a
    Secret without labels, and the disk of a volume of this cluster.
    """
    like = min(fleet.picture().machines)
    name = f"{like}-other"
    fleet.parent.machine(
        fleet.project, like, name=name, cluster=dvp_parent.OTHER_CLUSTER
    )
    fleet.in_parent.make(
        resources.SECRETS,
        f"cloud-init-{name}",
        {
            "labels": {
                **dvp_parent.MANAGED,
                dvp_parent.CLUSTER_LABEL: dvp_parent.OTHER_CLUSTER,
                dvp_parent.HOSTNAME_LABEL: like,
            }
        },
    )
    fleet.in_parent.make(resources.SECRETS, "cloud-init-unlabelled")
    fleet.parent.wait_phase(kinds.MACHINES, fleet.project, name, "Running")
    fleet.parent.wait_phase(kinds.DISKS, fleet.project, f"{name}-boot", "Ready")
    return (
        (kinds.MACHINES, name),
        (kinds.DISKS, f"{name}-boot"),
        (resources.SECRETS, f"cloud-init-{name}"),
        (resources.SECRETS, "cloud-init-unlabelled"),
        (kinds.DISKS, VOLUME),
    )


def desired(document: Json) -> tuple[object, ...]:
    """Return the UID, and all that users write."""
    meta = document["metadata"]
    return meta["uid"], meta.get("labels"), document.get("spec"), document.get("data")


def revisions(fleet: Fleet) -> Mapping[str, Sequence[str]]:
    """Return the UIDs and generations of all that the cluster has in the parent."""
    owned = fleet.owned()
    return {
        kind.kind: sorted(
            f"{item['metadata']['uid']} {item['metadata'].get('generation')}"
            f" {item['metadata'].get('deletionTimestamp')}"
            for item in fleet.in_parent.all(kind)
            if item["metadata"]["name"] in owned[kind.kind]
        )
        for kind in (kinds.MACHINES, kinds.DISKS, resources.SECRETS)
    }

"""The life of a cluster's Machines, action by action, as one table.

Each action is what a user does, and ends when the state is whole again: as many
Machines as desired are Running, each has its Node and its VM, and nothing else is left.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from lib.kube import resources
from lib.lab.dvp import kinds
from lib.lab.run import waiting
from tests.harness.dvp import dvp_parent
from tests.harness.machines import cluster_objects, pod_with_volume
from tests.harness.machines.cluster_objects import Json
from tests.harness.machines.fleet import Fleet, Picture
from tests.harness.machines.pod_with_volume import VOLUME, PodWithVolume
from tests.harness.machines.vm_kubelets import VmKubelets

UNHEALTHY_S = 2
HELD_S = 4.0
"""For how long nothing may happen, where that is shown."""


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

    def run(self, actions: Iterable[str]) -> None:
        """Carry actions out; a row is added for each. actions: of `ACTIONS`.

        Raises:
            LabError, AssertionError: one did not lead to what it should.
        """
        for action in actions:
            began = time.monotonic()
            result = ACTIONS[action](self)
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
        """A Machine is deleted while a Pod with a volume runs on its Node.

        The core evicts the Pod, waits for its end and for that of the attachment. The
        disk in the parent is still attached then, as if the CSI driver was late: it
        survives the VM.
        """
        fleet = self.fleet
        machine = min(fleet.picture().machines)
        volume = PodWithVolume(fleet, machine)
        volume.mount()
        fleet.delete_machine(machine)
        waiting.until("the Pod is evicted", volume.is_evicted)
        self._holds(machine, "DrainingNode")
        node = fleet.objects.get(resources.NODES, machine) or {"spec": {}}
        assert node["spec"].get("unschedulable")
        volume.unmount()
        self._holds(machine, "WaitingForVolumeDetach")
        volume.detach()
        after = fleet.until_whole(3, without=[machine])
        assert volume.survives()
        assert fleet.in_parent.get(kinds.ATTACHMENTS, VOLUME) is None
        return f"the Pod is evicted, the VM waits, the volume stays; {after}"

    def _holds(self, machine: str, reason: str) -> None:
        """Wait until a deletion has a reason; the VM is not deleted meanwhile."""
        waiting.until(
            f"the deletion of the Machine is {reason}",
            lambda: self._deleting_reason(machine) == reason,
        )
        time.sleep(HELD_S)
        assert self._deleting_reason(machine) == reason
        vm = self.fleet.in_parent.get(kinds.MACHINES, machine) or {}
        assert "deletionTimestamp" not in vm["metadata"]

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
        return delete_cluster(self.fleet)


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


_CREATED, *_OTHERS, _DELETED = ACTIONS
ROLLOUTS = (_CREATED, *_OTHERS[:4], _DELETED)
REPAIRS = (_CREATED, *_OTHERS[4:], _DELETED)
"""Two lives, which have all actions together."""
SCALING = ("scaled to 6", "scaled to 1")
"""What may be repeated as often as necessary."""


def condition(document: Json, type_: str) -> Json:
    """Return a condition of an object; empty: it has none of that type."""
    rows = document.get("status", {}).get("conditions", ())
    return next((row for row in rows if row["type"] == type_), {})


def delete_cluster(fleet: Fleet) -> str:
    """Delete the Cluster: nothing of it remains in the parent, everything else does."""
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


def look_alikes(fleet: Fleet) -> Sequence[tuple[resources.Resource, str]]:
    """Create objects of others in the project; return their kinds and names.

    A machine of another cluster with the names and labels of one of this cluster, a
    Secret without labels, and the disk of a volume of this cluster.
    """
    pod_with_volume.create_disk(fleet)
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

"""A user of volumes on the lab's real node: claims, and pods that write to them."""

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence

from lib.kube.resources import Resource
from lib.lab import errors
from lib.lab.daemons import csi_node
from lib.lab.kube import kube_objects, kubelet_files
from lib.lab.kube.kube_objects import Json, Objects
from tests.harness import waiting
from tests.harness.node import attached_disks, storage_node

PATIENCE_S = 240.0
OPTIONS = "-I 512 -m 1"
CLASSES: Mapping[str, Mapping[str, str]] = {
    "ext4": {"mooring.io/mkfs-options": OPTIONS},
    "xfs": {"csi.storage.k8s.io/fstype": "xfs"},
    "btrfs": {"csi.storage.k8s.io/fstype": "btrfs"},
}
"""Parameters of StorageClasses, by name."""
FILE = "/data/lines"
DEVICE = "/dev/data"


@dataclasses.dataclass
class VolumeUser:
    """Creates claims and pods, and waits for what becomes of them.

    rows: what was waited for, with the seconds.
    """

    objects: Objects
    node: storage_node.StorageNode
    disks: attached_disks.AttachedDisks
    rows: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def until(self, what: str, seen: Callable[[], object]) -> None:
        """Wait until something is so; it becomes a row of the table."""
        seconds = waiting.until(what, seen, PATIENCE_S, 0.2)
        self.rows.append((what, f"{seconds:.1f} s"))

    def note(self, what: str, value: object) -> None:
        """Add a row."""
        self.rows.append((what, str(value)))

    def table(self) -> str:
        """Return the rows since the last table."""
        lines = [f"{what:66} {value}" for what, value in self.rows]
        self.rows.clear()
        return "\n".join(lines)

    def add_classes(self) -> None:
        """Create the StorageClasses."""
        for name, parameters in CLASSES.items():
            self.objects.make(
                kube_objects.CLASS,
                name,
                provisioner=csi_node.DRIVER,
                parameters={"type": "fast", **parameters},
                volumeBindingMode="WaitForFirstConsumer",
                allowVolumeExpansion=True,
                reclaimPolicy="Delete",
            )

    def claim(
        self,
        name: str,
        storage_class: str = "ext4",
        mode: str = "ReadWriteOnce",
        is_block: bool = False,
    ) -> None:
        """Create a claim for 1 GiB."""
        self.objects.make(
            kube_objects.CLAIM,
            name,
            spec={
                "accessModes": [mode],
                "storageClassName": storage_class,
                "volumeMode": "Block" if is_block else "Filesystem",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        )

    def expand(self, claim: str, gib: int) -> None:
        """Request a larger size."""
        spec = {"resources": {"requests": {"storage": f"{gib}Gi"}}}
        self.objects.patch(kube_objects.CLAIM, claim, spec=spec)

    def pod(
        self,
        name: str,
        claim: str,
        *,
        is_block: bool = False,
        is_read_only: bool = False,
        security: Mapping[str, int] | None = None,
    ) -> None:
        """Create a pod that prints what its volume holds, and adds a line."""
        path = DEVICE if is_block else FILE
        container: Json = {
            "name": "c",
            "image": kubelet_files.PAUSE_IMAGE,
            "imagePullPolicy": "Never",
            "args": ["append", path],
        }
        if is_block:
            container["volumeDevices"] = [{"name": "data", "devicePath": path}]
        else:
            mount = {"name": "data", "mountPath": os.path.dirname(path)}
            container["volumeMounts"] = [mount]
        source = {"claimName": claim, "readOnly": is_read_only}
        self.objects.make(
            kube_objects.POD,
            name,
            spec={
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "dnsPolicy": "Default",
                "securityContext": dict(security or {}),
                # No cloud controller manager initialises this Node.
                "tolerations": [{"operator": "Exists"}],
                "containers": [container],
                "volumes": [{"name": "data", "persistentVolumeClaim": source}],
            },
        )

    def delete(self, *names: str) -> None:
        """Delete pods, gracefully: the kubelet confirms the end of each."""
        for name in names:
            self.objects.delete(kube_objects.POD, name, grace_s=None)

    def phase(self, pod: str) -> str:
        """Return a pod's phase; empty when it is absent."""
        found = self.objects.get(kube_objects.POD, pod)
        return "" if found is None else str(found["status"].get("phase", ""))

    def lines(self, pod: str) -> list[str]:
        """Return what a pod printed."""
        return self.node.log("default", pod)

    def has_written(self, *names: str) -> bool:
        """Report whether all of these pods have written."""
        return all(self.lines(name)[-1:] == ["written"] for name in names)

    def volume(self, claim: str) -> tuple[str, str]:
        """Return the PersistentVolume of a claim, and the volume's id."""
        found = self.objects.get(kube_objects.CLAIM, claim)
        name = (found or {"spec": {}})["spec"].get("volumeName", "")
        volume = self.objects.get(kube_objects.VOLUME, name) if name else None
        if volume is None:
            raise errors.LabError(f"claim {claim} is not bound")
        return name, str(volume["spec"]["csi"]["volumeHandle"])

    def mounted(self, claim: str) -> list[str]:
        """Return the targets of a claim's volume in pods."""
        name, _ = self.volume(claim)
        return [target for target in self.node.mounts() if name in target]

    def has_bytes(self, claim: str, least: int) -> bool:
        """Report whether the mounted file system has at least this size."""
        status = os.statvfs(self.mounted(claim)[0])
        return status.f_blocks * status.f_frsize >= least

    def has_capacity(self, claim: str, size: str) -> bool:
        """Report whether the claim's status shows a size ("2Gi")."""
        found = self.objects.get(kube_objects.CLAIM, claim) or {}
        capacity = found.get("status", {}).get("capacity", {})
        return bool(capacity.get("storage") == size)

    def _is_absent(self, kind: Resource) -> bool:
        return not self.objects.all(kind)

    def events(self, pod: str) -> Sequence[str]:
        """Return the messages of a pod's Events, for a failed test."""
        kind = kube_objects.EVENT
        return [
            f"{event.get('reason')}: {event.get('message')}"
            for event in self.objects.all(kind)
            if event["involvedObject"].get("name") == pod
        ]

    def clear(self) -> None:
        """Delete everything, and wait until nothing of it is left anywhere.

        The Node remains until the kubelet has ended, see `forget_node`.

        Raises:
            LabError: a volume is still mounted.
        """
        for kind in (kube_objects.POD, kube_objects.CLAIM):
            for found in self.objects.all(kind):
                name = found["metadata"]["name"]
                self.objects.delete(kind, name, grace_s=None)
        began = time.monotonic()
        for kind in (kube_objects.POD, kube_objects.CLAIM, kube_objects.VOLUME):
            is_absent = functools.partial(self._is_absent, kind)
            self.until(f"no {kind.kind} is left", is_absent)
        self.until("no disk is attached", lambda: not self.disks.disks)
        self.note("seconds until nothing was left", round(time.monotonic() - began))
        for name in CLASSES:
            self.objects.delete(kube_objects.CLASS, name)
        if left := self.node.mounts():
            raise errors.LabError(f"still mounted: {', '.join(left)}")

    def forget_node(self) -> None:
        """Delete the Node: no pod must be scheduled to a node that has ended."""
        name = self.node.wanted.name
        for kind in (kube_objects.NODE, kube_objects.CSI_NODE):
            self.objects.delete(kind, name)

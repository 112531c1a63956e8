"""A user of volumes on the lab's real node: claims, and pods that write to them."""

import dataclasses
import os
from collections.abc import Mapping, Sequence

from lib.lab import errors
from lib.lab.daemons import csi_node
from lib.lab.kube import kube_objects, kubelet_files
from lib.lab.kube.kube_objects import Json, Objects
from lib.lab.storage import storage_node

OPTIONS = "-I 512 -m 1"
CLASSES: Mapping[str, Mapping[str, str]] = {
    "ext4": {"mooring.io/mkfs-options": OPTIONS},
    "xfs": {"csi.storage.k8s.io/fstype": "xfs"},
    "btrfs": {"csi.storage.k8s.io/fstype": "btrfs"},
}
"""Parameters of StorageClasses, by name."""
FILE = "/data/lines"
DEVICE = "/dev/data"
HOST_LABEL = "kubernetes.io/hostname"


@dataclasses.dataclass
class VolumeClient:
    """Creates claims and pods, and reads what becomes of them.

    objects: of a namespace. node: where the pods run. node_name: of its Node.
    """

    objects: Objects
    node: storage_node.NodeView
    node_name: str

    def add_classes(self) -> None:
        """Create the StorageClasses."""
        for name in CLASSES:
            self.add_class(name)

    def add_class(self, name: str) -> None:
        """Create one of the StorageClasses."""
        self.objects.make(
            kube_objects.CLASS,
            name,
            provisioner=csi_node.DRIVER,
            parameters={"type": "fast", **CLASSES[name]},
            volumeBindingMode="WaitForFirstConsumer",
            allowVolumeExpansion=True,
            reclaimPolicy="Delete",
        )

    def remove_class(self, name: str) -> None:
        """Delete a StorageClass; fine when it is absent."""
        self.objects.delete(kube_objects.CLASS, name)

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
                # The other Nodes of a lab have no kubelet.
                "nodeSelector": {HOST_LABEL: self.node_name},
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
        document = self.objects.get(kube_objects.POD, pod)
        return "" if document is None else str(document["status"].get("phase", ""))

    def lines(self, pod: str) -> list[str]:
        """Return what a pod printed; empty when it is absent."""
        document = self.objects.get(kube_objects.POD, pod)
        if document is None:
            return []
        return self.node.log("default", pod, document["metadata"]["uid"])

    def has_written(self, *names: str) -> bool:
        """Report whether all of these pods have written."""
        return all(self.lines(name)[-1:] == ["written"] for name in names)

    def volume(self, claim: str) -> tuple[str, str]:
        """Return the PersistentVolume of a claim, and the volume's id."""
        document = self.objects.get(kube_objects.CLAIM, claim)
        name = (document or {"spec": {}})["spec"].get("volumeName", "")
        volume = self.objects.get(kube_objects.VOLUME, name) if name else None
        if volume is None:
            raise errors.LabError(f"claim {claim} is not bound")
        return name, str(volume["spec"]["csi"]["volumeHandle"])

    def handles(self, volume_id: str) -> list[str]:
        """Return the names of the PersistentVolumes of a volume."""
        return [
            volume["metadata"]["name"]
            for volume in self.objects.all(kube_objects.VOLUME)
            if volume["spec"].get("csi", {}).get("volumeHandle") == volume_id
        ]

    def mounted(self, claim: str) -> list[str]:
        """Return the targets of a claim's volume in pods."""
        name, _ = self.volume(claim)
        return [target for target in self.node.mounts() if name in target]

    def has_bytes(self, claim: str, least: int) -> bool:
        """Report whether the mounted file system has at least this size."""
        return self.node.size_bytes(self.mounted(claim)[0]) >= least

    def has_capacity(self, claim: str, size: str) -> bool:
        """Report whether the claim's status shows a size ("2Gi")."""
        document = self.objects.get(kube_objects.CLAIM, claim) or {}
        capacity = document.get("status", {}).get("capacity", {})
        return bool(capacity.get("storage") == size)

    def events(self, pod: str) -> Sequence[str]:
        """Return the messages of a pod's Events, for a failed test."""
        kind = kube_objects.EVENT
        return [
            f"{event.get('reason')}: {event.get('message')}"
            for event in self.objects.all(kind)
            if event["involvedObject"].get("name") == pod
        ]

"""A Pod with a CSI volume on a machine of DVP, as all who take part leave it.

The test is scheduler, kubelet, attach/detach controller and csi-attacher, each as a
method; the disk in the parent is attached as csi-controller attaches it. Binding,
eviction and the deletion of the Node are by the real controllers.
"""

import contextlib

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab.dvp import kinds, project
from lib.lab.run import waiting
from tests.harness.dvp import dvp_parent
from tests.harness.machines.fleet import Fleet

VOLUME = "pvc-mounted"
POD = "writer"
DRIVER = "csi.lab.invalid"
FINALIZER = "lab.invalid/detaching"
"""Of the attacher, which removes it once the volume is detached."""
OF_CLUSTER = {**dvp_parent.MANAGED, dvp_parent.CLUSTER_LABEL: dvp_parent.CLUSTER}
SIZE = {"storage": "64Mi"}
EVICTED = "EvictionByEvictionAPI"


def create_disk(fleet: Fleet) -> None:
    """Create the disk of a volume as csi-controller does, unless it exists."""
    claim = {"storageClassName": project.STORAGE_AT_ONCE, "size": "64Mi"}
    with contextlib.suppress(kube_errors.AlreadyExists):
        fleet.in_parent.make(
            kinds.DISKS,
            VOLUME,
            {"labels": {**OF_CLUSTER, "virtualDiskName": VOLUME}},
            spec={"persistentVolumeClaim": claim},
        )


class PodWithVolume:
    """A volume of a Pod on a machine. machine: name, also of its Node and VM."""

    def __init__(self, fleet: Fleet, machine: str) -> None:
        self._fleet = fleet
        self._objects = fleet.objects
        self._machine = machine

    def mount(self) -> None:
        """Return once the disk is attached, and the Pod runs with the volume."""
        self._attach_disk()
        self._create_claim()
        self._create_pod()
        self._attach()

    def _attach_disk(self) -> None:
        fleet = self._fleet
        create_disk(fleet)
        held = {"virtualMachineDiskName": VOLUME, "virtualMachineName": self._machine}
        reference = {"kind": kinds.DISKS.kind, "name": VOLUME}
        fleet.in_parent.make(
            kinds.ATTACHMENTS,
            VOLUME,
            {"labels": {**OF_CLUSTER, **held}},
            spec={"virtualMachineName": self._machine, "blockDeviceRef": reference},
        )
        fleet.parent.wait_phase(kinds.ATTACHMENTS, fleet.project, VOLUME, "Attached")

    def _create_claim(self) -> None:
        modes = ["ReadWriteOnce"]
        source = {"driver": DRIVER, "volumeHandle": VOLUME}
        spec = {"capacity": SIZE, "accessModes": modes, "csi": source}
        self._objects.make(resources.PERSISTENT_VOLUMES, VOLUME, spec=spec)
        claim = {
            "accessModes": modes,
            "resources": {"requests": SIZE},
            "storageClassName": "",
            "volumeName": VOLUME,
        }
        self._objects.make(resources.CLAIMS, VOLUME, spec=claim)
        waiting.until(
            "the claim is bound",
            lambda: (self._objects.get(resources.CLAIMS, VOLUME) or {})
            .get("status", {})
            .get("phase")
            == "Bound",
        )

    def _create_pod(self) -> None:
        """Create a Pod that is scheduled and runs; no kubelet starts it."""
        mounts = [{"name": "data", "mountPath": "/data"}]
        container = {"name": "c", "image": "writer", "volumeMounts": mounts}
        source = {"claimName": VOLUME}
        self._objects.make(
            resources.PODS,
            POD,
            spec={
                "nodeName": self._machine,
                "automountServiceAccountToken": False,
                "containers": [container],
                "volumes": [{"name": "data", "persistentVolumeClaim": source}],
            },
        )
        ready = {"type": "Ready", "status": "True"}
        self._report(resources.PODS, POD, phase="Running", conditions=[ready])

    def _attach(self) -> None:
        """Report the volume as attached and used, in all places."""
        self._objects.make(
            resources.VOLUME_ATTACHMENTS,
            VOLUME,
            {"finalizers": [FINALIZER]},
            spec={
                "attacher": DRIVER,
                "nodeName": self._machine,
                "source": {"persistentVolumeName": VOLUME},
            },
        )
        self._report(resources.VOLUME_ATTACHMENTS, VOLUME, attached=True)
        name = f"kubernetes.io/csi/{DRIVER}^{VOLUME}"
        self._report(
            resources.NODES,
            self._machine,
            volumesAttached=[{"name": name, "devicePath": ""}],
            volumesInUse=[name],
        )

    def _report(self, kind: resources.Resource, name: str, **status: object) -> None:
        self._fleet.report(kind, name, status)

    def is_evicted(self) -> bool:
        """Report whether the Pod is being deleted by an eviction.

        Source: Kubernetes, pkg/registry/core/pod/storage/eviction.go.
        """
        pod = self._objects.get(resources.PODS, POD) or {"metadata": {}}
        rows = pod.get("status", {}).get("conditions", ())
        is_requested = any(row.get("reason") == EVICTED for row in rows)
        return is_requested and "deletionTimestamp" in pod["metadata"]

    def unmount(self) -> None:
        """End the Pod as its kubelet does; the volume is still attached."""
        self._objects.delete(resources.PODS, POD)
        self._report(resources.NODES, self._machine, volumesInUse=None)

    def detach(self) -> None:
        """Detach the volume from the Node; in the parent it stays attached."""
        attachments = resources.VOLUME_ATTACHMENTS
        with contextlib.suppress(kube_errors.NotFound):
            self._objects.patch(attachments, VOLUME, metadata={"finalizers": None})
        self._objects.delete(attachments, VOLUME)
        self._report(resources.NODES, self._machine, volumesAttached=None)

    def survives(self) -> bool:
        """Report whether claim, volume and disk exist, and are not being deleted."""
        documents = (
            self._objects.get(resources.CLAIMS, VOLUME),
            self._objects.get(resources.PERSISTENT_VOLUMES, VOLUME),
            self._fleet.in_parent.get(kinds.DISKS, VOLUME),
        )
        return all(
            document is not None and "deletionTimestamp" not in document["metadata"]
            for document in documents
        )

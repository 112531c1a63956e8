"""A VM of a simulated parent as a real node: kubelet, sidecars, both CSI programs.

Its disks are loop devices, see `lib/lab/storage`. To be used in a private mount
namespace.
"""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Mapping

from lib.lab import errors
from lib.lab.artifacts import pexes
from lib.lab.daemons import csi, csi_node
from lib.lab.dvp import project as projects
from lib.lab.kube import control_plane, kube_objects, kubelet
from lib.lab.run import processes, progress
from lib.lab.storage import (
    attached_disks,
    loop_disks,
    storage_node,
    volume_client,
)
from tests.harness.dvp import csi_dvp
from tests.harness.node import volume_users


class DvpNode(storage_node.StorageNode):
    """Starts what does not run. driver: csi-controller, which is started as well."""

    def __init__(
        self,
        described: storage_node.StorageNodeSettings,
        machine: loop_disks.Machine,
        driver: csi_dvp.CsiDvp,
    ) -> None:
        super().__init__(driver.where, described, machine, metadata="")
        self.driver = driver
        self._account = csi.allow(driver.where, csi_dvp.DRIVER)

    def start(self) -> None:
        """See `StorageNode.start`; csi-node has no credentials of the parent."""
        kubelet.resume(self.where, self.name)
        self.driver.start()
        csi.start_sidecars(self.where, self._account)
        words = ("--cloud=dvp", f"--node-name={self.name}")
        csi_node.start(self.where, self.settings, words)

    def stop_plugin(self) -> None:
        """End csi-node alone."""
        processes.stop(self.where, [csi_node.NAME])


@dataclasses.dataclass
class DvpVolumeUser(volume_users.VolumeUser):
    """A user of volumes of DVP. static: serials of the VM's own disks."""

    node: DvpNode
    static: frozenset[str] = frozenset()

    def add_class(self, name: str) -> None:
        """Create a StorageClass; like its class in the parent, it binds late."""
        parameters = {
            csi_dvp.CLASS_KEY: projects.STORAGE,
            **volume_client.CLASSES[name],
        }
        self.objects.make(
            kube_objects.CLASS,
            name,
            provisioner=csi_dvp.DRIVER,
            parameters=parameters,
            volumeBindingMode="WaitForFirstConsumer",
            allowVolumeExpansion=True,
            reclaimPolicy="Delete",
        )

    def clear(self) -> None:
        """See `VolumeUser.clear`; the VM keeps its own disks."""
        for kind in (kube_objects.POD, kube_objects.CLAIM):
            for document in self.objects.all(kind):
                name = document["metadata"]["name"]
                self.objects.delete(kind, name, grace_s=None)
        for kind in (kube_objects.POD, kube_objects.CLAIM, kube_objects.VOLUME):
            is_absent = functools.partial(self._is_absent, kind)
            self.until(f"no {kind.kind} is left", is_absent)
        self.until(
            "the VM has its own disks alone",
            lambda: set(self.disks.disks) == self.static,
        )
        for name in volume_client.CLASSES:
            self.remove_class(name)
        if left := self.node.mounts():
            raise errors.LabError(f"still mounted: {', '.join(left)}")


@contextlib.contextmanager
def running(
    driver: csi_dvp.CsiDvp,
    name: str,
    attachments: pathlib.Path,
    env: Mapping[str, str],
    root: pathlib.Path,
) -> Iterator[tuple[DvpNode, attached_disks.AttachedDisks]]:
    """Run the node while the block runs.

    driver: at the places of the child. name: of the Node. attachments: folder in which
    the parent links the disks of its VM. env: where the programs of file systems are
    found. root: of its /dev and /sys.

    Raises:
        LabError: a part did not start, or a mount is left.
    """
    where = driver.where
    settings = storage_node.StorageNodeSettings(
        name,
        pexes.beside(csi.NAME),
        pexes.beside(csi_node.NAME),
        driver.project.kubeconfig,
        name,
        "",
        env,
        attachments,
    )
    with loop_disks.machine(root) as machine:
        disks = attached_disks.AttachedDisks(
            attachments, machine, names=attached_disks.scsi
        )
        # The limit that the kubelet publishes is counted on the disks of the machine.
        disks.follow()
        try:
            kubelet.up(where, progress.Silent(), name)
            control_plane.start_scheduler(where, progress.Silent())
            node = DvpNode(settings, machine, driver)
            node.start()
            with attached_disks.followed(disks):
                yield node, disks
        finally:
            storage_node.stop(where)

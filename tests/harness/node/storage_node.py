"""A real node with volumes of the lab's Cinder: kubelet, scheduler, sidecars, csi-node.

The node is an instance of the lab's Nova. To be used in a private mount namespace, see
`loop_disks.py`, so that no mount remains when the process is killed.
"""

import contextlib
import dataclasses
import pathlib
import subprocess
from collections.abc import Iterator, Mapping

from lib.lab import places
from lib.lab.daemons import csi, csi_node
from lib.lab.kube import control_plane, kubelet, kubelet_files, node_host
from lib.lab.run import processes, progress
from tests.harness.node import attached_disks, loop_disks, metadata_service

CLUSTER = "storage-node"


@dataclasses.dataclass(frozen=True, slots=True)
class StorageNodeSettings:
    """Which node. controller, node: PEX files. conf: cloud.conf of csi-controller.

    instance_id, zone: of the server that the node is. env: where the programs of file
    systems are found.
    """

    name: str
    controller: pathlib.Path
    node: pathlib.Path
    conf: pathlib.Path
    instance_id: str
    zone: str
    env: Mapping[str, str]


class StorageNode:
    """Starts what does not run; safe to call from one thread at a time."""

    def __init__(
        self,
        where: places.Places,
        wanted: StorageNodeSettings,
        machine: loop_disks.Machine,
        metadata: str,
    ) -> None:
        self.where = where
        self.wanted = wanted
        self.machine = machine
        room = kubelet_files.kubelet_room(where)
        self.kubelet = room
        self.settings = csi_node.CsiNodeSettings(
            wanted.node,
            machine.dev,
            machine.sys,
            room,
            metadata,
            wanted.env,
            room / "plugins_registry",
        )
        self._kubeconfig = csi.allow(where)

    def start(self) -> None:
        """Start what does not run, and wait until each part serves.

        Raises:
            LabError: a part did not start.
        """
        kubelet.resume(self.where, self.wanted.name)
        csi.start_driver(self.where, self.wanted.controller, self.wanted.conf, CLUSTER)
        csi.start_sidecars(self.where, self._kubeconfig)
        csi_node.start(self.where, self.settings)

    def mounts(self) -> list[str]:
        """Return the targets of volumes below the kubelet's folder."""
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        targets = [line.split(" ")[4] for line in lines]
        return [
            target
            for target in targets
            if target.startswith(str(self.kubelet))
            and "kubernetes.io~csi" in target
            or f"{self.kubelet}/plugins/kubernetes.io/csi/" in target
        ]

    def log(self, namespace: str, pod: str) -> list[str]:
        """Return the lines that a pod's container has written, of its last start.

        Source: Kubernetes CRI, format of log files: time, stream, tag, text.
        """
        folder = node_host.room(self.where) / "pod-logs"
        files = sorted(folder.glob(f"{namespace}_{pod}_*/c/*.log"))
        if not files:
            return []
        lines = files[-1].read_text().splitlines()
        return [line.split(" ", 3)[3] for line in lines if line.count(" ") >= 3]


@contextlib.contextmanager
def running(
    where: places.Places, wanted: StorageNodeSettings, root: pathlib.Path
) -> Iterator[tuple[StorageNode, attached_disks.AttachedDisks]]:
    """Run the node for as long as the block lasts. root: of its /dev and /sys.

    Raises:
        LabError: a part did not start, or a mount is left.
    """
    with (
        loop_disks.machine(root) as machine,
        metadata_service.served(wanted.instance_id, wanted.zone) as metadata,
    ):
        attachments = attached_disks.folder(where, wanted.instance_id)
        disks = attached_disks.AttachedDisks(attachments, machine)
        try:
            kubelet.up(where, progress.Silent(), wanted.name)
            control_plane.start_scheduler(where, progress.Silent())
            node = StorageNode(where, wanted, machine, metadata)
            node.start()
            with attached_disks.followed(disks):
                yield node, disks
        finally:
            csi_node.stop(where)
            csi.stop(where)
            processes.stop(where, [control_plane.SCHEDULER])
            _release_loops(kubelet_files.kubelet_room(where))
            kubelet.down(where)


def _release_loops(kubelet_room: pathlib.Path) -> None:
    """Detach what a kubelet attached for raw block volumes and did not detach."""
    listed = subprocess.run(
        ["losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in listed.stdout.splitlines():
        device, _, file = line.partition(" ")
        if file.startswith(str(kubelet_room)):
            subprocess.run(["losetup", "--detach", device], check=False)

"""A real node with volumes of the lab's cloud: kubelet, scheduler, sidecars, csi-node.

The node is a server of the cloud. To be used in a private mount namespace, see
`loop_disks.py`, so that no mount remains when the process is killed.
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Iterator, Mapping

from lib.lab import places
from lib.lab.daemons import csi, csi_node
from lib.lab.kube import control_plane, kubelet, kubelet_files, node_host
from lib.lab.run import processes, progress
from lib.lab.storage import attached_disks, loop_disks, metadata_service

CLUSTER = csi.CLUSTER
PROGRAMS = (csi_node.NAME, *csi.SIDECARS, csi.NAME, control_plane.SCHEDULER)
"""What runs besides kubelet and containerd."""


@dataclasses.dataclass(frozen=True, slots=True)
class StorageNodeSettings:
    """Which node. controller, node: PEX files. conf: cloud.conf of csi-controller.

    instance_id, zone: of the server that the node is. env: where the programs of file
    systems are found. attachments: folder in which the cloud links its volumes.
    """

    name: str
    controller: pathlib.Path
    node: pathlib.Path
    conf: pathlib.Path
    instance_id: str
    zone: str
    env: Mapping[str, str]
    attachments: pathlib.Path


class NodeView:
    """What the node has mounted, and what its pods have written.

    pid: of a process in the node's mount namespace; None: this process is.
    """

    def __init__(self, where: places.Places, pid: int | None = None) -> None:
        self.where = where
        self.kubelet = kubelet_files.kubelet_room(where)
        self._process = pathlib.Path("/proc") / ("self" if pid is None else str(pid))

    def mounts(self) -> list[str]:
        """Return the targets of volumes below the kubelet's folder."""
        lines = (self._process / "mountinfo").read_text().splitlines()
        targets = [line.split(" ")[4] for line in lines]
        return [
            target
            for target in targets
            if target.startswith(str(self.kubelet))
            and "kubernetes.io~csi" in target
            or f"{self.kubelet}/plugins/kubernetes.io/csi/" in target
        ]

    def size_bytes(self, target: str) -> int:
        """Return the size of the file system that is mounted at a target."""
        # Source: proc_pid_root(5): the link leads into the process's mount namespace.
        status = os.statvfs(f"{self._process}/root{target}")
        return status.f_blocks * status.f_frsize

    def log(self, namespace: str, pod: str, uid: str) -> list[str]:
        """Return the lines that a pod's container has written, of its last start.

        uid: of the pod, as the logs of deleted ones with this name stay for some time.
        Source: Kubernetes CRI, format of log files: time, stream, tag, text.
        """
        folder = node_host.room(self.where) / "pod-logs"
        files = list(folder.glob(f"{namespace}_{pod}_{uid}/c/*.log"))
        if not files:
            return []
        newest = max(files, key=lambda file: file.stat().st_mtime)
        lines = newest.read_text().splitlines()
        return [line.split(" ", 3)[3] for line in lines if line.count(" ") >= 3]


class StorageNode(NodeView):
    """Starts what does not run; safe to call from one thread at a time."""

    def __init__(
        self,
        where: places.Places,
        described: StorageNodeSettings,
        machine: loop_disks.Machine,
        metadata: str,
    ) -> None:
        super().__init__(where)
        self.name = described.name
        self.machine = machine
        self._described = described
        self.settings = csi_node.CsiNodeSettings(
            described.node,
            machine.dev,
            machine.sys,
            self.kubelet,
            metadata,
            described.env,
            self.kubelet / "plugins_registry",
        )
        self._kubeconfig = csi.allow(where)

    def start(self) -> None:
        """Start what does not run, and wait until each part serves.

        Raises:
            LabError: a part did not start.
        """
        described = self._described
        kubelet.resume(self.where, described.name)
        csi.start_driver(self.where, described.controller, described.conf, CLUSTER)
        csi.start_sidecars(self.where, self._kubeconfig)
        csi_node.start(self.where, self.settings)


@contextlib.contextmanager
def running(
    where: places.Places, settings: StorageNodeSettings, root: pathlib.Path
) -> Iterator[tuple[StorageNode, attached_disks.AttachedDisks]]:
    """Run the node for as long as the block lasts. root: of its /dev and /sys.

    Raises:
        LabError: a part did not start, or a mount is left.
    """
    with (
        loop_disks.machine(root) as machine,
        metadata_service.served(settings.instance_id, settings.zone) as metadata,
    ):
        disks = attached_disks.AttachedDisks(settings.attachments, machine)
        try:
            kubelet.up(where, progress.Silent(), settings.name)
            control_plane.start_scheduler(where, progress.Silent())
            node = StorageNode(where, settings, machine, metadata)
            node.start()
            with attached_disks.followed(disks):
                yield node, disks
        finally:
            stop(where)


def stop(where: places.Places) -> None:
    """Stop all programs of the node; fine when none runs.

    Raises:
        LabError: a mount is left in this process's mount namespace.
    """
    processes.stop(where, PROGRAMS)
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

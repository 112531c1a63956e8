"""The process that owns the mount namespace of the lab's real node.

All mounts of the node are in that namespace, and its disks are loop devices that detach
themselves: when its processes have ended, however they ended, nothing remains. The
keeper starts what does not run, as a service manager does.
"""

import pathlib
import time
from collections.abc import Callable, Mapping, Sequence

import psutil

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.daemons import csi, csi_node
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.run import processes
from lib.lab.storage import attached_disks, loop_disks, storage_node
from lib.process import unix_sockets

NAME = "storage-node"
_PERIOD_S = 1.0
_STOP_S = 40.0


def _root(where: places.Places) -> pathlib.Path:
    """Return the folder of the node's /dev and /sys; a tmpfs in its namespace alone."""
    return where.state / "machine"


def keep(
    where: places.Places,
    settings: storage_node.StorageNodeSettings,
    report: Callable[[str], object],
) -> None:
    """Run the node until this process is interrupted; then stop all of it.

    report: called with what did not start again.

    Raises:
        LabError: it did not start.
    """
    loop_disks.enter_private_mounts()
    root = _root(where)
    root.mkdir(parents=True, exist_ok=True)
    with storage_node.running(where, settings, root) as (node, disks):
        keep_started(disks, node.start, report)


def keep_started(
    disks: attached_disks.AttachedDisks,
    start: Callable[[], object],
    report: Callable[[str], object],
) -> None:
    """Start what does not run, every second; return when the disks have failed."""
    while disks.failure is None:
        time.sleep(_PERIOD_S)
        try:
            start()
        except errors.LabError as error:
            report(str(error))


def find(where: places.Places) -> psutil.Process | None:
    """Return the keeper; None when it does not run."""
    return processes.find(where, NAME)


def up(
    where: places.Places,
    pex: pathlib.Path,
    arguments: Sequence[str],
    node: str,
) -> None:
    """Start the node, unless it runs; return when its Node has the driver.

    pex: this tool. arguments: of the command that calls `keep`. node: name of the Node.

    Raises:
        LabError: it did not start.
    """
    if find(where) is None:
        # A keeper that was killed has left its programs, with the old namespace.
        storage_node.stop(where)
        command = [*pexes.command(pex), *arguments]
        processes.start(where, NAME, command, pexes.environment(where))
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    objects = kube_objects.Objects(api, "default")

    def is_registered() -> bool:
        try:
            document = objects.get(kube_objects.CSI_NODE, node) or {"spec": {}}
        except kube_errors.KubeError:
            return False
        drivers = document["spec"].get("drivers") or []
        is_known = any(driver["name"] == csi_node.DRIVER for driver in drivers)
        return is_known and all(running(where).values())

    processes.wait_for(where, NAME, is_registered)


def running(where: places.Places) -> Mapping[str, bool]:
    """Return for the keeper and each program beside the kubelet whether it serves."""
    serves: Mapping[str, Callable[[], bool]] = {
        csi.NAME: lambda: unix_sockets.is_served(csi.address(where)),
        csi_node.NAME: lambda: unix_sockets.is_served(
            csi_node.socket_below(storage_node.NodeView(where).kubelet)
        ),
    }
    names = (NAME, *storage_node.PROGRAMS)
    return {
        name: processes.find(where, name) is not None
        and (name not in serves or serves[name]())
        for name in names
    }


def down(where: places.Places) -> None:
    """Stop the node; fine when nothing of it runs.

    Raises:
        LabError: a mount is left, so the lab's folder must not be removed.
    """
    processes.stop(where, [NAME], patience_s=_STOP_S)
    storage_node.stop(where)

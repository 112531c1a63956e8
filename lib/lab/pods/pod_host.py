"""A node whose pods are real: kubelet, containerd, kube-proxy and a scheduler.

The node is a server of the lab's cloud, with its address and its disks. It has a mount
and a network namespace of its own, in which the ports of cluster and cloud are relayed,
so that nothing of it remains when its processes have ended.
"""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Callable, Iterator, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.daemons import csi
from lib.lab.kube import (
    cluster,
    control_plane,
    kube_objects,
    kubelet,
    kubelet_files,
    node_host,
)
from lib.lab.proxy import kube_proxy, node_network
from lib.lab.run import processes, progress
from lib.lab.storage import attached_disks, loop_disks

GROUPS = (kubelet.GROUP, control_plane.SCHEDULER_GROUP, helm.GROUP, csi.GROUP)
"""Of the programs that must be built, besides kube-proxy."""
PROGRAMS = (control_plane.SCHEDULER, kube_proxy.NAME)
"""What runs besides kubelet and containerd."""


@dataclasses.dataclass(frozen=True, slots=True)
class HostSettings:
    """Which server the node is.

    name: of the Node. address: of the server. ports: of this machine, of the cloud and
    whatever else the node reaches besides the API server of its cluster. attachments:
    folder in which the cloud links the volumes of the server. disk_names: serial and
    links of a volume in /dev. instance_id, zone: in the metadata of the server; empty
    where the cloud has no metadata service.
    """

    name: str
    address: str
    ports: Sequence[int]
    attachments: pathlib.Path
    disk_names: Callable[[str], tuple[str, Sequence[str]]] = attached_disks.virtio
    instance_id: str = ""
    zone: str = ""


def unavailable(where: places.Places) -> str | None:
    """Return in one sentence why this machine cannot be a node; None when it can."""
    return kubelet.unavailable(where) or loop_disks.unavailable()


def build(where: places.Places, shown: progress.Progress) -> None:
    """Build what a node and its charts require; start nothing.

    Raises:
        LabError: it could not be built.
    """
    programs.build(where, GROUPS, shown)
    kubelet.build(where, shown)
    kube_proxy.build(where, shown)


def root(where: places.Places) -> pathlib.Path:
    """Return the folder of the node's /dev and /sys; a tmpfs in its namespace alone.

    It is below the folder of the kubelet, which the pod of csi-node mounts.
    """
    return kubelet_files.kubelet_room(where) / "machine"


@contextlib.contextmanager
def running(
    where: places.Places, settings: HostSettings, shown: progress.Progress
) -> Iterator[attached_disks.AttachedDisks]:
    """Run the node for as long as the block lasts; the control plane runs already.

    The calling thread, the main one, is in a private mount namespace, see
    `loop_disks.enter_private_mounts`; while the block runs also in the network of the
    node.

    Raises:
        LabError: a part did not start, or a mount is left.
    """
    numbers = [where.port("apiserver"), *settings.ports]
    _share_devices()
    with contextlib.ExitStack() as stack:
        stack.enter_context(node_network.entered(where, numbers))
        stack.callback(stop, where)
        kubelet.up(where, shown, settings.name, settings.address)
        _add_default_route(where)
        start(where, settings, shown)
        _publish_api_server(where, settings.address)
        root(where).mkdir(exist_ok=True)
        machine = stack.enter_context(loop_disks.machine(root(where)))
        disks = attached_disks.AttachedDisks(
            settings.attachments, machine, names=settings.disk_names
        )
        stack.enter_context(attached_disks.followed(disks))
        yield disks


def start(
    where: places.Places, settings: HostSettings, shown: progress.Progress
) -> None:
    """Start what does not run of a node that is up.

    Raises:
        LabError: a part did not start.
    """
    kubelet.resume(where, settings.name, settings.address)
    control_plane.start_scheduler(where, shown)
    if processes.find(where, kube_proxy.NAME) is None:
        kube_proxy.start(where, settings.name, shown)


def stop(where: places.Places) -> None:
    """Stop all programs and pods of the node; fine when none runs.

    Raises:
        LabError: a mount is left in this process's mount namespace.
    """
    processes.stop(where, PROGRAMS)
    kubelet.down(where)


def _share_devices() -> None:
    """Make /dev a shared mount, as on usual hosts: pods receive its mounts."""
    words = ("mount", "--make-shared", "/dev")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise errors.LabError(f"cannot share /dev: {done.stderr.strip()}")


def _add_default_route(where: places.Places) -> None:
    """Add a default route to later pods: kube-proxy changes addresses on the way."""
    file = kubelet_files.containerd_room(where) / "cni/10-lab.conflist"
    config = json.loads(file.read_text())
    config["plugins"][0]["isDefaultGateway"] = True
    # containerd reads the folder again when a file in it changes.
    file.write_text(json.dumps(config))


def _publish_api_server(where: places.Places, address: str) -> None:
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    objects = kube_objects.Objects(api, "default")
    node_network.publish_api_server(objects, address, where.port("apiserver"))


def logs(where: places.Places) -> pathlib.Path:
    """Return the folder with the logs of the pods."""
    return node_host.room(where) / "pod-logs"

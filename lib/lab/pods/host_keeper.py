"""The process that owns the namespaces of a lab's node with pods.

When its processes have ended, however they ended, no mount, address or rule of the node
remains. The keeper starts what does not run, as a service manager does.
"""

import contextlib
import functools
import pathlib
from collections.abc import Callable, Iterator, Mapping

import psutil

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.kube import control_plane, kubelet, pod_loopback
from lib.lab.pods import pod_host
from lib.lab.run import processes, progress
from lib.lab.storage import loop_disks, metadata_service, node_keeper

NAME = "pod-node"
METADATA = "metadata"
"""Port of the metadata service in `places.Places`."""
_STOP_S = 60.0


def keep(
    where: places.Places,
    settings: pod_host.HostSettings,
    report: Callable[[str], object],
) -> None:
    """Run the node until this process is interrupted; then stop all of it.

    report: called with what did not start again.

    Raises:
        LabError: it did not start.
    """
    shown = progress.Silent()
    loop_disks.enter_private_mounts()
    with _metadata(where, settings), pod_host.running(where, settings, shown) as disks:
        start = functools.partial(pod_host.start, where, settings, shown)
        node_keeper.keep_started(disks, start, report)


@contextlib.contextmanager
def _metadata(where: places.Places, settings: pod_host.HostSettings) -> Iterator[str]:
    """Serve the metadata of the server, if its cloud has such a service."""
    if not settings.instance_id:
        yield ""
        return
    port = where.port(METADATA)
    with metadata_service.served(settings.instance_id, settings.zone, port=port) as url:
        yield url


def find(where: places.Places) -> psutil.Process | None:
    """Return the keeper; None when it does not run."""
    return processes.find(where, NAME)


def up(where: places.Places, pex: pathlib.Path) -> None:
    """Start the node, unless it runs; return when all its programs answer.

    pex: this tool, whose command `lab pod-node` calls `keep`.

    Raises:
        LabError: it did not start.
    """
    if find(where) is None:
        # Of a node without pods, or of a keeper that was killed.
        node_keeper.down(where)
        pod_host.stop(where)
        command = [*pexes.command(pex), "lab", NAME]
        processes.start(where, NAME, command, pexes.environment(where))

    def is_up() -> bool:
        return all(running(where).values()) and all(
            program.ready for program in status(where)
        )

    processes.wait_for(where, NAME, is_up)


def running(where: places.Places) -> Mapping[str, bool]:
    """Return for the keeper and each program beside the kubelet whether it runs."""
    names = (NAME, *pod_host.PROGRAMS)
    return {name: processes.find(where, name) is not None for name in names}


def status(where: places.Places) -> tuple[control_plane.ProgramStatus, ...]:
    """Return the state of kubelet and containerd, asked in the network of the node."""
    inside = processes.find(where, kubelet.PROGRAMS[-1])
    if inside is None:
        return kubelet.status(where)
    network = pathlib.Path(f"/proc/{inside.pid}/ns/net")
    try:
        return pod_loopback.within(network, lambda: kubelet.status(where))
    except OSError:
        return kubelet.status(where)  # it has ended meanwhile


def down(where: places.Places) -> None:
    """Stop the node; fine when nothing of it runs.

    Raises:
        LabError: a mount is left, so the lab's folder must not be removed.
    """
    processes.stop(where, [NAME], patience_s=_STOP_S)
    pod_host.stop(where)

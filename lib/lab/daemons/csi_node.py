"""Runs csi-node on a machine of loop devices, as an instance of the lab's OpenStack."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.run import processes
from lib.process import unix_sockets

NAME = "csi-node"
DRIVER = "cinder.csi.openstack.org"
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"


@dataclasses.dataclass(frozen=True, slots=True)
class CsiNodeSettings:
    """The settings of csi-node: those of its machine.

    dev, sys: roots of /dev and /sys. kubelet: its folder. metadata: URL of the
    metadata service. env: where the programs of file systems are found. registration:
    folder in which the kubelet searches sockets; None: it is not registered.
    """

    pex: pathlib.Path
    dev: pathlib.Path
    sys: pathlib.Path
    kubelet: pathlib.Path
    metadata: str
    env: Mapping[str, str]
    registration: pathlib.Path | None = None


def address(settings: CsiNodeSettings) -> pathlib.Path:
    """Return the socket at which csi-node serves."""
    return socket_below(settings.kubelet)


def socket_below(kubelet: pathlib.Path) -> pathlib.Path:
    """Return the socket at which csi-node serves a kubelet with this folder."""
    return kubelet / "plugins/cinder/csi.sock"


def arguments(settings: CsiNodeSettings, extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command. extra: more of its command line."""
    words = (
        f"--endpoint=unix://{address(settings)}",
        f"--dev-root={settings.dev}",
        f"--sys-root={settings.sys}",
        f"--kubelet-directory={settings.kubelet}",
        f"--metadata-address={settings.metadata}",
        "--logging-format=json",
        *extra,
    )
    if settings.registration is not None:
        file = settings.registration / "cinder-reg.sock"
        words += (f"--registration-socket={file}",)
    return (*_like_a_pod(settings), *pexes.command(settings.pex), *words)


def _like_a_pod(settings: CsiNodeSettings) -> tuple[str, ...]:
    """Return a command that gives csi-node a mount namespace of its own.

    Its mounts reach the namespace of its starter through the kubelet's folder alone, if
    that is a shared mount: what a pod has with "Bidirectional" for this folder and with
    "HostToContainer" for /dev.
    """
    if settings.registration is None:
        return ()
    script = 'mount --rbind "$0" "$0" && mount --make-rslave "$0" && exec "$@"'
    unshare = ("unshare", "--mount", "--propagation", "unchanged", "--")
    return (*unshare, "sh", "-c", script, str(settings.dev))


def start(
    where: places.Places, settings: CsiNodeSettings, extra: Sequence[str] = ()
) -> None:
    """Start csi-node, unless it runs, and wait until it listens.

    Raises:
        LabError: it ended, or did not listen in time.
    """
    address(settings).parent.mkdir(parents=True, exist_ok=True)
    env = {**settings.env, **pexes.environment(where)}
    processes.start(where, NAME, arguments(settings, extra), env)
    path = address(settings)
    processes.wait_for(where, NAME, lambda: unix_sockets.is_served(path))


def stop(where: places.Places) -> None:
    """End it; fine when it does not run."""
    processes.stop(where, [NAME])

"""What a kubelet and containerd change on this machine, and how it is put back.

Rules: only what carries the lab's own name or lies in its own folder is removed.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.slots import keeper

_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
)
"""Set by the kubelet, the last one by the CNI plugin "bridge"."""

_FOLDERS = (
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet",
    "/var/log/containers",
)
"""Made by the kubelet wherever its own folder is, inner ones first."""

_TOOLS = ("mount", "umount", "ip")
_CAP_SYS_ADMIN = 21
"""Source: Linux include/uapi/linux/capability.h."""


def room(where: places.Places) -> pathlib.Path:
    """Return the folder below which everything of the node lies."""
    return where.state / "node"


def cgroup(where: places.Places) -> str:
    """Return the name of the lab's own cgroup.

    Two kubelets in one cgroup remove each other's pods.
    """
    return f"mooring-{where.port_base}"


def bridge(where: places.Places) -> str:
    """Return the name of the bridge that joins the pods; 15 characters at most."""
    return f"moor{where.port_base}"


def host_link(where: places.Places) -> str:
    """Return the name of the interface with the address of the node itself."""
    return f"{bridge(where)}h"


def add_address(where: places.Places, address: str) -> None:
    """Add the address of the node to this machine, for as long as the node is up.

    Raises:
        LabError: it cannot be added.
    """
    link = host_link(where)
    for words in (
        ("link", "add", link, "type", "bridge"),
        ("address", "replace", f"{address}/32", "dev", link),
        ("link", "set", link, "up"),
    ):
        done = subprocess.run(
            ("ip", *words), capture_output=True, text=True, check=False
        )
        if done.returncode != 0 and "exists" not in done.stderr:
            raise errors.LabError(f"cannot add {address}: {done.stderr.strip()}")


def hierarchies(mountinfo: str) -> tuple[pathlib.Path, ...]:
    """Return every cgroup hierarchy that is mounted, of either version.

    Source: proc_pid_mountinfo(5).
    """
    return tuple(
        pathlib.Path(line.split(" ")[4])
        for line in mountinfo.splitlines()
        if line.partition(" - ")[2].split(" ")[0] in ("cgroup", "cgroup2")
    )


def mounts_below(folder: pathlib.Path, mountinfo: str) -> tuple[str, ...]:
    """Return the mount points in or below a folder, the innermost and latest first."""
    points = [
        line.split(" ")[4].replace("\\040", " ") for line in mountinfo.splitlines()
    ]
    inside = [
        point for point in points if pathlib.PurePath(point).is_relative_to(folder)
    ]
    return tuple(sorted(inside, reverse=True))


def _mountinfo() -> str:
    return pathlib.Path("/proc/self/mountinfo").read_text()


def unavailable(env: Mapping[str, str]) -> str | None:
    """Return in one sentence why this machine cannot be a node; None when it can."""
    if not pathlib.Path("/proc/self/mountinfo").exists():
        return "a node needs Linux"
    if os.geteuid() != 0 or not may_mount(_status()):
        return (
            "a node needs root with the capability CAP_SYS_ADMIN, for mounts, cgroups"
            " and network namespaces"
        )
    lacking = [tool for tool in _TOOLS if not shutil.which(tool, path=env.get("PATH"))]
    if lacking:
        return f"a node needs the command {lacking[0]}"
    kinds = pathlib.Path("/proc/filesystems").read_text().split()
    if "overlay" not in kinds and not _loads("overlay"):
        return "a node needs the overlay file system, which this kernel does not have"
    mounted = hierarchies(_mountinfo())
    if not mounted or not all(os.access(hierarchy, os.W_OK) for hierarchy in mounted):
        return "a node needs cgroups that it may write, and here are none"
    return None


def _status() -> str:
    return pathlib.Path("/proc/self/status").read_text()


def may_mount(status: str) -> bool:
    """Report whether a process has CAP_SYS_ADMIN. status: its /proc/PID/status.

    Source: proc_pid_status(5), CapEff.
    """
    lines = status.splitlines()
    masks = [line.split()[1] for line in lines if line.startswith("CapEff:")]
    return any(int(mask, 16) >> _CAP_SYS_ADMIN & 1 for mask in masks)


def _loads(module: str) -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run(["modprobe", "-q", module], check=False).returncode == 0
    return False


def prepare(where: places.Places, shared: pathlib.Path) -> None:
    """Remember how the machine is, make the cgroups and the shared mount.

    shared: mounts made below this folder are seen in the pods and the other way
    round, as volumes need it.
    """
    if not _saved(where).exists():
        before = {
            "settings": {name: _sysctl(name).read_text().strip() for name in _SYSCTLS},
            "absent": [name for name in _FOLDERS if not pathlib.Path(name).exists()],
            "cgroups": [
                str(hierarchy / cgroup(where))
                for hierarchy in hierarchies(_mountinfo())
            ],
            "bridge": bridge(where),
            "links": [host_link(where)],
        }
        _saved(where).write_text(json.dumps(before))
    for hierarchy in hierarchies(_mountinfo()):
        (hierarchy / cgroup(where)).mkdir(exist_ok=True)
    if str(shared) not in mounts_below(shared, _mountinfo()):
        for words in (
            ("mount", "--bind", str(shared), str(shared)),
            ("mount", "--make-rshared", str(shared)),
        ):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise errors.LabError(f"cannot mount: {done.stderr.strip()}")


def _saved(where: places.Places) -> pathlib.Path:
    return room(where) / "before.json"


def _sysctl(name: str) -> pathlib.Path:
    return pathlib.Path("/proc/sys") / name


def restore(where: places.Places) -> None:
    """Undo what `prepare` and a running node did; may be repeated.

    Raises:
        LabError: a mount is still there, so the lab's folder must not be removed.
    """
    _unmount(room(where))
    keeper.put_back(_saved(where))


def _unmount(folder: pathlib.Path) -> None:
    # Twice: one that is mounted over another shows that one only when it is gone.
    for _ in range(2):
        for point in mounts_below(folder, _mountinfo()):
            subprocess.run(["umount", "-l", point], capture_output=True, check=False)
    left = mounts_below(folder, _mountinfo())
    if left:
        raise errors.LabError(
            f"{left[0]} is still mounted; unmount it before the lab's data is removed"
        )

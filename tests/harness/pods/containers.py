"""Containers of pods as the kernel shows them: processes, permissions, memory."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import psutil

MIB = 2**20
_CAPABILITIES = ("CapEff", "CapPrm", "CapBnd", "CapAmb")
_SUFFIXES = {"Ki": 2**10, "Mi": MIB, "Gi": 2**30}


@dataclasses.dataclass(frozen=True, slots=True)
class Permissions:
    """What the process of a container may do. Source: proc_pid_status(5).

    capabilities: the union of all sets but the inheritable one. root: option of the
    mount of the root file system, "ro" or "rw".
    """

    user: str
    group: str
    capabilities: str
    no_new_privileges: str
    seccomp: str
    root: str


def process_of(status: Mapping[str, Any]) -> psutil.Process:
    """Return the first process of a container. status: from the status of its pod.

    Raises:
        AssertionError: it has none.
    """
    container_id = str(status.get("containerID", "")).rpartition("/")[2]
    inside = [
        process
        for process in psutil.process_iter()
        if container_id and container_id in cgroups(process)
    ]
    if not inside:
        raise AssertionError(f"no process of the container {status['name']}")
    return min(inside, key=lambda process: (process.create_time(), process.pid))


def cgroups(process: psutil.Process) -> str:
    """Return the cgroups of a process as the kernel lists them."""
    try:
        return pathlib.Path(f"/proc/{process.pid}/cgroup").read_text()
    except OSError:
        return ""


def permissions(process: psutil.Process) -> Permissions:
    """Return what the process of a container may do."""
    folder = pathlib.Path(f"/proc/{process.pid}")
    lines = (folder / "status").read_text().splitlines()
    status = {key: text.strip() for key, _, text in (x.partition(":") for x in lines)}
    mounts = [x.split() for x in (folder / "mounts").read_text().splitlines()]
    (root,) = (x for x in mounts if x[1] == "/")
    capabilities = 0
    for name in _CAPABILITIES:
        capabilities |= int(status[name], 16)
    return Permissions(
        user=" ".join(sorted(set(status["Uid"].split()))),
        group=" ".join(sorted(set(status["Gid"].split()))),
        capabilities=f"{capabilities:x}",
        no_new_privileges=status["NoNewPrivs"],
        seccomp=status["Seccomp"],
        root=root[3].split(",")[0],
    )


def bounding_set(pid: int) -> str:
    """Return the capabilities that a process can ever have, as `Permissions` has it."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(f"{int(x.split()[1], 16):x}" for x in lines if x.startswith("CapBnd:"))


def anonymous_bytes(process: psutil.Process) -> int:
    """Return the memory of a container's cgroup that is not cache of files.

    Source: Linux Documentation/admin-guide, cgroup-v1/memory.rst (rss) and
    cgroup-v2.rst (anon).
    """
    for line in cgroups(process).splitlines():
        _, controllers, path = line.split(":", 2)
        keys = {"": "anon", "memory": "rss"}
        if controllers in keys:
            prefix = f"/sys/fs/cgroup/{controllers}".rstrip("/")
            file = pathlib.Path(f"{prefix}{path}/memory.stat")
            if file.exists():
                rows = dict(x.split() for x in file.read_text().splitlines())
                return int(rows[keys[controllers]])
    raise AssertionError(f"no memory controller for process {process.pid}")


def quantity_bytes(text: str) -> int:
    """Return the bytes of a quantity of memory, such as "100Mi"."""
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    return int(text)

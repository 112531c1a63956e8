"""runc and the CNI plugins: the machine's own, else unpacked Debian packages.

They are not built from Go modules: runc needs C, and every distribution has both.
"""

import dataclasses
import pathlib
import shutil
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import debian_trees
from lib.lab.run import progress

_PACKAGES = ("runc", "containernetworking-plugins")
_CNI_FOLDERS = ("opt/cni/bin", "usr/lib/cni", "usr/libexec/cni")
_CNI_NEEDED = ("bridge", "host-local", "loopback")


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """Where runc is, and the folder of the CNI plugins."""

    runc: pathlib.Path
    cni: pathlib.Path


def _unpacked(where: places.Places) -> pathlib.Path:
    return where.cache / "debian"


def find(where: places.Places, env: Mapping[str, str]) -> Tools | None:
    """Return the tools that are here already; None when any is missing."""
    own = _unpacked(where)
    runcs = [own / "usr/sbin/runc", own / "usr/bin/runc"]
    if on_path := shutil.which("runc", path=env.get("PATH")):
        runcs.insert(0, pathlib.Path(on_path))
    runc = next((file for file in runcs if file.exists()), None)
    folders = [
        root / name for root in (pathlib.Path("/"), own) for name in _CNI_FOLDERS
    ]
    complete = (
        folder
        for folder in folders
        if all((folder / plugin).exists() for plugin in _CNI_NEEDED)
    )
    cni = next(complete, None)
    return Tools(runc, cni) if runc is not None and cni is not None else None


def can_fetch(env: Mapping[str, str]) -> bool:
    """Report whether this machine can download and unpack Debian packages."""
    needed = ("apt-get", "dpkg-deb")
    return all(shutil.which(tool, path=env.get("PATH")) for tool in needed)


def fetch(
    where: places.Places, env: Mapping[str, str], step: progress.ProgressStep
) -> None:
    """Download and unpack the tools if they are missing, installing nothing.

    Raises:
        LabError: they cannot be downloaded, or lack a program.
    """
    if find(where, env) is not None:
        return
    step.note(f"downloading {' and '.join(_PACKAGES)}")
    debian_trees.unpack(_unpacked(where), lambda options, env: _PACKAGES, env, step)
    if find(where, env) is None:
        raise errors.LabError(
            f"{' and '.join(_PACKAGES)} of this distribution lack what a node needs"
        )


def require(where: places.Places, env: Mapping[str, str]) -> Tools:
    """Return the tools. Nothing is fetched: a node may have no network to do so.

    Raises:
        LabError: they are missing.
    """
    tools = find(where, env)
    if tools is None:
        raise errors.LabError(
            f"{' and '.join(_PACKAGES)} are missing: `mooring lab build --node` fetches"
            " them"
        )
    return tools

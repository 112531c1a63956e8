"""runc and the CNI plugins: the machine's own, else unpacked Debian packages.

They are not built from Go modules: runc needs C, and every distribution has both.
"""

import dataclasses
import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import commands
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


def ensure(
    where: places.Places, env: Mapping[str, str], step: progress.ProgressStep
) -> Tools:
    """Return the tools; download and unpack them, installing nothing, if need be.

    Raises:
        LabError: they are missing and not available.
    """
    tools = find(where, env)
    if tools is not None:
        return tools
    step.note(f"downloading {' and '.join(_PACKAGES)}")
    where.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where.cache, prefix=".new-") as scratch:
        room = pathlib.Path(scratch)
        # apt downloads as a user of its own where it can.
        room.chmod(0o755)
        commands.run(
            ["apt-get", "download", "--quiet", *_PACKAGES],
            failure=f"cannot download {' and '.join(_PACKAGES)}; run `apt-get update`,"
            " or install both",
            env=env,
            cwd=room,
        )
        for package in room.glob("*.deb"):
            commands.run(
                ["dpkg-deb", "--extract", str(package), str(room / "all")],
                failure=f"cannot unpack {package.name}",
                env=env,
            )
        shutil.rmtree(_unpacked(where), ignore_errors=True)
        os.replace(room / "all", _unpacked(where))
    tools = find(where, env)
    if tools is None:
        raise errors.LabError(
            f"{' and '.join(_PACKAGES)} of this distribution lack what a node needs"
        )
    return tools

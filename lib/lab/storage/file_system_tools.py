"""mkfs and the other programs of XFS and Btrfs: unpacked Debian packages.

Nothing is installed: the packages, and what they require that the machine lacks, are
downloaded and verified by apt, and unpacked into the lab's cache. A machine that has
all programs uses its own.
"""

import os
import pathlib
import shutil
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import debian, debian_trees
from lib.lab.run import progress

PACKAGES = ("xfsprogs", "btrfs-progs")
PROGRAMS = ("mkfs.xfs", "xfs_growfs", "mkfs.btrfs", "btrfs")
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_FOLDERS = ("usr/sbin", "sbin", "usr/bin", "bin")


def environment(where: places.Places, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` with a PATH and libraries by which the programs are found."""
    tree = _tree(where)
    path = [env.get("PATH", os.defpath), *_SBIN]
    if not tree.is_dir():
        return {**env, "PATH": os.pathsep.join(path)}
    folders = [str(tree / name) for name in _FOLDERS]
    with_path = {**env, "PATH": os.pathsep.join([*path, *folders])}
    return debian.environment(tree, with_path)


def ensure(
    where: places.Places, env: Mapping[str, str], step: progress.ProgressStep
) -> None:
    """Unpack the packages, unless every program is found.

    Raises:
        LabError: they cannot be downloaded, or do not run.
    """
    if _have_all(environment(where, env)):
        return
    step.note(f"downloading {' and '.join(PACKAGES)}")
    debian_trees.unpack(_tree(where), debian_trees.with_missing(*PACKAGES), env, step)
    if not _have_all(environment(where, env)):
        raise errors.LabError(
            f"{' and '.join(PACKAGES)} of this distribution lack a program:"
            f" {', '.join(PROGRAMS)} are required"
        )


def _tree(where: places.Places) -> pathlib.Path:
    return where.cache / "file-systems"


def _have_all(env: Mapping[str, str]) -> bool:
    return all(shutil.which(program, path=env["PATH"]) for program in PROGRAMS)

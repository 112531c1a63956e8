"""mkfs and the other programs of XFS and Btrfs: unpacked Debian packages.

Nothing is installed: the packages, and what they require that the machine lacks, are
downloaded and verified by apt, and unpacked into the lab's cache. A machine that has
all programs uses its own.
"""

import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import commands, debian
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
    where.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where.cache, prefix=".new-") as scratch:
        folder = pathlib.Path(scratch)
        # apt downloads as a user of its own where it can.
        folder.chmod(0o755)
        try:
            _download(folder, (), env, step)
        except errors.LabError:
            step.note("package lists")
            options = debian.private_lists(folder)
            debian.output(["apt-get", *options, "update"], env)
            _download(folder, options, env, step)
        for package in sorted(folder.glob("*.deb")):
            words = ["dpkg-deb", "--extract", str(package), str(folder / "all")]
            commands.run(words, failure=f"cannot unpack {package.name}", env=env)
        shutil.rmtree(_tree(where), ignore_errors=True)
        os.replace(folder / "all", _tree(where))
    if not _have_all(environment(where, env)):
        raise errors.LabError(
            f"{' and '.join(PACKAGES)} of this distribution lack a program:"
            f" {', '.join(PROGRAMS)} are required"
        )


def _tree(where: places.Places) -> pathlib.Path:
    return where.cache / "file-systems"


def _have_all(env: Mapping[str, str]) -> bool:
    return all(shutil.which(program, path=env["PATH"]) for program in PROGRAMS)


def _download(
    folder: pathlib.Path,
    options: tuple[str, ...],
    env: Mapping[str, str],
    step: progress.ProgressStep,
) -> None:
    """Download the packages, and those they require which the system lacks."""
    step.note(f"downloading {' and '.join(PACKAGES)}")
    simulate = ["apt-get", *options, "--simulate", "--no-install-recommends"]
    lines = debian.output([*simulate, "install", *PACKAGES], env)
    names = dict.fromkeys((*PACKAGES, *debian.newly_installed(lines)))
    commands.run(
        ["apt-get", *options, "download", "--quiet", *names],
        failure=f"cannot download {' and '.join(PACKAGES)}; install both",
        env=env,
        cwd=folder,
    )

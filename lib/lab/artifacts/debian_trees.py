"""Trees of unpacked Debian packages: programs that are run without installing them.

Source of trust: apt verifies each package by the signatures of its archive.
"""

import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence

from lib.lab import errors
from lib.lab.artifacts import commands, debian
from lib.lab.run import progress

Choose = Callable[[Sequence[str], Mapping[str, str]], Sequence[str]]
"""Returns the packages of a tree. Arguments: options of apt, environment."""


def unpack(
    tree: pathlib.Path,
    choose: Choose,
    env: Mapping[str, str],
    step: progress.ProgressStep,
) -> None:
    """Download packages and unpack them; the tree appears when it is complete.

    The system's package lists are used; if they do not suffice, lists of our own.

    Raises:
        LabError: they cannot be downloaded.
    """
    tree.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent, prefix=".new-") as scratch:
        folder = pathlib.Path(scratch)
        # apt downloads as a user of its own where it can.
        folder.chmod(0o755)
        try:
            _download(folder, choose, (), env)
        except errors.LabError:
            step.note("package lists")
            options = debian.private_lists(folder)
            debian.output(["apt-get", *options, "update"], env, "package lists")
            _download(folder, choose, options, env)
        for package in sorted(folder.glob("*.deb")):
            step.note(package.name.partition("_")[0])
            words = ["dpkg-deb", "--extract", str(package), str(folder / "all")]
            commands.run(words, failure=f"cannot unpack {package.name}", env=env)
        shutil.rmtree(tree, ignore_errors=True)
        os.replace(folder / "all", tree)


def with_missing(*packages: str) -> Choose:
    """Choose packages, and those which they require and this machine lacks."""

    def choose(options: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
        simulate = ["apt-get", *options, "--simulate", "--no-install-recommends"]
        lines = debian.output(
            [*simulate, "install", *packages], env, " and ".join(packages)
        )
        return tuple(dict.fromkeys((*packages, *debian.newly_installed(lines))))

    return choose


def _download(
    folder: pathlib.Path,
    choose: Choose,
    options: Sequence[str],
    env: Mapping[str, str],
) -> None:
    names = choose(options, env)
    commands.run(
        ["apt-get", *options, "download", "--quiet", *names],
        failure=f"cannot download {', '.join(names)}; is the package mirror reachable?",
        env=env,
        cwd=folder,
    )

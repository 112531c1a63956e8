"""Unpacks MariaDB from the distribution's own packages, without installing them.

Works as any user: where the system's package lists are missing or out of date, lists
of our own are fetched beside the tree.
"""

import contextlib
import os
import pathlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence

from lib.lab import errors
from lib.lab.artifacts import commands
from lib.lab.run import progress

_STEMS = ("mariadb-server-core", "mariadb-client-core", "mariadb-server")
MARIADB = "MariaDB's packages"


def unreachable(what: str) -> str:
    """Return the message of a failed download. what: the packages in words."""
    return (
        f"{what} could not be downloaded with apt-get; is the package mirror within"
        " reach (proxy, /etc/apt)?"
    )


def require(env: Mapping[str, str]) -> None:
    """See that this is a system whose packages we know how to use.

    Raises:
        LabError: it is not.
    """
    for program in ("apt-get", "apt-cache", "dpkg"):
        if shutil.which(program, path=env.get("PATH")) is None:
            raise errors.LabError(
                f"the lab needs {program} to fetch MariaDB: it runs on Debian and"
                " Ubuntu only; use such a machine or container"
            )


def unpack(
    tree: pathlib.Path, env: Mapping[str, str], step: progress.ProgressStep
) -> None:
    """Make `tree` hold a MariaDB server and its libraries; it appears when complete.

    Raises:
        LabError: no mirror can be reached, or the server does not run.
    """
    packages = tree.with_name(f"{tree.name}-packages")
    part = tree.with_name(f"{tree.name}.new")
    shutil.rmtree(part, ignore_errors=True)
    _download(packages, env, step)
    for file in sorted(packages.glob("*.deb")):
        step.note(file.name.partition("_")[0])
        commands.run(
            ["dpkg", "-x", file, part],
            failure=f"{file.name} could not be unpacked",
            env=env,
        )
    _check(part, env)
    part.replace(tree)
    shutil.rmtree(packages, ignore_errors=True)


def environment(tree: pathlib.Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` with the libraries of the tree."""
    folders = [*tree.glob("usr/lib/*-linux-gnu*"), *tree.glob("lib/*-linux-gnu*")]
    return {**env, "LD_LIBRARY_PATH": os.pathsep.join(map(str, sorted(folders)))}


def server_packages(known: Iterable[str]) -> tuple[str, ...]:
    """Return the packages that hold the server; empty when the lists have none.

    Older Ubuntu has the version in their names ("mariadb-server-core-10.6"), and
    `mariadb-server` is an empty package there.
    """
    names = frozenset(known)
    if _STEMS[0] in names:
        return tuple(stem for stem in _STEMS if stem in names)
    pattern = re.compile(rf"{_STEMS[0]}-(\d+)\.(\d+)")
    versions = [match for name in names if (match := pattern.fullmatch(name))]
    if not versions:
        return ()
    newest = max(versions, key=lambda match: (int(match[1]), int(match[2])))
    suffix = f"-{newest[1]}.{newest[2]}"
    return tuple(f"{stem}{suffix}" for stem in _STEMS if f"{stem}{suffix}" in names)


def newly_installed(simulation: Iterable[str]) -> tuple[str, ...]:
    """Return the packages that `apt-get --simulate install` would add.

    Source: apt-get(8), option --simulate: lines "Inst NAME [old] (new ...)"; those
    with an old version in brackets are only upgrades.
    """
    matches = (re.match(r"Inst ([^\s:]+)(?::\S+)? \(", line) for line in simulation)
    return tuple(match[1] for match in matches if match)


def _download(
    folder: pathlib.Path, env: Mapping[str, str], step: progress.ProgressStep
) -> None:
    """Try with the system's package lists, then with fresh ones of our own."""
    step.note("package lists")
    with contextlib.suppress(errors.LabError):
        _fetch(folder, (), env, step)
        return
    lists = folder.with_name(f"{folder.name}-lists")
    options = private_lists(lists)
    # A repository that fails is no matter, as long as the packages are found.
    with contextlib.suppress(errors.LabError):
        step.note("refreshing package lists")
        commands.run(
            ["apt-get", *options, "update"], failure=unreachable(MARIADB), env=env
        )
    _fetch(folder, options, env, step)
    shutil.rmtree(lists, ignore_errors=True)


def private_lists(folder: pathlib.Path) -> tuple[str, ...]:
    """Return apt's options to keep its lists in `folder` instead of the system's.

    Source: apt.conf(5), "Directories".
    """
    for needed in ("lists/partial", "cache/archives/partial"):
        (folder / needed).mkdir(parents=True, exist_ok=True)
    return (
        f"-oDir::State::Lists={folder / 'lists'}",
        f"-oDir::Cache={folder / 'cache'}",
        "-oAPT::Sandbox::User=root",
    )


def _fetch(
    folder: pathlib.Path,
    options: Sequence[str],
    env: Mapping[str, str],
    step: progress.ProgressStep,
) -> None:
    """Download the server's packages, and those it needs which the system lacks."""
    roots = server_packages(
        output(["apt-cache", *options, "pkgnames", "mariadb-"], env, MARIADB)
    )
    if not roots:
        raise errors.LabError(unreachable(MARIADB))
    # `mariadb-server` itself is wanted for its files only: it needs much that we don't.
    cores = [name for name in roots if "core" in name]
    simulate = ["apt-get", *options, "--simulate", "--no-install-recommends"]
    needed: tuple[str, ...] = ()
    with contextlib.suppress(errors.LabError):
        needed = newly_installed(output([*simulate, "install", *cores], env, MARIADB))
    step.note("packages")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = dict.fromkeys((*roots, *needed))
    commands.run(
        ["apt-get", *options, "download", *names],
        failure=unreachable(MARIADB),
        env=env,
        cwd=folder,
    )


def output(
    arguments: Sequence[str | os.PathLike[str]], env: Mapping[str, str], what: str
) -> list[str]:
    """Return the lines that one of apt's commands prints. what: packages in words.

    Raises:
        LabError: it failed.
    """
    lines: list[str] = []
    commands.run(
        arguments,
        failure=unreachable(what),
        env={**env, "LC_ALL": "C"},
        on_line=lines.append,
    )
    return lines


def _check(tree: pathlib.Path, env: Mapping[str, str]) -> None:
    """See that server and client find their libraries."""
    for program in ("usr/sbin/mariadbd", "usr/bin/mariadb"):
        commands.run(
            [tree / program, "--no-defaults", "--version"],
            failure="the distribution's MariaDB does not run from its unpacked"
            " packages; a library is missing",
            env=environment(tree, env),
        )

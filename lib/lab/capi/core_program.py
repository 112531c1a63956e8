"""Builds the core manager of Cluster API from a pinned Go module, once per machine.

It is no group of `programs`: batches that do not start it keep their results when its
pin changes. The rules are those of `programs`: the program appears only when it
is complete, and a build waits for other builds into the same cache.

Beside the program is a copy of its definitions, roles and webhook configurations, so
that a start needs no Go.

Source: modules/cluster-api/go.mod and go.sum.
"""

import os
import pathlib
import shutil
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import commands, go_build, go_modules, go_toolchain
from lib.lab.run import progress

NAME = "cluster-api"
"""Of the program, of its module and of its log."""

_PACKAGE = "sigs.k8s.io/cluster-api/core"
_SOURCE = "sigs.k8s.io/cluster-api"
_CONFIG = "core/config"
_KEPT = ("crd/bases", "rbac", "webhook")


def path(where: places.Places) -> pathlib.Path:
    """Return the built program.

    Raises:
        LabError: it is not built yet.
    """
    built = _folder(where) / NAME
    if not built.exists():
        raise errors.LabError(
            f"{NAME} is not built yet; the long tier of the tests builds it once"
        )
    return built


def config(where: places.Places) -> pathlib.Path:
    """Return the folder of its manifests, as in core/config of its repository."""
    return _folder(where) / "config"


def build(
    where: places.Places,
    shown: progress.Progress,
    env: Mapping[str, str] | None = None,
) -> None:
    """Build the program unless it is there.

    env: the caller's environment, for PATH, GOPROXY, GOFLAGS and the like; the
    process's own when None.

    Raises:
        LabError: no Go toolchain, modules that cannot be fetched, or a failing build.
    """
    target = _folder(where)
    if (target / NAME).exists():
        return
    env = os.environ if env is None else env
    with go_build.alone(where, shown):
        if (target / NAME).exists():
            return
        files = go_modules.files(NAME)
        least = go_modules.least_go(files["go.mod"].decode())
        go = go_toolchain.ensure(where, least, env, shown)
        sources = go_build.write_sources(where, target.name, files)
        with shown.step(f"Build {NAME}") as step:
            _build(go, sources, target, go_toolchain.environment(where, env), step)


def _folder(where: places.Places) -> pathlib.Path:
    return go_modules.folder(where.cache, NAME)


def _build(
    go: pathlib.Path,
    sources: pathlib.Path,
    target: pathlib.Path,
    env: Mapping[str, str],
    step: progress.ProgressStep,
) -> None:
    """Fetch and compile; the program is moved to its place last."""
    scratch = target / ".new"
    for folder in (scratch, pathlib.Path(env["GOTMPDIR"])):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        module = _fetch(go, sources, env, step)
        flags = go_build.flags(go_modules.ldflags(NAME))
        commands.run(
            [go, "build", "-v", *flags, "-o", scratch / NAME, _PACKAGE],
            failure=f"cannot build {NAME}",
            env=env,
            cwd=sources,
            on_line=step.note,
        )
        shutil.rmtree(target / "config", ignore_errors=True)
        for part in _KEPT:
            shutil.copytree(module / _CONFIG / part, target / "config" / part)
        os.replace(scratch / NAME, target / NAME)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fetch(
    go: pathlib.Path,
    sources: pathlib.Path,
    env: Mapping[str, str],
    step: progress.ProgressStep,
) -> pathlib.Path:
    """Download the modules that are required; return the folder of Cluster API's."""
    folders: list[str] = []

    def note(line: str) -> None:
        if line.startswith("go: downloading "):
            step.note(line.removeprefix("go: "))
        elif line.startswith(f"{_SOURCE} "):
            folders.append(line.partition(" ")[2])

    form = "{{with .Module}}{{.Path}} {{.Dir}}{{end}}"
    commands.run(
        [go, "list", "-deps", "-mod=readonly", "-f", form, _PACKAGE],
        failure=f"cannot fetch the Go modules of {NAME}; check that GOPROXY names a"
        " module proxy that can be reached",
        env=env,
        cwd=sources,
        on_line=note,
    )
    return pathlib.Path(folders[-1])

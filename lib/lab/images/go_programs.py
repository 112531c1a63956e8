"""Go modules in a program, and the texts of their licences, from the module cache."""

import os
import pathlib
import re
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import commands, go_modules, go_toolchain, programs
from lib.lab.images import bill
from lib.lab.run import progress

_LICENCE_FILE = re.compile(r"(licen[cs]e|copying)(\.|$)", re.IGNORECASE)


def parts(
    where: places.Places, name: str, shown: progress.Progress
) -> tuple[tuple[bill.Part, str], ...]:
    """Return each module of one of the lab's programs, with the text of its licence.

    Raises:
        LabError: no Go toolchain, or a module has no licence.
    """
    least = go_modules.least_go(
        go_modules.files(go_modules.by_name(name).module)["go.mod"].decode()
    )
    go = go_toolchain.ensure(where, least, os.environ, shown)
    env = go_toolchain.environment(where, os.environ)
    lines: list[str] = []
    program = programs.path(where, name)
    commands.run(
        [go, "version", "-m", program],
        failure=f"the modules of {name} cannot be read",
        env=env,
        on_line=lines.append,
    )
    modules = bill.modules("\n".join(lines))
    cache = pathlib.Path(env["GOMODCACHE"])
    _download(go, modules, cache, env)
    rows = []
    for path, (version, go_sum) in sorted(modules.items()):
        text = _licence(cache, path, version)
        rows.append((bill.of_module(path, version, go_sum, text), text))
    return tuple(rows)


def _download(
    go: pathlib.Path,
    modules: Mapping[str, tuple[str, str]],
    cache: pathlib.Path,
    env: Mapping[str, str],
) -> None:
    """Fetch the modules that are no longer in the cache; their sums are verified."""
    missing = [
        f"{path}@{version}"
        for path, (version, _) in modules.items()
        if not _folder(cache, path, version).is_dir()
    ]
    if missing:
        commands.run(
            [go, "mod", "download", *missing],
            failure="the sources of Go modules, with their licences, cannot be fetched",
            env=env,
            cwd=cache,
        )


def _folder(cache: pathlib.Path, path: str, version: str) -> pathlib.Path:
    """Return where a module is unpacked. Source: Go Modules Reference, module cache."""
    escaped = re.sub(
        r"[A-Z]", lambda match: f"!{match[0].lower()}", f"{path}@{version}"
    )
    return cache / escaped


def _licence(cache: pathlib.Path, path: str, version: str) -> str:
    """Return the text of a module's licence, that of a folder above it if need be."""
    folder = _folder(cache, path, version)
    files = sorted(file for file in folder.iterdir() if _LICENCE_FILE.match(file.name))
    if not files:
        raise errors.LabError(f"{path} {version}: no licence text in the module")
    return "\n".join(file.read_text(errors="replace") for file in files)

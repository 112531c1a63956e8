"""The shared libraries that programs need, as the dynamic linker finds them here."""

import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterable

from lib.lab import errors

_LOADED = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_BY_NAME = ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2")
"""Opened by the C library itself, by name. Source: glibc, nsswitch.conf."""


def needed(files: Iterable[pathlib.Path]) -> dict[str, pathlib.Path]:
    """Return the libraries of programs and libraries, by path or name as they ask.

    The linker itself is asked for by its path ("/lib64/ld-linux-x86-64.so.2").

    Raises:
        LabError: a library is missing here, too.
    """
    libraries: dict[str, pathlib.Path] = {}
    for file in files:
        for name, path in _of(file):
            libraries[name or path] = pathlib.Path(path)
    folders = {
        path.resolve().parent for name, path in libraries.items() if "libc.so" in name
    }
    for folder in folders:
        for name in _BY_NAME:
            if (folder / name).exists():
                libraries.setdefault(name, folder / name)
    return libraries


def _of(file: pathlib.Path) -> list[tuple[str, str]]:
    done = subprocess.run(
        ["ldd", file], capture_output=True, text=True, check=False, timeout=60
    )
    if "not found" in done.stdout:
        missing = [
            line.strip() for line in done.stdout.splitlines() if "not found" in line
        ]
        raise errors.LabError(f"{file}: {'; '.join(missing)}")
    return _LOADED.findall(done.stdout)


def copy(libraries: dict[str, pathlib.Path], root: pathlib.Path) -> None:
    """Put libraries where a linker without configuration finds them."""
    for name, path in libraries.items():
        target = (
            root / name.lstrip("/") if name.startswith("/") else root / "lib" / name
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path.resolve(), target)
        target.chmod(0o755)

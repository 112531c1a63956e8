"""The root file system of a component's image.

Rules: everything in it is copied from what the tests run; nothing is downloaded. Only
folders that are mounted are written when it runs: all code is compiled beforehand.
"""

import os
import pathlib
import shutil
import stat
import sys
from collections.abc import Mapping

from lib.lab import errors
from lib.lab.artifacts import commands
from lib.lab.images import libraries
from lib.lab.images.description import Description

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
BIN, LIB = "usr/local/bin", f"usr/local/lib/{PYTHON}"
SCRATCH = "tmp"
"""The only folder that is written."""
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_NOT_COPIED = (
    *("site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo"),
    *("ensurepip", "lib2to3", "__pycache__", "config-*", "*.a", "pydoc_data"),
    *("_tkinter*", "_test*", "_ctypes_test*", "_curses*", "readline*"),
)
"""Of the standard library."""
_NSSWITCH = "hosts: files dns\n"
_LAUNCHER = """#!/{bin}/{python} -IB
from {module} import {function}

{function}()
"""


def build(
    root: pathlib.Path,
    described: Description,
    pex: pathlib.Path,
    programs: Mapping[str, pathlib.Path],
) -> None:
    """Fill an empty folder. programs: the file of each of the image's programs.

    Raises:
        LabError: something of it is missing or cannot be unpacked.
    """
    (root / BIN).mkdir(parents=True)
    _copy_python(root)
    _unpack(root, pex)
    for name, file in programs.items():
        shutil.copyfile(file, root / BIN / name)
        (root / BIN / name).chmod(0o755)
    _write_launcher(root, described)
    _write_system(root, described)
    _compile(root)
    libraries.copy(libraries.needed(_binaries(root)), root)


def _copy_python(root: pathlib.Path) -> None:
    base = pathlib.Path(sys.base_prefix)
    program = base / "bin" / PYTHON
    if not program.exists():
        raise errors.LabError(f"{program} does not exist: the image has its Python")
    shutil.copyfile(program.resolve(), root / BIN / PYTHON)
    (root / BIN / PYTHON).chmod(0o755)
    ignore = shutil.ignore_patterns(*_NOT_COPIED)
    shutil.copytree(base / "lib" / PYTHON, root / LIB, ignore=ignore, symlinks=False)


def _unpack(root: pathlib.Path, pex: pathlib.Path) -> None:
    """Put the packages of a PEX beside the standard library."""
    venv = root.with_name(f"{root.name}-venv")
    shutil.rmtree(venv, ignore_errors=True)
    tool = pathlib.Path(sys.base_prefix) / "bin" / PYTHON
    try:
        commands.run(
            [tool, pex, "venv", "--copies", venv],
            failure=f"{pex.name} cannot be unpacked",
            env={"PATH": os.defpath, "PEX_TOOLS": "1", "HOME": str(venv.parent)},
        )
        packages = venv / "lib" / PYTHON / "site-packages"
        ignore = shutil.ignore_patterns("__pycache__", "pex", "pex-*")
        shutil.copytree(packages, root / LIB / "site-packages", ignore=ignore)
    finally:
        shutil.rmtree(venv, ignore_errors=True)


def _write_launcher(root: pathlib.Path, described: Description) -> None:
    module, _, function = described.main.partition(":")
    launcher = root / BIN / described.pex
    launcher.write_text(
        _LAUNCHER.format(bin=BIN, python=PYTHON, module=module, function=function)
    )
    launcher.chmod(0o755)


def _write_system(root: pathlib.Path, described: Description) -> None:
    """Write what libraries read of a system: users, names, authorities."""
    number = described.user
    files = {
        "etc/passwd": f"{described.pex}:x:{number}:{number}::/{SCRATCH}:/nonexistent\n",
        "etc/group": f"{described.pex}:x:{number}:\n",
        "etc/nsswitch.conf": _NSSWITCH,
        "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for folder in (
        "tmp",
        "proc",
        "sys",
        "dev",
        *(x.lstrip("/") for x in described.folders),
    ):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / SCRATCH).chmod(0o1777)
    authorities = pathlib.Path("/", CERTIFICATES)
    if not authorities.exists():
        raise errors.LabError(f"{authorities} does not exist: install ca-certificates")
    (root / CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(authorities, root / CERTIFICATES)


def _compile(root: pathlib.Path) -> None:
    """Compile all modules; they are never checked for being newer."""
    commands.run(
        [
            *(sys.executable, "-m", "compileall", "-q", "-j", "0"),
            *("--invalidation-mode", "unchecked-hash"),
            *("-s", root, "-p", "/", root / LIB),
        ],
        failure="the image's modules cannot be compiled",
        env={"PATH": os.defpath, "PYTHONHASHSEED": "0"},
    )


def _binaries(root: pathlib.Path) -> list[pathlib.Path]:
    """Return the programs and libraries in a folder."""
    return [file for file in sorted(root.rglob("*")) if _is_binary(file)]


def _is_binary(file: pathlib.Path) -> bool:
    if not file.is_file() or file.is_symlink():
        return False
    is_program = bool(file.stat().st_mode & stat.S_IXUSR) or ".so" in file.name
    if not is_program:
        return False
    with file.open("rb") as content:
        return content.read(4) == b"\x7fELF"

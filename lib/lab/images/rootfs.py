"""Files of an image, one folder for each layer.

base: Debian packages, shared by all images. tools: further packages of one image.
distributions: third-party packages of Python, and programs of Go modules. project:
code of this project, the entry point and the user. Nothing is written when it runs
but what is mounted: all code is compiled beforehand.
"""

import fnmatch
import os
import pathlib
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable, Mapping, Sequence

from lib.lab import errors
from lib.lab.images import debian_package
from lib.lab.images.debian_package import DebianPackage, PackageFile
from lib.lab.images.description import Description, Packages
from lib.lab.images.interpreter import PYTHON

PACKAGES = f"usr/local/lib/{PYTHON}/dist-packages"
PROJECT = "usr/lib/mooring"
BIN = "usr/local/bin"
SCRATCH = "tmp"
"""The only folder that is written."""
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
LICENCES = "usr/share/doc"
SEARCH = ("/usr/local/bin", "/usr/bin", "/usr/sbin")
"""Folders of PATH."""
_STATUS = "var/lib/dpkg/status.d"
"""Where scanners find the packages of an image without dpkg."""
_KEPT = (
    *(
        "usr/lib/*",
        "usr/lib64/*",
        "usr/share/zoneinfo/*",
        "usr/share/common-licenses/*",
    ),
    *("usr/share/ca-certificates/*", "usr/share/doc/*/copyright"),
    *("etc/os-release", "etc/debian_version", "etc/mke2fs.conf"),
)
_DROPPED = (
    *(
        "usr/lib/*/gconv/*",
        "usr/lib/*/engines-3/*",
        "usr/lib/systemd/*",
        "usr/lib/udev/*",
    ),
    *("usr/lib/*/perl*", "usr/lib/*/audit/*", "usr/lib/*/e2initrd_helper"),
    *("usr/lib/initramfs-tools/*", "usr/lib/mime/*", "usr/lib/valgrind/*"),
    *("usr/lib/btrfs-progs/*", "usr/lib/xfsprogs/*", "usr/lib/*/e2fsprogs/*"),
    # libxml2 uses the other libraries of ICU.
    *(f"usr/lib/*/libicu{name}.so.*" for name in ("i18n", "io", "test", "tu")),
    *("usr/lib/tmpfiles.d/*", "usr/lib/sysctl.d/*", "usr/lib/e2fsprogs/*"),
    *("usr/lib/locale/*", "usr/share/zoneinfo/right/*", "usr/share/zoneinfo/posix/*"),
    *(
        f"usr/lib/{PYTHON}/{name}/*"
        for name in ("config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data")
    ),
    *(f"usr/lib/{PYTHON}/{name}/*" for name in ("test", "tkinter", "turtledemo")),
    *(
        f"usr/lib/{PYTHON}/lib-dynload/{name}.*.so"
        for name in ("_bsddb", "_curses", "_curses_panel", "_dbm", "_gdbm", "_sqlite3")
    ),
    *(
        f"usr/lib/{PYTHON}/lib-dynload/{name}.*.so"
        for name in (
            "_test*",
            "_tkinter",
            "_xxtestfuzz",
            "nis",
            "readline",
            "xxlimited*",
        )
    ),
    f"usr/lib/{PYTHON}/sitecustomize.py",
)
_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_FOLDERS = ("dev", "etc", "proc", "run", "sys", "var/tmp")
_NSSWITCH = "hosts: files dns\n"
_DOCUMENTATION = re.compile(r"usr/share/doc/[^/]+$")
"""A link to the documentation of another package, which has the licence text."""
_NOT_CODE = (".bootstrap/", ".deps/", "__pex__/", "__main__.py", "PEX-INFO")
"""Of a PEX: what starts it, and its distributions."""
_PEX_LAYOUT = ".layout.json"
_LAUNCHER = """#!/usr/bin/{python} -IB
import sys

sys.path.insert(0, "/{project}")
from {module} import {function}

{function}()
"""
_VERSION = re.compile(r'^VERSION = "([^"]+)"$', re.MULTILINE)


def write_base(
    root: pathlib.Path, packages: Sequence[DebianPackage], kept: Packages
) -> None:
    """Fill an empty folder with the layer that all images share.

    Raises:
        LabError: a package lacks a program or the certificates.
    """
    for folder in (*_FOLDERS, *_MERGED.values()):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for link, target in _MERGED.items():
        (root / link).symlink_to(target)
    (root / SCRATCH).mkdir()
    (root / SCRATCH).chmod(0o1777)
    write_packages(root, packages, kept)
    _write_certificates(root)
    _write(root, "etc/nsswitch.conf", _NSSWITCH)
    _write(root, "etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    (root / "usr/bin/python3").symlink_to(PYTHON)


def write_packages(
    root: pathlib.Path, packages: Iterable[DebianPackage], kept: Packages
) -> None:
    """Write libraries, data, licence texts and some programs of packages.

    kept: the programs, by package.

    Raises:
        LabError: a package lacks one of its programs.
    """
    for package in packages:
        programs = {*kept[package.name]}
        for file in package.files():
            name = file.path.rpartition("/")[2]
            is_program = file.path.startswith(("usr/bin/", "usr/sbin/"))
            is_documentation = bool(file.link and _DOCUMENTATION.match(file.path))
            is_kept = is_documentation or _is_kept(file.path)
            if is_kept or (is_program and name in programs):
                _place(root, file)
                programs.discard(name)
        if programs:
            raise errors.LabError(
                f"{package.name} {package.version}: {', '.join(sorted(programs))}:"
                " not found in the package"
            )
        _write(root, f"{_STATUS}/{package.name}", package.text)


def _is_kept(path: str) -> bool:
    def matches(patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)

    return matches(_KEPT) and not matches(_DROPPED)


def _place(root: pathlib.Path, file: PackageFile) -> None:
    target = root / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.link:
        target.unlink(missing_ok=True)
        target.symlink_to(_link(file))
    else:
        target.write_bytes(file.content)
        target.chmod(0o755 if file.is_executable else 0o644)


def _link(file: PackageFile) -> str:
    """Return the target of a link; absolute ones are those of a merged /usr."""
    if file.link.startswith("/"):
        return f"/{debian_package.merged(file.link[1:])}"
    return file.link


def _write_certificates(root: pathlib.Path) -> None:
    """Join the authorities into one file, as update-ca-certificates does."""
    folder = root / "usr/share/ca-certificates"
    files = sorted(folder.rglob("*.crt"))
    if not files:
        raise errors.LabError("ca-certificates: not in the packages of the base")
    text = "".join(f"{file.read_text().rstrip()}\n" for file in files)
    _write(root, CERTIFICATES, text)
    shutil.rmtree(folder)
    (root / "usr/lib/ssl").mkdir()
    for link, target in (("certs", "etc/ssl/certs"), ("cert.pem", CERTIFICATES)):
        (root / "usr/lib/ssl" / link).symlink_to(f"/{target}")


def wheels(pex: pathlib.Path) -> tuple[str, ...]:
    """Return the names of the third-party distributions of a PEX."""
    with zipfile.ZipFile(pex) as archive:
        names = {name.split("/")[1] for name in archive.namelist() if _is_wheel(name)}
    return tuple(sorted(names))


def unpack_wheel(root: pathlib.Path, pex: pathlib.Path, wheel: str) -> None:
    """Fill an empty folder with a distribution of a PEX, as an image has it."""
    with zipfile.ZipFile(pex) as archive:
        for name in archive.namelist():
            if name.startswith(f".deps/{wheel}/") and _is_wheel(name):
                _extract(archive, name, root / PACKAGES / name.split("/", 2)[2])


def join(root: pathlib.Path, part: pathlib.Path) -> None:
    """Add the files of a folder to another, as links to the same files."""
    shutil.copytree(part, root, copy_function=os.link, dirs_exist_ok=True)


def write_programs(root: pathlib.Path, programs: Mapping[str, pathlib.Path]) -> None:
    """Copy programs of Go modules. programs: their files by name."""
    for name, file in programs.items():
        target = root / BIN / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        target.chmod(0o755)


def write_project(
    root: pathlib.Path,
    described: Description,
    pex: pathlib.Path,
    licences: Mapping[str, bytes],
) -> None:
    """Unpack the project's own code of a PEX, and write entry point and user.

    licences: texts of the project, by name.
    """
    with zipfile.ZipFile(pex) as archive:
        for name in archive.namelist():
            if not name.startswith(_NOT_CODE) and not name.endswith("/"):
                _extract(archive, name, root / PROJECT / name)
    module, _, function = described.main.partition(":")
    launcher = _LAUNCHER.format(
        python=PYTHON, project=PROJECT, module=module, function=function
    )
    _write(root, f"{BIN}/{described.pex}", launcher, mode=0o755)
    number, name = described.user, described.pex
    shell = f"{number}:{number}::/{SCRATCH}:/nonexistent"
    _write(root, "etc/passwd", f"{'root' if number == 0 else name}:x:{shell}\n")
    _write(root, "etc/group", f"{'root' if number == 0 else name}:x:{number}:\n")
    for folder in described.folders:
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for title, text in licences.items():
        target = root / LICENCES / "mooring" / title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)


def copyright_of(roots: Sequence[pathlib.Path], package: str) -> str:
    """Return the licence text of a Debian package. roots: of the image's layers.

    Raises:
        LabError: the image does not contain it.
    """
    name = package
    for root in roots:
        link = root / LICENCES / package
        if link.is_symlink():
            name = link.readlink().name
    for root in roots:
        file = root / LICENCES / name / "copyright"
        if file.is_file():
            return file.read_text(errors="replace")
    raise errors.LabError(f"{package}: no licence text in the image")


def write_licence(root: pathlib.Path, name: str, text: str) -> None:
    """Write the licence text of a part that is neither a package nor of Python."""
    _write(root, f"{LICENCES}/{name}/LICENSE", text)


def version(pex: pathlib.Path, described: Description) -> str:
    """Return the version of a component, as its PEX has it.

    Raises:
        LabError: it has none.
    """
    module = described.main.partition(".")[0]
    with zipfile.ZipFile(pex) as archive:
        try:
            text = archive.read(f"{module}/version.py").decode()
        except KeyError:
            text = ""
    matched = _VERSION.search(text)
    if matched is None:
        raise errors.LabError(f"{pex.name}: no version in {module}/version.py")
    return matched[1]


def _is_wheel(name: str) -> bool:
    """Report whether a file of a PEX belongs to a distribution and to the image."""
    top, _, rest = name.partition("/")
    path = rest.partition("/")[2]
    is_left_out = "__pycache__" in path or path.startswith(("bin/", _PEX_LAYOUT))
    return top == ".deps" and path[-1:] not in ("", "/") and not is_left_out


def _extract(archive: zipfile.ZipFile, name: str, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(archive.read(name))


def _write(root: pathlib.Path, name: str, text: str, mode: int = 0o644) -> None:
    target = root / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    target.chmod(mode)


def binaries(root: pathlib.Path) -> list[pathlib.Path]:
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

"""Pinned Python of the image, run on the building machine.

It is started by the loader of the same packages, so that neither bytecode nor
compression depend on the programs of the building machine.
"""

import dataclasses
import os
import pathlib
import platform
import re
import subprocess
import tempfile
from collections.abc import Iterable

from lib.lab import errors
from lib.lab.artifacts import commands

PYTHON = "python3.11"
"""CPython of Debian 12."""
_LOADERS = {
    "x86_64": "usr/lib64/ld-linux-x86-64.so.2",
    "aarch64": "usr/lib/ld-linux-aarch64.so.1",
}
_CHECK_S = 900
_COMPILE = """
import py_compile, sys
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
root, names = sys.argv[1], open(sys.argv[2], encoding="utf-8").read().splitlines()
for name in names:
    try:
        py_compile.compile(f"{root}/{name}", dfile=f"/{name}", doraise=True,
                           invalidation_mode=mode)
    except py_compile.PyCompileError:
        print(name)
"""
_COMPRESS = """
import gzip, shutil, sys
with open(sys.argv[1], "rb") as source, open(sys.argv[2], "wb") as raw:
    with gzip.GzipFile("", "wb", 6, raw, mtime=0) as target:
        shutil.copyfileobj(source, target, 1 << 20)
"""
_RESOLVED = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Interpreter:
    """Python in the unpacked base of an image. base: its folder."""

    base: pathlib.Path

    @property
    def libraries(self) -> pathlib.Path:
        """Return the folder of its shared libraries."""
        return self.base / f"usr/lib/{platform.machine()}-linux-gnu"

    def loader(self, path: str = "") -> tuple[str, ...]:
        """Return the words that start a program of the base. path: more folders."""
        loader = self.base / _LOADERS[platform.machine()]
        search = os.pathsep.join(filter(None, (str(self.libraries), path)))
        return (str(loader), "--inhibit-cache", "--library-path", search)

    def run(self, code: str, *arguments: str | pathlib.Path, failure: str) -> list[str]:
        """Run code, and return the lines that it prints.

        Raises:
            LabError: it failed.
        """
        lines: list[str] = []
        program = str(self.base / "usr/bin" / PYTHON)
        commands.run(
            [*self.loader(), program, "-ISB", "-c", code, *map(str, arguments)],
            failure=failure,
            env={"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
            on_line=lines.append,
        )
        return lines

    def compile(self, root: pathlib.Path) -> tuple[str, ...]:
        """Compile all modules below a folder; return those that are not Python 3.11.

        The result is never compared with its source. One process compiles them all in
        their order: what it has compiled before decides the references in bytecode.

        Raises:
            LabError: the interpreter does not run.
        """
        names = sorted(str(file.relative_to(root)) for file in root.rglob("*.py"))
        if not names:
            return ()
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as listed:
            listed.write("\n".join(names))
            listed.flush()
            failure = "the modules of an image cannot be compiled"
            return tuple(self.run(_COMPILE, root, listed.name, failure=failure))

    def compress(self, source: pathlib.Path, target: pathlib.Path) -> None:
        """Write a gzip file without name and time.

        Raises:
            LabError: it failed.
        """
        self.run(_COMPRESS, source, target, failure="a layer cannot be compressed")

    def require_libraries(
        self, binaries: Iterable[pathlib.Path], *roots: pathlib.Path
    ) -> None:
        """Check that programs and libraries load only libraries of the image.

        roots: folders of its other layers.

        Raises:
            LabError: a library is missing.
        """
        folders = [root / f"usr/lib/{platform.machine()}-linux-gnu" for root in roots]
        search = os.pathsep.join(map(str, folders))
        for file in binaries:
            done = subprocess.run(
                [*self.loader(search), "--list", file],
                capture_output=True,
                text=True,
                check=False,
                timeout=_CHECK_S,
                env={"LC_ALL": "C"},
            )
            text = done.stdout + done.stderr
            inside = (str(self.base), *map(str, roots))
            outside = [
                path for path in _RESOLVED.findall(text) if not path.startswith(inside)
            ]
            if "not found" in text or "cannot open" in text or outside:
                raise errors.LabError(
                    f"{file.name}: a shared library is missing in the image:"
                    f" {'; '.join(outside) or text.strip()}"
                )

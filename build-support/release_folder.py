"""Writes the folder of a release, which is uploaded as it is.

  ./pants run build-support/release_folder.py -- FOLDER --sign-key KEY --keyring FILE

Contents: each program as NAME.pex, images/ (layouts, archives, bills of materials),
charts/ (packages, with a provenance file each), the lab's programs for
MOORING_LAB_PROGRAMS, bills of materials of programs and archive, NOTES.md, SHA256SUMS.
Nothing is uploaded, and nothing is written to the repository. build-support/release.py
reports whether a component may be released.

Standard library only.
"""

import argparse
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path()
MODULES = "lib/lab/artifacts/modules"
SUMS = "SHA256SUMS"
TIMEOUT_S = 3600.0
_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
_ENTRY = re.compile(r"^## .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_REQUIREMENT = re.compile(
    r"^\t?(?:require )?(\S+\.\S+/\S+|\S+\.\S+) (v\S+)", re.MULTILINE
)


class FolderError(Exception):
    """A command failed, or an argument is invalid. The text is for the user."""


def components(root: pathlib.Path) -> list[str]:
    """Return the components that have a changelog."""
    files = root.glob("cmd/*/CHANGELOG.md")
    return sorted(file.parent.name.replace("_", "-") for file in files)


def archive_name() -> str:
    """Return the name of the archive of the lab's programs for this machine."""
    arch = _ARCH.get(platform.machine(), platform.machine())
    return f"lab-programs-linux-{arch}.tar.gz"


def build(root: pathlib.Path, folder: pathlib.Path, signing: Sequence[str]) -> None:
    """Build programs, images, charts and the archive into the folder.

    Raises:
        FolderError: a command failed.
    """
    lab = ("./pants", "run", "cmd/mooring", "--", "lab")
    names = components(root)
    targets = [f"cmd/{name.replace('-', '_')}:{name}" for name in names]
    run(root, "./pants", "package", *targets)
    for name in names:
        shutil.copyfile(root / "dist" / f"{name}.pex", folder / f"{name}.pex")
        (folder / f"{name}.pex").chmod(0o755)
    images = str(folder.absolute() / "images")
    run(root, *lab, "image", "--output", images)
    charts = str(folder.absolute() / "charts")
    run(root, *lab, "charts", "--package", charts, *signing)
    archive = str(folder.absolute() / archive_name())
    run(root, *lab, "build", "--cloud", "dvp")
    chosen = ("--charts", "--image-folder", images)
    run(root, *lab, "build", *chosen, "--archive", archive)


def finish(root: pathlib.Path, folder: pathlib.Path) -> None:
    """Write bills of materials, notes and checksums of what is in the folder."""
    for name in components(root):
        pex = folder / f"{name}.pex"
        if pex.exists():
            write_bill(pex, name, list(distributions(pex)))
    archive = folder / archive_name()
    if archive.exists():
        write_bill(archive, "lab-programs", list(modules(root)))
    (folder / "NOTES.md").write_text(notes(root))
    sums = [f"{digest(folder / file)}  {file}\n" for file in files(folder)]
    (folder / SUMS).write_text("".join(sums))


def files(folder: pathlib.Path) -> list[str]:
    """Return the files of the folder, sorted; without the checksums."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if path.name != SUMS)


def digest(file: pathlib.Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def distributions(pex: pathlib.Path) -> Iterator[dict[str, str]]:
    """Yield the Python distributions of a PEX, as a bill of materials has them."""
    with zipfile.ZipFile(pex) as opened:
        info = json.loads(opened.read("PEX-INFO"))
    for wheel in sorted(info["distributions"]):
        name, version = wheel.split("-")[:2]
        purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
        yield {"type": "library", "name": name, "version": version, "purl": purl}


def modules(root: pathlib.Path) -> Iterator[dict[str, str]]:
    """Yield the Go modules that the lab's programs require."""
    pairs = {
        pair
        for file in (root / MODULES).glob("*/go.mod")
        for pair in _REQUIREMENT.findall(file.read_text())
    }
    for name, version in sorted(pairs):
        purl = f"pkg:golang/{name}@{version}"
        yield {"type": "library", "name": name, "version": version, "purl": purl}


def write_bill(file: pathlib.Path, name: str, parts: list[dict[str, str]]) -> None:
    """Write the bill of materials of a file beside it. Source: CycloneDX 1.6."""
    subject = {
        "type": "application",
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": digest(file)}],
    }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": parts,
    }
    target = file.with_name(f"{file.name}.cdx.json")
    target.write_text(json.dumps(bill, indent=1) + "\n")


def notes(root: pathlib.Path) -> str:
    """Return the newest entry of each changelog, and how the folder is used."""
    parts = [f"# Release\n\n{_USE % {'archive': archive_name()}}"]
    for name in components(root):
        text = (root / "cmd" / name.replace("-", "_") / "CHANGELOG.md").read_text()
        entry = _ENTRY.search(text)
        heading = entry[0].strip().replace("\n### ", "\n#### ") if entry else ""
        parts.append(heading.replace("## ", f"## {name} ", 1))
    return "\n\n".join(parts) + "\n"


_USE = """\
`sha256sum -c SHA256SUMS` compares all files. `mooring.pex` is the command-line tool,
and requires Python 3.11. A first lab, with all `*.pex` in one folder, and without
compiling:

```
MOORING_LAB_PROGRAMS=%(archive)s ./mooring.pex lab up
```"""


def run(root: pathlib.Path, *words: str) -> None:
    """Run a command; its output goes to standard error.

    Raises:
        FolderError: it failed, or did not end in time.
    """
    env = {**os.environ, "PANTS_CONCURRENT": "true", "PANTS_PANTSD": "false"}
    print(f"$ {' '.join(words)}", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            words, cwd=root, env=env, stdout=sys.stderr, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise FolderError(f"{words[0]}: no end within {TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        raise FolderError(f"{' '.join(words[:6])}: exit code {done.returncode}")


def signing(parsed: argparse.Namespace) -> list[str]:
    """Return the options of signed charts; none for a release without signatures.

    Raises:
        FolderError: the key has no keyring, or neither is there.
    """
    if parsed.unsigned:
        return []
    if not (parsed.sign_key and parsed.keyring):
        raise FolderError(
            "--sign-key and --keyring: not set: must name a key for the provenance of"
            " charts; --unsigned omits it"
        )
    keyring = str(pathlib.Path(parsed.keyring).absolute())
    return ["--sign-key", parsed.sign_key, "--keyring", keyring]


def main(arguments: Sequence[str]) -> int:
    """Write the folder, and print its files."""
    parser = argparse.ArgumentParser(prog="release_folder.py", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("--sign-key", default="")
    parser.add_argument("--keyring", default="")
    parser.add_argument("--unsigned", action="store_true")
    parsed = parser.parse_args(arguments)
    folder = parsed.folder
    try:
        if folder.exists() and any(folder.iterdir()):
            raise FolderError(f"{folder}: not empty: must be a new folder")
        options = signing(parsed)
        folder.mkdir(parents=True, exist_ok=True)
        build(ROOT, folder, options)
        finish(ROOT, folder)
    except FolderError as error:
        print(f"release_folder: {error}", file=sys.stderr)
        return 1
    print((folder / SUMS).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

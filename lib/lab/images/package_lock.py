"""Pinned Debian packages: version and hash, and their download from apt's mirrors.

Where they come from are the sources of apt on this machine; the lock file has the path
below them. Nothing is installed, and no list of packages is needed.
"""

import dataclasses
import hashlib
import itertools
import os
import pathlib
import platform
import re
import tempfile
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import commands, debian
from lib.lab.images import description
from lib.lab.run import progress

SUITE = "bookworm"
"""Debian 12."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Debian and Go write them."""
UPDATE = "mooring lab image --update-packages"
_WHAT = "packages of images"
_HELPER = "/usr/lib/apt/apt-helper"
_HEAD = f"# Debian packages of all images. Written by `{UPDATE}`.\n"
_URI = re.compile(r"^'(\S+)' \S+ \d+ SHA256:([0-9a-f]{64})$")
_GONE = ("404", "No such file")
"""In what apt prints of a file that a mirror does not have."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Pinned:
    """One package. sha256: of the file. path: below the URI of a repository."""

    name: str
    version: str
    sha256: str
    path: str


def architecture() -> str:
    """Return the architecture of this machine, as images name it."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def lock_file(root: pathlib.Path) -> pathlib.Path:
    """Return the lock file of this machine's architecture. root: of the checkout."""
    return root / description.FOLDER / f"packages.{architecture()}.lock"


def read(root: pathlib.Path) -> Mapping[str, Pinned]:
    """Return the pinned packages by name. root: of the checkout.

    Raises:
        LabError: the file does not exist, or a line is malformed.
    """
    file = lock_file(root)
    if not file.is_file():
        raise errors.LabError(
            f"{file.name}: not found: no packages are pinned for {architecture()};"
            f" `{UPDATE}` on such a machine writes it"
        )
    return parse(file)


def parse(file: pathlib.Path) -> Mapping[str, Pinned]:
    """Return the pinned packages of a lock file by name.

    Raises:
        LabError: a line is malformed.
    """
    rows = [line.split() for line in file.read_text().splitlines() if line[:1] != "#"]
    malformed = [" ".join(row) for row in rows if len(row) != 4]
    if malformed:
        raise errors.LabError(
            f'{file.name}: invalid value "{malformed[0]}":'
            " must be name, version, SHA-256 and path"
        )
    return {row[0]: Pinned(*row) for row in rows}


def read_if_any(root: pathlib.Path) -> Mapping[str, Pinned]:
    """Return the pinned packages, none without a lock file.

    Raises:
        LabError: a line is malformed.
    """
    return read(root) if lock_file(root).is_file() else {}


def write(root: pathlib.Path, pins: Iterable[Pinned]) -> None:
    """Write the lock file."""
    rows = (" ".join(dataclasses.astuple(pin)) for pin in sorted(pins))
    lock_file(root).write_text(_HEAD + "".join(f"{row}\n" for row in rows))


def can_fetch() -> bool:
    """Report whether this machine can download Debian packages."""
    return pathlib.Path(_HELPER).exists()


def repositories(env: Mapping[str, str], suite: str = SUITE) -> tuple[str, ...]:
    """Return the URIs of apt's sources of Debian 12 on this machine.

    Raises:
        LabError: it has no apt, or no such source.
    """
    if not can_fetch():
        raise errors.LabError(
            f"images are built from Debian packages: {_HELPER} was not found;"
            " use a machine or container with Debian 12"
        )
    form = "$(CODENAME) $(REPO_URI)"
    lines = debian.output(["apt-get", "indextargets", "--format", form], env, _WHAT)
    rows = [line.split() for line in lines]
    uris = (row[1] for row in rows if len(row) == 2 and row[0].startswith(suite))
    unique = tuple(dict.fromkeys(uris))
    if not unique:
        raise errors.LabError(
            f"images are built from Debian packages: apt has no source of {suite}"
        )
    return unique


def fetch(
    where: places.Places,
    pins: Sequence[Pinned],
    sources: Sequence[str],
    step: progress.ProgressStep,
    env: Mapping[str, str] | None = None,
) -> Mapping[str, pathlib.Path]:
    """Return the file of each package; those that are missing are downloaded.

    sources: URIs of repositories, tried in their order.

    Raises:
        LabError: no repository has a package, or none can be reached.
    """
    env = os.environ if env is None else env
    folder = where.cache / "image-packages"
    folder.mkdir(parents=True, exist_ok=True)
    files = {pin.name: folder / f"{pin.sha256}.deb" for pin in pins}
    missing = [pin for pin in pins if not _is_whole(files[pin.name], pin.sha256)]
    for done, pin in enumerate(missing):
        step.note(f"{pin.name} {pin.version}")
        step.advance(done, len(missing))
        _download(pin, files[pin.name], sources, env)
    return files


def _is_whole(file: pathlib.Path, sha256: str) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == sha256


def _download(
    pin: Pinned, file: pathlib.Path, sources: Sequence[str], env: Mapping[str, str]
) -> None:
    reasons: list[str] = []
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".new-") as scratch:
        part = pathlib.Path(scratch) / "package.deb"
        for source in sources:
            try:
                commands.run(
                    [
                        *(_HELPER, "-oAPT::Sandbox::User=root", "download-file"),
                        *(f"{source.rstrip('/')}/{pin.path}", part),
                        f"SHA256:{pin.sha256}",
                    ],
                    failure=f"{pin.name} {pin.version}: cannot be downloaded",
                    env={**env, "LC_ALL": "C"},
                )
            except errors.LabError as error:
                reasons.append(str(error))
                continue
            if _is_whole(part, pin.sha256):
                os.replace(part, file)
                return
            reasons.append(f"{pin.name} {pin.version}: not the pinned file")
    raise errors.LabError(_failure(pin, reasons))


def _failure(pin: Pinned, reasons: Sequence[str]) -> str:
    gone = [text for text in reasons if any(words in text for words in _GONE)]
    if len(gone) == len(reasons):
        return (
            f"{pin.name} {pin.version}: no package source has this pinned version"
            f" any more: `{UPDATE}` pins the present one"
        )
    return next(text for text in reasons if text not in gone)


def resolve(
    names: Sequence[str], where: places.Places, env: Mapping[str, str] | None = None
) -> tuple[Pinned, ...]:
    """Return the present version of each package, by fresh lists of our own.

    Raises:
        LabError: no mirror can be reached, or it lacks a package.
    """
    env = os.environ if env is None else env
    uris = repositories(env)
    where.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where.cache, prefix=".lists-") as scratch:
        options = debian.private_lists(pathlib.Path(scratch))
        debian.output(["apt-get", *options, "update"], env, _WHAT)
        words = ["apt-get", *options, "download", "--print-uris", *names]
        lines = debian.output(words, env, _WHAT)
    return tuple(_pinned(name, lines, uris) for name in names)


def _pinned(name: str, lines: Sequence[str], uris: Sequence[str]) -> Pinned:
    matches = [match for line in lines if (match := _URI.match(line))]
    for uri, match in itertools.product(uris, matches):
        path = match[1].removeprefix(uri)
        file = urllib.parse.unquote(path.rpartition("/")[2])
        if path != match[1] and file.startswith(f"{name}_"):
            return Pinned(name, file.split("_")[1], match[2], path)
    raise errors.LabError(f"{name}: not found in the package sources of {SUITE}")

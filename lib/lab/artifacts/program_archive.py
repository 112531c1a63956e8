"""Built programs of the lab in one file, which `lab up` unpacks in place of compiling.

The setting MOORING_LAB_PROGRAMS is a file or a URL, with `#sha256=HEX` where the hash
is known. An archive has the folders of `bin` of the cache: each is named after a hash
of its pins, so that an archive of other versions is recognized and never used.
"""

import contextlib
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import BinaryIO

from lib.lab import errors, places
from lib.lab.artifacts import go_modules
from lib.lab.run import progress

SETTING = "MOORING_LAB_PROGRAMS"
BIN = "bin"
TIMEOUT_S = 60.0
"""Of each wait for the server of a URL."""
_HASH = re.compile(r"sha256=([0-9a-f]{64})")
_MEMBER = re.compile(rf"{BIN}/[0-9a-f]{{16}}(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_PIECE = 1 << 20


def pack(where: places.Places, folders: Collection[str], file: pathlib.Path) -> None:
    """Write folders of built programs to an archive; it appears when it is complete.

    folders: names in `bin` of the cache. The same programs give the same bytes.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.new")
    with (
        part.open("wb") as out,
        # Its header has neither a name nor a time.
        gzip.GzipFile("", "wb", 6, out, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for name in sorted(folders):
            root = where.cache / BIN / name
            for path in sorted(path for path in root.rglob("*") if path.is_file()):
                member = f"{BIN}/{path.relative_to(root.parent).as_posix()}"
                if _MEMBER.fullmatch(member):
                    archive.add(path, member, recursive=False, filter=_plain)
    part.replace(file)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def bring(
    where: places.Places,
    folders: Collection[str],
    env: Mapping[str, str],
    shown: progress.Progress,
) -> None:
    """Unpack folders that the archive of the setting has; nothing without a setting.

    Raises:
        LabError: the archive cannot be read, has another hash, or other versions.
    """
    source = env.get(SETTING, "")
    if not source or not folders:
        return
    with shown.step("Unpack the lab's programs") as step:
        step.note(source)
        where.cache.mkdir(parents=True, exist_ok=True)
        with _refused(source), _opened(source, where.cache) as archive:
            _unpack(where.cache, archive, folders)


@contextlib.contextmanager
def _refused(source: str) -> Iterator[None]:
    """Turn what is wrong with an archive into one sentence."""
    try:
        yield
    except (
        tarfile.TarError,
        EOFError,
        OSError,
        ValueError,
        urllib.error.URLError,
        zlib.error,
    ) as error:
        text = f'{SETTING}: invalid value "{source}": {error}'
        remedy = "must be the file or URL of an archive of the lab's programs"
        raise errors.LabError(f"{text}: {remedy}") from error


@contextlib.contextmanager
def _opened(source: str, scratch: pathlib.Path) -> Iterator[BinaryIO]:
    """Yield the archive, downloaded and compared with its hash."""
    address, _, fragment = source.partition("#")
    expected = _HASH.fullmatch(fragment)
    if fragment and expected is None:
        raise ValueError("after # must be sha256= and 64 hexadecimal digits")
    file: BinaryIO
    with contextlib.ExitStack() as ends:
        if urllib.parse.urlsplit(address).scheme in ("http", "https"):
            file = ends.enter_context(tempfile.TemporaryFile(dir=scratch))
            # The scheme is http or https.
            with urllib.request.urlopen(  # noqa: S310
                address, timeout=TIMEOUT_S
            ) as answer:
                shutil.copyfileobj(answer, file, _PIECE)
            file.seek(0)
        else:
            path = pathlib.Path(address.removeprefix("file://")).expanduser()
            file = ends.enter_context(path.open("rb"))
        if expected is not None:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            if actual != expected[1]:
                raise ValueError(f"its SHA-256 is {actual}")
        yield file


def _unpack(cache: pathlib.Path, source: BinaryIO, folders: Collection[str]) -> None:
    """Unpack to a scratch folder, then move each file; programs come last."""
    expected = go_modules.folder(cache, "kube").name
    present: set[str] = set()
    with (
        tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as scratch,
        tarfile.open(fileobj=source, mode="r|gz") as archive,
    ):
        room = pathlib.Path(scratch)
        for member in archive:
            if not member.isreg() or not _MEMBER.fullmatch(member.name):
                raise ValueError(f"{member.name} is no program of the lab")
            present.add(member.name.split("/")[1])
            if member.name.split("/")[1] in folders:
                _write(archive, member, room / member.name)
        if expected not in present:
            raise ValueError(
                f"it has no programs of Kubernetes {go_modules.KUBERNETES_VERSION} for"
                " this machine, as this version of the lab pins them"
            )
        files = [path for path in room.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: os.access(path, os.X_OK)):
            target = cache / path.relative_to(room)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _write(
    archive: tarfile.TarFile, member: tarfile.TarInfo, target: pathlib.Path
) -> None:
    content = archive.extractfile(member)
    if content is None:
        raise ValueError(f"{member.name} has no content")
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as out:
        shutil.copyfileobj(content, out, _PIECE)
    target.chmod(0o755 if member.mode & 0o111 else 0o644)

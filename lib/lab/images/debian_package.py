"""Reading of a Debian package, without dpkg.

Source: deb(5): an archive of `ar` with control.tar and data.tar.
"""

import dataclasses
import email.parser
import io
import pathlib
import tarfile
from collections.abc import Iterator, Mapping

from lib.lab import errors

_MAGIC = b"!<arch>\n"
_HEADER = 60
"""Bytes. Source: ar(5)."""
_MERGED = ("bin/", "sbin/", "lib/", "lib64/")
"""Folders that are links into /usr. Source: Debian 12, merged /usr."""


@dataclasses.dataclass(frozen=True, slots=True)
class PackageFile:
    """A regular file or a link of a package.

    path: relative, below usr/ where Debian merges. link: target of a link, else
    empty. is_executable: of a regular file.
    """

    path: str
    content: bytes = b""
    link: str = ""
    is_executable: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class DebianPackage:
    """A package. control: its fields, `text` as one text. file: the archive."""

    control: Mapping[str, str]
    text: str
    file: pathlib.Path

    @property
    def name(self) -> str:
        """Return its name."""
        return self.control["Package"]

    @property
    def version(self) -> str:
        """Return its version."""
        return self.control["Version"]

    def files(self) -> Iterator[PackageFile]:
        """Read its files and links, in their order."""
        with _open(self.file, "data.tar") as archive:
            for entry in archive:
                path = merged(entry.name.removeprefix("./"))
                if entry.issym():
                    yield PackageFile(path, link=entry.linkname)
                elif entry.isreg() or entry.islnk():
                    content = archive.extractfile(entry)
                    data = content.read() if content else b""
                    yield PackageFile(
                        path, data, is_executable=bool(entry.mode & 0o100)
                    )


def read(file: pathlib.Path) -> DebianPackage:
    """Read the control fields of a package.

    Raises:
        LabError: it is not a package.
    """
    with _open(file, "control.tar") as archive:
        member = archive.extractfile("./control")
        text = member.read().decode() if member else ""
    fields = email.parser.HeaderParser().parsestr(text)
    return DebianPackage(dict(fields.items()), text, file)


def merged(path: str) -> str:
    """Return a path as it is with a merged /usr."""
    return f"usr/{path}" if path.startswith(_MERGED) else path


def _open(file: pathlib.Path, member: str) -> tarfile.TarFile:
    content = file.read_bytes()
    if content.startswith(_MAGIC):
        at = len(_MAGIC)
        while at + _HEADER <= len(content):
            header = content[at : at + _HEADER].decode("ascii")
            name, size = header[:16].rstrip(" /"), int(header[48:58])
            at += _HEADER
            if name.startswith(member):
                return tarfile.open(fileobj=io.BytesIO(content[at : at + size]))
            at += size + size % 2
    raise errors.LabError(f"{file.name}: not a Debian package: no {member}")

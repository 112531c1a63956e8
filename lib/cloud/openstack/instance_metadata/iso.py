"""Reads one file of an ISO 9660 file system, without mounting it.

Every read is bounded, whatever the structures contain (decision 60).

Source: ECMA-119, 4th edition; Joliet Specification, 1995.
"""

import dataclasses
import struct
from collections.abc import Callable, Iterator

Read = Callable[[int, int], bytes]
"""Returns bytes of the disk: offset, length; fewer at its end."""

_SECTOR_BYTES = 2048
_FIRST, _LAST = 16, 48
"""Sectors in which volume descriptors are searched for."""
_PRIMARY, _SUPPLEMENTARY, _TERMINATOR = 1, 2, 255
_JOLIET = (b"%/@", b"%/C", b"%/E")
_FOLDER = 2
_BYTES_MAX = 16 * 2**20


class NotIso(ValueError):
    """The disk holds no ISO 9660 file system."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    at: int
    size_bytes: int
    is_folder: bool


class IsoDisk:
    """An ISO 9660 file system; long names are those of Joliet where it has them."""

    def __init__(self, read: Read) -> None:
        """Read the volume descriptors.

        Raises:
            NotIso: none exists.
        """
        self._read = read
        primary = joliet = b""
        for sector in self._descriptors():
            if sector[0] == _PRIMARY:
                primary = primary or sector
            elif sector[0] == _SUPPLEMENTARY and sector[88:91] in _JOLIET:
                joliet = joliet or sector
        if not primary:
            raise NotIso("no primary volume descriptor")
        self.label = primary[40:72].decode("latin-1").strip()
        self._is_wide = bool(joliet)
        self._root = self._entry((joliet or primary)[156:190])

    def _descriptors(self) -> Iterator[bytes]:
        for number in range(_FIRST, _LAST):
            sector = self._read(number * _SECTOR_BYTES, _SECTOR_BYTES)
            is_complete = len(sector) == _SECTOR_BYTES
            if not is_complete or sector[1:6] != b"CD001" or sector[0] == _TERMINATOR:
                return
            yield sector

    def file(self, path: tuple[str, ...]) -> bytes | None:
        """Return a file; None when it is absent. Names are compared without case."""
        entry: _Entry | None = self._root
        for name in path:
            if entry is None or not entry.is_folder:
                return None
            entry = next((e for e in self._entries(entry) if e.name == name), None)
        if entry is None or entry.is_folder:
            return None
        return self._content(entry)

    def _content(self, entry: _Entry) -> bytes:
        return self._read(entry.at, min(entry.size_bytes, _BYTES_MAX))

    def _entries(self, folder: _Entry) -> Iterator[_Entry]:
        """Yield a folder's entries; none of them spans two sectors."""
        content, at = self._content(folder), 0
        while at < len(content):
            length = content[at]
            if length < 34:
                at = (at // _SECTOR_BYTES + 1) * _SECTOR_BYTES
                continue
            yield self._entry(content[at : at + length])
            at += length

    def _entry(self, raw: bytes) -> _Entry:
        raw = raw.ljust(34, b"\0")
        (extent,) = struct.unpack_from("<I", raw, 2)
        (size_bytes,) = struct.unpack_from("<I", raw, 10)
        encoded = raw[33 : 33 + raw[32]]
        encoding = "utf-16-be" if self._is_wide else "latin-1"
        name = encoded.decode(encoding, "replace").partition(";")[0].rstrip(".")
        is_folder = bool(raw[25] & _FOLDER)
        return _Entry(name.lower(), extent * _SECTOR_BYTES, size_bytes, is_folder)

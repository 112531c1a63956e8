"""Reads one file of a FAT file system, without mounting it.

FAT12, FAT16 and FAT32 with long names. Every read is bounded, whatever the structures
contain (decision 60).

Source: Microsoft, "FAT: General Overview of On-Disk Format", 1.03.
"""

import dataclasses
import struct
from collections.abc import Callable, Iterator

Read = Callable[[int, int], bytes]
"""Returns bytes of the disk: offset, length; fewer at its end."""

_ENTRY_BYTES = 32
_LONG_NAME = 0x0F
_FOLDER, _LABEL = 0x10, 0x08
_FAT12_MOST, _FAT16_MOST = 4085, 65525
_FILE_BYTES_MAX = 16 * 2**20


class NotFat(ValueError):
    """The disk holds no FAT file system, or one that is damaged."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    attributes: int
    cluster: int
    size_bytes: int


class FatDisk:
    """A FAT file system."""

    def __init__(self, read: Read) -> None:
        """Read the boot sector.

        Raises:
            NotFat: it is no FAT file system.
        """
        self._read = read
        sector = read(0, 512)
        if len(sector) < 512 or sector[510:] != b"\x55\xaa":
            raise NotFat("no boot sector")
        parameters: tuple[int, ...] = struct.unpack_from("<HBHBH", sector, 11)
        reserved, copies, root_entries = parameters[2:]
        self._sector_bytes, self._per_cluster = parameters[:2]
        valid_sector = self._sector_bytes in (512, 1024, 2048, 4096)
        if not valid_sector or not self._per_cluster or copies not in (1, 2):
            raise NotFat("no FAT parameters in the boot sector")
        (table_sectors,) = struct.unpack_from("<H", sector, 22)
        (root_cluster,) = struct.unpack_from("<I", sector, 44)
        self._is_32 = table_sectors == 0
        if self._is_32:
            (table_sectors,) = struct.unpack_from("<I", sector, 36)
        self._root_cluster = root_cluster if self._is_32 else 0
        self._table_at = reserved * self._sector_bytes
        self._root_at = self._table_at + copies * table_sectors * self._sector_bytes
        root_bytes = root_entries * _ENTRY_BYTES
        self._root_bytes = -(-root_bytes // self._sector_bytes) * self._sector_bytes
        self._data_at = self._root_at + self._root_bytes
        self._bits = self._width(sector)

    def _width(self, sector: bytes) -> int:
        (small,) = struct.unpack_from("<H", sector, 19)
        (large,) = struct.unpack_from("<I", sector, 32)
        size_bytes = (small or large) * self._sector_bytes
        clusters = (size_bytes - self._data_at) // self._cluster_bytes
        if self._is_32:
            return 32
        return 12 if clusters < _FAT12_MOST else 16

    @property
    def _cluster_bytes(self) -> int:
        return self._sector_bytes * self._per_cluster

    def label(self) -> str:
        """Return the label in the root folder; empty when there is none."""
        entries = self._entries(self._root())
        labels = (e.name for e in entries if e.attributes & _LABEL)
        return next(labels, "")

    def file(self, path: tuple[str, ...]) -> bytes | None:
        """Return a file; None when it is absent. Names are compared without case."""
        folder = self._root()
        for number, name in enumerate(path):
            entry = next(
                (
                    e
                    for e in self._entries(folder)
                    if e.name.lower() == name.lower() and not e.attributes & _LABEL
                ),
                None,
            )
            if entry is None:
                return None
            is_last = number == len(path) - 1
            if bool(entry.attributes & _FOLDER) == is_last:
                return None
            if is_last:
                size_bytes = min(entry.size_bytes, _FILE_BYTES_MAX)
                return self._chain(entry.cluster, size_bytes)[:size_bytes]
            folder = self._chain(entry.cluster, _FILE_BYTES_MAX)
        return None

    def _root(self) -> bytes:
        if self._is_32:
            return self._chain(self._root_cluster, _FILE_BYTES_MAX)
        return self._read(self._root_at, self._root_bytes)

    def _chain(self, cluster: int, most_bytes: int) -> bytes:
        """Read clusters until the chain ends; a loop in it ends at `most_bytes`."""
        parts: list[bytes] = []
        for _ in range(-(-most_bytes // self._cluster_bytes)):
            if cluster < 2 or cluster >= self._end():
                break
            at = self._data_at + (cluster - 2) * self._cluster_bytes
            parts.append(self._read(at, self._cluster_bytes))
            cluster = self._next(cluster)
        return b"".join(parts)

    def _end(self) -> int:
        """Return the least value for the end of a chain, or a bad cluster."""
        return {12: 0xFF7, 16: 0xFFF7, 32: 0x0FFFFFF7}[self._bits]

    def _next(self, cluster: int) -> int:
        at = self._table_at + cluster * self._bits // 8
        raw = int.from_bytes(self._read(at, 4).ljust(4, b"\xff"), "little")
        if self._bits == 12:
            return raw >> 4 & 0xFFF if cluster & 1 else raw & 0xFFF
        return raw & (0xFFFF if self._bits == 16 else 0x0FFFFFFF)

    def _entries(self, folder: bytes) -> Iterator[_Entry]:
        """Yield a folder's entries; the parts of a long name precede its entry."""
        long_name = ""
        for at in range(0, len(folder) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
            raw = folder[at : at + _ENTRY_BYTES]
            if raw[0] == 0:
                return
            if raw[0] == 0xE5:
                long_name = ""
            elif raw[11] == _LONG_NAME:
                part = raw[1:11] + raw[14:26] + raw[28:32]
                text = part.decode("utf-16-le", "replace").partition("\0")[0]
                long_name = text + long_name
            else:
                yield _entry(raw, long_name)
                long_name = ""


def _entry(raw: bytes, long_name: str) -> _Entry:
    high, low = (struct.unpack_from("<H", raw, at)[0] for at in (20, 26))
    stem = raw[:8].decode("latin-1").rstrip()
    extension = raw[8:11].decode("latin-1").rstrip()
    if raw[11] & _LABEL:
        name = raw[:11].decode("latin-1").rstrip()
    else:
        name = long_name or (f"{stem}.{extension}" if extension else stem)
    return _Entry(name, raw[11], high << 16 | low, struct.unpack_from("<I", raw, 28)[0])

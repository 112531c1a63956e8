"""The logs of a lab's programs: their names, and their text as it is written."""

import os
import pathlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from lib.lab import places

_CHUNK = 1 << 16
_SUFFIX = ".log"


def names(where: places.Places) -> tuple[str, ...]:
    """Return the names of all programs that have a log, sorted."""
    return tuple(sorted(file.stem for file in where.log.glob(f"*{_SUFFIX}")))


def path(where: places.Places, program: str) -> pathlib.Path:
    """Return the file of a program's log."""
    return where.log / f"{program}{_SUFFIX}"


def read(file: pathlib.Path, last: int | None = None) -> Iterator[bytes]:
    """Yield the content of a log, in parts. last: number of lines; None: all.

    Raises:
        OSError: the file cannot be read.
    """
    with file.open("rb") as log:
        if last is not None:
            _seek_last(log, last)
        while part := log.read(_CHUNK):
            yield part


def follow(
    file: pathlib.Path, last: int | None, wait: Callable[[], object]
) -> Iterator[bytes]:
    """Yield the content of a log, and whatever is added to it, without end.

    A log that is replaced or truncated is continued from its beginning; one that is
    removed is waited for. last: as for `read`. wait: called when there is no more.

    Raises:
        OSError: the file cannot be read.
    """
    while True:
        with file.open("rb") as log:
            if last is not None:
                _seek_last(log, last)
            while _is_same(log, file):
                if part := log.read(_CHUNK):
                    yield part
                else:
                    wait()
            yield from iter(lambda: log.read(_CHUNK), b"")
        while not file.exists():
            wait()
        last = None


def _is_same(log: BinaryIO, file: pathlib.Path) -> bool:
    """Report whether a path still names an open file that was not truncated."""
    opened = os.fstat(log.fileno())
    try:
        present = file.stat()
    except FileNotFoundError:
        return False
    is_replaced = (present.st_ino, present.st_dev) != (opened.st_ino, opened.st_dev)
    return not is_replaced and present.st_size >= log.tell()


def _seek_last(log: BinaryIO, lines: int) -> None:
    """Move to the beginning of the last lines."""
    position = log.seek(0, os.SEEK_END)
    left, tail = lines + 1, b""
    while position and tail.count(b"\n") < left:
        size = min(_CHUNK, position)
        position = log.seek(position - size)
        tail = log.read(size) + tail
    kept = tail.splitlines(keepends=True)[-lines:] if lines else []
    log.seek(position + len(tail) - sum(map(len, kept)))

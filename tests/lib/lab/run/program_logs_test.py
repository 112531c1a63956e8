"""Logs of programs: whole, their last lines, and while they are written."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator

import pytest

from lib.lab import places
from lib.lab.run import program_logs

TEXT = b"first\nsecond\nthird\n"


def whole(parts: Iterator[bytes]) -> bytes:
    return b"".join(parts)


@pytest.mark.parametrize(
    ("content", "last", "expected"),
    [
        (TEXT, None, TEXT),
        (TEXT, 0, b""),
        (TEXT, 1, b"third\n"),
        (TEXT, 2, b"second\nthird\n"),
        (TEXT, 9, TEXT),
        (b"first\nunfinished", 1, b"unfinished"),
        (b"", 3, b""),
        (b"x" * 70_000 + b"\n" + TEXT, 4, b"x" * 70_000 + b"\n" + TEXT),
        (b"x" * 200_000 + b"\n" + TEXT, 1, b"third\n"),
    ],
)
def test_the_last_lines_are_read(
    tmp_path: pathlib.Path, content: bytes, last: int | None, expected: bytes
) -> None:
    file = tmp_path / "etcd.log"
    file.write_bytes(content)
    assert whole(program_logs.read(file, last)) == expected


def test_names_are_those_of_the_files(tmp_path: pathlib.Path) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state")
    assert program_logs.names(where) == ()
    where.log.mkdir(parents=True)
    for name in ("nova", "etcd"):
        program_logs.path(where, name).touch()
    (where.log / "notes.txt").touch()
    assert program_logs.names(where) == ("etcd", "nova")


class StopError(Exception):
    """Ends following."""


def followed(
    file: pathlib.Path, last: int | None, *acts: Callable[[], object]
) -> list[bytes]:
    """Return what is printed, if at each wait the next act is carried out."""
    parts, rest = [], list(acts)

    def wait() -> None:
        if not rest:
            raise StopError
        rest.pop(0)()

    with contextlib.suppress(StopError):
        for part in program_logs.follow(file, last, wait):
            parts.append(part)
    assert rest == []
    return parts


def test_additions_are_followed(tmp_path: pathlib.Path) -> None:
    """Also in a file that is truncated, replaced, or removed and created again."""
    file = tmp_path / "etcd.log"
    file.write_bytes(TEXT)

    def add(text: bytes) -> None:
        with file.open("ab") as log:
            log.write(text)

    def replace() -> None:
        other = file.with_suffix(".new")
        other.write_bytes(b"replaced\n")
        other.replace(file)

    parts = followed(
        file,
        1,
        lambda: add(b"fourth\n"),
        lambda: file.write_bytes(b"short\n"),
        replace,
        file.unlink,
        lambda: file.write_bytes(b"again\n"),
    )
    assert parts == [b"third\n", b"fourth\n", b"short\n", b"replaced\n", b"again\n"]

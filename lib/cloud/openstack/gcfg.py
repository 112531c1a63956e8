"""The INI dialect of cloud.conf, read by a parser of git's configuration syntax.

gcfg, which the reference uses, follows git's syntax as well. Known differences:
- an escape other than \\\\ \\" \\n \\t is kept as it stands (gcfg: an error);
- a bare key reads as "true" for text and lists too (gcfg: an error, a cleared list);
- a key may follow its section's header on the same line (gcfg: an error);
- blanks that begin a continued line are dropped (gcfg: kept);
- blanks inside the brackets of a header are an error (gcfg: skipped).
Include directives of git are plain unknown sections here.
"""

import dataclasses
import io
import itertools
from collections.abc import Mapping

import dulwich.config


class SyntaxFault(ValueError):
    """A line that can't be read.

    line: its number, from 1. The text is left out, for it may hold a secret.
    """

    def __init__(self, line: int) -> None:
        super().__init__(
            f"line {line} can't be read; it must be a [Section], a key = value, a"
            " comment or empty, with every quote closed"
        )
        self.line = line


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """One section, all its parts in the file put together.

    name: as written. subsection: empty when there is none. values: by key in lower
    case, each in the order of the file.
    """

    name: str
    subsection: str
    values: Mapping[str, tuple[str, ...]]


def parse(text: str) -> tuple[Section, ...]:
    """Read cloud.conf into its sections, in the order of the file.

    Raises:
        SyntaxFault: a line can't be read.

    Source: gopkg.in/gcfg.v1 (doc.go, read.go); git-config(1), "Syntax".
    """
    lines = text.encode().splitlines(keepends=True)
    try:
        parsed = _parse(lines)
    except ValueError:
        raise SyntaxFault(_faulty_line(lines)) from None
    return tuple(
        Section(
            name[0].decode(),
            name[1].decode() if len(name) > 1 else "",
            _values(parsed, name),
        )
        for name in parsed.sections()
    )


def _parse(lines: list[bytes]) -> dulwich.config.ConfigFile:
    whole = io.BytesIO(b"".join(lines))
    return dulwich.config.ConfigFile.from_file(whole, expand_includes=False)


def _values(
    parsed: dulwich.config.ConfigFile, name: tuple[bytes, ...]
) -> Mapping[str, tuple[str, ...]]:
    pairs = [(key.decode().lower(), value) for key, value in parsed.items(name)]
    keys = dict.fromkeys(key for key, _ in pairs)
    return {
        key: tuple(value.decode() for other, value in pairs if other == key)
        for key in keys
    }


def _faulty_line(lines: list[bytes]) -> int:
    for count in itertools.count(1):
        try:
            _parse(lines[:count])
        except ValueError:
            return count
    raise AssertionError

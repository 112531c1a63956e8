"""Reader of gcfg, the INI dialect of cloud.conf.

One pattern per statement: a header, a key with or without a value, an empty line or a
comment. A value ends at a comment; quotes keep blanks and comment characters, a
backslash before the end of the line continues it. Known differences: a key without
"=" reads as "true" for texts and lists too (gcfg: an error, a cleared list), a name
may hold numerals such as "²", and a byte order mark at the start is skipped.

Source: gopkg.in/gcfg.v1 v1.2.3 (doc.go, read.go, scanner/scanner.go).
"""

import dataclasses
import re
from collections.abc import Mapping

# Only single characters repeat possessively: before Python 3.11.5, possessive repeats
# of groups inside one another match what they must not. Each text has one reading, so
# that the effort for a fault grows with the length alone.
_BLANKS = r"[ \t\r]*+"
_NAME = r"[^\W\d_](?:[^\W_]|-)*"
_QUOTED_NAME = r'"((?:[^"\\\n]|\\["\\])+)"'
_QUOTED = r'"(?:[^"\\\n]|\\["\\nt])*"'
_PLAIN = r'[^"\\;#\n]*+'
_VALUE = rf'{_PLAIN}(?:(?:\\\r?["\n]|{_QUOTED}){_PLAIN})*'
_END = rf"{_BLANKS}(?:[;#][^\n]*+)?(?:\n|\Z)"
_STATEMENT = re.compile(
    rf"{_BLANKS}(?:"
    rf"\[{_BLANKS}(?P<section>{_NAME}){_BLANKS}"
    rf"(?:(?P<subsection>{_QUOTED_NAME}){_BLANKS})?\]"
    rf"|(?P<key>{_NAME}){_BLANKS}(?:=(?P<value>{_VALUE}))?"
    rf")?{_END}"
)
_QUOTE_OR_ESCAPE = re.compile(r'\\(.)|"', re.DOTALL)
_UNESCAPED = {"n": "\n", "t": "\t", "\n": "", None: ""}


class SyntaxFault(ValueError):
    """A line that can't be read.

    line: its number, from 1. The text is omitted, for it may hold a secret.
    """

    def __init__(self, line: int) -> None:
        super().__init__(
            f"line {line}: invalid syntax: must be a [Section], a key = value, a"
            " comment or empty, with every quote closed"
        )
        self.line = line


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """One section, all its parts in the file put together.

    name: as written. subsection: empty when there is none. values: by key in lower
    case, each in the order of the file. cut: keys of which a value ends at a comment
    without a blank before it, which may be meant as a part of the value.
    """

    name: str
    subsection: str
    values: Mapping[str, tuple[str, ...]]
    cut: frozenset[str] = frozenset()


def parse(text: str) -> tuple[Section, ...]:
    """Parse cloud.conf into its sections, in the order of the file.

    Names of sections and keys ignore case, those of subsections do not.

    Raises:
        SyntaxFault: a line can't be read, or has a key outside all sections.
    """
    text = text.removeprefix("\ufeff")
    names: dict[tuple[str, str], str] = {}
    values: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    cut: dict[tuple[str, str], set[str]] = {}
    section: tuple[str, str] | None = None
    position = 0
    while position < len(text):
        statement = _STATEMENT.match(text, position)
        if statement is None or "\0" in statement[0]:
            raise SyntaxFault(text.count("\n", 0, position) + 1)
        if name := statement["section"]:
            section = (name.lower(), _unquoted(statement["subsection"] or ""))
            names.setdefault(section, name)
            values.setdefault(section, {})
        elif key := statement["key"]:
            if section is None:
                raise SyntaxFault(text.count("\n", 0, position) + 1)
            known = values[section].get(key.lower(), ())
            values[section][key.lower()] = (*known, _value(statement["value"]))
            end = statement.end("value")
            if _is_cut(statement["value"], text[end : end + 1]):
                cut.setdefault(section, set()).add(key.lower())
        position = statement.end()
    return tuple(
        Section(name, section[1], values[section], frozenset(cut.get(section, ())))
        for section, name in names.items()
    )


def _is_cut(raw: str | None, following: str) -> bool:
    """Report whether a comment begins directly after a character of a value."""
    return bool(raw and not raw[-1].isspace()) and following in ("#", ";")


def _value(raw: str | None) -> str:
    """Return the value of a key; a key without "=" is a switch that is on."""
    return "true" if raw is None else _unquoted(raw.strip(" \t\r").replace("\r", ""))


def _unquoted(raw: str) -> str:
    """Return the text without quotes and escapes.

    Source: gcfg's scanner drops every carriage return of a value, in quotes as well.
    """
    return _QUOTE_OR_ESCAPE.sub(lambda part: _UNESCAPED.get(part[1], part[1]), raw)

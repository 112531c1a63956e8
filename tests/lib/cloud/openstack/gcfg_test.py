"""The INI dialect, compared with gcfg's documented behaviour."""

import hypothesis
import pytest
from hypothesis import strategies as st

from lib.cloud.openstack.config import gcfg


def values(text: str) -> dict[str, tuple[str, ...]]:
    (section,) = gcfg.parse("[Global]\n" + text)
    return dict(section.values)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("key = value", "value"),
        ("key=value", "value"),
        ('key = "value"', "value"),
        ('key = "a ; b # c"', "a ; b # c"),
        ("key = value ; comment", "value"),
        ("key = value # comment", "value"),
        (r'key = "a \"quoted\" word"', 'a "quoted" word'),
        (r'key = "back\\slash"', r"back\slash"),
        (r'key = "tab\tline\nend"', "tab\tline\nend"),
        ("key = two words", "two words"),
        ('key = "  kept  "', "  kept  "),
        ("key =", ""),
        ('key = ""', ""),
        ("key", "true"),
        ("KEY = value", "value"),
        ("  key = indented", "indented"),
        ("key = a=b=c", "a=b=c"),
        ("key = пароль", "пароль"),
        ("key = one \\\ntwo", "one two"),
        ("key = one\\\n  two", "one  two"),
        ("key = \\\n  two \\\n", "  two "),
        ("key = 'single'", "'single'"),
    ],
)
def test_a_value_reads_as_gcfg_reads_it(line: str, expected: str) -> None:
    """Quotes, escapes, comments, bare keys and continued lines follow gcfg."""
    assert values(line) == {"key": (expected,)}


def test_a_repeated_key_keeps_all_values_in_order_also_over_two_headers() -> None:
    """A list is a repeated key, and a section may be written in two parts."""
    text = "a = 1\nb = x\nA = 2\n[Other]\n[global]\na = 3\n"
    sections = gcfg.parse("[Global]\n" + text)
    assert [section.name for section in sections] == ["Global", "Other"]
    assert sections[0].values == {"a": ("1", "2", "3"), "b": ("x",)}


def test_subsections_keep_their_case_and_stand_apart() -> None:
    """[X "a"], [X "A"] and [X] are three sections."""
    sections = gcfg.parse('[X "a"]\nk=1\n[x "A"]\nk=2\n[X]\nk=3\n[X "q\\"q"]\n')
    assert [(s.subsection, s.values.get("k")) for s in sections] == [
        ("a", ("1",)),
        ("A", ("2",)),
        ("", ("3",)),
        ('q"q', None),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[Global]\nkey = 1\nkey.with.dots = hunter2\n", 3),
        ("key = hunter2\n", 1),
        ('[Global]\npassword = "hunter2\n', 2),
        ("[Global\nkey = 1\n", 1),
        ("[Global]\nhunter2 hunter2\n", 2),
        ("[Global] key = hunter2\n", 1),
        ('[Global ""]\n', 1),
        ("[Global.hunter2]\n", 1),
        ("[Global]\n\nkey = hunter2\\hunter2\n", 3),
        ('[Global]\nkey = "hunter2\\d"\n', 2),
        ('[Global]\nkey = "hunter2\nhunter2"\n', 2),
        ("[Global]\nkey = \\\nhunter2\nkey: hunter2\n", 4),
        ("[Global]\nkey = hunter2\0\n", 2),
        ("[Global]\n1key = hunter2\n", 2),
    ],
)
def test_a_fault_names_its_line_and_not_its_text(text: str, line: int) -> None:
    """A line that can't be read may be a secret, so only its number is told."""
    with pytest.raises(gcfg.SyntaxFault) as raised:
        gcfg.parse(text)
    assert raised.value.line == line
    assert "hunter2" not in str(raised.value)


def test_git_includes_are_not_followed() -> None:
    """A path under [include] is no more than an unknown key."""
    (section,) = gcfg.parse("[include]\npath = /etc/passwd\n")
    assert section.values == {"path": ("/etc/passwd",)}


@pytest.mark.parametrize("text", ["", "\n", "# only\n; comments\n"])
def test_an_empty_file_has_no_sections(text: str) -> None:
    """Nothing gives nothing."""
    assert gcfg.parse(text) == ()


_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True)
_TEXTS = st.text(
    st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=12
)
_ENDS = st.sampled_from(["", " ", "\t; comment", ' # "comment'])


@st.composite
def _written(draw: st.DrawFn, value: str) -> str:
    """Return one of the ways to write a value: in pieces, quoted where needed."""
    pieces = []
    while value:
        length = draw(st.integers(1, len(value)))
        piece, value = value[:length], value[length:]
        plain = piece.isalnum() and piece.isascii() and draw(st.booleans())
        pieces.append(piece if plain else _quoted(piece))
    return draw(st.sampled_from(["", "\\\n"])).join(pieces)


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n").replace("\t", "\\t") + '"'


@hypothesis.given(st.data(), st.lists(st.tuples(_NAMES, _NAMES, _TEXTS), max_size=6))
def test_every_way_to_write_a_value_gives_the_value(
    data: st.DataObject, entries: list[tuple[str, str, str]]
) -> None:
    """Sections, keys and values are read back as they were before they were written."""
    lines: list[str] = []
    expected: dict[str, dict[str, tuple[str, ...]]] = {}
    for section, key, value in entries:
        lines.append(f"[{section}]{data.draw(_ENDS)}")
        lines.append(f"{key} = {data.draw(_written(value))}{data.draw(_ENDS)}")
        values = expected.setdefault(section, {})
        values[key] = (*values.get(key, ()), value)
    sections = gcfg.parse("\n".join(lines))
    assert {section.name: dict(section.values) for section in sections} == expected
    assert len(sections) == len(expected)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_files_of_windows_are_read(end: str) -> None:
    """A byte order mark and carriage returns belong to no value."""
    text = end.join(["\ufeff[Global]", "key = value", 'quoted = "a b"', "bare"])
    (section,) = gcfg.parse(text)
    assert section.values == {
        "key": ("value",),
        "quoted": ("a b",),
        "bare": ("true",),
    }

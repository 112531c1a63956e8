"""The INI dialect, compared with gcfg's documented behaviour."""

import pytest

from lib.cloud.openstack import gcfg


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

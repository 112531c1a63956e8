"""Each message of the tables of bad input has a row in docs/troubleshooting.md."""

import ast
import pathlib
import re

TABLES = ("tests/packages/pex_test.py", "tests/lab/nodes/bad_input_test.py")
PAGE = pathlib.Path("docs/troubleshooting.md")
FIELD = re.compile(r"^(\S+: )?(--[a-z-]+|\[\w+\] [\w-]+): .+")
FORMS = re.compile(
    r"invalid value|unsupported value|not set|unknown flag|no such file|is a directory"
    r"|must not be set together|not YAML|not a text file|connection refused"
    r"|can't be reached|refuses the credentials|is not accepted"
)


def messages(path: str) -> list[str]:
    """Return the texts of a file that are messages of bad input."""
    strings = [
        node.value
        for node in ast.walk(ast.parse(pathlib.Path(path).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    texts = [text for text in strings if "\n" not in text]
    return [text for text in texts if FIELD.match(text) or FORMS.search(text)]


def test_each_message_of_bad_input_has_a_row() -> None:
    parts = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), flags=re.M)
    assert len(parts) >= 15
    rows_of = {
        text: [part for part in parts if part in text]
        for path in TABLES
        for text in messages(path)
    }
    for text, rows in rows_of.items():
        print(f"{', '.join(rows) or 'NO ROW':30} {text}")
    assert len(rows_of) >= 25
    assert not [text for text, rows in rows_of.items() if not rows]

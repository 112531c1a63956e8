"""The index of docs/decisions: number, choice, and whether it still holds."""

import pathlib
import re

from tests.reference import sheets

FOLDER = pathlib.Path("docs/decisions")
_TITLE = re.compile(r"# 0*(\d+)[.:]? (.+)")
_NOTE = re.compile(r"^\*(.+\[decision \d+\].+)\*$", re.MULTILINE)
"""A line in italics below the title: what another decision has changed of it."""
_WHOLE = "Replaced by"
HEADS = ("decision", "choice", "holds")


def tables() -> sheets.Tables:
    """Return the table of all records, the newest first."""
    rows = sorted(map(_row, FOLDER.glob("[0-9]*.md")), reverse=True)
    return {"index": sheets.table(HEADS, [row for _, row in rows])}


def _row(file: pathlib.Path) -> tuple[int, tuple[str, str, str]]:
    text = file.read_text()
    title = _TITLE.match(text)
    if title is None:
        raise ValueError(f"{file}: the first line must be `# NUMBER. CHOICE`")
    number, choice = int(title[1]), title[2]
    note = _NOTE.search(text)
    holds = "yes"
    if note is not None:
        holds = ("no: " if note[1].startswith(_WHOLE) else "in part: ") + note[1]
    return number, (f"[{number}]({file.name})", choice, holds)

"""The output formats, and that every command that prints objects has them."""

import json
from collections.abc import Iterator

import click
import pytest
import yaml

from mooring.commands import main, outputs

COLUMNS = (
    outputs.Column("Node"),
    outputs.Column("Zone", is_wide=True),
    outputs.Column("Reason"),
)
ROWS = (("node-[1]", "az-1", "word " * 60 + "end"), ("node-2", "", "\x1b[31mred"))


def test_a_table_folds_and_omits_wide_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs.print_table(outputs.TABLE, COLUMNS, ROWS)
    text = capsys.readouterr().out
    assert "node-[1]" in text
    assert "Zone" not in text
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_wide_has_all_columns_and_one_line_for_each_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs.print_table(outputs.WIDE, COLUMNS, ROWS)
    (line,) = (x for x in capsys.readouterr().out.splitlines() if "node-[1]" in x)
    assert "az-1" in line
    assert line.rstrip().endswith("word end")


def test_documents_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and YAML contain the same; a name is printed once."""
    value = {"b": ["yes", {"a": 1}], "a": None}
    names = [outputs.name("Shared use", "1"), outputs.name("Shared use", "1")]
    assert outputs.document(outputs.JSON, value, names)
    assert json.loads(capsys.readouterr().out) == value
    assert outputs.document(outputs.YAML, value, names)
    assert yaml.safe_load(capsys.readouterr().out) == value
    assert outputs.document(outputs.NAME, value, names)
    assert capsys.readouterr().out == "shared-use/1\n"
    assert not outputs.document(outputs.TABLE, value, names)
    assert not outputs.document(outputs.WIDE, value, names)
    assert capsys.readouterr().out == ""


def leaves(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that has no commands below it, by its words."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from leaves(below, *path, name)
    else:
        yield " ".join(path), command


PRINTS_OBJECTS = {
    "doctor ccm",
    "doctor osdpl",
    "get nodes",
    "get services",
    "get volumes",
    "lab osdpl status",
    "lab status",
    "orphans",
    "plan machines",
    "plan nodes",
    "plan osdpl",
    "plan routes",
    "plan services",
    "render openstack",
    "render osdpl",
    "version",
}


def test_each_command_that_prints_objects_has_all_formats() -> None:
    formats = {
        words: option.type.choices
        for words, command in leaves(main.commands)
        for option in command.params
        if "-o" in option.opts and isinstance(option.type, click.Choice)
    }
    for words in sorted(PRINTS_OBJECTS):
        print(f"{words:20} {formats.get(words)}")
    assert {w for w, f in formats.items() if f == outputs.FORMATS} >= PRINTS_OBJECTS

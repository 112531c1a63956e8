"""The output formats, and that every command that prints objects has them."""

import io
import json
from collections.abc import Iterator

import click
import pytest
import rich.console
import yaml

from mooring.commands import main, outputs

COLUMNS = (
    outputs.Column("Node"),
    outputs.Column("Zone", is_wide=True),
    outputs.Column("Reason"),
)
ROWS = (("node-[1]", "az-1", "word " * 60 + "end"), ("node-2", "", "\x1b[31mred"))


ID = "2411eb48-43c5-4733-822e-bc25c427d16a"


def test_a_pipe_gets_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    """No frame, no fold, nothing before the first column: for grep, awk and sort."""
    rows = (("node-[1]", "az-1", ID), ("node-2", "", "\x1b[31mred " + "word " * 60))
    outputs.print_table(outputs.TABLE, COLUMNS, rows)
    text = capsys.readouterr().out
    header, first, second = text.splitlines()
    assert header == "Node      Reason"
    assert first == f"node-[1]  {ID}"
    assert second.startswith("node-2    \\x1b[31mred word")


@pytest.mark.parametrize(
    ("width", "has_frame"),
    [(80, True), (40, False)],
    ids=["a terminal that is wide enough: a frame", "a narrow one: as in a pipe"],
)
@pytest.mark.parametrize("no_color", [False, True], ids=["colours", "NO_COLOR"])
def test_no_width_breaks_an_id(width: int, has_frame: bool, no_color: bool) -> None:
    file = io.StringIO()
    console = rich.console.Console(
        file=file, force_terminal=True, width=width, no_color=no_color
    )
    rows = (("mooring-lab-1", "", ID), ("mooring-lab-2", "", ID))
    outputs.show(console, outputs.table(outputs.TABLE, COLUMNS, rows))
    text = file.getvalue()
    assert text.count(ID) == len(rows)
    assert ("─" in text) is has_frame
    assert len(text.splitlines()) == (6 if has_frame else 3)


def test_stacked_cells_are_a_list_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = outputs.table(outputs.TABLE, (outputs.Column("Addresses"),), [("a",)])
    shown.add_row("InternalIP 10.0.0.1\nPods routed")
    outputs.show(rich.console.Console(), shown)
    assert "InternalIP 10.0.0.1, Pods routed" in capsys.readouterr().out


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
    "plan volumes",
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


def lines(command: click.Command, *path: str) -> Iterator[tuple[str, str]]:
    """Yield each command below this one with its line in the list of commands."""
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield " ".join((*path, name)), below.get_short_help_str(limit=1000)
        yield from lines(below, *path, name)


def test_no_line_of_help_is_cut() -> None:
    """Of 80 columns a list of commands leaves about 60 to the sentence."""
    long = {name: text for name, text in lines(main.commands) if len(text) > 60}
    print(long)
    assert long == {}

"""Output formats of every command that prints objects.

docs/reference/output.md describes them, and the schema of each JSON document.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from mooring.commands import printable

if TYPE_CHECKING:
    import rich.console
    import rich.table

F = TypeVar("F", bound=Callable[..., None])

TABLE, WIDE, JSON, YAML, NAME = "table", "wide", "json", "yaml", "name"
FORMATS = (TABLE, WIDE, JSON, YAML, NAME)
TERRAFORM = "tf"
"""Blocks of OpenTofu and Terraform: of commands that print them by default."""
_HELP = "Output format; wide: all columns; name: kind/[namespace/]name."


def option(command: F) -> F:
    """Add the option `-o`, `--output` to a command that prints a table by default."""
    return option_of(TABLE)(command)


def option_of(default: str) -> Callable[[F], F]:
    """Return a decorator that adds the option with another default format."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS if default in FORMATS else (default, *FORMATS)),
        default=default,
        show_default=True,
        help=_HELP,
    )


def is_document(output: str) -> bool:
    """Report whether a format is for programs: standard output contains it alone."""
    return output in (JSON, YAML, NAME)


def document(output: str, value: object, names: Iterable[str]) -> bool:
    """Print a JSON or YAML document, or names; report whether the format is for that.

    value: the document, of JSON types. names: of its objects, from `name`, in the order
    of the table; a repeated name is printed once.
    """
    if output == JSON:
        click.echo(json.dumps(value, indent=2))
    elif output == YAML:
        import yaml

        click.echo(
            yaml.safe_dump(value, sort_keys=False, allow_unicode=False), nl=False
        )
    elif output == NAME:
        for text in dict.fromkeys(names):
            click.echo(printable.text(text))
    return is_document(output)


def name(kind: str, *path: str) -> str:
    """Return the name of an object, as "service/default/web".

    kind: in any case; spaces become hyphens. path: namespace, if any, and name.
    """
    return "/".join([kind.lower().replace(" ", "-"), *filter(None, path)])


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. is_wide: in the format wide alone."""

    title: str
    is_wide: bool = False


def print_table(
    output: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    title: str = "",
) -> None:
    """Print a table to standard output; rows have a text for each column."""
    import rich.console

    show(rich.console.Console(highlight=False), table(output, columns, rows, title))


def table(
    output: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    title: str = "",
) -> "rich.table.Table":
    """Return a table in the format table or wide. rows: a text for each column.

    Control characters are escaped, and brackets are no markup.
    """
    import rich.box
    import rich.table
    import rich.text

    shown = [at for at, column in enumerate(columns) if _is_shown(column, output)]
    result = rich.table.Table(
        title=title or None,
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for at in shown:
        result.add_column(columns[at].title)
    for row in rows:
        result.add_row(*(rich.text.Text(printable.text(row[at])) for at in shown))
    return result


def _is_shown(column: Column, output: str) -> bool:
    return output == WIDE or not column.is_wide


def show(console: "rich.console.Console", shown: "rich.table.Table") -> None:
    """Print a table: a frame where it fits a terminal, else one line for each row.

    No cell is folded: an ID that is broken in two can be neither copied nor found by
    grep, and a pipe has no width.
    """
    options = console.options.update(max_width=_LONGEST)
    needed = console.measure(shown, options=options).maximum
    if console.is_terminal and needed <= console.width:
        console.print(shown)
        return
    for line in _lines(shown):
        console.print(line, soft_wrap=True, markup=False)


def _lines(shown: "rich.table.Table") -> "Iterator[rich.text.Text]":
    """Yield title, header and rows as kubectl prints them: columns, and no frame."""
    import rich.text

    if isinstance(shown.title, str):
        yield rich.text.Text(shown.title)
    columns = [
        [_one_line(cell) for cell in (column.header, *column.cells, *_footer(column))]
        for column in shown.columns
    ]
    widths = [max(map(len, cells)) for cells in columns]
    styles = ["bold", *(row.style or "" for row in shown.rows)]
    for at, cells in enumerate(zip(*columns, strict=True)):
        padded = map(str.ljust, cells, widths)
        style = styles[at] if at < len(styles) else "bold"
        yield rich.text.Text("  ".join(padded).rstrip(), style)


def _footer(column: "rich.table.Column") -> "tuple[rich.console.RenderableType, ...]":
    return (column.footer,) if column.footer else ()


def _one_line(cell: "rich.console.RenderableType") -> str:
    """Return the text of a cell; stacked lines become a list."""
    return ", ".join(filter(None, str(cell).splitlines()))


_LONGEST = 100_000
"""Characters of a line that is not folded."""

"""The page of mooring: its commands with their arguments and options."""

import inspect
from collections.abc import Iterator, Mapping

import click

from mooring.commands import main, program
from tests.reference import sheets

HEADS = ("option", "type", "default", "meaning")
KINDS: Mapping[str, str] = {
    "text": "string",
    "boolean": "flag",
    "float": "number",
    "float range": "number",
    "integer range": "integer",
}
"""Types of click, and how the page shows them."""

VERBATIM = "\b"
"""Begins a paragraph that is not wrapped. Source: click, documenting scripts."""


def tables() -> sheets.Tables:
    """Return a section per command: usage, help and options."""
    return {"commands": "\n".join(_section(name, c) for name, c in commands())}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield full name and command, without those that are hidden."""
    yield from _below(program.NAME, main.commands)


def _below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            child = command.get_command(context, word)
            if child is not None and not child.hidden:
                yield from _below(f"{name} {word}", child)


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command that its help shows, but `--help`."""
    return [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    words = (word for word in command.collect_usage_pieces(context))
    paragraphs = map(_paragraph, inspect.cleandoc(command.help or "").split("\n\n"))
    parts = [f"## {name}", sheets.code(" ".join((name, *words))), *paragraphs]
    rows = [_row(option, context) for option in options(command)]
    section = "\n\n".join(parts) + "\n"
    return f"{section}\n{sheets.table(HEADS, rows)}" if rows else section


def _paragraph(text: str) -> str:
    """Return a paragraph in one line; one that click does not wrap, as a list."""
    if text.startswith(VERBATIM):
        lines = text.removeprefix(VERBATIM).split("\n")
        return "\n".join(f"- {sheets.code(line.strip())}" for line in lines if line)
    return " ".join(text.split())


def _row(option: click.Option, context: click.Context) -> tuple[str, ...]:
    names = ", ".join(map(sheets.code, (*option.opts, *option.secondary_opts)))
    meaning = f"{option.help}" + (" Can be repeated." if option.multiple else "")
    default = "required" if option.required else _default(option, context)
    return names, _kind(option), default, meaning


def _kind(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return ", ".join(sheets.code(str(choice)) for choice in option.type.choices)
    if option.metavar:
        return sheets.code(option.metavar)
    return KINDS.get(option.type.name, option.type.name)


def _default(option: click.Option, context: click.Context) -> str:
    value = option.get_default(context)
    if isinstance(value, bool):
        return sheets.code("true" if value else "")
    if isinstance(value, int | float):
        return sheets.code(f"{value:g}")
    return sheets.code(value) if isinstance(value, str) else ""

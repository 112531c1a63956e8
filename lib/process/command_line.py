"""From a table of flags to a command line, its help, and a reference page."""

import dataclasses
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from lib.process import config, flags, kinds, shutdown

HELP = flags.Flag("help", kinds.BOOLEAN, False, "Show help and exit.", short="h")
HELP_ALL = flags.Flag(
    "help-all", kinds.BOOLEAN, False, "Show help with ignored flags, and exit."
)
VERSION = flags.Flag(
    "version",
    dataclasses.replace(kinds.one_of("true", "false", "raw"), implied="true"),
    "false",
    "Print version and exit.",
)
"""Source: k8s.io/component-base version/verflag."""
VERBOSITY = flags.Flag(
    "v",
    kinds.LEVEL,
    0,
    "Log verbosity; 4 or higher enables debug messages.",
    short="v",
    group=flags.LOGGING,
)
VMODULE = flags.Flag[object](
    "vmodule",
    kinds.LEVELS,
    {},
    "Levels by source file of the Go program.",
    no_effect="its patterns name source files of the Go program",
)


_INDENT = "  "
HEAD_MAX = 30
"""Columns for the names of flags in the help; a longer one has a line of its own."""


Judge = Callable[[flags.Values], Sequence[config.FieldProblem | str]]


def _nothing_wrong(values: flags.Values) -> Sequence[config.FieldProblem | str]:
    del values
    return ()


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """What a component is called, does and accepts.

    table: its flags, without --help, --help-all and --version. judge: returns the
    problems of flags that were read, and of the files and addresses that they name, to
    be reported together with flags that were not read.
    """

    name: str
    help: str
    version: str
    table: tuple[flags.Flag[object], ...]
    judge: Judge = _nothing_wrong


def main(program: Program, run: Callable[[flags.Values], int]) -> NoReturn:
    """Read the command line of this process, run, and exit."""
    try:
        code = execute(program, run, sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the help has gone; Python flushes once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = shutdown.Exit.FAILURE
    except KeyboardInterrupt:
        code = shutdown.Exit.FAILURE
    sys.exit(code)


def execute(
    program: Program, run: Callable[[flags.Values], int], arguments: Sequence[str]
) -> int:
    """Read a command line and run; return the exit code.

    `run` is given the values and returns the exit code. A ConfigError, of the flags or
    raised by `run`, ends it with code 2 and one line per problem on standard error.
    """
    table = (*program.table, HELP, HELP_ALL, VERSION)
    values, unread = flags.sift(table, arguments)
    shows_all = values[HELP_ALL]
    if values[HELP] or shows_all or (unread and _asks_for_help(arguments)):
        sys.stdout.write(_help_text(program, table, shows_all))
        return shutdown.Exit.OK
    if values[VERSION] != "false" and not unread:
        sys.stdout.write(f"{program.name} {program.version}\n")
        return shutdown.Exit.OK
    try:
        config.require(_problems(program, values, unread))
        return run(values)
    except config.ConfigError as error:
        for problem in error.problems:
            sys.stderr.write(f"{program.name}: {problem}\n")
        return shutdown.Exit.USAGE


def _problems(
    program: Program, values: flags.Values, unread: Sequence[config.FieldProblem]
) -> Sequence[config.FieldProblem | str]:
    """Return all problems, each once; of a flag that was not read only that."""
    fields = {problem.field for problem in unread}
    judged = {
        str(problem): problem
        for problem in program.judge(values)
        if not isinstance(problem, config.FieldProblem) or problem.field not in fields
    }
    return (*unread, *judged.values())


def _asks_for_help(arguments: Sequence[str]) -> bool:
    return any(argument in ("--help", "-h") for argument in arguments)


def _help_text(
    program: Program, table: Sequence[flags.Flag[object]], shows_all: bool
) -> str:
    """Return usage, description and the flags in groups, wrapped for the terminal."""
    width = max(min(shutil.get_terminal_size().columns, 80) - 2, 50)
    paragraphs = program.help.strip().split("\n\n")
    described = [
        textwrap.fill(
            " ".join(text.split()),
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
        )
        for text in paragraphs
    ]
    shown = [flag for flag in table if shows_all or not flag.no_effect]
    widest = max(len(_head(flag)) for flag in shown)
    column = len(_INDENT) + min(widest, HEAD_MAX) + 2
    groups = [
        "\n".join((f"{title}:", *(_row(flag, column, width) for flag in members)))
        for title, members in grouped(shown)
    ]
    if len(shown) < len(table):
        groups.append(
            f"{len(table) - len(shown)} more flags are accepted and ignored:"
            " --help-all."
        )
    usage = f"Usage: {program.name} [flags]"
    return "\n\n".join((usage, *described, *groups)) + "\n"


IGNORED = "Ignored flags of the reference"


def grouped(
    table: Sequence[flags.Flag[object]],
) -> Iterator[tuple[str, Sequence[flags.Flag[object]]]]:
    """Yield each group of flags with its title; those without effect are the last."""
    for title in flags.GROUPS:
        members = [f for f in table if f.group == title and not f.no_effect]
        if members:
            yield title, members
    if ignored := [flag for flag in table if flag.no_effect]:
        yield IGNORED, ignored


def _row(flag: flags.Flag[object], column: int, width: int) -> str:
    """Return a flag with its meaning in a column beside it, or from the next line."""
    head = _INDENT + _head(flag)
    lines = textwrap.wrap(
        " ".join(_body(flag).split()), max(width - column, 10), break_on_hyphens=False
    )
    if len(head) + 2 > column:
        return head + "".join("\n" + " " * column + line for line in lines)
    return head.ljust(column) + ("\n" + " " * column).join(lines)


def _head(flag: flags.Flag[object]) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    kind = "" if flag.kind is kinds.BOOLEAN else f" {flag.kind.name}"
    return f"{short}--{flag.name}{kind}"


def _default(flag: flags.Flag[object]) -> str:
    return "" if flag.default in ("", (), None) else flag.kind.show(flag.default)


_ZERO = ("", "false", "0", "0s", "[]")
"""Defaults that help leaves out. Source: pflag flag.go (defaultIsZeroValue)."""


def _body(flag: flags.Flag[object]) -> str:
    if flag.no_effect:
        return f"Ignored: {flag.no_effect}."
    if flag.is_required:
        return f"{flag.help} (required)"
    default = _default(flag)
    return flag.help if default in _ZERO else f"{flag.help} (default {default})"


def reference(table: Sequence[flags.Flag[object]]) -> str:
    """Write the reference page of a table in Markdown: a table for each group."""
    return "\n".join(_section(title, members) for title, members in grouped(table))


def _section(title: str, members: Sequence[flags.Flag[object]]) -> str:
    lines = [
        f"## {title}\n",
        "| flag | type | default | meaning |",
        "|---|---|---|---|",
        *map(_reference_row, sorted(members, key=lambda flag: flag.name)),
    ]
    return "\n".join(lines) + "\n"


def _reference_row(flag: flags.Flag[object]) -> str:
    default = _default(flag)
    cells = (
        f"`--{flag.name}`" + (f", `-{flag.short}`" if flag.short else ""),
        flag.kind.name,
        "required" if flag.is_required else f"`{default}`" if default else "",
        f"**No effect:** {flag.no_effect}." if flag.no_effect else flag.help,
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"

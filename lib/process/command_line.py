"""From a table of flags to a click command, its help, and a reference page."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import IO

import click

from lib.process import config, flags, kinds, shutdown

HELP = flags.Flag("help", kinds.BOOLEAN, False, "Show help and exit.", short="h")
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
)
VMODULE = flags.Flag[object](
    "vmodule",
    kinds.LEVELS,
    {},
    "Levels by source file of the Go program.",
    no_effect="its patterns name source files of the Go program",
)


def _nothing_wrong(values: flags.Values) -> Sequence[config.FieldProblem]:
    del values
    return ()


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """What a component is called, does and accepts.

    table: its flags; --help and --version are added. judge: returns what is
    wrong with values that can be read, to be reported together with what cannot.
    """

    name: str
    help: str
    version: str
    table: tuple[flags.Flag[object], ...]
    judge: Callable[[flags.Values], Sequence[config.FieldProblem]] = _nothing_wrong


class _Refused(click.ClickException):
    """The configuration can't be used: one line per problem, no usage text."""

    exit_code = shutdown.Exit.USAGE

    def __init__(self, program: str, error: config.ConfigError) -> None:
        super().__init__(str(error))
        self._lines = [f"{program}: {problem}" for problem in error.problems]

    def show(self, file: IO[str] | None = None) -> None:
        for line in self._lines:
            click.echo(line, file=file, err=True)


class _Command(click.Command):
    """A click command whose command line is read by `flags`, not by click."""

    def __init__(self, program: Program, run: Callable[[flags.Values], int]) -> None:
        super().__init__(program.name, help=program.help, add_help_option=False)
        self._program = program
        self._flags = (*program.table, HELP, VERSION)
        self._run = run

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj, unread = flags.sift(self._flags, args)
        if ctx.obj[HELP] or (unread and _asks_for_help(args)):
            self._show(ctx, self.get_help(ctx))
        if ctx.obj[VERSION] != "false" and not unread:
            self._show(ctx, f"{self._program.name} {self._program.version}")
        reported = {problem.field for problem in unread}
        judged = self._program.judge(ctx.obj)
        problems = (*unread, *(one for one in judged if one.field not in reported))
        if problems:
            raise _Refused(self._program.name, config.ConfigError(problems))
        return []

    def invoke(self, ctx: click.Context) -> None:
        try:
            code = self._run(ctx.obj)
        except config.ConfigError as error:
            raise _Refused(self._program.name, error) from None
        ctx.exit(code)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[flags]"]

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Flags"):
            formatter.write_dl([(_head(flag), _body(flag)) for flag in self._flags])

    @staticmethod
    def _show(ctx: click.Context, text: str) -> None:
        click.echo(text)
        ctx.exit()


def command(program: Program, run: Callable[[flags.Values], int]) -> click.Command:
    """Make the command; `run` gets the values and gives the exit code.

    A ConfigError, of the flags or raised by `run`, ends it with code 2 and one line
    per problem.
    """
    return _Command(program, run)


def _asks_for_help(arguments: Sequence[str]) -> bool:
    return any(argument in ("--help", "-h") for argument in arguments)


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
    default = _default(flag)
    return flag.help if default in _ZERO else f"{flag.help} (default {default})"


def reference(table: Sequence[flags.Flag[object]]) -> str:
    """Write the table for the reference page, in Markdown, sorted by name."""
    lines = ["| flag | type | default | meaning |", "|---|---|---|---|"]
    for flag in sorted(table, key=lambda flag: flag.name):
        default = _default(flag)
        meaning = flag.help
        if flag.no_effect:
            meaning = f"**No effect:** {flag.no_effect}."
        cells = (
            f"`--{flag.name}`" + (f", `-{flag.short}`" if flag.short else ""),
            flag.kind.name,
            f"`{default}`" if default else "",
            meaning,
        )
        lines.append("| " + " | ".join(c.replace("|", r"\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"

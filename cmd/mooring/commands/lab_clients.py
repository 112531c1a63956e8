"""`mooring lab env`, `kubectl`, `logs`: a user's own clients, and the lab's logs."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from mooring.commands import edge

if TYPE_CHECKING:
    from lib.lab.whole import parts

KUBECONFIG = "KUBECONFIG"
ARGUMENTS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Context of a command that passes its arguments on."""
_POLL_S = 0.2
_SHELLS = {"sh": ("export {}={}", "unset {}"), "fish": ("set -gx {} {}", "set -e {}")}


@click.command("env")
@click.option("--unset", is_flag=True, help="Print the commands that remove them.")
@click.option(
    "--shell",
    type=click.Choice(tuple(_SHELLS)),
    default="sh",
    show_default=True,
    help="Syntax; sh is also that of bash and zsh.",
)
def env(unset: bool, shell: str) -> None:
    """Print variables for kubectl and the cloud's client.

    For the shell.

    Example: eval "$(mooring lab env)"
    """
    where = edge.where()
    with edge.plainly():
        from mooring.commands import lab_show

        export, remove = _SHELLS[shell]
        if unset:
            names = (KUBECONFIG, *lab_show.grounds(where).variables)
            lines = [remove.format(name) for name in names]
        else:
            variables = _variables(lab_show.current(where))
            quote = shlex.quote if shell == "sh" else _quoted_for_fish
            lines = [export.format(*(n, quote(v))) for n, v in variables.items()]
    click.echo("\n".join(lines))


def _variables(lab: "parts.Lab") -> Mapping[str, str]:
    return {KUBECONFIG: str(lab.kubeconfig), **lab.environment()}


def _quoted_for_fish(value: str) -> str:
    # Source: fish documentation, "Quotes": backslash and single quote are escaped.
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@click.command(context_settings=ARGUMENTS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """Run kubectl in the lab's cluster: lab kubectl -- get nodes."""
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.artifacts import programs
        from mooring.commands import lab_show

        lab = lab_show.current(where)
        if lab.record.kubeconfig:
            path = shutil.which("kubectl")
            if path is None:
                raise errors.LabError(
                    "kubectl: not found in PATH; the lab uses an existing cluster, for"
                    " which it builds no kubectl"
                )
        else:
            path = str(programs.path(where, "kubectl"))
        whole = {**os.environ, KUBECONFIG: str(lab.kubeconfig)}
    replace_process((path, *arguments), whole)


def replace_process(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Become another program, which has the terminal, the signals and the exit code.

    env: its whole environment.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command[0], list(command), dict(env))  # noqa: S606 - no shell here
    except OSError as error:
        raise click.ClickException(f"{command[0]}: {error.strerror}") from error


def _log_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the programs with a log, for the completion of a shell."""
    from lib.lab.run import program_logs

    del context, parameter
    names = program_logs.names(edge.where())
    return [name for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("program", required=False, shell_complete=_log_names)
@click.option("-f", "--follow", is_flag=True, help="Print what is added, until Ctrl-C.")
@click.option(
    "-n",
    "--tail",
    "lines",
    type=click.IntRange(min=0),
    help="Print the last N lines only.",
)
def logs(program: str | None, *, follow: bool, lines: int | None) -> None:
    """Print the log of a program, or list the programs.

    Without PROGRAM the programs with a log are listed.

    Example: mooring lab logs -f openstack-ccm
    """
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.run import program_logs

        known = program_logs.names(where)
        if not known:
            raise errors.LabError(
                f"{where.log}: no files; `{edge.spoken()} lab up` starts a lab"
            )
        if program is None:
            click.echo("\n".join(known))
            return
        require_known("PROGRAM", program, known)
        file = program_logs.path(where, program)
        if follow:
            _print(program_logs.follow(file, lines, lambda: time.sleep(_POLL_S)))
        else:
            _print(program_logs.read(file, lines))


def require_known(field: str, value: str, known: Sequence[str]) -> None:
    """Check that a name exists; else end with exit code 2 and the known names."""
    from lib.process import config

    if value not in known:
        expected = f"one of {', '.join(known)}"
        problem = config.required(field, value, expected)
        raise click.UsageError(f"{problem}{config.did_you_mean(value, known)}")


def _print(parts: Iterable[bytes]) -> None:
    out = sys.stdout.buffer
    for part in parts:
        out.write(part)
        out.flush()

"""`mooring lab zvirt`: faults, time and counts of the lab's simulated engine."""

import json
import pathlib

import click

from mooring.commands import edge


@click.group()
def zvirt() -> None:
    """Change what the lab's zVirt engine does."""


@zvirt.command()
@click.argument("lines", nargs=-1)
def rules(lines: tuple[str, ...]) -> None:
    """Replace all rules; without LINES there are none.

    A rule is one argument, such as "hold vm-copied web-*", "without-agent", "html GET
    api/* 503 5" or "silence POST sso/* -". lib/lab/zvirt/settings.py lists all.
    """
    _ask(do="rules", lines=list(lines))


@zvirt.command()
@click.argument("seconds", type=float)
def advance(seconds: float) -> None:
    """Move the clock of the engine by SECONDS."""
    _ask(do="advance", seconds=seconds)


@zvirt.command("lose-tokens")
def lose_tokens() -> None:
    """Have the engine forget all tokens."""
    _ask(do="lose-tokens")


@zvirt.command("set")
@click.argument("kind")
@click.argument("name")
@click.argument("status")
def set_status(kind: str, name: str, status: str) -> None:
    """Set the STATUS of an object of the engine.

    KIND is storage_domain, host, vm, disk or template.
    """
    _ask(do="set", kind=kind, name=name, status=status)


@zvirt.command()
def counts() -> None:
    """Print the number of requests by kind, as JSON."""
    click.echo(json.dumps(_ask(do="counts"), indent=2, sort_keys=True))


def _ask(**request: object) -> object:
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.zvirt import control
        from mooring.commands import lab_show

        lab = lab_show.current(where)
        if lab.grounds.name != "zvirt":
            raise errors.LabError(f"the lab's cloud is {lab.grounds.title}")
        described = lab.grounds.described(where, lab.record.existing)
        return control.ask(pathlib.Path(described.file), **request)

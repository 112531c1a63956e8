"""Output of `mooring doctor`, and its shared options."""

import json
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, printable, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lib.doctor import model

account_option = click.option(
    "--service-account",
    default="",
    metavar="NAMESPACE/NAME",
    help="Check its permissions, not those of the kubeconfig's user.",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1),
    default=10.0,
    help="Seconds for each call.",
)
_COLOURS = {"OK": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "cyan"}


def account(text: str) -> "model.DaemonAccount | None":
    """Return the account that --service-account names; None: it is not given.

    Raises:
        BadParameter: it is malformed.
    """
    from lib.doctor import model

    named = text.split("/")
    if text and (len(named) != 2 or not all(named)):
        right = f"{text!r} is not of the form NAMESPACE/NAME"
        raise click.BadParameter(right, param_hint="--service-account")
    return model.DaemonAccount(*named) if text else None


def show(results: "Sequence[model.CheckResult]", output: str) -> None:
    """Print one line for each result, or the JSON document."""
    from lib.process import redaction

    if output == reach.JSON:
        entries: list[documents.CheckEntry] = [
            {
                "check": result.check,
                "state": result.state.value,
                "message": redaction.scrub(result.text),
                "remedy": result.remedy,
            }
            for result in results
        ]
        click.echo(json.dumps(entries, indent=2))
        return
    width = max(len(result.check) for result in results)
    for result in results:
        state = click.style(f"{result.state.value:4}", fg=_COLOURS[result.state.value])
        remedy = f"; remedy: {result.remedy}" if result.remedy else ""
        message = printable.text(f"{redaction.scrub(result.text)}{remedy}")
        click.echo(f"{state}  {result.check:{width}}  {message}")

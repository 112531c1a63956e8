"""How the lines of a doctor are shown, and whose rights it judges."""

import json
from typing import TYPE_CHECKING

import click

from mooring.commands import printable, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lib.doctor import model

account_option = click.option(
    "--service-account",
    default="",
    metavar="NAMESPACE/NAME",
    help="Judge its rights, not those of the kubeconfig's user.",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1),
    default=10.0,
    help="Seconds for each call.",
)
_COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red", "skip": "cyan"}


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


def show(findings: "Sequence[model.CheckResult]", output: str) -> None:
    """Print a line for each finding, or a document."""
    from lib.process import redaction

    if output == reach.JSON:
        lines = [
            {
                "check": one.check,
                "state": one.state.value,
                "text": redaction.scrub(one.text),
                "remedy": one.remedy,
            }
            for one in findings
        ]
        click.echo(json.dumps(lines, indent=2))
        return
    width = max(len(one.check) for one in findings)
    for one in findings:
        state = click.style(f"{one.state.value:4}", fg=_COLOURS[one.state.value])
        remedy = f"; remedy: {one.remedy}" if one.remedy else ""
        text = redaction.scrub(one.text)
        said = printable.text(f"{text}{remedy}")
        click.echo(f"{state}  {one.check:{width}}  {said}")

"""Output of `mooring doctor`, and its shared options."""

from typing import TYPE_CHECKING

import click

from mooring.commands import documents, outputs, printable

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
    """Print one line for each result, or the document."""
    names = [outputs.name("check", result.check) for result in results]
    if outputs.document(output, document(results), names):
        return
    if output == outputs.WIDE:
        outputs.print_table(output, _COLUMNS, [_row(result) for result in results])
        return
    width = max(len(result.check) for result in results)
    for result in results:
        state, check, message, remedy = _row(result)
        state = click.style(f"{state:4}", fg=_COLOURS[state])
        text = printable.text(f"{message}; remedy: {remedy}" if remedy else message)
        click.echo(f"{state}  {check:{width}}  {text}")


_COLUMNS = tuple(map(outputs.Column, ("State", "Check", "Message", "Remedy")))


def _row(result: "model.CheckResult") -> tuple[str, str, str, str]:
    from lib.process import redaction

    message, remedy = redaction.scrub(result.text), redaction.scrub(result.remedy)
    return result.state.value, result.check, message, remedy


def document(results: "Sequence[model.CheckResult]") -> list[documents.CheckEntry]:
    """Return the results as their JSON document."""
    return [
        {"check": check, "state": state, "message": message, "remedy": remedy}
        for state, check, message, remedy in map(_row, results)
    ]

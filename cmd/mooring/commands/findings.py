"""Output of `mooring doctor`, and its shared options."""

import dataclasses
import time
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, outputs, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
wait_option = click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Repeat the checks until none fails, for at most this time.",
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


def until_well(
    checks: "Callable[[], Iterable[model.CheckResult]]", wait_s: float
) -> "Iterator[model.CheckResult]":
    """Yield the results of all checks, once none fails or the time is over.

    wait_s: 0: they are executed once, and each is yielded when it is known.
    """
    from lib.doctor import examine

    end = time.monotonic() + wait_s
    while wait_s > 0:
        results = tuple(checks())
        if examine.is_well(results) or time.monotonic() + POLL_S > end:
            yield from results
            return
        time.sleep(POLL_S)
    yield from checks()


def show(
    results: "Iterable[model.CheckResult]", output: str
) -> "Sequence[model.CheckResult]":
    """Print one line for each result when it is known, or the document; return all."""
    if output == outputs.TABLE:
        return [_print(result) for result in results]
    listed = list(results)
    names = [outputs.name("check", result.check) for result in listed]
    if not outputs.document(output, document(listed), names):
        outputs.print_table(output, _COLUMNS, [_row(result) for result in listed])
    return listed


def _print(result: "model.CheckResult") -> "model.CheckResult":
    state, check, message, remedy = _row(dataclasses.replace(result, more=()))
    state = click.style(f"{state:4}", fg=_COLOURS[state])
    text = printable.text(f"{message}; remedy: {remedy}" if remedy else message)
    click.echo(f"{state}  {check:{_WIDTH}}  {text}")
    return result


_WIDTH = 19
"""Of the column with the name of a check."""
POLL_S = 2.0


_COLUMNS = tuple(map(outputs.Column, ("State", "Check", "Message", "Remedy")))


def _row(result: "model.CheckResult") -> tuple[str, str, str, str]:
    from lib.process import redaction

    whole = "; ".join((result.text, *result.more))
    message, remedy = redaction.scrub(whole), redaction.scrub(result.remedy)
    return result.state.value, result.check, message, remedy


def document(results: "Sequence[model.CheckResult]") -> documents.Checks:
    """Return the results as their JSON document."""
    return {
        "checks": [
            {"check": check, "state": state, "message": message, "remedy": remedy}
            for state, check, message, remedy in map(_row, results)
        ]
    }

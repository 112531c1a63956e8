"""`mooring plan osdpl`: what would be done to the releases of a cloud."""

import json
import os
import pathlib
import sys
import tempfile
from typing import TYPE_CHECKING

import click
import rich.console
import rich.table

from mooring.commands import edge, osdpl_options, reach

if TYPE_CHECKING:
    from lib.osdpl import planning


@click.command()
@osdpl_options.file
@osdpl_options.kubeconfig
@osdpl_options.context
@click.option("--helm", default="helm", show_default=True, help="Program of helm.")
@osdpl_options.charts
@click.option("--diff/--no-diff", "has_diff", default=True, help="Show manifests.")
@osdpl_options.output
def osdpl(  # noqa: PLR0913 - one argument for each option
    file: pathlib.Path | None,
    kubeconfig: str,
    context: str,
    helm: str,
    source: str,
    has_diff: bool,
    output: str,
) -> None:
    """Show state, action and reason of each release, and what would change.

    Of the OpenStackDeployment in the cluster, or of FILE in its place. Only reads. Of
    Secrets only is shown that they change. Exit code 1 if something is refused.
    """
    with edge.plainly():
        reach.quiet()
        made = _plan(file, kubeconfig, context, helm, source)
        _show(made, output, has_diff)
    is_bad = made.refused or any(row.state == "Invalid" for row in made.rows)
    sys.exit(1 if is_bad else 0)


def _plan(
    file: pathlib.Path | None, kubeconfig: str, context: str, helm: str, source: str
) -> "planning.Plan":
    from lib.helm import cache, command
    from lib.kube import client
    from lib.osdpl import planning
    from mooring.commands import render_osdpl

    document = render_osdpl.document(file) if file is not None else None
    api = client.KubeClient(
        reach.cluster(kubeconfig, context), user_agent="mooring-plan"
    )
    default = osdpl_options.chart_source(source)
    with tempfile.TemporaryDirectory(prefix="mooring-plan-") as folder:
        home = pathlib.Path(folder)
        program = command.Command(helm, home / "helm", None, os.environ)
        charts = cache.Charts(home / "charts")
        return planning.Planner(api, program, charts, default).plan(document)


def _show(made: "planning.Plan", output: str, has_diff: bool) -> None:
    if output == reach.JSON:
        releases = [
            {
                "release": row.name,
                "service": row.service,
                "state": row.state.value,
                "action": row.action.value,
                "reason": row.reason,
                "diff": list(row.diff) if has_diff else [],
            }
            for row in made.rows
        ]
        document = {
            "refused": made.refused,
            "ignored": list(made.ignored),
            "releases": releases,
        }
        click.echo(json.dumps(document, indent=2))
        return
    if made.refused:
        click.echo(f"Nothing would be changed: {made.refused}")
        return
    table = rich.table.Table()
    for column in ("service", "release", "state", "action", "reason"):
        table.add_column(column)
    for row in made.rows:
        table.add_row(
            row.service, row.name, row.state.value, row.action.value, row.reason
        )
    rich.console.Console().print(table)
    if made.ignored:
        click.echo("Fields without effect:")
        click.echo("\n".join(f"  {text}" for text in made.ignored))
    for row in made.rows if has_diff else ():
        if row.diff:
            click.echo(f"\n{row.name}:")
            click.echo("\n".join(row.diff))

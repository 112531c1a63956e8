"""`mooring plan routes`: what would be done to routes to Pods."""

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING

import click
import rich.console
import rich.table

from mooring.commands import edge, printable, providers, reach

if TYPE_CHECKING:
    from lib.ccm import previews_routes


@click.command()
@reach.options
@click.option(
    "--cluster-id", default="", help="The daemon's; the UID of kube-system if empty."
)
@click.option("--cluster-cidr", default="", help="The daemon's; none if empty.")
def routes(  # noqa: PLR0913 - one argument for each option
    kubeconfig: str,
    context: str,
    cloud: str,
    cloud_config: str,
    output: str,
    cluster_id: str,
    cluster_cidr: str,
) -> None:
    """Show what would be done to routes and address pairs.

    Only reads: no Lease is taken, no Event is written. Exit code 1 if the route table
    could not be read.
    """
    with edge.plainly():
        from lib.ccm import options, previews_routes
        from lib.kube import client
        from lib.process import config

        reach.quiet()
        configured = providers.PROVIDERS[cloud].read(cloud_config, os.environ)
        tables = configured.owner().routes
        if tables is None:
            raise config.ConfigError(["[Route] router-id: not set: routes are off"])
        problems: list[config.FieldProblem] = []
        cidrs = options.cluster_cidrs(cluster_cidr, problems)
        config.require(problems)
        found = reach.cluster(kubeconfig, context)
        api = client.KubeClient(found, user_agent="mooring-plan")
        made = previews_routes.routes(api, tables, cluster_id, cidrs)
        if output == reach.JSON:
            click.echo(json.dumps(dataclasses.asdict(made), indent=2))
        else:
            show(made, rich.console.Console())
    sys.exit(1 if made.unread else 0)


def show(made: "previews_routes.RoutesPreview", console: rich.console.Console) -> None:
    """Print a row for each change and each problem, and a summary."""
    if made.unread:
        why = printable.text(made.unread)
        click.echo(f"{made.table} could not be read: {why}", err=True)
        return
    if made.rows:
        console.print(_table(made))
    click.echo(summary(made))


def _table(made: "previews_routes.RoutesPreview") -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Object", "Action", "Why"):
        table.add_column(name, overflow="fold")
    for row in made.rows:
        # Texts of others may hold brackets, which rich would take for its own.
        cells = map(printable.text, (row.subject, row.action, row.why))
        table.add_row(*map(rich.text.Text, cells))
    return table


def summary(made: "previews_routes.RoutesPreview") -> str:
    """Return in one sentence what there is to do."""
    problems = sum(row.action == "problem" for row in made.rows)
    changes = len(made.rows) - problems
    text = f"{changes} changes" if changes else "Nothing would change"
    text += f" for {made.nodes} Nodes in {made.table}"
    return f"{text}, {problems} problems." if problems else f"{text}."

"""`mooring plan`: what a daemon would do now, without doing it."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click
import rich.console
import rich.table

from mooring.commands import (
    edge,
    plan_osdpl,
    plan_routes,
    plan_services,
    printable,
    providers,
    reach,
)

if TYPE_CHECKING:
    from lib.ccm import previews


@click.group()
def plan() -> None:
    """Show what a daemon would do now; nothing is written."""


plan.add_command(plan_osdpl.osdpl)
plan.add_command(plan_routes.routes)
plan.add_command(plan_services.services)


@plan.command()
@reach.options
@click.option("--node-delete-max-count", type=click.IntRange(0), default=3)
@click.option("--node-delete-max-percent", type=click.IntRange(0, 100), default=30)
def nodes(  # noqa: PLR0913 - one argument for each option
    kubeconfig: str,
    context: str,
    cloud: str,
    cloud_config: str,
    output: str,
    node_delete_max_count: int,
    node_delete_max_percent: int,
) -> None:
    """Show what the cloud controller manager would do to Nodes.

    Only reads: no Lease is taken, no Event is written. SKIP_NODE_DELETION and
    OS_CCM_REGIONAL count as they do for the daemon. Exit code 1 if some Nodes could not
    be judged.
    """
    with edge.plainly():
        from lib.ccm import previews
        from lib.kube import client
        from lib.nodes import deletion_limit, model

        reach.quiet()
        limit = deletion_limit.Limit(
            count=node_delete_max_count, percent=node_delete_max_percent
        )
        settings = model.NodeSettings(
            deletes=not os.environ.get("SKIP_NODE_DELETION"), limit=limit
        )
        instances = providers.of(cloud).read(cloud_config, os.environ).instances()
        found = reach.cluster(kubeconfig, context)
        api = client.KubeClient(found, user_agent="mooring-plan")
        made = previews.nodes(api, instances, settings)
        _show(made, output)
    sys.exit(1 if made.unread else 0)


def _show(made: "previews.NodesPreview", output: str) -> None:
    if output == reach.JSON:
        actions = [
            {"node": row.node, "action": row.action, "why": row.why}
            for row in made.rows
        ]
        unread = [{"node": node, "why": why} for node, why in made.unread]
        told = {"nodes": made.nodes, "foreign": made.foreign}
        click.echo(json.dumps({**told, "actions": actions, "unread": unread}, indent=2))
        return
    if made.rows:
        rich.console.Console().print(_table(made))
    click.echo(_summary(made))
    for node, why in made.unread:
        said = printable.text(f"{node} could not be judged: {why}")
        click.echo(said, err=True)


def _table(made: "previews.NodesPreview") -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Node", no_wrap=True)
    table.add_column("Action")
    table.add_column("Why", overflow="fold")
    for row in made.rows:
        # Texts of others may hold brackets, which rich would take for its own.
        cells = map(printable.text, (row.node, row.action, row.why))
        table.add_row(*map(rich.text.Text, cells))
    return table


def _summary(made: "previews.NodesPreview") -> str:
    touched = len({row.node for row in made.rows})
    if not touched:
        said = f"Nothing would change: {made.nodes} Nodes looked at"
    else:
        said = f"{len(made.rows)} actions on {touched} of {made.nodes} Nodes"
    if made.foreign:
        said += f", {made.foreign} of another cloud or region"
    if made.unread:
        said += f", {len(made.unread)} could not be judged"
    return f"{said}."

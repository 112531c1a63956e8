"""`mooring plan`: the changes that a daemon would apply now."""

import os
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import (
    documents,
    edge,
    outputs,
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
    """Show what a daemon would do now; nothing is changed."""


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

    Only reads: no Lease is acquired, no Event is recorded. SKIP_NODE_DELETION and
    OS_CCM_REGIONAL apply as they do to the daemon. Exit code 1 if the state of some
    Nodes is unknown.
    """
    with edge.plainly():
        from lib.ccm import previews
        from lib.kube import client
        from lib.nodes import deletion_budget, model

        reach.quiet()
        limit = deletion_budget.Limit(
            count=node_delete_max_count, percent=node_delete_max_percent
        )
        settings = model.NodeSettings(
            deletes=not os.environ.get("SKIP_NODE_DELETION"), limit=limit
        )
        instances = providers.of(cloud).read(cloud_config, os.environ).instances()
        api = client.KubeClient(
            reach.cluster(kubeconfig, context), user_agent="mooring-plan"
        )
        preview = previews.nodes(api, instances, settings)
        _show(preview, output)
    sys.exit(1 if preview.unread else 0)


_COLUMNS = tuple(map(outputs.Column, ("Node", "Action", "Reason")))


def _show(plan: "previews.NodesPreview", output: str) -> None:
    names = [outputs.name("node", row.node) for row in plan.rows]
    names += [outputs.name("node", node) for node, _ in plan.unread]
    if outputs.document(output, document(plan), names):
        return
    if plan.rows:
        rows = [(row.node, row.action.value, row.reason) for row in plan.rows]
        outputs.print_table(output, _COLUMNS, rows)
    click.echo(_summary(plan))
    for node, reason in plan.unread:
        click.echo(printable.text(f"{node}: unknown: {reason}"), err=True)


def document(plan: "previews.NodesPreview") -> documents.NodesPlan:
    """Return the plan as its JSON document."""
    return {
        "nodes": plan.nodes,
        "not_managed": plan.not_managed,
        "actions": [
            {"node": row.node, "action": row.action.value, "reason": row.reason}
            for row in plan.rows
        ],
        "unknown": [{"node": node, "reason": reason} for node, reason in plan.unread],
    }


def _summary(plan: "previews.NodesPreview") -> str:
    changed = len({row.node for row in plan.rows})
    if not changed:
        summary = f"No changes: {plan.nodes} Nodes checked"
    else:
        summary = f"{len(plan.rows)} actions on {changed} of {plan.nodes} Nodes"
    if plan.not_managed:
        summary += f", {plan.not_managed} of another cloud or region"
    if plan.unread:
        summary += f", {len(plan.unread)} unknown"
    return f"{summary}."

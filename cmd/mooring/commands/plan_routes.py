"""`mooring plan routes`: what would be done to routes to Pods."""

import os
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, edge, outputs, printable, providers, reach

if TYPE_CHECKING:
    from lib.ccm import previews_routes


@click.command()
@reach.options
@click.option(
    "--cluster-id",
    default="",
    help="Cluster ID of openstack-ccm (default: UID of namespace kube-system).",
)
@click.option(
    "--cluster-cidr", default="", help="Cluster CIDR of openstack-ccm (default: none)."
)
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

    Only reads: no Lease is acquired, no Event is recorded. Exit code 1 if the route
    table cannot be read.
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
        api = client.KubeClient(
            reach.cluster(kubeconfig, context), user_agent="mooring-plan"
        )
        preview = previews_routes.routes(api, tables, cluster_id, cidrs)
        show(preview, output)
    sys.exit(1 if preview.unread else 0)


def document(plan: "previews_routes.RoutesPreview") -> documents.RoutesPlan:
    """Return the plan as its JSON document."""
    return {
        "table": plan.table,
        "nodes": plan.nodes,
        "actions": [
            {"object": row.subject, "action": row.action.value, "reason": row.reason}
            for row in plan.rows
        ],
        "error": plan.unread,
    }


def show(plan: "previews_routes.RoutesPreview", output: str = outputs.TABLE) -> None:
    """Print a row for each change and each problem, and a summary; or the document."""
    names = [outputs.name(*row.subject.split(" ", 1)) for row in plan.rows]
    if outputs.document(output, document(plan), names):
        return
    if plan.unread:
        error = printable.text(plan.unread)
        click.echo(f"{plan.table}: read failed: {error}", err=True)
        return
    if plan.rows:
        rows = [(row.subject, row.action, row.reason) for row in plan.rows]
        outputs.print_table(output, _COLUMNS, rows)
    click.echo(summary(plan))


_COLUMNS = tuple(map(outputs.Column, ("Object", "Action", "Reason")))


def summary(plan: "previews_routes.RoutesPreview") -> str:
    """Return the numbers of changes and problems as one sentence."""
    from lib.routes import preview

    problems = sum(row.action == preview.RouteAction.PROBLEM for row in plan.rows)
    changes = len(plan.rows) - problems
    text = f"{changes} changes" if changes else "No changes"
    text += f" for {plan.nodes} Nodes in {plan.table}"
    return f"{text}, {problems} problems." if problems else f"{text}."

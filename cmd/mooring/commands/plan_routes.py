"""`mooring plan routes`: what would be done to routes to Pods."""

import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import daemon, documents, edge, outputs, printable, reach

if TYPE_CHECKING:
    from lib.ccm import previews_routes


@click.command()
@reach.options("mooring-plan")
@click.option(
    "--cluster-id",
    default="",
    help="Cluster ID of openstack-ccm (default: that of its Deployment, or the UID of"
    " namespace kube-system).",
)
@click.option(
    "--cluster-cidr",
    default="",
    help="Cluster CIDR of openstack-ccm (default: that of its Deployment, or none).",
)
@reach.detailed_exitcode
def routes(
    target: reach.Target, cluster_id: str, cluster_cidr: str, is_detailed: bool
) -> None:
    """Show what would be done to routes and address pairs.

    Only reads: no Lease is acquired, no Event is recorded. Exit code 1 if the route
    table cannot be read.
    """
    with edge.plainly():
        from lib.ccm import options, previews_routes
        from lib.process import config

        reach.quiet()
        tables = target.configured().owner().routes
        if tables is None:
            raise config.ConfigError(["[Route] router-id: not set: routes are off"])
        api = target.api()
        manager = daemon.ManagerDeployment.of(target.provider, api)
        problems: list[config.FieldProblem] = []
        cidr = manager.value("--cluster-cidr", cluster_cidr)
        cidrs = options.cluster_cidrs(cidr, problems)
        config.require(problems)
        own_id = manager.value("--cluster-id", cluster_id)
        preview = previews_routes.routes(api, tables, own_id, cidrs)
        show(preview, target.output)
        manager.warn_if_idle(api)
    code = reach.exit_code(
        is_failed=bool(preview.unread),
        is_invalid=changes(preview) < len(preview.rows),
        has_changes=changes(preview) > 0,
        is_detailed=is_detailed,
    )
    sys.exit(code)


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


def changes(plan: "previews_routes.RoutesPreview") -> int:
    """Return the number of writes; problems are none."""
    from lib.routes import preview

    return sum(row.action != preview.RouteAction.PROBLEM for row in plan.rows)


def summary(plan: "previews_routes.RoutesPreview") -> str:
    """Return the numbers of changes and problems as one sentence."""
    count = changes(plan)
    problems = len(plan.rows) - count
    text = f"{count} changes" if count else "No changes"
    text += f" for {plan.nodes} Nodes in {plan.table}"
    return f"{text}, {problems} problems." if problems else f"{text}."

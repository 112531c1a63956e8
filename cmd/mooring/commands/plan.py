"""`mooring plan`: the changes that a daemon would apply now."""

import os
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import (
    daemon,
    documents,
    edge,
    outputs,
    plan_machines,
    plan_osdpl,
    plan_routes,
    plan_services,
    plan_volumes,
    printable,
    provider_entry,
    reach,
)

if TYPE_CHECKING:
    from lib.ccm import previews
    from lib.kube import client


DELETE_COUNT, DELETE_PERCENT = 3, 30
_COUNT, _PERCENT = "--node-delete-max-count", "--node-delete-max-percent"
"""Flags of the daemon, and their defaults."""


class _Rejected(click.UsageError):
    """An invalid command line, with the exit code of an error."""

    exit_code = reach.FAILED


class _Plan(click.Group):
    """A group of plans: with --detailed-exitcode, 2 means changes and nothing else."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep in mind whether the flag is set."""
        ctx.meta[reach.DETAILED] = reach.DETAILED in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an invalid command line is an error like any other."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if ctx.meta[reach.DETAILED]:
                raise _Rejected(error.format_message(), error.ctx) from error
            raise


@click.group(cls=_Plan)
def plan() -> None:
    """Show what a daemon would do now; nothing is changed."""


plan.add_command(plan_machines.machines)
plan.add_command(plan_osdpl.osdpl)
plan.add_command(plan_routes.routes)
plan.add_command(plan_services.services)
plan.add_command(plan_volumes.volumes)


@plan.command()
@reach.options("mooring-plan")
@click.option(
    _COUNT,
    type=click.IntRange(0),
    help="Deletion budget: number of Nodes (default: that of the Deployment, or"
    f" {DELETE_COUNT}).",
)
@click.option(
    _PERCENT,
    type=click.IntRange(0, 100),
    help="Deletion budget: percentage of all Nodes (default: that of the Deployment,"
    f" or {DELETE_PERCENT}).",
)
@reach.detailed_exitcode
def nodes(
    target: reach.Target,
    node_delete_max_count: int | None,
    node_delete_max_percent: int | None,
    is_detailed: bool,
) -> None:
    """Show what the cloud controller manager would do to Nodes.

    Only reads: no Lease is acquired, no Event is recorded. SKIP_NODE_DELETION and
    OS_CCM_REGIONAL apply as they do to the daemon. Exit code 1 if the state of some
    Nodes is unknown.
    """
    with edge.plainly():
        reach.quiet()
        configured, api = target.configured(), target.api()
        manager = daemon.ManagerDeployment.of(target.provider, api)
        count = _limit(manager, _COUNT, node_delete_max_count, DELETE_COUNT)
        percent = _limit(manager, _PERCENT, node_delete_max_percent, DELETE_PERCENT)
        preview = _preview(api, configured, count, percent)
        _show(preview, target.output)
        manager.warn_if_idle(api)
    code = reach.exit_code(
        is_failed=bool(preview.unread),
        has_changes=bool(preview.rows),
        is_detailed=is_detailed,
    )
    sys.exit(code)


def _limit(
    manager: daemon.ManagerDeployment, flag: str, option: int | None, default: int
) -> int:
    if option is not None:
        return option
    text = manager.value(flag, "")
    return int(text) if text.isdecimal() else default


def read(target: reach.Target) -> "previews.NodesPreview":
    """Return what would be done to Nodes, within the default limits of deletions.

    Raises:
        KubeError, CloudError, ConfigError: Nodes or servers cannot be read.
    """
    configured = target.configured()
    return _preview(target.api(), configured, DELETE_COUNT, DELETE_PERCENT)


def _preview(
    api: "client.Api",
    configured: provider_entry.Configured,
    count: int,
    percent: int,
) -> "previews.NodesPreview":
    from lib.ccm import previews
    from lib.nodes import deletion_budget, model

    limit = deletion_budget.Limit(count=count, percent=percent)
    settings = model.NodeSettings(
        deletes=not os.environ.get("SKIP_NODE_DELETION"), limit=limit
    )
    return previews.nodes(api, configured.instances(), settings)


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

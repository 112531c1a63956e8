"""`mooring plan osdpl`: what would be done to the releases of a cloud."""

import dataclasses
import os
import pathlib
import sys
import tempfile
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, edge, osdpl_options, outputs, reach

if TYPE_CHECKING:
    from lib.osdpl.reconcile import planning


@click.command()
@osdpl_options.file
@osdpl_options.kubeconfig
@osdpl_options.context
@click.option("--helm", default="helm", show_default=True, help="Program of helm.")
@osdpl_options.charts
@osdpl_options.access
@click.option("--diff/--no-diff", "has_diff", default=True, help="Show manifests.")
@click.option(
    "--live",
    "is_live",
    is_flag=True,
    help="Show manual changes to objects of releases; asks by dry runs.",
)
@osdpl_options.output
@reach.detailed_exitcode
def osdpl(  # noqa: PLR0913 - one argument for each option
    file: pathlib.Path | None,
    kubeconfig: str,
    context: str,
    helm: str,
    source: str,
    access: pathlib.Path | None,
    has_diff: bool,
    is_live: bool,
    output: str,
    is_detailed: bool,
) -> None:
    """Show what would be done to the releases of helm.

    Of the OpenStackDeployment in the cluster, or of FILE in its place. Only reads. Of
    Secrets only is shown that they change. With --live also the objects of releases
    that were changed or deleted manually. Exit code 1 if something is refused.

    Example: mooring plan osdpl cloud.yaml
    """
    with edge.plainly():
        reach.quiet()
        preview = _plan(
            _Reach(kubeconfig, context, helm, source, access), file, is_live
        )
        _show(preview, output, has_diff)
    is_invalid = any(row.state == "Invalid" for row in preview.rows)
    code = reach.exit_code(
        is_failed=bool(preview.refused) or is_invalid,
        has_changes=any(row.action.value != "skip" for row in preview.rows),
        is_detailed=is_detailed,
    )
    sys.exit(code)


@dataclasses.dataclass(frozen=True, slots=True)
class _Reach:
    """How cluster, helm and charts are reached."""

    kubeconfig: str
    context: str
    helm: str
    source: str
    access: pathlib.Path | None


def _plan(through: _Reach, file: pathlib.Path | None, is_live: bool) -> "planning.Plan":
    from lib.helm import command
    from lib.kube import client
    from lib.osdpl.reconcile import planning
    from mooring.commands import render_osdpl

    document = render_osdpl.document(file) if file is not None else None
    cluster = reach.cluster(through.kubeconfig, through.context)
    api = client.KubeClient(cluster, user_agent="mooring-plan")
    default = osdpl_options.chart_source(through.source)
    with tempfile.TemporaryDirectory(prefix="mooring-plan-") as folder:
        home = pathlib.Path(folder)
        program = command.Command(through.helm, home / "helm", None, os.environ)
        charts = osdpl_options.chart_cache(home / "charts", through.access)
        return planning.Planner(api, program, charts, default).plan(document, is_live)


def document(plan: "planning.Plan", has_diff: bool) -> documents.OsdplPlan:
    """Return the plan as its JSON document. has_diff: with diffs of manifests."""
    return {
        "refused": plan.refused,
        "ignored": list(plan.ignored),
        "releases": [
            {
                "release": row.name,
                "service": row.service,
                "state": row.state.value,
                "action": row.action.value,
                "reason": row.reason,
                "diff": list(row.diff) if has_diff else [],
            }
            for row in plan.rows
        ],
        "manual_changes": [
            {
                "release": change.release,
                "kind": change.kind,
                "name": change.name,
                "change": change.change,
            }
            for change in plan.changes
        ],
    }


_COLUMNS = tuple(
    map(outputs.Column, ("Service", "Release", "State", "Action", "Reason"))
)


def _show(plan: "planning.Plan", output: str, has_diff: bool) -> None:
    names = [outputs.name("release", row.name) for row in plan.rows if row.name]
    if outputs.document(output, document(plan, has_diff), names):
        return
    if plan.refused:
        click.echo(f"No changes: {plan.refused}")
        return
    rows = [
        (row.service, row.name, row.state.value, row.action.value, row.reason)
        for row in plan.rows
    ]
    outputs.print_table(output, _COLUMNS, rows)
    if plan.ignored:
        click.echo("Fields without effect:")
        click.echo("\n".join(f"  {text}" for text in plan.ignored))
    if plan.changes:
        click.echo("Changed manually, not repaired:")
        for change in plan.changes:
            name = f"{change.kind} {change.name}"
            click.echo(f"  {change.release}: {name}: {change.change}")
    for row in plan.rows if has_diff else ():
        if row.diff:
            click.echo(f"\n{row.name}:")
            click.echo("\n".join(row.diff))

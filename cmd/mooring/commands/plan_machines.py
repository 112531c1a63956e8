"""`mooring plan machines`: what would be done to machines of Cluster API."""

import collections
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, edge, outputs, providers, reach

if TYPE_CHECKING:
    from lib.capi import previews_machines
    from lib.machines.preview import MachineRow


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME | NAMESPACE/NAME]...")
@reach.options("mooring-plan")
@click.option("-n", "--namespace", default="", help="Only machines of this namespace.")
@click.option("--watch-filter", default="", help="--watch-filter of the provider.")
@reach.detailed_exitcode
def machines(
    names: tuple[str, ...],
    target: reach.Target,
    namespace: str,
    watch_filter: str,
    is_detailed: bool,
) -> None:
    """Show what would be done to machines of Cluster API.

    Of the named machines, or of all; with --cloud=dvp. Only reads: no Lease is
    acquired, no Event is recorded. Exit code 1 if the state of some is unknown.
    """
    with edge.plainly():
        from lib.capi import previews_machines
        from lib.machines.model import MachineSettings
        from lib.process import config

        reach.quiet()
        configured, kinds = target.configured(), providers.of(target.cloud).kinds
        cloud = configured.owner().machines
        if cloud is None or kinds is None:
            text = f"--cloud: {target.cloud or providers.DEFAULT} has no machines"
            raise config.ConfigError([text])
        settings = MachineSettings(configured.cluster_id, watch_filter, namespace)
        preview = previews_machines.machines(
            target.api(), cloud, kinds(), settings, names
        )
        show(preview, target.output)
    counts = totals(preview)
    code = reach.exit_code(
        is_failed=bool(preview.unread),
        is_invalid=counts.get("Invalid", 0) > 0,
        has_changes=any(row.changes for row in preview.rows),
        is_detailed=is_detailed,
    )
    sys.exit(code)


def document(plan: "previews_machines.MachinesPreview") -> documents.MachinesPlan:
    """Return the plan as its JSON document."""
    return {
        "machines": [
            {
                "machine": row.machine,
                "state": row.state.value,
                "reason": row.reason,
                "changes": [
                    {
                        "object": change.object,
                        "action": change.verb.value,
                        "reason": change.reason,
                        "is_later": change.is_later,
                    }
                    for change in row.changes
                ],
                "problems": [
                    {
                        "reason": problem.reason.value,
                        "message": problem.message,
                        "is_fatal": problem.is_fatal,
                    }
                    for problem in row.problems
                ],
            }
            for row in plan.rows
        ],
        "totals": totals(plan),
    }


def totals(plan: "previews_machines.MachinesPreview") -> dict[str, int]:
    """Count the machines by state; a state without a machine is omitted."""
    return dict(collections.Counter(str(row.state) for row in plan.rows))


_COLUMNS = tuple(
    map(outputs.Column, ("Machine", "State", "Object", "Action", "Reason"))
)


def show(
    plan: "previews_machines.MachinesPreview", output: str = outputs.TABLE
) -> None:
    """Print a row for each change and each problem, and a summary; or the document."""
    names = [outputs.name("machine", row.machine) for row in plan.rows]
    if outputs.document(output, document(plan), names):
        return
    lines = [
        (row.machine, str(row.state), *cells) for row in plan.rows for cells in _of(row)
    ]
    if lines:
        outputs.print_table(output, _COLUMNS, lines)
    click.echo(summary(plan))


def _of(row: "MachineRow") -> list[tuple[str, str, str]]:
    """Return object, action and reason of each line of a machine; none in sync."""
    lines = [
        (
            change.object,
            f"{change.verb} (afterwards)" if change.is_later else str(change.verb),
            change.reason,
        )
        for change in row.changes
    ]
    lines += [("", "problem", f"{p.reason}: {p.message}") for p in row.problems]
    if not lines and row.reason:
        lines.append(("", "", row.reason))
    return lines


def summary(plan: "previews_machines.MachinesPreview") -> str:
    """Return the number of machines by state as one sentence."""
    counts = totals(plan)
    checked = "1 machine" if len(plan.rows) == 1 else f"{len(plan.rows)} machines"
    if set(counts) <= {"InSync"}:
        return f"No changes: {checked} checked."
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    return f"{checked} checked: {states}."

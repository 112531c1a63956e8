"""`mooring migrate`: from the reference of a cloud to the charts of this project."""

import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import edge, migrate_osdpl, reach

if TYPE_CHECKING:
    from lib.migration import changeover, reference

CALL_TIMEOUT_S = 30.0
"""Seconds for each of the seven calls."""
PARTS = ("values", "differences", "steps")
NOT_INSTALLED = 1
"""Exit code without the reference."""


@click.group()
def migrate() -> None:
    """Prepare the migration from a reference.

    Values, differences and steps are printed; nothing is changed unasked.

    Example: mooring migrate openstack --only values > values.yaml
    """


migrate.add_command(migrate_osdpl.osdpl)


@migrate.command()
@reach.kubeconfig_option
@reach.context_option
@click.option("--only", type=click.Choice(PARTS), help="Print only this part.")
def openstack(kubeconfig: str, context: str, only: str | None) -> None:
    """Print values, differences and steps for OpenStack.

    Reads the programs that charts, manifests or Deckhouse installed, their flags, the
    CSIDriver, the Nodes, PersistentVolumes, claims and StorageClasses. Contents of
    Secrets are not read.
    """
    with edge.plainly():
        from lib.ccm import options
        from lib.migration import changeover, reference

        observed = _observed(kubeconfig, context, reference.OPENSTACK)
        planned = changeover.plan(observed, options.FLAGS)
    _show(planned, reference.OPENSTACK.searched(), only)


@migrate.command()
@reach.kubeconfig_option
@reach.context_option
@click.option("--only", type=click.Choice(PARTS), help="Print only this part.")
def dvp(kubeconfig: str, context: str, only: str | None) -> None:
    """Print values, differences and steps for DVP.

    Reads the programs of Deckhouse's module, their flags and the names of their
    Secrets, the CSIDriver, the Nodes, PersistentVolumes, claims and StorageClasses.
    Contents of Secrets are not read.
    """
    with edge.plainly():
        from lib.migration.dvp import dvp_changeover

        observed = _observed(kubeconfig, context, dvp_changeover.REFERENCE)
        planned = dvp_changeover.plan(observed)
    _show(planned, dvp_changeover.REFERENCE.searched(), only)


def _observed(
    kubeconfig: str, context: str, family: "reference.Family"
) -> "reference.Observed":
    from lib.kube import client
    from lib.migration import reference

    reach.quiet()
    address = reach.cluster(kubeconfig, context)
    api = client.KubeClient(address, user_agent="mooring-migrate")
    return reference.read(api, CALL_TIMEOUT_S, family)


def _show(
    planned: "changeover.Changeover | None", searched: str, only: str | None
) -> None:
    if planned is None:
        text = (
            f"The reference is not installed: no Deployment and no DaemonSet has"
            f" {searched}. A static pod, and a program of another name, is replaced by"
            " hand: docs/how-to/change-over.md."
        )
        click.echo(text, err=True)
        sys.exit(NOT_INSTALLED)
    parts = {
        "values": _values(planned),
        "differences": _differences(planned),
        "steps": _steps(planned),
    }
    chosen = [parts[only]] if only else parts.values()
    click.echo("\n\n".join(chosen))


def _values(planned: "changeover.Changeover") -> str:
    import yaml

    head = f"# values.yaml of the chart {planned.chart}\n"
    return head + yaml.safe_dump(planned.values, sort_keys=False).rstrip()


def _differences(planned: "changeover.Changeover") -> str:
    lines = [
        f"  {row.subject}: {row.before} -> {row.after}" for row in planned.differences
    ]
    return "\n".join(["Differences:", *lines])


def _steps(planned: "changeover.Changeover") -> str:
    lines = ["Steps:"]
    for number, (title, commands) in enumerate(planned.steps, 1):
        lines += [f"  {number}. {title}:", *(f"     {word}" for word in commands)]
    return "\n".join(lines)

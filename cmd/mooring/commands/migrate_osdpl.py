"""`mooring migrate osdpl`: from Rockoon to osdpl-controller."""

import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import edge, reach

if TYPE_CHECKING:
    from lib.kube import client
    from lib.migration.osdpl import rockoon_changeover, rockoon_leftovers

CALL_TIMEOUT_S = 30.0
"""Seconds for each call."""
PARTS = ("releases", "leftovers", "differences", "steps")
NOT_READY = 1
"""Exit code without an OpenStackDeployment, and while Rockoon exists."""


@click.command()
@reach.kubeconfig_option
@reach.context_option
@click.option(
    "-n",
    "--namespace",
    default="openstack",
    show_default=True,
    help="Namespace of the OpenStackDeployment.",
)
@click.option("--only", type=click.Choice(PARTS), help="Print only this part.")
@click.option(
    "--remove-leftovers",
    "removes",
    is_flag=True,
    help="Remove what Rockoon left, once its Deployments do not exist.",
)
def osdpl(
    kubeconfig: str, context: str, namespace: str, only: str | None, removes: bool
) -> None:
    """Print what becomes of each release of Rockoon.

    Reads the OpenStackDeployment, the Secrets of helm releases, Deployments, webhook
    configurations and peerings; passwords in releases are not printed. Only
    --remove-leftovers changes objects: it deletes Rockoon's webhook configurations and
    peerings, and its finalizers on objects that stay.
    """
    with edge.plainly():
        from lib.kube import client
        from lib.migration.osdpl import rockoon_changeover, rockoon_leftovers
        from lib.osdpl.api import versions
        from lib.osdpl.reconcile import states

        reach.quiet()
        address = reach.cluster(kubeconfig, context)
        api = client.KubeClient(address, user_agent="mooring-migrate")
        if removes:
            _remove(api, rockoon_leftovers.read(api, CALL_TIMEOUT_S))
            return
        supported = tuple(versions.RELEASES)
        planned = rockoon_changeover.read(
            api, namespace, supported, states.OWNER_LABEL, CALL_TIMEOUT_S
        )
    if planned is None:
        click.echo(f"Namespace {namespace} has no OpenStackDeployment.", err=True)
        sys.exit(NOT_READY)
    parts = {
        "releases": _releases(planned),
        "leftovers": _leftovers(planned.leftovers),
        "differences": _differences(planned),
        "steps": _steps(planned),
    }
    click.echo("\n\n".join([parts[only]] if only else parts.values()))


def _remove(api: "client.Api", left: "rockoon_leftovers.RockoonLeftovers") -> None:
    from lib.migration.osdpl import rockoon_leftovers

    if left.programs:
        names = ", ".join(name for name, _ in left.programs)
        click.echo(
            f"Nothing was removed: delete the Deployments of Rockoon first: {names}.",
            err=True,
        )
        sys.exit(NOT_READY)
    for leftover in left.objects:
        rockoon_leftovers.remove(api, leftover, CALL_TIMEOUT_S)
        what = "lost its finalizers" if leftover.finalizers else "was deleted"
        click.echo(f"{leftover} {what}.")
    if not left.objects:
        click.echo("Rockoon left nothing.")


def _releases(planned: "rockoon_changeover.RockoonChangeover") -> str:
    title = f"Releases of {planned.namespace}/{planned.name}"
    lines = [f"  {row.release}: {row.fate}: {row.reason}" for row in planned.rows]
    return "\n".join([f"{title} ({planned.openstack}):", *(lines or ["  none"])])


def _leftovers(left: "rockoon_leftovers.RockoonLeftovers") -> str:
    lines = [
        f"  Deployment {name} with {replicas} replicas: Rockoon itself"
        for name, replicas in left.programs
    ]
    lines += [f"  {leftover} {leftover.effect}" for leftover in left.objects]
    return "\n".join(["Of Rockoon:", *(lines or ["  nothing"])])


def _differences(planned: "rockoon_changeover.RockoonChangeover") -> str:
    lines = [
        f"  {row.setting}: {row.before} -> {row.after}: {row.effect}"
        for row in planned.differences
    ]
    return "\n".join(["Differences:", *lines])


def _steps(planned: "rockoon_changeover.RockoonChangeover") -> str:
    lines = ["Steps:"]
    for number, (title, commands) in enumerate(planned.steps, 1):
        lines += [f"  {number}. {title}:" if commands else f"  {number}. {title}"]
        lines += [f"     {word}" for word in commands]
    return "\n".join(lines)

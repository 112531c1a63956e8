"""`mooring lab osdpl`: a cluster in which osdpl-controller installs OpenStack.

Imports that take long are made inside the commands: `--help` must stay fast.
"""

import json
import pathlib
import shlex
import sys
import threading
import time
from typing import TYPE_CHECKING

import click
import rich.console
import rich.live

from mooring.commands import edge, outputs, paths

if TYPE_CHECKING:
    from lib.kube import client
    from lib.lab import places
    from lib.lab.osdpl import lab
    from lib.lab.run import progress

SETTLE_S = 600
_POLL_S = 1.0


@click.group()
def osdpl() -> None:
    """Run osdpl-controller with simulated workloads.

    On a real control plane, with the real helm.
    """


@osdpl.command()
@click.option(
    "--charts", type=paths.FOLDER, help="Checkout of openstack-helm to install."
)
@click.option(
    "--pex-folder", type=paths.FOLDER, help="Folder with the PEX files to run."
)
def up(charts: pathlib.Path | None, pex_folder: pathlib.Path | None) -> None:
    """Start the lab and install OpenStack; may be repeated."""
    with edge.plainly():
        from lib.lab.osdpl import lab

        where = lab.usual(edge.where())
        source = str(charts.absolute()) if charts else ""
        with edge.display() as shown:
            api = lab.up(where, lambda: _bring(where, pex_folder, shown), shown, source)
        if not source:
            click.echo("Charts: the lab's own set; --charts DIR installs a checkout.")
        _settle(where, api)
        _show_refusal(where, api)
        _look_around(where)


@osdpl.command()
@outputs.option
def status(output: str) -> None:
    """Show programs and releases of the lab.

    Exit code 1 if something is missing.
    """
    with edge.plainly():
        from lib.lab.osdpl import lab
        from mooring.commands import lab_osdpl_status

        is_complete = lab_osdpl_status.show(lab.usual(edge.where()), output)
    sys.exit(0 if is_complete else 1)


@osdpl.command()
@click.option("--wipe", is_flag=True, help="Remove data, certificates and logs, too.")
def down(wipe: bool) -> None:
    """Stop the lab; its data and the built programs are kept."""
    with edge.plainly(), edge.display() as shown:
        from lib.lab.osdpl import lab

        lab.down(lab.usual(edge.where()), shown, wipe=wipe)


@osdpl.command(hidden=True)
@click.option("--kubeconfig", type=paths.FILE, required=True)
def simulate(kubeconfig: pathlib.Path) -> None:
    """Run the workload simulator."""
    with edge.plainly():
        from lib.lab.kube import cluster
        from lib.lab.osdpl import simulation

        simulation.run(cluster.connect(kubeconfig), threading.Event(), click.echo)


def _bring(
    where: "places.Places",
    pex_folder: pathlib.Path | None,
    shown: "progress.Progress",
) -> "lab.Programs":
    """Package the controller and this tool, or take them from a folder."""
    from lib.lab.artifacts import pexes
    from lib.lab.osdpl import controller, lab

    folder = pex_folder or pathlib.Path(sys.argv[0]).absolute().parent
    checkout = None if pex_folder else edge.checkout()
    pex_names = (pexes.OSDPL, pexes.TOOL)
    pexes.require(checkout, folder, pex_names)
    pexes.bring(where, checkout, folder, shown, pex_names)
    words = (*pexes.command(pexes.path(where, pexes.TOOL)), "lab", "osdpl", "simulate")
    tool = lab.Tool(words, pexes.environment(where))
    pex = pexes.path(where, pexes.OSDPL)
    return lab.Programs(tool, lambda: controller.start(where, pex))


def _settle(where: "places.Places", api: "client.Api") -> None:
    """Show the releases until all are deployed and all workloads are Ready.

    Raises:
        LabError: they are not in time; the lab is left running.
    """
    from lib.lab import errors
    from lib.lab.osdpl import controller, view

    console = rich.console.Console()
    began = time.monotonic()
    summary = ""
    with rich.live.Live(console=console, auto_refresh=False) as live:
        while True:
            observed = view.observe(api)
            elapsed_s = time.monotonic() - began
            title = f"after {elapsed_s:.0f} s"
            shown = view.table(observed, title, console.width)
            if console.is_terminal:
                live.update(shown, refresh=True)
            elif summary != view.summary(observed):
                summary = view.summary(observed)
                click.echo(f"{title}: {summary}")
            if observed.is_complete or elapsed_s > SETTLE_S:
                live.update(shown, refresh=True)
                break
            time.sleep(_POLL_S)
    if not observed.is_complete:
        raise errors.LabError(
            f"not all releases were deployed and Ready within {SETTLE_S} s:"
            f" {'; '.join(observed.conditions)}; the controller's log is"
            f" {where.log / controller.NAME}.log"
        )


def _show_refusal(where: "places.Places", api: "client.Api") -> None:
    """Print a change that the webhook refuses, and in which words.

    Raises:
        LabError: it does not.
    """
    from lib.lab.artifacts import programs
    from lib.lab.osdpl import controller, deployment

    kubectl = shlex.quote(str(programs.path(where, "kubectl")))
    change = shlex.quote(json.dumps(controller.CHANGE))
    lines = [
        "",
        "The webhook refuses a downgrade, for example:",
        f"  {kubectl} -n {deployment.NAMESPACE} patch openstackdeployment"
        f" {deployment.NAME} --type=merge --patch={change}",
        f"  {controller.refused_change(api)}",
    ]
    click.echo("\n".join(lines))


def _look_around(where: "places.Places") -> None:
    """Print how to reach the lab, and what to try."""
    from lib.lab.artifacts import programs
    from lib.lab.kube import control_plane
    from lib.lab.osdpl import controller, deployment

    kubectl = shlex.quote(str(programs.path(where, "kubectl")))
    kubeconfig = shlex.quote(str(control_plane.admin_kubeconfig(where)))
    lines = [
        "",
        "Look around:",
        f"  export KUBECONFIG={kubeconfig}",
        f"  {kubectl} -n {deployment.NAMESPACE} get openstackdeployments,helmbundles",
        f"  {kubectl} -n {deployment.NAMESPACE} get pods -o wide",
        f"  tail -f {shlex.quote(str(where.log / controller.NAME))}.log",
        "Try:",
        f"  {kubectl} -n {deployment.NAMESPACE} edit openstackdeployment"
        f" {deployment.NAME}",
        f"  {edge.spoken()} lab osdpl status",
        f"  {edge.spoken()} lab osdpl down",
    ]
    click.echo("\n".join(lines))

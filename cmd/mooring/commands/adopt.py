"""`mooring adopt`: takes resources of the cloud over, on the word of a person."""

import time
from typing import TYPE_CHECKING

import click

from mooring.commands import daemon, edge, outputs, reach

if TYPE_CHECKING:
    from lib.ccm import adopting


@click.group()
def adopt() -> None:
    """Take over resources that a lost cluster has left."""


@adopt.command("load-balancer")
@click.argument("id_", metavar="ID")
@reach.options("mooring-adopt")
@click.option(
    "--service",
    required=True,
    metavar="NAMESPACE/NAME",
    help="Service that is to have the load balancer.",
)
@daemon.cluster_id_option
@daemon.cluster_name_option
@click.option("--yes", "is_confirmed", is_flag=True, help="Carry the changes out.")
def load_balancer(
    id_: str,
    target: reach.Target,
    service: str,
    cluster_id: str,
    cluster_name: str,
    is_confirmed: bool,
) -> None:
    """Set the ownership tags of load balancer ID.

    For a Service that was restored into a new cluster, while its load balancer was
    made by a cluster that is lost. Without --yes only shows what would be changed.
    """
    if target.output != outputs.TABLE:
        raise click.UsageError("--output: this command prints text; must be table.")
    with edge.plainly():
        from lib.ccm import adopting
        from lib.cloud import errors

        reach.quiet()
        configured = target.configured()
        balancers, _ = configured.plans()
        api = target.api()
        manager = daemon.ManagerDeployment.of(target.provider, api)
        request = adopting.AdoptionRequest(
            id_,
            service,
            manager.value("--cluster-id", cluster_id, configured.cluster_id),
            manager.value("--cluster-name", cluster_name, "kubernetes"),
        )
        try:
            planned = adopting.plan(api, balancers, request)
            _show(planned)
            if not is_confirmed:
                click.echo("Nothing was changed; --yes carries this out.")
                return
            clock, sleep = time.monotonic, time.sleep
            for line in adopting.carry_out(api, balancers, planned, clock, sleep):
                click.echo(f"done: {line}")
        except errors.CloudError as error:
            raise click.ClickException(str(error)) from error


def _show(planned: "adopting.Planned") -> None:
    adopted = planned.adoption
    addresses = ", ".join(adopted.addresses) or "none"
    click.echo(f"load balancer {planned.request.id} ({adopted.name})")
    click.echo(f"addresses: {addresses}")
    for owner in sorted(adopted.owners):
        cluster, _, uid = owner.rpartition(":")
        click.echo(f"owned until now by Service {uid} of cluster {cluster}, which must")
        click.echo("not exist any more: two clusters would change it in turn")
    for step in adopted.steps:
        click.echo(f"would {step}")
    keys = ", ".join(key for key, _ in adopted.annotations)
    click.echo(f"would annotate Service {planned.service.key}: {keys}")

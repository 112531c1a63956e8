"""`mooring lab openstack`: the client of OpenStack, for the lab's cloud."""

import os

import click

from mooring.commands import edge, lab_clients


@click.command(context_settings=lab_clients.ARGUMENTS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def openstack(arguments: tuple[str, ...]) -> None:
    """Run the client of OpenStack in the lab's cloud.

    The first call installs it.

    Example: mooring lab openstack -- server list
    """
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.openstack import cloud_client
        from mooring.commands import lab_show

        lab = lab_show.current(where)
        if lab.grounds.name != cloud_client.NAME:
            raise errors.LabError(f"the lab's cloud is {lab.grounds.title}")
        variables = lab.environment()
        if lab.record.existing_cloud:
            command, env = cloud_client.existing(variables, os.environ)
        else:
            with edge.display() as shown:
                command, env = cloud_client.own(where, shown, variables)
    lab_clients.replace_process((*command, *arguments), env)

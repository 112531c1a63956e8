"""`mooring render`: what a cluster's programs read, from their configuration."""

import click

from mooring.commands import render_dvp, render_openstack, render_osdpl


@click.group()
def render() -> None:
    """Print what a cluster's programs read, without a cluster."""


for command in (render_osdpl.osdpl, render_openstack.openstack, render_dvp.dvp):
    render.add_command(command)

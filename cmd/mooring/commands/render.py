"""`mooring render`: what a cluster's programs read, from their configuration."""

import click

from mooring.commands import providers, render_osdpl


@click.group()
def render() -> None:
    """Print what a cluster's programs read, without a cluster."""


render.add_command(render_osdpl.osdpl)
for provider in providers.PROVIDERS.values():
    if provider.render is not None:
        render.add_command(provider.render())

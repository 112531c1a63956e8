"""Options that the commands about an OpenStackDeployment share."""

from typing import TYPE_CHECKING

import click

from mooring.commands import outputs, paths, reach

if TYPE_CHECKING:
    from lib.osdpl.api import model

file = click.argument("file", type=paths.FILE, required=False)
kubeconfig = reach.kubeconfig_option
context = reach.context_option
charts = click.option(
    "--charts", "source", default="", help="As --chart-source of the daemon."
)
output = outputs.option


def chart_source(address: str) -> "model.Source | None":
    """Return the source of charts that --charts names; None: it is not given."""
    from lib.osdpl.api import model

    return model.Source(name="--charts", url=address) if address else None

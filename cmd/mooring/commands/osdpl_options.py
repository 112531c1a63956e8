"""Options that the commands about an OpenStackDeployment share."""

from typing import TYPE_CHECKING

import click

from mooring.commands import outputs, paths, reach

if TYPE_CHECKING:
    import pathlib

    from lib.helm import cache
    from lib.osdpl.api import model

file = click.argument("file", type=paths.FILE, required=False)
kubeconfig = reach.kubeconfig_option
context = reach.context_option
charts = click.option(
    "--charts", "source", default="", help="As --chart-source of the daemon."
)
access = click.option(
    "--chart-source-access",
    "access",
    type=paths.FOLDER,
    help="As of the daemon: a folder with .dockerconfigjson and ca.crt.",
)
output = outputs.option


def chart_source(address: str) -> "model.Source | None":
    """Return the source of charts that --charts names; None: it is not given."""
    from lib.osdpl.api import model

    return model.Source(name="--charts", url=address) if address else None


def chart_cache(
    folder: "pathlib.Path", access: "pathlib.Path | None"
) -> "cache.Charts":
    """Return a cache of charts. access: accounts of private sources; None: none."""
    from lib.helm import cache, policy, sources
    from lib.helm.source_access import SourceAccess

    opener = sources.opener(policy.TRUSTED, SourceAccess(access))
    return cache.Charts(folder, opener)

"""`mooring render openstack`: what a cluster reads, from its configuration.

Slow imports are inside the commands, so that `--help` is fast.
"""

import pathlib
from typing import TYPE_CHECKING

import click

from mooring.commands import outputs, paths, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lib.discovery.openstack import sources

PARTS = ("secrets", "templates", "values")


@click.command()
@click.option(
    "--cluster-configuration",
    type=paths.FILE,
    required=True,
    help="YAML documents: OpenStackClusterConfiguration; optionally"
    " ClusterConfiguration, ModuleConfig, NodeGroups and their instance classes.",
)
@click.option(
    "--discovery-data",
    type=paths.FILE,
    multiple=True,
    help="Data that the base infrastructure reported, or discovery-data.json; one of"
    " each. Without the first, the objects that the layout will create are assumed.",
)
@click.option(
    "--cluster-uuid", default="", help="UUID of the cluster; required with NodeGroups."
)
@click.option(
    "--previous",
    type=paths.FILE,
    help="Configuration in use: if the change would destroy objects, print only"
    " these objects.",
)
@click.option("--only", type=click.Choice(PARTS), help="Print only this part.")
@outputs.option_of(outputs.YAML)
def openstack(
    cluster_configuration: pathlib.Path,
    discovery_data: tuple[pathlib.Path, ...],
    cluster_uuid: str,
    previous: pathlib.Path | None,
    only: str | None,
    output: str,
) -> None:
    """Print Secrets, machine templates and values as YAML.

    The Secrets contain the passwords of the configuration: protect the output.
    Messages never contain them.
    """
    from lib.discovery.openstack import render as rendering
    from lib.discovery.openstack import sources

    with rendered.reporting():
        read = rendered.documents((cluster_configuration, *discovery_data))
        source = sources.read(read, cluster_uuid)
        if previous is not None:
            _refuse_unsafe(previous, source)
        result = rendering.render(source)
    _note(source)
    by_name: Mapping[str, rendered.Documents] = {
        "secrets": result.secrets,
        "templates": result.templates,
        "values": (result.values,),
    }
    parts = PARTS if only is None else (only,)
    rendered.show([by_name[part] for part in parts], output)


def _refuse_unsafe(
    previous: pathlib.Path, source: "sources.ConfigurationSources"
) -> None:
    """Compare with the configuration in use.

    Raises:
        ConfigError: what is in use can't be read; or going on from it is unsafe.
    """
    from lib.discovery.openstack import sources, unsafe_changes

    before = sources.read(rendered.documents([previous]), source.cluster.uuid)
    if before.configuration is not None and source.configuration is not None:
        rendered.refuse_unsafe(
            unsafe_changes.find(before.configuration, source.configuration)
        )


def _note(source: "sources.ConfigurationSources") -> None:
    """Print to standard error what the user may not expect."""
    if source.is_assumed and source.configuration is not None:
        click.echo(
            "Without OpenStackCloudDiscoveryData, networks, zones and instances are"
            " what the layout will make; load balancers have no subnet.",
            err=True,
        )
    rendered.note_skipped(source.skipped)

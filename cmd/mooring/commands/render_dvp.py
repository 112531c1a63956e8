"""`mooring render dvp`: what a cluster reads, and its accounts in the parent.

Slow imports are inside the commands, so that `--help` is fast.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from mooring.commands import edge, outputs, parent_account, paths, reach, rendered

if TYPE_CHECKING:
    from lib.discovery.dvp import sources

PARTS = ("secrets", "templates", "parent", "values")


@click.command()
@click.option(
    "--cluster-configuration",
    type=paths.FILE,
    help="YAML documents: DVPClusterConfiguration, or ModuleConfig with its Secret"
    " d8-credentials; optionally ClusterConfiguration, NodeGroups and their instance"
    " classes.",
)
@click.option(
    "--discovery-data",
    type=paths.FILE,
    multiple=True,
    help="discovery-data.json: zones and StorageClasses of the parent.",
)
@click.option("--cluster-uuid", default="", help="UUID of the cluster.")
@click.option(
    "--previous",
    type=paths.FILE,
    help="Configuration in use: if the change would destroy VMs or disks, print only"
    " these changes.",
)
@click.option("--only", type=click.Choice(PARTS), help="Print only this part.")
@click.option(
    "--parent-rbac",
    is_flag=True,
    help="Print the accounts of the components in the parent, and their permissions.",
)
@click.option(
    "--parent-kubeconfig",
    is_flag=True,
    help="Print a kubeconfig of one account, with a token that expires; requests the"
    " token from the parent of --kubeconfig.",
)
@click.option(
    "--namespace", default="", help="The project in the parent; for --parent-*."
)
@click.option(
    "--component",
    "components",
    multiple=True,
    type=click.Choice(parent_account.COMPONENTS),
    help="For --parent-*: this component alone; may be repeated. Default: all.",
)
@click.option(
    "--account",
    default="",
    help="For --parent-*: one ServiceAccount for all components, of this name.",
)
@click.option(
    "--token-hours",
    type=click.IntRange(1, parent_account.HOURS_MAX),
    default=parent_account.HOURS,
    show_default=True,
    help="Hours until the token of --parent-kubeconfig expires.",
)
@reach.kubeconfig_option
@reach.context_option
@outputs.option_of(outputs.YAML)
def dvp(  # noqa: PLR0913 # one for each option
    cluster_configuration: pathlib.Path | None,
    discovery_data: tuple[pathlib.Path, ...],
    cluster_uuid: str,
    previous: pathlib.Path | None,
    only: str | None,
    parent_rbac: bool,
    parent_kubeconfig: bool,
    namespace: str,
    components: tuple[str, ...],
    account: str,
    token_hours: int,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Print Secrets, templates and objects of the parent.

    The Secrets contain the kubeconfig of the parent: protect the output. Messages never
    contain it.
    """
    flags = (cluster_configuration is not None, parent_rbac, parent_kubeconfig)
    if sum(flags) != 1:
        raise click.UsageError(_CHOICE)
    with rendered.reporting():
        if cluster_configuration is not None:
            files = (cluster_configuration, *discovery_data)
            parts = PARTS if only is None else (only,)
            _print_configuration(files, cluster_uuid, previous, parts, output)
            return
        accounts = parent_account.Accounts(namespace, components, account)
        if parent_rbac:
            rendered.show([accounts.permissions()], output)
            return
        name = accounts.only()
    with edge.plainly():
        address = reach.cluster(kubeconfig, context)
        parent_account.print_kubeconfig(address, namespace, name, token_hours)


_CHOICE = (
    "must set exactly one of --cluster-configuration, --parent-rbac,"
    " --parent-kubeconfig"
)


def _print_configuration(
    files: Sequence[pathlib.Path],
    cluster_uuid: str,
    previous: pathlib.Path | None,
    parts: Sequence[str],
    output: str,
) -> None:
    """Print the objects of a configuration.

    Raises:
        ConfigError: with every problem of it.
    """
    from lib.discovery.dvp import render as rendering
    from lib.discovery.dvp import sources

    source = sources.read(rendered.documents(files), cluster_uuid)
    if previous is not None:
        _refuse_unsafe(previous, source)
    result = rendering.render(source)
    _note(source)
    by_name: Mapping[str, rendered.Documents] = {
        "secrets": result.secrets,
        "templates": result.templates,
        "parent": result.parent,
        "values": (result.values,),
    }
    rendered.show([by_name[part] for part in parts], output)


def _refuse_unsafe(
    previous: pathlib.Path, source: "sources.ConfigurationSources"
) -> None:
    """Compare with the configuration in use.

    Raises:
        ConfigError: it can't be read; or the change from it is unsafe.
    """
    from lib.discovery.dvp import sources, unsafe_changes

    before = sources.read(rendered.documents([previous]), source.cluster.uuid)
    if before.configuration is not None and source.configuration is not None:
        rendered.refuse_unsafe(
            unsafe_changes.find(before.configuration, source.configuration)
        )


def _note(source: "sources.ConfigurationSources") -> None:
    """Print to standard error what the user may not expect."""
    if source.discovery is None:
        click.echo(
            "Without DVPCloudDiscoveryData, there are no StorageClasses, and the zones"
            f" are {', '.join(source.provider.zones)}.",
            err=True,
        )
    rendered.note_skipped(source.skipped)

"""`mooring render openstack`: what a cluster reads, from its configuration.

Slow imports are inside the commands, so that `--help` is fast.
"""

import pathlib
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import outputs, paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lib.discovery.openstack import render as rendering
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
    """Print Secrets, machine templates and values as YAML documents.

    The Secrets contain the passwords of the configuration: protect the output.
    Messages never contain them.
    """
    from lib.discovery.openstack import render as rendering
    from lib.discovery.openstack import sources
    from lib.process import config

    try:
        read = [
            document
            for file in (cluster_configuration, *discovery_data)
            for document in _documents(file)
        ]
        source = sources.read(read, cluster_uuid)
        if previous is not None:
            _refuse_unsafe(previous, source)
        rendered = rendering.render(source)
    except config.ConfigError as error:
        count = len(error.problems)
        click.echo("1 problem:" if count == 1 else f"{count} problems:", err=True)
        click.echo(str(error), err=True)
        sys.exit(1)
    _note(source)
    _print(rendered, PARTS if only is None else (only,), output)


def _print(
    documents: "rendering.RenderedDocuments", parts: tuple[str, ...], output: str
) -> None:
    """Print YAML documents; or one List, names or a table, without the values."""
    from lib.discovery.openstack import yaml_text

    by_name: Mapping[str, Sequence[Mapping[str, object]]] = {
        "secrets": documents.secrets,
        "templates": documents.templates,
        "values": (documents.values,),
    }
    if output != outputs.YAML:
        _print_objects([item for part in parts for item in by_name[part]], output)
        return
    for part in parts:
        click.echo("---\n" + yaml_text.dump(*by_name[part]), nl=False)


def _print_objects(documents: "Sequence[Mapping[str, object]]", output: str) -> None:
    """Print the objects as a List, as names or as a table."""
    rows = [_identity(document) for document in documents]
    document = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    names = [outputs.name(*row) for row in rows]
    if not outputs.document(output, document, names):
        columns = tuple(map(outputs.Column, ("Kind", "Namespace", "Name")))
        outputs.print_table(output, columns, rows)


def _identity(document: "Mapping[str, object]") -> tuple[str, str, str]:
    """Return kind, namespace and name of an object; the values have no kind."""
    about = document.get("metadata")
    about = about if isinstance(about, dict) else {}
    kind = str(document.get("kind", "values"))
    return kind, str(about.get("namespace", "")), str(about.get("name", ""))


def _documents(file: pathlib.Path) -> tuple[object, ...]:
    """Read a file's documents.

    Raises:
        ConfigError: it can't be read.
    """
    from lib.discovery.openstack import yaml_text
    from lib.process import config

    return yaml_text.read(str(file), config.read_text(str(file)))


def _refuse_unsafe(
    previous: pathlib.Path, source: "sources.ConfigurationSources"
) -> None:
    """Compare with the configuration in use.

    Raises:
        ConfigError: what is in use can't be read; or going on from it is unsafe.
    """
    from lib.discovery.openstack import sources, unsafe_changes
    from lib.process import config

    before = sources.read(_documents(previous), source.cluster.uuid).configuration
    if before is None or source.configuration is None:
        return
    unsafe = unsafe_changes.find(before, source.configuration)
    if unsafe:
        raise config.ConfigError([f"unsafe: {change}" for change in unsafe])


def _note(source: "sources.ConfigurationSources") -> None:
    """Print to standard error what the user may not expect."""
    if source.is_assumed and source.configuration is not None:
        click.echo(
            "Without OpenStackCloudDiscoveryData, networks, zones and instances are"
            " what the layout will make; load balancers have no subnet.",
            err=True,
        )
    for kind in source.skipped:
        click.echo(f"{kind}: ignored: no document here uses it.", err=True)

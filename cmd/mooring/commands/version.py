"""`mooring version`: version, commit and Python of this tool."""

import os
import platform
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, edge, outputs, program, reach

if TYPE_CHECKING:
    from lib.doctor import components

VERSION = "0.1.0"
_COLUMNS = (
    outputs.Column("Component"),
    outputs.Column("Version"),
    outputs.Column("Commit"),
    outputs.Column("Python"),
    outputs.Column("Object"),
    outputs.Column("Image", is_wide=True),
    outputs.Column("Ready"),
)


@click.command()
@reach.kubeconfig_option
@reach.context_option
@click.option(
    "--cluster",
    "has_cluster",
    is_flag=True,
    help="Also components in the cluster: image and ready Pods.",
)
@outputs.option
def version(kubeconfig: str, context: str, has_cluster: bool, output: str) -> None:
    """Print version, commit and Python of this tool.

    With --cluster also the components that run in the cluster. The commit is known for
    images alone.
    """
    with edge.plainly():
        entries = [own()]
        if has_cluster:
            from lib.doctor import components
            from lib.kube import client

            address = reach.cluster(kubeconfig, context)
            api = client.KubeClient(address, user_agent="mooring-version")
            entries += map(
                entry, components.read(api, program.COMPONENTS, reach.CALL_TIMEOUT_S)
            )
        show(entries, output)


def own() -> documents.ComponentEntry:
    """Return the entry of this tool."""
    from lib.process import metrics

    return {
        "component": program.NAME,
        "version": VERSION,
        "commit": os.environ.get(metrics.COMMIT, ""),
        "python": platform.python_version(),
        "object": sys.argv[0],
        "image": "",
        "ready": "",
    }


def entry(component: "components.Component") -> documents.ComponentEntry:
    """Return the entry of a component of the cluster."""
    return {
        "component": component.name,
        "version": component.version,
        "commit": "",
        "python": "",
        "object": f"{component.kind} {component.namespace}/{component.object_name}",
        "image": component.image,
        "ready": f"{component.ready}/{component.desired}",
    }


def show(entries: list[documents.ComponentEntry], output: str) -> None:
    """Print one line for each component, or the document."""
    names = [outputs.name("component", entry["component"]) for entry in entries]
    document: documents.Versions = {"components": entries}
    if outputs.document(output, document, names):
        return
    keys = documents.ComponentEntry.__annotations__
    rows = [[str(entry.get(key)) for key in keys] for entry in entries]
    outputs.print_table(output, _COLUMNS, rows)

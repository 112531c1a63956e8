"""What charts/capdvp contains besides its Deployment, installed without Helm."""

import pathlib
from collections.abc import Iterable, Mapping

import yaml

from lib.kube import client, resources
from lib.kube.resources import Resource
from lib.lab.dvp import workload_objects
from lib.lab.kube import cluster

KINDS: Mapping[str, Resource] = {
    kind.kind: kind
    for kind in (
        resources.DEFINITIONS,
        resources.NAMESPACES,
        resources.SERVICE_ACCOUNTS,
        resources.CLUSTER_ROLES,
        resources.CLUSTER_ROLE_BINDINGS,
        resources.ROLES,
        resources.ROLE_BINDINGS,
    )
}
"""Kinds of what is installed, by their names."""


def install(api: client.Api, opened: Iterable[Resource] = ()) -> None:
    """Install definitions and permissions of the chart, and create the namespace.

    opened: further kinds, served with any content. What exists is not changed.
    """
    # Four folders up from this file in a checkout, a sandbox and an unpacked PEX alike.
    chart = pathlib.Path(__file__).parents[3] / "charts" / "capdvp"
    documents = (
        *(yaml.safe_load(p.read_text()) for p in sorted(chart.glob("crds/*.yaml"))),
        *yaml.safe_load_all((chart / "files" / "rbac.yaml").read_text()),
    )
    install_beside(api, opened)
    cluster.create_documents(api, documents, KINDS)


def install_beside(api: client.Api, opened: Iterable[Resource] = ()) -> None:
    """Install what is not of the chart: further kinds, and the namespace.

    opened: see `install`.
    """
    space = {"name": workload_objects.NAMESPACE}
    documents = (
        *map(workload_objects.open_definition, opened),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": space},
    )
    cluster.create_documents(api, documents, KINDS)

"""`mooring get`: what the cluster records of Services, Nodes and volumes."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, edge, outputs, providers, reach

if TYPE_CHECKING:
    from lib.kube import client

SERVICES = ("Service", "Address", "Load balancer", "State", "Problem")
NODES = ("Node", "Address", "Server", "State", "Problem")
VOLUMES = ("Volume", "Claim", "Volume ID", "Node", "State", "Problem")


@click.group()
def get() -> None:
    """List objects with address, load balancer, server or volume, state and problem.

    Only reads of the Kubernetes API; `mooring plan` compares with the cloud. A problem
    is that of a condition, or of the last Event; Events expire after an hour.
    """


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (outputs.option, reach.context_option, reach.kubeconfig_option):
        command = option(command)
    return command


def _api(kubeconfig: str, context: str) -> "client.Api":
    from lib.daemon import read_only
    from lib.kube import client

    reach.quiet(verbose=False)
    address = reach.cluster(kubeconfig, context)
    return read_only.read_only(client.KubeClient(address, user_agent="mooring-get"))


@get.command()
@_options
@providers.option
def services(kubeconfig: str, context: str, cloud: str, output: str) -> None:
    """List Services of type LoadBalancer."""
    with edge.plainly():
        from lib.ccm import recorded

        api = _api(kubeconfig, context)
        ids = providers.of(cloud).load_balancer_annotations()
        read = recorded.services(api, ids, reach.CALL_TIMEOUT_S)
        entries: list[documents.ServiceStateEntry] = [
            {
                "service": row.key,
                "address": row.address,
                "load_balancer": row.load_balancer,
                "state": row.state,
                "problem": row.problem,
            }
            for row in read
        ]
        document: documents.ServiceStates = {"services": entries}
        names = [outputs.name("service", row.key) for row in read]
        if not outputs.document(output, document, names):
            _print(output, SERVICES, entries)


@get.command()
@_options
def nodes(kubeconfig: str, context: str, output: str) -> None:
    """List Nodes."""
    with edge.plainly():
        from lib.ccm import recorded

        read = recorded.nodes(_api(kubeconfig, context), reach.CALL_TIMEOUT_S)
        entries: list[documents.NodeStateEntry] = [
            {
                "node": row.name,
                "address": row.address,
                "server": row.server,
                "state": row.state,
                "problem": row.problem,
            }
            for row in read
        ]
        document: documents.NodeStates = {"nodes": entries}
        names = [outputs.name("node", row.name) for row in read]
        if not outputs.document(output, document, names):
            _print(output, NODES, entries)


@get.command()
@_options
def volumes(kubeconfig: str, context: str, output: str) -> None:
    """List PersistentVolumes, and claims without one."""
    with edge.plainly():
        from lib.ccm import recorded

        read = recorded.volumes(_api(kubeconfig, context), reach.CALL_TIMEOUT_S)
        entries: list[documents.VolumeStateEntry] = [
            {
                "volume": row.name,
                "claim": row.claim,
                "volume_id": row.volume_id,
                "node": row.node,
                "state": row.state,
                "problem": row.problem,
            }
            for row in read
        ]
        document: documents.VolumeStates = {"volumes": entries}
        names = [
            (
                outputs.name("persistentvolume", row.name)
                if row.name
                else outputs.name("persistentvolumeclaim", row.claim)
            )
            for row in read
        ]
        if not outputs.document(output, document, names):
            _print(output, VOLUMES, entries)


def _print(
    output: str, titles: tuple[str, ...], entries: Sequence[Mapping[str, object]]
) -> None:
    """Print a table; its columns have the order of the document's keys."""
    rows = [[str(text) for text in entry.values()] for entry in entries]
    outputs.print_table(output, tuple(map(outputs.Column, titles)), rows)

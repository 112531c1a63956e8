"""`mooring get`: what the cluster records of Services, Nodes and volumes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from mooring.commands import daemon, documents, edge, outputs, providers, reach

if TYPE_CHECKING:
    from lib.kube import client

R = TypeVar("R")

SERVICES = ("Service", "Address", "Load balancer", "State", "Problem")
NODES = ("Node", "Address", "Server", "State", "Problem")
VOLUMES = ("Volume", "Claim", "Volume ID", "Node", "State", "Problem")
_SHORT = {
    "svc": "services",
    "service": "services",
    "no": "nodes",
    "node": "nodes",
    "pv": "volumes",
    "volume": "volumes",
}
"""Names that kubectl has for the same."""


class _Get(click.Group):
    """A group whose commands have kubectl's short names too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name or a short name."""
        return super().get_command(ctx, _SHORT.get(cmd_name, cmd_name))


@click.group(cls=_Get)
def get() -> None:
    """List Services, Nodes or volumes, with their problems.

    With address, load balancer, server or volume, and state. Only reads of the
    Kubernetes API; `mooring plan` compares with the cloud. A problem is that of a
    condition, or of the last Event; Events expire after an hour.

    Example: mooring get services -n web
    """


def _options(command: Callable[..., None]) -> Callable[..., None]:
    shared = (
        click.argument("names", nargs=-1, metavar="[NAME]..."),
        reach.kubeconfig_option,
        reach.context_option,
        providers.option,
        outputs.option,
    )
    for option in reversed(shared):
        command = option(command)
    return command


_namespace = click.option(
    "-n", "--namespace", default="", help="Only those of this namespace."
)


def _api(kubeconfig: str, context: str) -> "client.Api":
    from lib.daemon import read_only
    from lib.kube import client

    reach.quiet()
    address = reach.cluster(kubeconfig, context)
    return read_only.read_only(client.KubeClient(address, user_agent="mooring-get"))


def _chosen(
    rows: Iterable[R],
    keys_of: Callable[[R], Sequence[str]],
    names: Sequence[str],
    namespace: str = "",
) -> list[R]:
    """Return the rows to be listed. keys_of: returns NAME, or NAMESPACE/NAME.

    Raises:
        ClickException: there is no object of a name.
    """
    missing, chosen = set(names), []
    for row in rows:
        keys = [key for key in keys_of(row) if key]
        if namespace and not any(key.startswith(f"{namespace}/") for key in keys):
            continue
        known = {*keys, *(key.rpartition("/")[2] for key in keys)}
        if not names or known & set(names):
            chosen.append(row)
        missing -= known
    if missing:
        raise click.ClickException(f"not found: {', '.join(sorted(missing))}")
    return chosen


@get.command()
@_options
@_namespace
def services(
    names: tuple[str, ...],
    kubeconfig: str,
    context: str,
    cloud: str,
    output: str,
    namespace: str,
) -> None:
    """List Services of type LoadBalancer."""
    with edge.plainly():
        from lib.ccm import recorded

        api = _api(kubeconfig, context)
        provider = providers.of(cloud)
        ids = provider.load_balancer_annotations()
        rows = recorded.services(api, ids, reach.CALL_TIMEOUT_S)
        read = _chosen(rows, lambda row: [row.key], names, namespace)
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
        labels = [outputs.name("service", row.key) for row in read]
        if not outputs.document(output, document, labels):
            _print(output, SERVICES, entries)
        daemon.ManagerDeployment.of(provider, api).warn_if_idle(api)


@get.command()
@_options
def nodes(
    names: tuple[str, ...], kubeconfig: str, context: str, cloud: str, output: str
) -> None:
    """List Nodes."""
    with edge.plainly():
        from lib.ccm import recorded

        api = _api(kubeconfig, context)
        rows = recorded.nodes(api, reach.CALL_TIMEOUT_S)
        read = _chosen(rows, lambda row: [row.name], names)
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
        labels = [outputs.name("node", row.name) for row in read]
        if not outputs.document(output, document, labels):
            _print(output, NODES, entries)
        daemon.ManagerDeployment.of(providers.of(cloud), api).warn_if_idle(api)


@get.command()
@_options
def volumes(
    names: tuple[str, ...], kubeconfig: str, context: str, cloud: str, output: str
) -> None:
    """List PersistentVolumes, and claims without one."""
    del cloud  # volumes are recorded alike
    with edge.plainly():
        from lib.ccm import recorded

        rows = recorded.volumes(_api(kubeconfig, context), reach.CALL_TIMEOUT_S)
        read = _chosen(rows, lambda row: [row.name, row.claim], names)
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
        labels = [
            (
                outputs.name("persistentvolume", row.name)
                if row.name
                else outputs.name("persistentvolumeclaim", row.claim)
            )
            for row in read
        ]
        if not outputs.document(output, document, labels):
            _print(output, VOLUMES, entries)


def _print(
    output: str, titles: tuple[str, ...], entries: Sequence[Mapping[str, object]]
) -> None:
    """Print a table; its columns have the order of the document's keys."""
    rows = [[str(text) for text in entry.values()] for entry in entries]
    outputs.print_table(output, tuple(map(outputs.Column, titles)), rows)

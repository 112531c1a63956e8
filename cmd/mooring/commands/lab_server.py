"""`mooring lab server`: the servers of the lab; and the processes of their kubelets."""

import datetime
import functools
import os
import pathlib
import sys
import threading
import time
from typing import TYPE_CHECKING

import click

from mooring.commands import edge, paths, providers

if TYPE_CHECKING:
    from collections.abc import Callable


@click.group()
def server() -> None:
    """Handle the lab's servers, as a user of the cloud does."""


def _names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the servers of the lab, for the completion of a shell."""
    from lib.lab import errors
    from lib.lab.whole import record

    del context, parameter
    try:
        kept = record.read(edge.where()) or record.Record()
    except errors.LabError:
        return []
    return [name for name in kept.servers if name.startswith(incomplete)]


def _do(verb: str, name: str) -> None:
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.grounds import servers
        from mooring.commands import lab_show

        cloud = lab_show.current(where).cloud()
        matching = [server for server in cloud.items() if server.name == name]
        if not matching:
            raise errors.LabError(f"server {name}: not found")
        methods: dict[str, Callable[[str], str | None]] = {
            "start": cloud.start,
            "stop": cloud.stop,
            "delete": cloud.delete,
        }
        if isinstance(cloud, servers.Exposing):
            methods["expose"] = cloud.add_floating_ip
        if isinstance(cloud, servers.Migrating):
            methods["migrate"] = cloud.migrate
        if verb not in methods:
            raise errors.LabError(f"the servers of this cloud cannot {verb}")
        for named in matching:
            answer = methods[verb](named.id)
            click.echo(f"{verb} {name} ({named.id}) {answer or ''}".rstrip())


@server.command()
@click.argument("name", shell_complete=_names)
def stop(name: str) -> None:
    """Shut a server down: its Node gets the shutdown taint."""
    _do("stop", name)


@server.command()
@click.argument("name", shell_complete=_names)
def start(name: str) -> None:
    """Start a stopped server: the taint is removed."""
    _do("start", name)


@server.command()
@click.argument("name", shell_complete=_names)
def delete(name: str) -> None:
    """Delete a server: its Node is deleted."""
    _do("delete", name)


@server.command()
@click.argument("name", shell_complete=_names)
def expose(name: str) -> None:
    """Assign a floating IP; the Node gets an ExternalIP.

    The name is that of a server.

    Example: mooring lab server expose mooring-lab-1
    """
    _do("expose", name)


@server.command()
@click.argument("name", shell_complete=_names)
def migrate(name: str) -> None:
    """Move a running server to another host, in a cloud that can."""
    _do("migrate", name)


@server.command()
@click.argument("name", shell_complete=_names)
def boot(name: str) -> None:
    """Recreate a server of the lab; its Node comes back.

    As an autoscaler or an administrator would.
    """
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.whole import parts
        from mooring.commands import lab_show

        lab = lab_show.current(where)
        if name not in lab.record.names:
            raise errors.LabError(
                f"{name}: not a server of the lab: must be one of"
                f" {', '.join(lab.record.names)}"
            )
        created = parts.boot(lab.cloud(), [name], lab.record.kind)
        click.echo(f"boot {name} ({created[name]})" if created else f"{name} exists")


class _EveryName(tuple[str, ...]):
    """The names of all servers, also of those that are created later.

    But for the server of the real node, which has a kubelet.
    """

    def __contains__(self, name: object) -> bool:
        """Report whether a server is meant."""
        from lib.lab.whole import record

        return name != record.NODE


@click.command("simulated-kubelets", hidden=True)
@click.option("--kubeconfig", type=paths.FILE, required=True)
@providers.option
@click.option("--existing-cloud", required=True)
@click.option("--existing-file", default="")
@click.option("--name", "names", multiple=True, required=True)
@click.option("--every-name", "is_every", is_flag=True)
@click.option("--restart", "restarted", multiple=True)
def simulated_kubelets(  # noqa: PLR0913 -- one argument for each option
    kubeconfig: pathlib.Path,
    cloud: str,
    existing_cloud: str,
    existing_file: str,
    names: tuple[str, ...],
    is_every: bool,
    restarted: tuple[str, ...],
) -> None:
    """Be the kubelets of the servers named, or of all that the cluster has.

    restarted: programs of the lab that are restarted when they exit.
    """
    with edge.plainly():
        from lib.lab.grounds import grounds
        from lib.lab.kube import cluster, simulated_kubelet
        from lib.lab.run import restarting

        existing = grounds.Existing(existing_cloud, existing_file)
        stop = threading.Event()
        restarter = restarting.Restarter(
            edge.where(),
            restarted,
            time.monotonic,
            functools.partial(click.echo, err=True),
        )
        # A thread of its own: the kubelets wait for the cloud and for the API server.
        threading.Thread(target=restarter.run, args=(stop,), daemon=True).start()
        simulated_kubelet.run(
            cluster.connect(kubeconfig),
            providers.of(cloud).grounds().open(edge.where(), existing),
            _EveryName(names) if is_every else names,
            lambda: datetime.datetime.now(datetime.UTC),
            lambda: not stop.wait(simulated_kubelet.BEAT_S),
            lambda trouble: click.echo(trouble, file=sys.stderr),
        )


@click.command("storage-node", hidden=True)
@click.option("--name", required=True)
@click.option("--instance-id", required=True)
@click.option("--zone", required=True)
@click.option("--cloud-config", type=paths.FILE, required=True)
@click.option("--attachments", type=click.Path(path_type=pathlib.Path), required=True)
def storage_node(
    name: str,
    instance_id: str,
    zone: str,
    cloud_config: pathlib.Path,
    attachments: pathlib.Path,
) -> None:
    """Run the real node with its volumes, until this process is interrupted."""
    where = edge.where()
    with edge.plainly():
        from lib.lab.artifacts import pexes
        from lib.lab.daemons import csi, csi_node
        from lib.lab.storage import file_system_tools, node_keeper, storage_node

        settings = storage_node.StorageNodeSettings(
            name,
            pexes.path(where, csi.NAME),
            pexes.path(where, csi_node.NAME),
            cloud_config,
            instance_id,
            zone,
            file_system_tools.environment(where, os.environ),
            attachments,
        )
        node_keeper.keep(where, settings, click.echo)


@click.command("pod-node", hidden=True)
def pod_node() -> None:
    """Run the real node of a lab with charts, until this process is interrupted."""
    where = edge.where()
    with edge.plainly():
        from lib.lab.pods import host_keeper
        from lib.lab.whole import chart_release
        from mooring.commands import lab_show

        host_keeper.keep(where, chart_release.host(lab_show.current(where)), click.echo)

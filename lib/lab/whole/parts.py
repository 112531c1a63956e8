"""The two halves of a lab, each our own or somebody's: the cluster and the cloud."""

import datetime
import pathlib
import time
from collections.abc import Mapping, Sequence

from lib.kube import client
from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.grounds import servers
from lib.lab.kube import cluster, control_plane, hollow, pki
from lib.lab.openstack import accounts, named, tenant
from lib.lab.openstack import cloud as own_cloud
from lib.lab.run import processes
from lib.lab.whole import demo, record

HOLLOW = "hollow-kubelets"
BOOT_S = 180
GONE_S = 60
POLL_S = 0.5


def kubeconfig(where: places.Places, lab: record.Record) -> pathlib.Path:
    """Give the kubeconfig with which the lab itself works."""
    if lab.kubeconfig:
        return pathlib.Path(lab.kubeconfig)
    return control_plane.admin_kubeconfig(where)


def api(where: places.Places, lab: record.Record) -> client.Api:
    """Open the lab's cluster."""
    return cluster.connect(kubeconfig(where, lab))


def clouds(where: places.Places, lab: record.Record) -> tuple[pathlib.Path | None, str]:
    """Say which cloud of which clouds.yaml is the lab's; None: the usual file."""
    if not lab.os_cloud:
        return accounts.clouds_file(where), accounts.DEMO.cloud
    file = pathlib.Path(lab.clouds_file) if lab.clouds_file else None
    return file, lab.os_cloud


def cloud(where: places.Places, lab: record.Record) -> servers.Cloud:
    """Open the lab's cloud."""
    return named.connect(*clouds(where, lab))


def prepare(where: places.Places) -> None:
    """Make the network of our own cloud on which the servers live."""
    tenant.Tenant(own_cloud.connect(where)).ensure_network()


def cloud_conf(where: places.Places, lab: record.Record) -> pathlib.Path:
    """Write the configuration that openstack-ccm reads.

    Source: cloud-provider-openstack, [Global] use-clouds, clouds-file, cloud.
    """
    target = where.state / "cloud.conf"
    text = accounts.cloud_conf(where)
    if lab.os_cloud:
        file, name = clouds(where, lab)
        lines = ["[Global]", "use-clouds = true", f'cloud = "{name}"']
        lines += [] if file is None else [f'clouds-file = "{file}"']
        text = "\n".join([*lines, ""])
    pki.write_secret(target, text.encode())
    return target


def ccm_kubeconfig(where: places.Places) -> pathlib.Path:
    """Give the kubeconfig that is openstack-ccm's ServiceAccount."""
    return where.state / "openstack-ccm.kubeconfig"


def boot(
    there: servers.Cloud, names: Sequence[str], kind: servers.Kind
) -> Mapping[str, str]:
    """Make the servers that are missing or broken; give the new ones' ids by name.

    Raises:
        LabError: a broken one was not gone in time.
    """
    by_name = {one.name: one for one in there.items()}
    made = {}
    for name in names:
        old = by_name.get(name)
        if old is not None and old.status == servers.ERROR:
            _delete(there, old.id)
        if old is None or old.status == servers.ERROR:
            made[name] = there.boot(name, kind).id
    return made


def _delete(there: servers.Cloud, server_id: str) -> None:
    """Delete a server and wait until it is gone."""
    end = time.monotonic() + GONE_S
    there.delete(server_id)
    while any(one.id == server_id for one in there.items()):
        if time.monotonic() > end:
            raise errors.LabError("the cloud does not delete its old servers")
        time.sleep(POLL_S)


def wait_for_servers(
    there: servers.Cloud, names: Sequence[str], timeout_s: float = BOOT_S
) -> Mapping[str, str]:
    """Wait until the servers named are made; give all their ids by name.

    One that its user has stopped is made, too.

    Raises:
        LabError: one failed, or was not made in time.
    """
    end = time.monotonic() + timeout_s
    while True:
        found = {one.name: one for one in there.items() if one.name in names}
        done = [
            one
            for one in found.values()
            if one.status in (servers.ACTIVE, servers.SHUTOFF)
        ]
        if len(done) == len(names):
            return {name: one.id for name, one in found.items()}
        broken = [name for name, one in found.items() if one.status == servers.ERROR]
        if broken or time.monotonic() > end:
            which = ", ".join(broken or set(names) - {one.name for one in done})
            raise errors.LabError(
                f"the cloud did not make {which}; the logs of nova may say why"
            )
        time.sleep(POLL_S)


def register_hollow_nodes(
    there: client.Api, servers_by_name: Mapping[str, str]
) -> tuple[str, ...]:
    """Register a Node for each server; give the names of those which are new.

    servers_by_name: ids. A Node of an earlier server of the same name goes first.
    """
    known = {node.name: node for node in cluster.nodes(there)}
    new = []
    for name, server_id in servers_by_name.items():
        node = known.get(name)
        if node and node.provider_id and not node.provider_id.endswith(server_id):
            cluster.delete_node(there, name)
        if hollow.register(there, name, datetime.datetime.now(datetime.UTC)):
            new.append(name)
    return tuple(new)


def start_hollow_kubelets(
    where: places.Places, lab: record.Record, pex: pathlib.Path
) -> None:
    """Start the process that stands for the servers' kubelets.

    One that runs from an older PEX is replaced.
    """
    ccm.replace_outdated(where, HOLLOW, pex)
    file, name = clouds(where, lab)
    words = ["lab", HOLLOW, "--kubeconfig", str(kubeconfig(where, lab))]
    words += ["--os-cloud", name]
    if file is not None:
        words += ["--clouds-file", str(file)]
    for one in lab.names:
        words += ["--name", one]
    command = [*pexes.command(pex), *words]
    processes.start(where, HOLLOW, command, pexes.environment(where))


def view(
    there: client.Api, cloud_there: servers.Cloud, names: Sequence[str]
) -> demo.View:
    """Look at Nodes and servers; of servers only the lab's and those with a Node."""
    nodes = cluster.nodes(there)
    shown = {*names, *(node.name for node in nodes)}
    found = [one for one in cloud_there.items() if one.name in shown]
    return demo.View(nodes, tuple(found))

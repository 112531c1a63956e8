"""The two halves of a lab, each its own or an existing one: cluster and cloud."""

import dataclasses
import datetime
import pathlib
from collections.abc import Mapping, Sequence

import psutil

from lib.kube import client
from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm, csi, discoverer
from lib.lab.grounds import grounds, machine_grounds, servers
from lib.lab.kube import cluster, control_plane, kube_objects, simulated_kubelet
from lib.lab.pods import host_keeper
from lib.lab.run import processes, waiting
from lib.lab.storage import node_keeper, storage_node, volume_client, volume_demo
from lib.lab.whole import demo, record

SIMULATED = "simulated-kubelets"
_DISCOVERY_S = 30
POLL_S = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class Lab:
    """One lab: where it is, what it was started with, and whose cloud it has."""

    where: places.Places
    record: record.Record
    grounds: grounds.Grounds

    @property
    def kubeconfig(self) -> pathlib.Path:
        """The kubeconfig with which the lab itself works."""
        if self.record.kubeconfig:
            return pathlib.Path(self.record.kubeconfig)
        return control_plane.admin_kubeconfig(self.where)

    @property
    def is_own(self) -> bool:
        """Whether cluster and cloud are the lab's own."""
        return not (self.record.kubeconfig or self.record.existing_cloud)

    @property
    def supported(self) -> tuple[str, ...]:
        """The names of our daemons that can run in this lab, a manager first."""
        more = {
            csi.NAME: self.is_own and self.grounds.claims is not None,
            discoverer.NAME: self.is_own and self.grounds.discovery is not None,
        }
        if isinstance(self.grounds, machine_grounds.MachineGrounds):
            more[self.grounds.machines.name] = self.is_own
        manager = (self.grounds.manager,) if self.grounds.manager else ()
        return (*manager, *(name for name, can in more.items() if can))

    @property
    def components(self) -> tuple[str, ...]:
        """The names of our daemons that are to run; csi-node belongs to the node."""
        chosen = self.record.components
        return tuple(n for n in self.supported if chosen is None or n in chosen)

    @property
    def has_manager(self) -> bool:
        """Whether the cloud controller manager is to run."""
        return self.grounds.manager in self.components

    @property
    def has_balancers(self) -> bool:
        """Whether Services get load balancers."""
        return self.has_manager and self.is_own and self.grounds.has_load_balancers

    @property
    def has_claims(self) -> bool:
        """Whether claims get volumes."""
        return csi.NAME in self.components

    @property
    def has_discovery(self) -> bool:
        """Whether the offers of the cloud are published."""
        return discoverer.NAME in self.components

    @property
    def machines(self) -> machine_grounds.LabMachines | None:
        """Machines of Cluster API; None: their provider does not run."""
        if not isinstance(self.grounds, machine_grounds.MachineGrounds):
            return None
        of_cloud = self.grounds.machines
        return of_cloud if of_cloud.name in self.components else None

    @property
    def has_routes(self) -> bool:
        """Whether Pods are routed to."""
        is_own = self.is_own and not self.record.charts
        return self.has_manager and is_own and self.grounds.has_routes

    @property
    def has_volumes(self) -> bool:
        """Whether the real node has volumes of the lab's own cloud."""
        is_own = self.record.node and not self.record.existing_cloud
        return is_own and self.grounds.volumes is not None

    @property
    def manager_kubeconfig(self) -> pathlib.Path:
        """The kubeconfig that is the ServiceAccount of the manager."""
        return self.where.state / f"{self.grounds.manager}.kubeconfig"

    @property
    def account(self) -> tuple[str, str]:
        """Namespace and name of the manager's ServiceAccount."""
        return ("kube-system", self.grounds.manager)

    def api(self) -> client.Api:
        """Open the lab's cluster."""
        return cluster.connect(self.kubeconfig)

    def cloud(self) -> servers.Cloud:
        """Open the lab's cloud."""
        return self.grounds.open(self.where, self.record.existing)

    def environment(self) -> Mapping[str, str]:
        """Return the variables with which a user's own client finds the cloud."""
        return self.grounds.environment(self.where, self.record.existing)

    def manager_arguments(self) -> tuple[str, ...]:
        """Write the manager's configuration; return its command line."""
        return self.grounds.manager_arguments(
            self.where,
            self.record.existing,
            self.manager_kubeconfig,
            ccm.POD_CIDR if self.has_routes else "",
        )


def boot(
    cloud: servers.Cloud, names: Sequence[str], kind: servers.Kind
) -> Mapping[str, str]:
    """Create the servers that are missing or broken; return the new ones' ids by name.

    Raises:
        LabError: a broken one was not gone in time.
    """
    by_name = {server.name: server for server in cloud.items()}
    booted = {}
    for name in names:
        old = by_name.get(name)
        if old is not None and old.status == servers.ERROR:
            _delete(cloud, old.id)
        if old is None or old.status == servers.ERROR:
            booted[name] = cloud.boot(name, kind).id
    return booted


def _delete(cloud: servers.Cloud, server_id: str) -> None:
    """Delete a server and wait until it is gone."""
    cloud.delete(server_id)
    waiting.until(
        "the cloud deletes its old servers",
        lambda: all(server.id != server_id for server in cloud.items()),
        poll_s=POLL_S,
    )


def wait_for_servers(
    cloud: servers.Cloud,
    names: Sequence[str],
    timing: waiting.Timing | None = None,
) -> Mapping[str, str]:
    """Wait until the servers named are made; return all their ids by name.

    One that its user has stopped is made, too.

    Raises:
        LabError: one failed, or was not made in time.
    """
    observed: dict[str, servers.Server] = {}

    def are_made() -> bool:
        for server in cloud.items():
            if server.name in names:
                observed[server.name] = server
        broken = [
            name for name, server in observed.items() if server.status == servers.ERROR
        ]
        if broken:
            raise errors.LabError(
                f"the cloud did not make {', '.join(broken)}; the logs of nova may show"
                " the reason"
            )
        return not _unmade(observed, names)

    waiting.until(
        lambda: f"the cloud makes {', '.join(_unmade(observed, names))}; the logs of"
        " nova may show the reason",
        are_made,
        poll_s=POLL_S,
        timing=timing,
    )
    return {name: server.id for name, server in observed.items()}


def _unmade(
    observed: Mapping[str, servers.Server], names: Sequence[str]
) -> Sequence[str]:
    """Return the names of the servers that are not made yet."""
    done = (servers.ACTIVE, servers.SHUTOFF)
    return [
        name
        for name in names
        if name not in observed or observed[name].status not in done
    ]


def register_simulated_nodes(
    api: client.Api, servers_by_name: Mapping[str, str]
) -> tuple[str, ...]:
    """Register a Node for each server; return the names of those which are new.

    servers_by_name: ids. A Node of an earlier server of the same name goes first.
    """
    known = {node.name: node for node in cluster.nodes(api)}
    new = []
    for name, server_id in servers_by_name.items():
        node = known.get(name)
        if node and node.provider_id and not node.provider_id.endswith(server_id):
            cluster.delete_node(api, name)
        if simulated_kubelet.register(api, name, datetime.datetime.now(datetime.UTC)):
            new.append(name)
    return tuple(new)


def start_simulated_kubelets(lab: Lab, pex: pathlib.Path) -> None:
    """Start the process that stands for the servers' kubelets.

    One that runs from an older PEX is replaced.
    """
    where = lab.where
    ccm.replace_outdated(where, SIMULATED, pex)
    words = ["lab", SIMULATED, "--kubeconfig", str(lab.kubeconfig)]
    cloud = lab.grounds.described(where, lab.record.existing)
    words += ["--cloud", lab.grounds.name, "--existing-cloud", cloud.name]
    words += ["--existing-file", cloud.file] if cloud.file else []
    if isinstance(lab.grounds, machine_grounds.MachineGrounds):
        words += ["--every-name"]
    for name in lab.record.names:
        words += ["--name", name]
    for program in _restarted(lab):
        words += ["--restart", program]
    command = [*pexes.command(pex), *words]
    processes.start(where, SIMULATED, command, pexes.environment(where))


def _restarted(lab: Lab) -> tuple[str, ...]:
    """Return the programs that are restarted when they exit.

    Those of the real node have a keeper of their own, and pods have the kubelet.
    """
    own = () if lab.record.kubeconfig else control_plane.PROGRAMS
    if lab.record.charts:
        return own
    daemons = [name for name in lab.components if name != csi.NAME]
    if lab.has_claims and not lab.has_volumes:
        daemons += [csi.NAME, *csi.SIDECARS]
    machines = lab.machines.programs if lab.machines is not None else ()
    return tuple(dict.fromkeys((*own, *daemons, *machines)))


def start_csi_controller(lab: Lab) -> None:
    """Start csi-controller and its sidecars, in a lab without a real node.

    One that runs from an older PEX is replaced.

    Raises:
        LabError: it did not start, or the cloud has no volumes.
    """
    where, claims = lab.where, lab.grounds.claims
    if claims is None:
        raise errors.LabError(f"{lab.grounds.title} has no volumes")
    pex, words = pexes.path(where, csi.NAME), claims.arguments(where)
    ccm.replace_outdated(where, csi.NAME, pex)
    kubeconfig = csi.allow(where, claims.driver)
    control_plane.apply_manifests(where, claims.default_class)
    csi.start(where, pex, words, claims.environment(where))
    csi.start_sidecars(where, kubeconfig)


def start_discoverer(lab: Lab) -> None:
    """Start cloud-data-discoverer; one that runs from an older PEX is replaced.

    Raises:
        LabError: it did not start, or the cloud cannot be discovered.
    """
    where, discovery = lab.where, lab.grounds.discovery
    if discovery is None:
        raise errors.LabError(f"{lab.grounds.title} has no discovery")
    pex = pexes.path(where, discoverer.NAME)
    ccm.replace_outdated(where, discoverer.NAME, pex)
    discoverer.install(where, discovery.installed())
    period = f"--discovery-period={_DISCOVERY_S}s"
    words = (*discovery.arguments, period)
    discoverer.start(where, pex, discovery.environment(where), words)


def start_storage_node(lab: Lab, server_id: str) -> None:
    """Start the real node with volumes, whose server has this id.

    Raises:
        LabError: it did not start, or the cloud has no volumes.
    """
    where, volumes = lab.where, lab.grounds.volumes
    if volumes is None:
        raise errors.LabError(f"{lab.grounds.title} has no volumes for a real node")
    server = next(item for item in lab.cloud().items() if item.id == server_id)
    words = (
        *("lab", node_keeper.NAME, f"--name={record.NODE}"),
        f"--instance-id={server_id}",
        f"--zone={server.zone}",
        f"--cloud-config={volumes.configuration(where)}",
        f"--attachments={volumes.attachments(where, server_id)}",
    )
    tool = pexes.path(where, pexes.TOOL)
    node_keeper.up(where, tool, words, record.NODE)


def node_view(lab: Lab) -> storage_node.NodeView:
    """Return what the real node has mounted, and what its pods have written.

    Raises:
        LabError: the node does not run.
    """
    return storage_node.NodeView(lab.where, node_process(lab).pid)


def node_process(lab: Lab) -> psutil.Process:
    """Return the process that keeps the real node.

    Raises:
        LabError: the node does not run.
    """
    of_pods = lab.record.charts
    keeper = host_keeper.find(lab.where) if of_pods else node_keeper.find(lab.where)
    if keeper is None:
        name = host_keeper.NAME if of_pods else node_keeper.NAME
        raise errors.LabError(f"{name} does not run; `mooring lab up` starts it again")
    return keeper


def volume_life(lab: Lab) -> volume_demo.VolumeLife:
    """Return the steps of a volume of the real node.

    Raises:
        LabError: the node does not run.
    """
    volumes = lab.grounds.volumes
    if volumes is None:
        raise errors.LabError(f"{lab.grounds.title} has no volumes for a real node")
    (server_id,) = (
        server.id for server in lab.cloud().items() if server.name == record.NODE
    )
    client_ = volume_client.VolumeClient(
        kube_objects.Objects(lab.api(), "default"),
        node_view(lab),
        record.NODE,
    )
    attachments = volumes.attachments(lab.where, server_id)
    return volume_demo.VolumeLife(client_, attachments)


def view(api: client.Api, cloud: servers.Cloud, names: Sequence[str]) -> demo.View:
    """Read Nodes and servers; of servers only the lab's and those with a Node."""
    nodes = cluster.nodes(api)
    shown = {*names, *(node.name for node in nodes)}
    observed = [server for server in cloud.items() if server.name in shown]
    return demo.View(nodes, tuple(observed))

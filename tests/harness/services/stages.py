"""A project of the cloud for the Services of one cluster, and openstack-ccm between.

One daemon, as its users run it. `balancing.py` is for several replicas, and for calls
that are counted, refused or held back.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from lib.kube import client
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from lib.lab.openstack import cloud, tenant
from lib.lab.run import processes
from tests.harness.openstack import balancers
from tests.harness.services import services

FLAGS = ("--controllers=service", "--cluster-name=kubernetes")


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """A control plane that runs. where: its own places, and the daemon's.

    kubeconfig: of openstack-ccm's ServiceAccount.
    """

    where: places.Places
    api: client.Api
    kubeconfig: pathlib.Path
    pex: pathlib.Path


def cluster_of(where: places.Places, pex: pathlib.Path) -> Cluster:
    """Return a control plane in which openstack-ccm has the rights of its chart.

    Raises:
        LabError: the control plane does not run. KubeError: it refused.
    """
    admin, target = control_plane.admin_kubeconfig(where), where.state / "ccm-account"
    api = cluster.connect(admin)
    cluster.create_all(api, ccm.manifest())
    cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, target)
    return Cluster(where, api, target, pex)


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """What there is while a stage is open.

    mine: the project with its user's rights. conf: text of a cloud.conf.
    """

    cluster: Cluster
    mine: tenant.Tenant
    conf: str
    services: services.Services
    _ends: contextlib.ExitStack

    @property
    def where(self) -> places.Places:
        """The places of cluster and daemon."""
        return self.cluster.where

    def network(self) -> tuple[str, str]:
        """Return the ids of the project's network and of its first subnet."""
        with cloud.sentences():
            network = self.mine.connection.network
            inside = network.find_network(tenant.NETWORK, ignore_missing=False)
            return str(inside.id), str(inside.subnet_ids[0])

    def add_nodes(
        self,
        addresses: Mapping[str, Sequence[str]],
        labels: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Have Nodes until the stage ends. addresses, labels: by their names."""
        api = self.cluster.api
        self._ends.callback(services.delete_nodes, api, tuple(addresses))
        for name, some in addresses.items():
            services.make_node(api, name, some, (labels or {}).get(name))

    def serve(self, flags: Sequence[str] = (), settings: str = "") -> None:
        """Run the daemon until the stage ends; then all Services go first.

        flags: beside the usual ones. settings: further text of its cloud.conf.

        Raises:
            LabError: it did not start.
        """
        name = f"{self.services.namespace}-cloud.conf"
        file = self.where.state / name
        file.write_text(self.conf + settings)
        words = ccm.arguments(
            self.where, self.cluster.kubeconfig, file, (*FLAGS, *flags)
        )
        self._ends.callback(processes.stop, self.where, [ccm.NAME])
        ccm.start(self.where, self.cluster.pex, words)
        self._ends.callback(self.services.clear)


Open = Callable[[str], contextlib.AbstractContextManager[Stage]]
"""Opens a stage, given the name of its project and of the Services' namespace."""


@contextlib.contextmanager
def opened(
    kubernetes: Cluster, mine: tenant.Tenant, conf: str, namespace: str
) -> Iterator[Stage]:
    """Open a stage for as long as the block lasts; then nothing of the project is left.

    Raises:
        LabError: something could not be removed.
    """
    with contextlib.ExitStack() as ends:
        ends.callback(mine.clear)
        ends.callback(balancers.clear, mine.connection)
        user = services.Services(kubernetes.api, namespace)
        yield Stage(kubernetes, mine, conf, user, ends)

"""All that Machines on DVP need, running: parent, child, core, dvp-ccm and kubelets.

`core_fixtures.stage` is the fixture that opens it.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.capi import core as core_manager
from lib.lab.dvp import capdvp_objects
from lib.lab.dvp.project import Project
from lib.lab.dvp.virtual_servers import VirtualServers
from lib.lab.kube import cluster, control_plane
from tests.harness.dvp import dvp_manager, dvp_parent, recorder
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import capdvp_replicas
from tests.harness.machines.fleet import Fleet
from tests.harness.machines.vm_kubelets import VmKubelets

SYNCED_S = 60


@dataclasses.dataclass(frozen=True, slots=True)
class CapiStage:
    """What runs. account: of capdvp in the parent. versions: of all objects there.

    kubeconfig, parent_kubeconfig: of capdvp.
    """

    where: places.Places
    parent: DvpParent
    project: Project
    fleet: Fleet
    kubelets: VmKubelets
    account: tuple[str, str]
    versions: recorder.Recorder
    kubeconfig: pathlib.Path
    parent_kubeconfig: pathlib.Path

    def capdvp(self, *more: str) -> capdvp_replicas.CapdvpReplicas:
        """Return replicas of capdvp, not started. more: further flags."""
        return capdvp_replicas.CapdvpReplicas(
            self.where, self.project, self.kubeconfig, self.parent_kubeconfig, more
        )

    def duplicates(self) -> dict[str, int]:
        """Return the objects that existed more than once, by kind and name."""
        counts: dict[str, int] = {}
        for kind in recorder.KINDS:
            for name in self.versions.names(kind):
                uids = {item.uid for item in self.versions.versions(kind, name) if item}
                if len(uids) > 1:
                    counts[f"{kind.kind} {name}"] = len(uids)
        return counts


@contextlib.contextmanager
def opened(
    parent: DvpParent, project: Project, where: places.Places, name: str = "one"
) -> Iterator[CapiStage]:
    """Run dvp-ccm and the kubelets while the block runs. name: of the Cluster.

    where: of the child, beside which the core runs.
    """
    assert core_manager.serves(where)
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    capdvp_objects.install(api)
    kubeconfig = capdvp_replicas.child_kubeconfig(where, api)
    of_parent = where.state / "capdvp-parent.kubeconfig"
    account = capdvp_replicas.parent_kubeconfig(parent, project, of_parent)
    servers = VirtualServers(parent.api, project.namespace, dvp_parent.CLUSTER)
    watched = recorder.Recorder(parent.api, project.namespace)
    kubelets = VmKubelets(api, servers)
    words = dvp_manager.arguments(
        where, project.kubeconfig, [dvp_manager.NODES_ONLY, "--leader-elect=false"]
    )
    env = dvp_manager.environment(project)
    try:
        watched.wait_synced(SYNCED_S)
        with dvp_manager.running(where, pexes.beside("dvp-ccm"), words, env):
            fleet = Fleet(where, parent, project, name)
            yield CapiStage(
                where,
                parent,
                project,
                fleet,
                kubelets,
                account,
                watched,
                kubeconfig,
                of_parent,
            )
    finally:
        kubelets.end()
        watched.close()

"""One Cluster of a child, the Machines of its MachineDeployment, and their VMs."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab import errors, places
from lib.lab.dvp import kinds
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.run import waiting
from tests.harness.dvp import dvp_parent
from tests.harness.dvp.dvp_manager import SeenNodes
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import cluster_objects
from tests.harness.machines.cluster_objects import Json

WORKERS = "workers"
OWNED = (kinds.MACHINES, kinds.DISKS, resources.SECRETS)
"""Kinds of what Machines have in the parent."""

Names = frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """The names of all that belongs to a Cluster, at one time.

    running: Machines in this phase. nodes: those that are initialised. owned: objects
    in the parent with the labels of the cluster and of a host, by kind.
    """

    machines: Names
    running: Names
    nodes: Names
    owned: Mapping[str, Names]

    @property
    def vms(self) -> Names:
        """Names of the VMs."""
        return self.owned[kinds.MACHINES.kind]

    def is_whole(self, count: int) -> bool:
        """Report whether there are so many Machines, all Running, and nothing else."""
        disks = frozenset(f"{name}-boot" for name in self.machines)
        secrets = frozenset(f"cloud-init-{name}" for name in self.machines)
        return (
            len(self.machines) == count
            and self.machines == self.running == self.nodes == self.vms
            and disks == self.owned[kinds.DISKS.kind]
            and secrets == self.owned[resources.SECRETS.kind]
        )

    def __str__(self) -> str:
        """Return numbers, for tables and messages."""
        owned = ", ".join(f"{len(v)} {k}" for k, v in self.owned.items())
        return (
            f"{len(self.machines)} Machines, {len(self.running)} Running,"
            f" {len(self.nodes)} Nodes; {owned}"
        )


class Fleet:
    """Acts as a user of Cluster API. where: of the child. name: of the Cluster."""

    def __init__(
        self, where: places.Places, parent: DvpParent, project: Project, name: str
    ) -> None:
        self.where = where
        self._admin = control_plane.admin_kubeconfig(where)
        self.api = cluster.connect(self._admin)
        self.objects = kube_objects.Objects(self.api, cluster_objects.NAMESPACE)
        self.parent = parent
        self.project = project
        self.in_parent = parent.objects(project)
        self.nodes = SeenNodes(self.api)
        self.name = name

    def create_cluster(self) -> None:
        """Create a Cluster whose workload cluster is the child itself."""
        self.create_surroundings(cluster_objects.CONTROL_PLANES)
        objects, name = self.objects, self.name
        objects.make(cluster_objects.CONTROL_PLANES, name)
        self.report(
            cluster_objects.CONTROL_PLANES, name, cluster_objects.CONTROL_PLANE_STATUS
        )
        objects.make(cluster_objects.DVP_CLUSTERS, name, spec={})
        spec = cluster_objects.cluster_spec(name)
        objects.make(cluster_objects.CLUSTERS, name, spec=spec)

    def create_surroundings(self, *kinds_: resources.Resource) -> None:
        """Create the namespace, open definitions, and the Secrets of the Cluster."""
        self._create_definitions(kinds_)
        objects, name = self.objects, self.name
        labels = {"labels": {cluster_objects.NAME_LABEL: name}}
        objects.make(
            resources.SECRETS,
            f"{name}-kubeconfig",
            labels,
            type="cluster.x-k8s.io/secret",
            data=cluster_objects.secret_data(value=self._admin.read_bytes()),
        )
        objects.make(
            resources.SECRETS,
            cluster_objects.BOOTSTRAP,
            labels,
            type="cluster.x-k8s.io/secret",
            data=cluster_objects.bootstrap_data(),
        )

    def _create_definitions(self, kinds_: Sequence[resources.Resource]) -> None:
        space = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.objects.namespace},
        }
        by_kind = {
            each.kind: each for each in (resources.DEFINITIONS, resources.NAMESPACES)
        }
        documents = [*map(cluster_objects.open_definition, kinds_), space]
        cluster.create_documents(self.api, documents, by_kind)
        for kind in kinds_:
            cluster_objects.until_served(self.objects, kind)

    def report(
        self, kind: resources.Resource, name: str, status: Mapping[str, object] | None
    ) -> None:
        """Change the status of an object of the child; None: remove it."""
        self.api.patch(
            kind,
            name,
            json.dumps({"status": status}).encode(),
            self.objects.namespace if kind.namespaced else None,
            subresource="status",
            timeout_s=kube_objects.TIMEOUT_S,
        )

    def create_template(self, name: str, **fields: object) -> None:
        """Create a DeckhouseMachineTemplate."""
        spec = cluster_objects.template_spec(**fields)
        self.objects.make(cluster_objects.DVP_TEMPLATES, name, spec=spec)

    def create_deployment(
        self, template: str, replicas: int, *, surge: int = 1, **machine: object
    ) -> None:
        """Create the MachineDeployment; see `cluster_objects.deployment_spec`."""
        spec = cluster_objects.deployment_spec(
            self.name, template, replicas, surge=surge, **machine
        )
        self.objects.make(cluster_objects.DEPLOYMENTS, WORKERS, spec=spec)

    def change(self, **spec: object) -> None:
        """Change the spec of the MachineDeployment, by a merge patch."""
        self.objects.patch(cluster_objects.DEPLOYMENTS, WORKERS, spec=spec)

    def scale(self, replicas: int) -> None:
        """Change the number of Machines."""
        self.change(replicas=replicas)

    def roll(self, template: str, surge: int) -> None:
        """Replace all Machines by such of another template."""
        ref = cluster_objects.reference(cluster_objects.DVP_TEMPLATES, template)
        self.change(
            rollout=cluster_objects.rollout(surge),
            template={"spec": {"infrastructureRef": ref}},
        )

    def pause(self, is_paused: bool) -> None:
        """Pause the Cluster, or end that."""
        self.objects.patch(
            cluster_objects.CLUSTERS, self.name, spec={"paused": is_paused}
        )

    def machines(self) -> Sequence[Json]:
        """Return the Machines that exist."""
        return self.objects.all(cluster_objects.MACHINES)

    def delete_machine(self, name: str) -> None:
        """Request the deletion of a Machine."""
        self.objects.delete(cluster_objects.MACHINES, name, None)

    def owned(self) -> Mapping[str, Names]:
        """Return the names of all objects of Machines in the parent, by kind.

        Disks of volumes have the label of the cluster, but none of a host.
        """
        return {kind.kind: self._labelled(kind) for kind in OWNED}

    def _labelled(self, kind: resources.Resource) -> Names:
        items = [item["metadata"] for item in self.in_parent.all(kind)]
        return frozenset(
            meta["name"]
            for meta in items
            if meta.get("labels", {}).get(dvp_parent.CLUSTER_LABEL)
            == dvp_parent.CLUSTER
            and meta["labels"].get(dvp_parent.HOSTNAME_LABEL)
        )

    def until_answered(self) -> None:
        """Wait until the parent serves all kinds, after its API server has started."""

        def is_served() -> bool:
            with contextlib.suppress(kube_errors.KubeError):
                self.owned()
                return True
            return False

        waiting.until("the parent serves all kinds", is_served, poll_s=0.5)

    def picture(self) -> Picture:
        """Return what there is of the Cluster now."""
        machines = self.machines()
        new = self.nodes.new()
        return Picture(
            frozenset(item["metadata"]["name"] for item in machines),
            frozenset(
                item["metadata"]["name"]
                for item in machines
                if item.get("status", {}).get("phase") == "Running"
            ),
            frozenset(self.nodes.names() - new),
            self.owned(),
        )

    def until_whole(
        self,
        count: int,
        on_picture: Callable[[Picture], None] | None = None,
        without: Collection[str] = (),
    ) -> Picture:
        """Wait until exactly so many Machines are Running; return what there is.

        on_picture: called with every picture. without: Machines to be replaced.

        Raises:
            LabError: they are not in time.
        """
        picture = self.picture()

        def is_met() -> bool:
            nonlocal picture
            picture = self.picture()
            if on_picture is not None:
                on_picture(picture)
            gone = not picture.machines & frozenset(without)
            return gone and picture.is_whole(count)

        try:
            waiting.until(f"{count} Machines are Running", is_met, poll_s=0.5)
        except errors.LabError as error:
            raise errors.LabError(f"{error}: {picture}") from error
        return picture

    def delete_cluster(self) -> None:
        """Delete the Cluster; return once its object is gone.

        Raises:
            LabError: it is not in time.
        """
        self.objects.delete(cluster_objects.CLUSTERS, self.name, None)
        waiting.until(
            "the Cluster is deleted",
            lambda: self.objects.get(cluster_objects.CLUSTERS, self.name) is None,
        )

"""The umbrella chart for DVP on a VM of a simulated parent, in real pods."""

import contextlib
import dataclasses
import pathlib
import secrets
from collections.abc import Iterator, Mapping, Sequence

import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.charts import charts
from lib.lab.dvp import kinds, pod_values
from lib.lab.dvp.project import Project
from lib.lab.images import images
from lib.lab.kube import kube_objects, kubelet
from lib.lab.pods import cluster_pods, node_values, pod_host, sidecars
from lib.lab.storage import attached_disks, loop_disks
from tests.harness import testing
from tests.harness.dvp import dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.images import building
from tests.harness.kube import audit
from tests.harness.pods import installed_node

CHART = pod_values.CHART
OWN: Mapping[str, tuple[str, str]] = {
    "capdvp": ("capdvp", "capdvp"),
    "cloud-data-discoverer": ("cloud-data-discoverer-dvp", "cloud-data-discoverer"),
    "csi-controller": ("csi-controller-dvp", "controller"),
    "csi-node": ("csi-node-dvp", "node"),
    "dvp-ccm": ("dvp-ccm", "dvp-ccm"),
}
"""Label and container of the project's own image, by component."""
HOUR = {
    "dvp-ccm": {
        "lbDriftPeriod": "10s",
        "extraArgs": [
            "--node-status-update-frequency=5s",
            "--node-monitor-period=100ms",
        ],
    },
    "capdvp": {"syncPeriod": "10s"},
}
"""Values: the periodic work of an hour, by the defaults, in HOUR_S.

Six drift checks, twelve updates of addresses, 720 checks of Nodes. The discoverer keeps
its period, of an hour: a cycle is two requests to the parent.
"""
HOUR_S = 73.0
READS = ("get", "list", "watch")
OWNED = (
    kinds.MACHINES,
    kinds.DISKS,
    kinds.ATTACHMENTS,
    resources.SERVICES,
    resources.SECRETS,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DvpPodNode(installed_node.InstalledNode):
    """A VM of a parent. project: in which all of the cluster is."""

    parent: DvpParent
    project: Project

    def writes(self) -> Sequence[audit.Row]:
        """See the base class: the requests of the project's user."""
        rows = self.parent.requests(self.project)
        return [row for row in rows if row.verb not in READS]

    def in_cloud(self) -> Mapping[str, list[str]]:
        """See the base class: objects of the project, with what must not change."""
        objects = self.parent.objects(self.project)
        return {kind.plural: sorted(map(_shown, objects.all(kind))) for kind in OWNED}

    def secret(self, name: str, kubeconfig: str) -> None:
        """Write one of the Secrets of the reference."""
        texts = {
            pod_values.KEY: kubeconfig,
            "namespace": self.project.namespace,
            "clusterUUID": dvp_parent.CLUSTER,
        }
        self.system.write_secret(name, texts)

    def prepare(self) -> None:
        """Create both Secrets, and mark the Node as one of the control plane."""
        labels = {"labels": {node_values.CONTROL_PLANE: ""}}
        self.system.patch(resources.NODES, self.name, metadata=labels)
        text = self.project.kubeconfig.read_text()
        for name in (pod_values.SECRET, pod_values.MACHINES_SECRET):
            self.secret(name, f"{text}\n# of the Secret {name}\n")


def _shown(item: installed_node.Json) -> str:
    """Return name, UID and generation of an object, and since when a VM runs."""
    about, status = item["metadata"], item.get("status", {})
    since = [
        f"Running since {condition['lastTransitionTime']}"
        for condition in status.get("conditions", ())
        if condition["type"] == "Running"
    ]
    parts = (about["name"], about["uid"], str(about.get("generation", 0)), *since)
    return " ".join(parts)


@contextlib.contextmanager
def running(
    where: places.Places,
    api: client.Api,
    parent: DvpParent,
    project: Project,
    folder: pathlib.Path,
) -> Iterator[DvpPodNode]:
    """Run the node while the block runs; child and parent run, nothing is installed.

    The calling process gets a mount namespace of its own. folder: for the images.
    """
    if reason := pod_host.unavailable(where):
        pytest.skip(reason)
    shown = testing.shown()
    pod_host.build(where, shown)
    names = list(pod_values.COMPONENTS)
    built = images.build(where, building.source(), names, folder, shown)
    hostname = f"node-{secrets.token_hex(2)}"
    vm = parent.machine(project, hostname)
    status = parent.wait_phase(kinds.MACHINES, project, vm, "Running")["status"]
    loop_disks.enter_private_mounts()
    settings = pod_host.HostSettings(
        hostname,
        status["ipAddress"],
        (parent.where.port("apiserver"),),
        parent.attachments(hostname),
        attached_disks.scsi,
    )
    with pod_host.running(where, settings, shown):
        for image in built:
            kubelet.load_image(where, image.file)
        sidecars.load(where, folder)
        system = kube_objects.Objects(api, installed_node.SYSTEM)
        yield DvpPodNode(
            where=where,
            chart=CHART,
            name=hostname,
            address=status["ipAddress"],
            storage_class=pod_values.CLASS,
            service_annotations={},
            images={image.name: image for image in built},
            values=charts.merged(pod_values.values(where), HOUR),
            system=system,
            default=kube_objects.Objects(api, "default"),
            pods=cluster_pods.ClusterPods(where, system),
            parent=parent,
            project=project,
        )

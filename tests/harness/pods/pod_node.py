"""The umbrella chart on a real kubelet and containerd: the pods of all components.

The node is a server of the lab's OpenStack, with its address and its disks. Calls to
the cloud pass an entrance that counts them.
"""

import base64
import contextlib
import dataclasses
import pathlib
import secrets
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

import pytest

from lib.kube import resources
from lib.lab import places
from lib.lab.images import images
from lib.lab.kube import cluster, control_plane, kube_objects, kubelet
from lib.lab.openstack import accounts, cloud, layout, pod_values, tenant
from lib.lab.pods import cluster_pods, node_values, pod_host, sidecars
from lib.lab.run import waiting
from lib.lab.slots import leases
from lib.lab.storage import loop_disks, metadata_service
from tests.harness import testing as shared
from tests.harness.images import building
from tests.harness.openstack import balancers, front, testing
from tests.harness.pods import installed_node

CHART = pod_values.CHART
COMPONENTS: Mapping[str, Sequence[str]] = {
    "openstack-ccm": ("openstack-ccm",),
    "cloud-data-discoverer": ("cloud-data-discoverer",),
    "csi-controller": ("provisioner", "attacher", "resizer", "controller"),
    "csi-node": ("node",),
}
"""Containers of the pods of each component, as plain installs have them."""
SYSTEM = installed_node.SYSTEM
SECRET, KEY = pod_values.SECRET, pod_values.KEY
INTERNAL = {"service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodNode(installed_node.InstalledNode):
    """A server of the lab's OpenStack. conf: cloud.conf. cloud: the entrance to it."""

    project: tenant.Tenant
    conf: str
    cloud: front.Front

    def writes(self) -> list[front.Call]:
        """Return the calls that may have changed something in the cloud."""
        return [
            call
            for call in self.cloud.calls
            if call.method != "GET" and call.service != layout.KEYSTONE
        ]

    def in_cloud(self) -> Mapping[str, list[str]]:
        """Return the IDs of load balancers and volumes of the project."""
        connection = self.project.connection
        with cloud.sentences():
            volumes = [str(x.id) for x in connection.block_storage.volumes()]
        listed = balancers.listed(connection, balancers.BALANCERS)
        return {"load balancers": sorted(listed), "volumes": sorted(volumes)}


@contextlib.contextmanager
def running(lease: leases.Lease, folder: pathlib.Path) -> Iterator[PodNode]:
    """Run cluster, cloud and node for as long as the block lasts; install nothing.

    The calling process gets a mount namespace of its own. folder: for the images.
    """
    if reason := pod_host.unavailable(lease.where):
        pytest.skip(reason)
    shown = shared.shown()
    with testing.running(lease) as where, contextlib.ExitStack() as stack:
        pod_host.build(where, shown)
        built = images.build(where, building.source(), list(COMPONENTS), folder, shown)
        # After OpenStack was started, which outlives this process.
        loop_disks.enter_private_mounts()
        make = stack.enter_context(testing.projects(where))
        account, project = make("pods")
        stack.callback(_clear, project)
        entrance = stack.enter_context(front.of(where).opened())
        server_id, address, name = _boot(project)
        served = metadata_service.served(server_id, pod_values.ZONE)
        metadata = stack.enter_context(served)
        settings = pod_host.HostSettings(
            name,
            address,
            _ports(where, entrance, metadata),
            layout.attachments(where, server_id),
        )
        stack.enter_context(pod_host.running(where, settings, shown))
        for image in built:
            kubelet.load_image(where, image.file)
        sidecars.load(where, folder)
        api = cluster.connect(control_plane.admin_kubeconfig(where))
        system = kube_objects.Objects(api, SYSTEM)
        url = entrance.url(layout.KEYSTONE, "/v3")
        yield PodNode(
            where=where,
            chart=CHART,
            name=name,
            address=address,
            storage_class=pod_values.CLASS,
            service_annotations=INTERNAL,
            images={image.name: image for image in built},
            values=pod_values.values(where, name, metadata),
            system=system,
            default=kube_objects.Objects(api, "default"),
            pods=cluster_pods.ClusterPods(where, system),
            project=project,
            conf=accounts.cloud_conf(where, account, url),
            cloud=entrance,
        )


def _boot(project: tenant.Tenant) -> tuple[str, str, str]:
    """Boot the server of the node; return ID, address and name."""
    name = f"node-{secrets.token_hex(2)}"
    server = project.boot_all([name])[name]

    def addresses() -> Sequence[str]:
        return next(x.addresses for x in project.items() if x.id == server.id)

    waiting.until("the server has an address", addresses)
    return server.id, addresses()[0], name


def _ports(where: places.Places, entrance: front.Front, metadata: str) -> Sequence[int]:
    """Return the ports of the cloud that the node reaches."""
    urls = [metadata, *(entrance.url(service) for service in layout.SERVICES)]
    by_url = [urllib.parse.urlsplit(url).port or 0 for url in urls]
    return [*layout.ports(where).values(), *by_url]


def prepare(node: PodNode) -> None:
    """Create the Secret, and mark the Node as one of the control plane."""
    labels = {"labels": {node_values.CONTROL_PLANE: ""}}
    node.system.patch(resources.NODES, node.name, metadata=labels)
    node.system.make(resources.SECRETS, SECRET, data={KEY: encoded(node.conf)})


def encoded(text: str) -> str:
    """Return the data of a Secret."""
    return base64.b64encode(text.encode()).decode()


def _clear(project: tenant.Tenant) -> None:
    """Delete what a failed test has left in the cloud."""
    for server in project.items():
        project.delete(server.id)
    waiting.until("the server is deleted", lambda: not project.items())
    balancers.clear(project.connection)
    with cloud.sentences():
        for volume in project.connection.block_storage.volumes():
            project.connection.block_storage.delete_volume(volume.id)

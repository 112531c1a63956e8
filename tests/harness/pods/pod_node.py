"""The umbrella chart on a real kubelet and containerd: the pods of all components.

The node is a server of the lab's OpenStack, with its address and its disks. Calls to
the cloud pass an entrance that counts them.
"""

import base64
import contextlib
import dataclasses
import json
import pathlib
import secrets
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psutil
import pytest

from lib.kube import resources
from lib.lab import errors, places
from lib.lab.artifacts import programs
from lib.lab.charts import charts, helm
from lib.lab.daemons import csi
from lib.lab.images import images
from lib.lab.kube import (
    cluster,
    control_plane,
    kube_objects,
    kubelet,
    kubelet_files,
    node_host,
)
from lib.lab.openstack import accounts, cloud, layout, tenant
from lib.lab.proxy import kube_proxy, node_network
from lib.lab.run import ports, processes
from lib.lab.slots import leases
from lib.lab.storage import attached_disks, loop_disks, metadata_service
from tests.harness import testing as shared
from tests.harness import waiting
from tests.harness.images import building
from tests.harness.openstack import balancers, front, testing
from tests.harness.pods import containers, sidecars

GROUPS = (kubelet.GROUP, control_plane.SCHEDULER_GROUP, helm.GROUP, csi.GROUP)
CHART = "cloud-provider-openstack"
COMPONENTS: Mapping[str, Sequence[str]] = {
    "openstack-ccm": ("openstack-ccm",),
    "cloud-data-discoverer": ("cloud-data-discoverer",),
    "csi-controller": ("provisioner", "attacher", "resizer", "controller"),
    "csi-node": ("node",),
}
"""Containers of the pods of each component, as plain installs have them."""
SYSTEM = "kube-system"
SECRET, KEY = "cloud-config", "cloud.conf"
ZONE = "nova"
"""Of the volumes of the lab's Cinder."""
CLASS = "volumes"
IMAGE = "tiny"
"""Of the lab's Glance."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
PATIENCE_S = 240.0
Json = dict[str, Any]
Pods = Mapping[str, Json]
"""The newest pod of each component."""
Images = Mapping[str, str]
"""References, by component."""


@dataclasses.dataclass(frozen=True, slots=True)
class PodNode:
    """A node on which the chart is to be installed.

    conf: cloud.conf. images: of the components, by name. values: of the chart. system,
    default: objects of these namespaces. cloud: the entrance to it.
    """

    where: places.Places
    name: str
    address: str
    project: tenant.Tenant
    conf: str
    images: Mapping[str, images.Image]
    values: Json
    system: kube_objects.Objects
    default: kube_objects.Objects
    cloud: front.Front

    def helm(self, *words: str | pathlib.Path) -> str:
        """Run helm on the cluster."""
        admin = control_plane.admin_kubeconfig(self.where)
        return helm.run(self.where, (*words, "--namespace", SYSTEM), admin)

    def install(
        self, chart: pathlib.Path, verb: str = "install", images: Images | None = None
    ) -> None:
        """Install the umbrella chart, or upgrade to it.

        images: of some components, in place of those of the chart.
        """
        file = self.where.state / "pods.values.json"
        chosen = {name: {"image": image} for name, image in (images or {}).items()}
        file.write_text(json.dumps(charts.merged(self.values, chosen)))
        self.helm(verb, CHART, chart, "--values", file)

    def pods(self) -> Pods:
        """Return the newest pod of each component that is not being deleted."""
        newest: dict[str, Json] = {}
        for pod in self.system.all(resources.PODS):
            name = pod["metadata"].get("labels", {}).get("app", "")
            if "deletionTimestamp" in pod["metadata"]:
                continue
            created = pod["metadata"]["creationTimestamp"]
            known = newest.get(name, {}).get("metadata", {}).get("creationTimestamp")
            if known is None or created > known:
                newest[name] = pod
        return newest

    def ready(self) -> frozenset[str]:
        """Return the components with a Ready pod."""
        return frozenset(x for x, pod in self.pods().items() if is_ready(pod))

    def statuses(self) -> Mapping[tuple[str, str], Json]:
        """Return the status of each container, by component and name."""
        return {
            (component, status["name"]): status
            for component, pod in self.pods().items()
            for status in pod["status"].get("containerStatuses", ())
        }

    def process(self, component: str, container: str) -> psutil.Process:
        """Return the process of a container."""
        return containers.process_of(self.statuses()[component, container])

    def log(self, component: str, container: str) -> str:
        """Return what a container has written, in all pods and after all starts."""
        folder = node_host.room(self.where) / "pod-logs"
        files = folder.glob(f"{SYSTEM}_{component}-*/{container}/*.log")
        ordered = sorted(files, key=lambda file: file.stat().st_mtime)
        return "".join(file.read_text() for file in ordered)

    def until(self, what: str, is_met: Callable[[], object]) -> None:
        """Wait, and print the seconds; with all logs if it does not happen."""
        try:
            seconds = waiting.until(what, is_met, PATIENCE_S)
        except Exception:
            self._print_failure()
            raise
        print(f"{what:64} {seconds:6.1f} s")

    def _print_failure(self) -> None:
        for component, pod in self.pods().items():
            for status in pod["status"].get("containerStatuses", ()):
                print(component, status["name"], json.dumps(status["state"]))
                print(self.log(component, status["name"])[-3000:])
        for objects in (self.system, self.default):
            for event in objects.all(resources.EVENTS):
                if event.get("type") == "Warning":
                    name = event["involvedObject"].get("name")
                    print(name, event.get("reason"), event.get("message"))

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


def is_ready(pod: Json) -> bool:
    """Report whether a pod is Ready."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(x["type"] == "Ready" and x["status"] == "True" for x in conditions)


@contextlib.contextmanager
def running(lease: leases.Lease, folder: pathlib.Path) -> Iterator[PodNode]:
    """Run cluster, cloud and node for as long as the block lasts; install nothing.

    The calling process gets a mount namespace of its own. folder: for the images.
    """
    if reason := kubelet.unavailable(lease.where) or loop_disks.unavailable():
        pytest.skip(reason)
    shown = shared.shown()
    with testing.running(lease) as where, contextlib.ExitStack() as stack:
        programs.build(where, GROUPS, shown)
        built = images.build(where, building.source(), list(COMPONENTS), folder, shown)
        # After OpenStack was started, which outlives this process.
        loop_disks.enter_private_mounts()
        _share_devices()
        make = stack.enter_context(testing.projects(where))
        account, project = make("pods")
        stack.callback(_clear, project)
        entrance = stack.enter_context(front.of(where).opened())
        server_id, address, name = _boot(project)
        metadata = stack.enter_context(metadata_service.served(server_id, ZONE))
        numbers = _ports(where, entrance, metadata)
        stack.enter_context(node_network.entered(where, numbers))
        stack.callback(kubelet.down, where)
        kubelet.up(where, shown, name, address)
        _add_default_route(where)
        stack.callback(processes.stop, where, [control_plane.SCHEDULER])
        control_plane.start_scheduler(where, shown)
        stack.callback(kube_proxy.stop, where)
        kube_proxy.start(where, name, shown)
        for image in built:
            kubelet.load_image(where, image.file)
        sidecars.load(where, folder)
        machine = stack.enter_context(_machine(where, server_id))
        api = cluster.connect(control_plane.admin_kubeconfig(where))
        default = kube_objects.Objects(api, "default")
        node_network.publish_api_server(default, address, where.port("apiserver"))
        yield PodNode(
            where,
            name,
            address,
            project,
            accounts.cloud_conf(where, account, entrance.url(layout.KEYSTONE, "/v3")),
            {image.name: image for image in built},
            values(where, name, machine, metadata),
            kube_objects.Objects(api, SYSTEM),
            default,
            entrance,
        )


def _share_devices() -> None:
    """Make /dev a shared mount, as on usual hosts: pods receive its mounts."""
    words = ("mount", "--make-shared", "/dev")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise errors.LabError(f"cannot share /dev: {done.stderr.strip()}")


def _boot(project: tenant.Tenant) -> tuple[str, str, str]:
    """Boot the server of the node; return ID, address and name."""
    name = f"node-{secrets.token_hex(2)}"
    server = project.boot_all([name])[name]

    def addresses() -> Sequence[str]:
        return next(x.addresses for x in project.items() if x.id == server.id)

    waiting.until("the server has an address", addresses)
    return server.id, addresses()[0], name


def _ports(where: places.Places, entrance: front.Front, metadata: str) -> Sequence[int]:
    """Return the ports of this machine that the node reaches."""
    urls = [metadata, *(entrance.url(service) for service in layout.SERVICES)]
    by_url = [urllib.parse.urlsplit(url).port or 0 for url in urls]
    return [where.port("apiserver"), *layout.ports(where).values(), *by_url]


def _add_default_route(where: places.Places) -> None:
    """Add a default route to later pods: kube-proxy changes addresses on the way."""
    file = kubelet_files.containerd_room(where) / "cni/10-lab.conflist"
    config = json.loads(file.read_text())
    config["plugins"][0]["isDefaultGateway"] = True
    # containerd reads the folder again when a file in it changes.
    file.write_text(json.dumps(config))


@contextlib.contextmanager
def _machine(where: places.Places, server_id: str) -> Iterator[loop_disks.Machine]:
    """Show the disks of a server below the folder of the kubelet, which runs.

    The pod of csi-node mounts that folder.
    """
    root = kubelet_files.kubelet_room(where) / "machine"
    root.mkdir()
    with loop_disks.machine(root) as machine:
        attachments = layout.attachments(where, server_id)
        with attached_disks.followed(
            attached_disks.AttachedDisks(attachments, machine)
        ):
            yield machine


def values(
    where: places.Places, name: str, machine: loop_disks.Machine, metadata: str
) -> Json:
    """Return the values of the umbrella chart on this node.

    cloud-data-discoverer uses the Service of the API server, by kube-proxy; pods in the
    network of the host do not, as on hosts where kube-proxy does not run yet.
    """
    server = {"host": ports.LOOPBACK, "port": where.port("apiserver")}
    return {
        "global": {
            "imageRegistry": images.REGISTRY,
            "sidecarRegistry": sidecars.REGISTRY,
            "clusterID": name,
        },
        "cloud-data-discoverer": {
            "moduleConfig": {
                "instances": {"imageName": IMAGE, "mainNetwork": tenant.NETWORK}
            }
        },
        "openstack-ccm": {
            "replicas": 1,
            "clusterName": name,
            "securePort": where.port("cloud-controller-manager"),
            "kubeApiServer": server,
        },
        "csi-controller": {
            "kubeApiServer": server,
            "storageClasses": [{"name": CLASS, "type": "fast", "fsType": "xfs"}],
            "sidecars": {"livenessprobe": {"port": where.port("osdpl-webhook")}},
        },
        "csi-node": {
            "metadataAddress": metadata,
            "kubeletDirectory": str(kubelet_files.kubelet_room(where)),
            "httpEndpoint": f"{ports.LOOPBACK}:{where.port('reference')}",
            "extraArgs": [f"--dev-root={machine.dev}", f"--sys-root={machine.sys}"],
        },
    }


def prepare(node: PodNode) -> None:
    """Create the Secret, and mark the Node as one of the control plane."""
    labels = {"labels": {CONTROL_PLANE: ""}}
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

"""Objects of a parent as the reference's daemons and Terraform leave them.

Thirty of the daemons (eight load balancers of both kinds, twelve disks, ten
attachments), and the VMs of Cluster API and of Terraform with their disks, Secrets and
addresses. Terraform's VMs have a hash in their names.

Source: Deckhouse modules/030-cloud-provider-dvp: images/cloud-controller-manager (load
balancer), images/dvp-csi-driver, images/dvp-common/api, candi/layouts/standard and
candi/terraform-modules (names and labels of VMs, disks and Secrets).
"""

import dataclasses
import functools
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.kube import resources
from lib.kube.resources import Resource
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import (
    ADDRESSES,
    ATTACHMENTS,
    CHECKED_SERVICES,
    DISKS,
    GROUP,
    MACHINES,
)
from lib.lab.dvp.project import Project
from tests.harness.dvp.dvp_parent import (
    CLUSTER,
    CLUSTER_LABEL,
    HOSTNAME_LABEL,
    MANAGED,
    DvpParent,
    machine_spec,
)
from tests.harness.services.services import Services

WORKERS = ("worker-0", "worker-1", "worker-2")
"""Of Cluster API: the VM has the name of its Node."""
MASTERS = ("demo-master-0", "demo-master-1", "demo-master-2")
"""Of Terraform: the name of the VM ends in a hash."""
PREFIX = "demo"
GIB = 2**30
LABEL_PREFIX = "dvp.deckhouse.io/"
KINDS = (
    MACHINES,
    DISKS,
    ATTACHMENTS,
    resources.SERVICES,
    CHECKED_SERVICES,
    ADDRESSES,
    resources.SECRETS,
)
"""All kinds of which the project has objects."""
WEB = {"name": "web", "protocol": "TCP", "port": 80}
DNS = (
    {"name": "tcp", "protocol": "TCP", "port": 53},
    {"name": "udp", "protocol": "UDP", "port": 53},
)
ANNOTATIONS = {
    "example.com/team": "shop",
    "network.deckhouse.io/load-balancer-class": "public",
    "kubectl.kubernetes.io/last-applied-configuration": '{"kind":"Service"}\n',
}
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Balancer:
    """A Service of the child. local: only `WORKERS[0]` has a ready endpoint."""

    name: str
    kind: Resource
    ports: Sequence[Mapping[str, Any]] = (WEB,)
    local: bool = False
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    spec: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "dns": {"ports": DNS},
    "local": {"local": True},
    "public": {
        "annotations": ANNOTATIONS,
        "spec": {"loadBalancerIP": "192.0.2.77", "externalIPs": ["203.0.113.9"]},
    },
}
BALANCERS = tuple(
    Balancer(f"{name}-{suffix}", kind, **fields)
    for kind, suffix in ((resources.SERVICES, "old"), (CHECKED_SERVICES, "checked"))
    for name, fields in _VARIANTS.items()
)


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceDisk:
    """A volume. host: the Node that it is attached to; empty: none.

    waits: its class binds late, and no VM has used it yet.
    """

    name: str
    size: int
    host: str = ""
    waits: bool = False

    @property
    def attachment(self) -> str:
        """The name of its attachment."""
        return f"vmbda-{self.name}-{self.host}"


def _volume(number: int) -> str:
    return f"pvc-{uuid.UUID(int=0x5EED << 96 | number)}"


VOLUMES = (
    *(
        ReferenceDisk(_volume(number), (1 + number % 3) * GIB, host)
        for number, host in enumerate((*WORKERS, *MASTERS, *WORKERS, MASTERS[0]))
    ),
    ReferenceDisk(_volume(10), GIB),
    ReferenceDisk(_volume(11), 2 * GIB, waits=True),
)


def vm_name(host: str) -> str:
    """Return the name of the VM of a Node."""
    return host if host in WORKERS else f"{host}-{_hash(host)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def lb_name(uid: str) -> str:
    """Return the name of a load balancer. uid: of the Service."""
    return f"a{uid.replace('-', '')}"[:32]


def lb_label(name: str) -> str:
    """Return the key of the label of the VMs of a load balancer."""
    return f"{LABEL_PREFIX}{name}"[:63]


def lb_spec(balancer: Balancer, service: Json) -> Json:
    """Return the spec of the parent's object. service: of the child."""
    name = lb_name(service["metadata"]["uid"])
    nodes = {port["name"]: port["nodePort"] for port in service["spec"]["ports"]}
    ports = [{**port, "targetPort": nodes[port["name"]]} for port in balancer.ports]
    spec: Json = {
        "type": "LoadBalancer",
        "selector": {lb_label(name): "loadbalancer"},
        "ports": ports,
        "externalTrafficPolicy": "Local" if balancer.local else "Cluster",
        **balancer.spec,
    }
    if balancer.kind is CHECKED_SERVICES:
        times = {"initialDelaySeconds": 10, "periodSeconds": 10, "timeoutSeconds": 1}
        probes = [
            {"mode": "TCP", "tcp": {"targetPort": port["targetPort"]}}
            for port in ports
            if port["protocol"] == "TCP"
        ]
        spec["healthcheck"] = {**times, "probes": probes}
    return spec


def hosts_of(balancer: Balancer) -> tuple[str, ...]:
    """Return the Nodes to which a load balancer sends traffic."""
    return WORKERS[:1] if balancer.local else (*WORKERS, *MASTERS)


class ReferenceState:
    """Creates the objects.

    services: Services of the child by name, once they exist.
    """

    def __init__(self, parent: DvpParent, project: Project, child: Services) -> None:
        self._parent, self._project = parent, project
        self._objects = parent.objects(project)
        self._child = child
        self.services: dict[str, Json] = {}

    def create(self) -> None:
        """Create everything, and wait until the parent is done with it."""
        self._parent.serve_checked_services()
        for host in WORKERS:
            self._worker(host)
        for host in MASTERS:
            self._master(host)
        for host in (*WORKERS, *MASTERS):
            name = vm_name(host)
            self._parent.wait_phase(MACHINES, self._project, name, "Running")
        for volume in VOLUMES:
            self._disk(volume)
        for balancer in BALANCERS:
            self._balancer(balancer)
        for volume in VOLUMES:
            self._wait_for(volume)
        for service in self.services.values():
            name = lb_name(service["metadata"]["uid"])
            has_address = functools.partial(self.ingress, name)
            self._parent.wait(f"{name} has an address", has_address)

    def ingress(self, name: str) -> list[Json]:
        """Return the addresses of a load balancer."""
        document = self._objects.get(resources.SERVICES, name) or {}
        status = document.get("status", {}).get("loadBalancer", {})
        return list(status.get("ingress") or [])

    def _labels(self, host: str) -> dict[str, str]:
        return {**MANAGED, CLUSTER_LABEL: CLUSTER, HOSTNAME_LABEL: host}

    def _secret(self, name: str, labels: Mapping[str, str]) -> Json:
        text = {"userData": "I2Nsb3VkLWNvbmZpZwo="}
        type_ = f"provisioning.{GROUP}/cloud-init"
        meta = {"labels": dict(labels)}
        self._objects.make(resources.SECRETS, name, meta, type=type_, data=text)
        reference = {"kind": "Secret", "name": name}
        return {"type": "UserDataRef", "userDataRef": reference}

    def _boot(self, name: str, labels: Mapping[str, str], size: str) -> Json:
        image = {"kind": "ClusterVirtualImage", "name": projects.IMAGE}
        claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": size}
        source = {"type": "ObjectRef", "objectRef": image}
        spec = {"dataSource": source, "persistentVolumeClaim": claim}
        self._objects.make(DISKS, name, {"labels": dict(labels)}, spec=spec)
        return {"kind": DISKS.kind, "name": name}

    def _worker(self, host: str) -> None:
        """Create what capdvp creates for a machine."""
        labels, boot = self._labels(host), f"{host}-boot"
        provisioning = self._secret(f"cloud-init-{host}", labels)
        self._boot(boot, {**labels, "virtualDiskName": boot}, "64Mi")
        spec = {
            **machine_spec(boot),
            "osType": "Generic",
            "bootloader": "EFI",
            "liveMigrationPolicy": "PreferSafe",
            "provisioning": provisioning,
        }
        self._objects.make(MACHINES, host, {"labels": labels}, spec=spec)

    def _master(self, host: str) -> None:
        """Create what Terraform's module master-node creates."""
        number, hash_ = host.rpartition("-")[2], _hash(host)
        labels = {
            **self._labels(host),
            f"{LABEL_PREFIX}cluster-prefix": PREFIX,
            f"{LABEL_PREFIX}node-group": "master",
        }
        provisioning = self._secret(f"{host}-cloudinit-{hash_}", labels)
        root = self._boot(f"{host}-{hash_}", labels, "64Mi")
        etcd = f"{PREFIX}-master-kubernetes-data-{number}-{hash_}"
        claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": "15Gi"}
        blank = {"persistentVolumeClaim": claim}
        self._objects.make(DISKS, etcd, {"labels": dict(labels)}, spec=blank)
        self._objects.make(
            ADDRESSES, host, {"labels": dict(labels)}, spec={"type": "Auto"}
        )
        spec = {
            **machine_spec(root["name"]),
            "blockDeviceRefs": [root, {"kind": DISKS.kind, "name": etcd}],
            "virtualMachineIPAddressName": host,
            "osType": "Generic",
            "bootloader": "EFI",
            "terminationGracePeriodSeconds": 90,
            "disruptions": {"restartApprovalMode": "Automatic"},
            "nodeSelector": {
                "topology.kubernetes.io/zone": "abc"[int(number)],
                "topology.kubernetes.io/region": "parent",
            },
            "provisioning": provisioning,
        }
        annotations = {
            "last_applied_destructive_vm_parameters": '{"cpu":{"cores":1}}',
            "last_applied_destructive_vm_parameters_hash": hash_,
        }
        meta: Json = {"labels": labels, "annotations": annotations}
        self._objects.make(MACHINES, vm_name(host), meta, spec=spec)

    def _disk(self, volume: ReferenceDisk) -> None:
        """Create what dvp-csi-driver creates for a volume, and for its attachment."""
        labels = {**self._labels(""), "virtualDiskName": volume.name}
        storage = projects.STORAGE if volume.waits else projects.STORAGE_AT_ONCE
        claim = {"storageClassName": storage, "size": str(volume.size)}
        spec: Json = {"persistentVolumeClaim": claim}
        self._objects.make(DISKS, volume.name, {"labels": labels}, spec=spec)
        if volume.host:
            self._objects.make(
                ATTACHMENTS,
                volume.attachment,
                self.attachment_meta(volume),
                spec=attachment_spec(volume),
            )

    def attachment_meta(self, volume: ReferenceDisk) -> Json:
        """Return labels and owner of an attachment."""
        vm = self._objects.get(MACHINES, vm_name(volume.host))
        assert vm is not None
        held = {
            "virtualMachineDiskName": volume.name,
            "virtualMachineName": volume.host,
        }
        owner = {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.kind,
            "name": vm["metadata"]["name"],
            "uid": vm["metadata"]["uid"],
        }
        labels = {**self._labels(volume.host), **held}
        return {"labels": labels, "ownerReferences": [owner]}

    def _balancer(self, balancer: Balancer) -> None:
        """Create a Service in the child, and what the reference makes of it."""
        policy = {"externalTrafficPolicy": "Local"} if balancer.local else {}
        service = self._child.make(
            balancer.name,
            balancer.annotations,
            balancer.ports,
            **policy,
            **balancer.spec,
        )
        self.services[balancer.name] = service
        name = lb_name(service["metadata"]["uid"])
        about = {"annotations": dict(balancer.annotations)}
        spec = lb_spec(balancer, service)
        self._objects.make(balancer.kind, name, about, spec=spec)
        for host in hosts_of(balancer):
            label = {"labels": {lb_label(name): "loadbalancer"}}
            self._objects.patch(MACHINES, vm_name(host), metadata=label)

    def _wait_for(self, volume: ReferenceDisk) -> None:
        phase = "WaitForFirstConsumer" if volume.waits else "Ready"
        self._parent.wait_phase(DISKS, self._project, volume.name, phase)
        if volume.host:
            name = volume.attachment
            self._parent.wait_phase(ATTACHMENTS, self._project, name, "Attached")

    def snapshot(self) -> Mapping[tuple[str, str], Json]:
        """Return all objects of the project, by kind and name."""
        return {
            (kind.kind, item["metadata"]["name"]): item
            for kind in KINDS
            for item in self._objects.all(kind)
        }


def attachment_spec(volume: ReferenceDisk) -> Json:
    """Return the spec of an attachment."""
    reference = {"kind": DISKS.kind, "name": volume.name}
    return {"virtualMachineName": vm_name(volume.host), "blockDeviceRef": reference}


def fields(document: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each field of an object by its path, but for the version of the object."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key not in ("resourceVersion", "managedFields"):
                yield from fields(value, f"{path}.{key}")
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from fields(value, f"{path}[{number}]")
    else:
        yield path, document

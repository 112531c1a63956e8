"""The VMs of a project in a parent cluster, as servers of a lab."""

import contextlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

from lib.kube import client
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import errors
from lib.lab.dvp import backing, project
from lib.lab.dvp.kinds import DISKS, MACHINES, OPERATIONS, Json
from lib.lab.grounds import servers

CLUSTER_LABEL = "dvp.deckhouse.io/cluster-uuid"
_MANAGED = {"deckhouse.io/managed-by": "deckhouse"}
_TIMEOUT_S = 20.0
_STATUSES = {
    "Running": servers.ACTIVE,
    "Migrating": servers.ACTIVE,
    "Stopped": servers.SHUTOFF,
    "Degraded": servers.ERROR,
}
_ZONES = ("a", "b", "c")
"""Of the parent's nodes; VMs are spread over them by name."""
_ZONE = "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"


class VirtualServers:
    """Implements `servers.Cloud` and `servers.Migrating`.

    cluster: value of the label of the VMs' cluster. The ID of a server is the name of
    its VM; the name of a server is the VM's hostname.
    """

    def __init__(self, api: client.Api, namespace: str, cluster: str) -> None:
        self._api = api
        self._namespace = namespace
        self._cluster = cluster

    def items(self) -> tuple[servers.Server, ...]:
        """See `servers.Cloud.items`."""
        query = {"labelSelector": f"{CLUSTER_LABEL}={self._cluster}"}
        with _sentences():
            page = self._api.list_page(
                MACHINES, self._namespace, query=query, timeout_s=_TIMEOUT_S
            )
        return tuple(_server(document) for document in json.loads(page)["items"])

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        """See `servers.Cloud.boot`: as Cluster API does, the VM first, then its disk.

        kind: the flavor is a VirtualMachineClass; image and network are not used.
        """
        machine = f"{name}-{secrets.token_hex(3)}"
        boot = f"{machine}-boot"
        own = {**_MANAGED, CLUSTER_LABEL: self._cluster, backing.HOSTNAME: name}
        zone = _ZONES[sum(name.encode()) % len(_ZONES)]
        spec = {
            "virtualMachineClassName": kind.flavor or project.CLASS,
            "nodeSelector": {_ZONE: zone, _REGION: "parent"},
            "cpu": {"cores": 1, "coreFraction": "10%"},
            "memory": {"size": "256Mi"},
            "blockDeviceRefs": [{"kind": DISKS.kind, "name": boot}],
        }
        document = self._create(MACHINES, {"name": machine, "labels": own}, spec)
        owner = {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.kind,
            "name": machine,
            "uid": document["metadata"]["uid"],
        }
        meta = {"name": boot, "labels": own, "ownerReferences": [owner]}
        source = {"kind": "ClusterVirtualImage", "name": project.IMAGE}
        disk = {
            "dataSource": {"type": "ObjectRef", "objectRef": source},
            "persistentVolumeClaim": {"size": "64Mi"},
        }
        self._create(DISKS, meta, disk)
        return _server(document)

    def stop(self, server_id: str) -> None:
        """See `servers.Cloud.stop`."""
        self._operate(server_id, "Stop")

    def start(self, server_id: str) -> None:
        """See `servers.Cloud.start`."""
        self._operate(server_id, "Start")

    def migrate(self, server_id: str) -> None:
        """See `servers.Migrating.migrate`."""
        self._operate(server_id, "Evict")

    def host(self, server_id: str) -> str:
        """See `servers.Migrating.host`; empty while it migrates."""
        with _sentences():
            body = self._api.read(
                MACHINES, server_id, self._namespace, timeout_s=_TIMEOUT_S
            )
        status = json.loads(body).get("status", {})
        is_settled = status.get("phase") == "Running"
        return str(status.get("nodeName", "")) if is_settled else ""

    def delete(self, server_id: str) -> None:
        """See `servers.Cloud.delete`."""
        with _sentences(), contextlib.suppress(kube_errors.NotFound):
            self._api.delete(MACHINES, server_id, self._namespace, timeout_s=_TIMEOUT_S)

    def _operate(self, server_id: str, kind: str) -> None:
        name = f"{server_id}-{kind.lower()}-{secrets.token_hex(3)}"
        spec = {"type": kind, "virtualMachineName": server_id}
        self._create(OPERATIONS, {"name": name}, spec)

    def _create(
        self, kind: Resource, metadata: dict[str, Any], spec: dict[str, Any]
    ) -> Json:
        body = {"apiVersion": kind.api_version, "kind": kind.kind}
        whole = json.dumps({**body, "metadata": metadata, "spec": spec}).encode()
        with _sentences():
            answer = self._api.create(
                kind, whole, self._namespace, timeout_s=_TIMEOUT_S
            )
        return dict(json.loads(answer))


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Turn errors of the parent into sentences of the lab."""
    try:
        yield
    except kube_errors.KubeError as error:
        raise errors.LabError(f"the parent cluster refused: {error}") from error


def _server(document: Json) -> servers.Server:
    meta, status = document["metadata"], document.get("status", {})
    phase = status.get("phase", "")
    address = status.get("ipAddress")
    return servers.Server(
        id=meta["name"],
        name=meta.get("labels", {}).get(backing.HOSTNAME, meta["name"]),
        status=_STATUSES.get(phase, phase.upper()),
        zone=document["spec"].get("nodeSelector", {}).get(_ZONE, ""),
        flavor=document["spec"]["virtualMachineClassName"],
        addresses=(address,) if address else (),
    )

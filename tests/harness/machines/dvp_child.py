"""The cluster of Cluster API without its core, and capdvp in it.

A test is the core: it writes the references and statuses that the core writes, so that
no build of the core is required.
"""

import base64
import json
from typing import Any

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import capdvp_objects
from lib.lab.dvp import project as projects
from lib.lab.dvp.project import Project
from lib.lab.dvp.workload_objects import (
    CLUSTERS,
    DVP_CLUSTERS,
    DVP_MACHINES,
    DVP_TEMPLATES,
    MACHINES,
    NAME_LABEL,
    NAMESPACE,
)
from lib.lab.kube import admin_api, cluster, control_plane, kube_objects
from lib.lab.run import ports, processes, waiting
from tests.harness.dvp import dvp_manager
from tests.harness.kube import audit

NAME = "capdvp"
ACCOUNT = ("kube-system", NAME)
PORT = 60
"""Distance of the probes from the first port of the child."""
SPACE = NAMESPACE
TEMPLATES = DVP_TEMPLATES
SERVED = (CLUSTERS, MACHINES, DVP_CLUSTERS, DVP_MACHINES, TEMPLATES)
SECRET = "join-token-that-no-one-may-see"
Json = dict[str, Any]
SPEC: Json = {
    "vmClassName": projects.CLASS,
    "cpu": {"cores": 1},
    "memory": "256Mi",
    "rootDiskSize": "1Gi",
    "rootDiskStorageClass": projects.STORAGE,
    "bootDiskImageRef": {"kind": "ClusterVirtualImage", "name": projects.IMAGE},
    "additionalDisks": [{"size": "1Gi", "storageClass": projects.STORAGE}],
}


class DvpChild:
    """The cluster of Cluster API, and capdvp in it."""

    def __init__(self, where: places.Places, api: client.Api, project: Project) -> None:
        self.where = where
        self.objects = kube_objects.Objects(api, SPACE)
        self.project = project
        self.api = api
        self.kubeconfig = where.state / f"{NAME}.kubeconfig"

    def install(self) -> None:
        """Install CRDs, and the ServiceAccount with the roles of the chart."""
        capdvp_objects.install(self.api, (CLUSTERS, MACHINES))
        waiting.until("the kinds are served", lambda: all(map(self._serves, SERVED)))
        admin = control_plane.admin_kubeconfig(self.where)
        cluster.service_account_kubeconfig(self.api, admin, ACCOUNT, self.kubeconfig)

    def _serves(self, kind: Resource) -> bool:
        path = f"/apis/{kind.api_version}"
        try:
            listed = json.loads(self.api.request("GET", path, timeout_s=30))
        except kube_errors.NotFound:
            return False
        return any(row["name"] == kind.plural for row in listed["resources"])

    @property
    def metrics_port(self) -> int:
        """Port of the metrics of the first replica, if they are served."""
        return self.where.port_base + PORT + 1

    def start(
        self, name: str = NAME, port: int = PORT, *more: str, metrics: bool = False
    ) -> None:
        """Start a replica of capdvp; return once it is ready.

        port: see PORT. more: further flags. metrics: serve them at metrics_port.
        """
        port += self.where.port_base
        of_metrics = f"{ports.LOOPBACK}:{self.metrics_port}" if metrics else "0"
        words = (
            *pexes.command(pexes.beside(NAME)),
            f"--kubeconfig={self.kubeconfig}",
            f"--parent-kubeconfig={self.project.kubeconfig}",
            f"--leader-election-namespace={ACCOUNT[0]}",
            f"--health-probe-bind-address={ports.LOOPBACK}:{port}",
            f"--metrics-bind-address={of_metrics}",
            "--zones=zone-a",
            "--v=4",
            *more,
        )
        env = {
            **pexes.environment(self.where),
            **dvp_manager.environment(self.project),
        }
        processes.start(self.where, name, words, env)
        processes.wait_for(self.where, name, lambda: admin_api.serves(port, "/readyz"))

    def stop(self, *names: str) -> None:
        """Stop replicas; without a name the first."""
        processes.stop(self.where, list(names) or [NAME])

    def status(self, kind: Resource, name: str) -> Json:
        return dict((self.objects.get(kind, name) or {}).get("status", {}))

    def is_provisioned(self, kind: Resource, name: str) -> bool:
        begun = self.status(kind, name).get("initialization", {})
        return begun.get("provisioned") is True

    def create_cluster(self) -> None:
        """Create what a user and the core create for a cluster."""
        owner = self.objects.make(CLUSTERS, "one", spec={})
        self.objects.make(DVP_CLUSTERS, "one", owned_by(owner), spec={})

    def provision_cluster(self) -> None:
        """Write what the core does once the infrastructure is provisioned."""
        status = {"initialization": {"infrastructureProvisioned": True}}
        self.api.patch(
            CLUSTERS,
            "one",
            json.dumps({"status": status}).encode(),
            SPACE,
            subresource="status",
            content_type=client.MERGE_PATCH,
            timeout_s=30,
        )

    def create_machine(self, name: str, **fields: object) -> None:
        """Create what the core creates for a machine. fields: of its spec."""
        data = {"value": base64.b64encode(f"#cloud-config {SECRET}".encode()).decode()}
        labels = {"labels": {NAME_LABEL: "one"}}
        self.objects.make(resources.SECRETS, f"{name}-data", labels, data=data)
        spec = {
            "clusterName": "one",
            "bootstrap": {"dataSecretName": f"{name}-data"},
            "infrastructureRef": {"kind": DVP_MACHINES.kind, "name": name},
        }
        owner = self.objects.make(MACHINES, name, spec=spec)
        self.objects.make(DVP_MACHINES, name, owned_by(owner), spec={**SPEC, **fields})

    def create_template(self, name: str) -> None:
        """Create what a user creates; the core adds no owner before it is used."""
        self.objects.make(TEMPLATES, name, spec={"template": {"spec": SPEC}})

    def requests(self) -> list[audit.Row]:
        """Return what capdvp has requested of the child, without its Lease."""
        rows = audit.rows(self.where, ACCOUNT)
        return [row for row in rows if row.resource != "leases"]


def owned_by(owner: Json) -> Json:
    about = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": about["name"],
        "uid": about["uid"],
        "controller": True,
    }
    return {"labels": {NAME_LABEL: "one"}, "ownerReferences": [reference]}

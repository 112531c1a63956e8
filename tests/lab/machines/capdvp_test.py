"""capdvp with the roles of its chart: a Machine becomes a VM, and leaves nothing.

The test is the core of Cluster API: it writes the references and statuses that the core
writes, so that no build of the core is required.
"""

import base64
import http.client
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import kinds
from lib.lab.dvp import project as projects
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.run import ports, processes
from tests.harness import waiting
from tests.harness.dvp import dvp_manager, dvp_parent, parent_fixtures
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.kube import audit

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

NAME = "capdvp"
ACCOUNT = ("kube-system", NAME)
PORT = 60
"""Distance of the probes from the first port of the child."""
SPACE = "machines"
CORE, INFRASTRUCTURE = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
CLUSTERS = Resource(CORE, "v1beta2", "clusters", "Cluster", True)
MACHINES = Resource(CORE, "v1beta2", "machines", "Machine", True)
DVP_CLUSTERS = Resource(
    INFRASTRUCTURE, "v1alpha1", "deckhouseclusters", "DeckhouseCluster", True
)
DVP_MACHINES = Resource(
    INFRASTRUCTURE, "v1alpha1", "deckhousemachines", "DeckhouseMachine", True
)
TEMPLATES = Resource(
    INFRASTRUCTURE,
    "v1alpha1",
    "deckhousemachinetemplates",
    "DeckhouseMachineTemplate",
    True,
)
SERVED = (CLUSTERS, MACHINES, DVP_CLUSTERS, DVP_MACHINES, TEMPLATES)
CHART = pathlib.Path("charts/capdvp")
SECRET = "join-token-that-no-one-may-see"
SHAPE = {
    "capacity": {"cpu": "1", "memory": "256Mi"},
    "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"},
}
LABEL = f"{CORE}/cluster-name"
OF_DVP = (
    *(kinds.MACHINES, kinds.DISKS, kinds.ATTACHMENTS),
    resources.SECRETS,
)
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


def open_definition(kind: Resource) -> Json:
    """Return a CRD that accepts any spec and status."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": anything, "status": anything}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": properties}
                    },
                }
            ],
        },
    }


class Child:
    """The cluster of Cluster API, and capdvp in it."""

    def __init__(self, where: places.Places, api: client.Api, project: Project) -> None:
        self.where = where
        self.objects = kube_objects.Objects(api, SPACE)
        self.project = project
        self._api = api
        self._kubeconfig = where.state / f"{NAME}.kubeconfig"

    def install(self) -> None:
        """Install CRDs, and the ServiceAccount with the roles of the chart."""
        definitions = [
            *map(open_definition, (CLUSTERS, MACHINES)),
            *(yaml.safe_load(p.read_text()) for p in sorted(CHART.glob("crds/*.yaml"))),
        ]
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        rights = yaml.safe_load_all((CHART / "files/rbac.yaml").read_text())
        by_name = {
            kind.kind: kind
            for kind in (
                resources.DEFINITIONS,
                resources.NAMESPACES,
                resources.SERVICE_ACCOUNTS,
                resources.CLUSTER_ROLES,
                resources.CLUSTER_ROLE_BINDINGS,
                resources.ROLES,
                resources.ROLE_BINDINGS,
            )
        }
        documents = (*definitions, space, *rights)
        cluster.create_documents(self._api, documents, by_name)
        waiting.until("the kinds are served", lambda: all(map(self._serves, SERVED)))
        admin = control_plane.admin_kubeconfig(self.where)
        cluster.service_account_kubeconfig(self._api, admin, ACCOUNT, self._kubeconfig)

    def _serves(self, kind: Resource) -> bool:
        path = f"/apis/{kind.api_version}"
        try:
            listed = json.loads(self._api.request("GET", path, timeout_s=30))
        except kube_errors.NotFound:
            return False
        return any(row["name"] == kind.plural for row in listed["resources"])

    def start(self) -> None:
        """Start capdvp; return once it is ready."""
        address = f"{ports.LOOPBACK}:{self.where.port_base + PORT}"
        words = (
            *pexes.command(pexes.beside(NAME)),
            f"--kubeconfig={self._kubeconfig}",
            f"--parent-kubeconfig={self.project.kubeconfig}",
            f"--leader-election-namespace={ACCOUNT[0]}",
            f"--health-probe-bind-address={address}",
            "--metrics-bind-address=0",
            "--zones=zone-a",
            "--v=4",
        )
        env = {
            **pexes.environment(self.where),
            **dvp_manager.environment(self.project),
        }
        processes.start(self.where, NAME, words, env)
        processes.wait_for(self.where, NAME, self._is_ready, 120)

    def _is_ready(self) -> bool:
        port = self.where.port_base + PORT
        connection = http.client.HTTPConnection(ports.LOOPBACK, port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        processes.stop(self.where, [NAME])

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
        self._api.patch(
            CLUSTERS,
            "one",
            json.dumps({"status": status}).encode(),
            SPACE,
            subresource="status",
            content_type=client.MERGE_PATCH,
            timeout_s=30,
        )

    def create_machine(self, name: str) -> None:
        """Create what the core creates for a machine."""
        data = {"value": base64.b64encode(f"#cloud-config {SECRET}".encode()).decode()}
        labels = {"labels": {LABEL: "one"}}
        self.objects.make(resources.SECRETS, f"{name}-data", labels, data=data)
        spec = {
            "clusterName": "one",
            "bootstrap": {"dataSecretName": f"{name}-data"},
            "infrastructureRef": {"kind": DVP_MACHINES.kind, "name": name},
        }
        owner = self.objects.make(MACHINES, name, spec=spec)
        self.objects.make(DVP_MACHINES, name, owned_by(owner), spec=SPEC)

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
    return {"labels": {LABEL: "one"}, "ownerReferences": [reference]}


def owned(parent: DvpParent, project: Project, uuid: str) -> list[str]:
    """Kind and name of each object of the parent with the label of a cluster."""
    objects = parent.objects(project)
    return sorted(
        f"{kind.kind} {item['metadata']['name']}"
        for kind in OF_DVP
        for item in objects.all(kind)
        if (item["metadata"].get("labels") or {}).get(dvp_parent.CLUSTER_LABEL) == uuid
    )


def ghost(parent: DvpParent, project: Project, uuid: str) -> None:
    """Create the Secret of a machine that does not exist."""
    labels = {
        "deckhouse.io/managed-by": "deckhouse",
        dvp_parent.CLUSTER_LABEL: uuid,
        "dvp.deckhouse.io/hostname": f"ghost-{uuid[-1]}",
    }
    name = f"cloud-init-ghost-{uuid[-1]}"
    type_ = "provisioning.virtualization.deckhouse.io/cloud-init"
    parent.objects(project).make(
        resources.SECRETS, name, {"labels": labels}, type=type_
    )


@pytest.fixture(scope="module")
def child(where: places.Places, api: client.Api, project: Project) -> Iterator[Child]:
    opened = Child(where, api, project)
    opened.install()
    try:
        opened.start()
        yield opened
    finally:
        opened.stop()


def test_a_machine_from_objects_to_a_vm_and_back(
    child: Child, parent: DvpParent, project: Project
) -> None:
    rows: list[tuple[str, float]] = []

    def until(what: str, is_met: Any) -> None:
        rows.append((what, waiting.until(what, is_met)))

    child.create_cluster()
    until("cluster", lambda: child.is_provisioned(DVP_CLUSTERS, "one"))
    infrastructure = child.objects.get(DVP_CLUSTERS, "one")
    assert infrastructure is not None
    endpoint = infrastructure["spec"]["controlPlaneEndpoint"]
    assert endpoint["port"] == child.where.port("apiserver")
    assert child.status(DVP_CLUSTERS, "one")["failureDomains"][0]["name"] == "zone-a"
    child.create_template("small")
    until("template", lambda: child.status(TEMPLATES, "small") == SHAPE)
    child.create_machine("one")

    def reasons() -> list[str]:
        conditions = child.status(DVP_MACHINES, "one").get("conditions", [])
        return [row["reason"] for row in conditions if row["type"] == "Ready"]

    until("waits", lambda: reasons() == ["WaitingForClusterInfrastructure"])
    assert owned(parent, project, dvp_parent.CLUSTER) == []
    child.provision_cluster()
    until("VM", lambda: child.is_provisioned(DVP_MACHINES, "one"))
    machine = child.objects.get(DVP_MACHINES, "one")
    assert machine is not None
    assert machine["spec"]["providerID"] == "dvp://one"
    types = [row["type"] for row in machine["status"]["addresses"]]
    assert types == ["Hostname", "InternalDNS", "InternalIP", "ExternalIP"]
    assert machine["status"]["ready"] is True
    created = owned(parent, project, dvp_parent.CLUSTER)
    print(", ".join(created))
    assert created == [
        "Secret cloud-init-one",
        "VirtualDisk one-additional-disk-0",
        "VirtualDisk one-boot",
        "VirtualMachine one",
    ]
    assert SECRET not in json.dumps(machine)
    assert SECRET not in (child.where.log / f"{NAME}.log").read_text()
    before = _writes(child, parent, project)
    print(f"writes so far: {before[0]} of the child, {before[1]} of the parent")
    child.stop()
    child.start()
    _quiet(child, parent, project)
    assert _writes(child, parent, project) == before
    for uuid in (dvp_parent.CLUSTER, dvp_parent.OTHER_CLUSTER):
        ghost(parent, project, uuid)
    child.objects.delete(DVP_CLUSTERS, "one", None)
    child.objects.delete(DVP_MACHINES, "one", None)
    until("machine gone", lambda: child.objects.get(DVP_MACHINES, "one") is None)
    until("cluster gone", lambda: child.objects.get(DVP_CLUSTERS, "one") is None)
    assert owned(parent, project, dvp_parent.CLUSTER) == []
    assert owned(parent, project, dvp_parent.OTHER_CLUSTER) != []
    for what, took_s in rows:
        print(f"{what:16} {took_s:6.1f} s")
    _check_rights(child)


def _writes(child: Child, parent: DvpParent, project: Project) -> tuple[int, int]:
    reads = ("get", "list", "watch")
    parent.settled(project)
    return (
        sum(row.verb not in reads for row in child.requests()),
        sum(row.verb not in reads for row in parent.requests(project)),
    )


def _quiet(child: Child, parent: DvpParent, project: Project) -> None:
    """Wait until capdvp has had the time to reconcile everything."""
    waiting.until(
        "the cloud is read after the restart",
        lambda: any(row.verb == "list" for row in parent.requests(project)),
    )
    log = child.where.log / f"{NAME}.log"
    waiting.until("leader", lambda: log.read_text().count("became leader") >= 2)
    parent.settled(project)


def _check_rights(child: Child) -> None:
    """No request was refused; each used verb is granted, and each granted one used."""
    rows = audit.rows(child.where, ACCOUNT)
    refused = [row for row in rows if row.code == 403]
    assert refused == []
    used = {
        (row.group, "/".join(filter(None, (row.resource, row.subresource))), row.verb)
        for row in rows
    }
    roles = yaml.safe_load_all((CHART / "files/rbac.yaml").read_text())
    granted = {
        (group, resource, verb)
        for role in roles
        if role["kind"] in ("ClusterRole", "Role") and role["metadata"]["name"] == NAME
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    for right in sorted(granted):
        print(f"{'used' if right in used else 'not used':8} {' '.join(right)}")
    rare = {
        # When a watch is late; of a follower; for Events; for clients of the metrics.
        ("coordination.k8s.io", "leases", "watch"),
        (INFRASTRUCTURE, DVP_CLUSTERS.plural, "get"),
        (INFRASTRUCTURE, DVP_MACHINES.plural, "get"),
        (INFRASTRUCTURE, TEMPLATES.plural, "get"),
        ("", "events", "create"),
        ("", "events", "patch"),
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }
    assert used <= granted
    assert granted - used <= rare

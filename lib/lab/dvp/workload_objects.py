"""Objects of Cluster API as a user of DVP creates them, for labs and for tests.

The control plane of a child runs outside of Cluster API: its object is of a kind of the
lab, with the status that the contract has for such a control plane. Bootstrap data is
one Secret, named by `dataSecretName` in the template of the Machines: no bootstrap
provider runs.

Source: Cluster API, docs/book/src/developer/providers/contracts/control-plane.md.
"""

import base64
from collections.abc import Mapping
from typing import Any

from lib.kube.resources import Resource
from lib.lab.dvp import project
from lib.lab.dvp.kinds import CLUSTER_IMAGES

Json = dict[str, Any]

GROUP = "cluster.x-k8s.io"
INFRASTRUCTURE = f"infrastructure.{GROUP}"
CONTROL = f"controlplane.{GROUP}"
NAMESPACE = "machines"
NAME_LABEL = f"{GROUP}/cluster-name"
BOOTSTRAP = "bootstrap"


def _core(plural: str, kind: str) -> Resource:
    return Resource(GROUP, "v1beta2", plural, kind, True)


def _provider(plural: str, kind: str) -> Resource:
    return Resource(INFRASTRUCTURE, "v1alpha1", plural, kind, True)


CLUSTERS = _core("clusters", "Cluster")
MACHINES = _core("machines", "Machine")
DEPLOYMENTS = _core("machinedeployments", "MachineDeployment")
DVP_CLUSTERS = _provider("deckhouseclusters", "DeckhouseCluster")
DVP_MACHINES = _provider("deckhousemachines", "DeckhouseMachine")
DVP_CLUSTER_TEMPLATES = _provider(
    "deckhouseclustertemplates", "DeckhouseClusterTemplate"
)
DVP_TEMPLATES = _provider("deckhousemachinetemplates", "DeckhouseMachineTemplate")
CONTROL_PLANES = Resource(
    CONTROL, "v1alpha1", "externalcontrolplanes", "ExternalControlPlane", True
)


def open_definition(kind: Resource) -> Json:
    """Return a definition that accepts any spec and status."""
    opened = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": opened, "status": opened},
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "labels": {f"{GROUP}/v1beta2": kind.version},
            # The API server requires it for groups of x-k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for the lab"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "plural": kind.plural,
                "singular": kind.kind.lower(),
            },
            "versions": [version],
        },
    }


CONTROL_PLANE_STATUS: Json = {
    "initialization": {"controlPlaneInitialized": True},
    "externalManagedControlPlane": True,
}


def reference(kind: Resource, name: str) -> Json:
    """Return a reference of Cluster API, which has no version."""
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def cluster_spec(name: str) -> Json:
    """Return the spec of a Cluster whose parts have its name."""
    return {
        "infrastructureRef": reference(DVP_CLUSTERS, name),
        "controlPlaneRef": reference(CONTROL_PLANES, name),
    }


def machine_spec(**fields: object) -> Json:
    """Return the spec of a small DeckhouseMachine. fields: besides the usual ones."""
    return {
        "vmClassName": project.CLASS,
        "cpu": {"cores": 1, "cpuFraction": "10%"},
        "memory": "256Mi",
        "rootDiskSize": "64Mi",
        "rootDiskStorageClass": project.STORAGE_AT_ONCE,
        "bootDiskImageRef": {"kind": CLUSTER_IMAGES.kind, "name": project.IMAGE},
        **fields,
    }


def template_spec(**fields: object) -> Json:
    """Return the spec of a DeckhouseMachineTemplate."""
    return {"template": {"spec": machine_spec(**fields)}}


def deployment_spec(
    cluster: str, template: str, replicas: int, *, surge: int = 1, **machine: object
) -> Json:
    """Return the spec of a MachineDeployment.

    surge: maxSurge; with 0 one Machine may be unavailable. machine: more fields of the
    Machines' spec.
    """
    labels = {"lab": cluster}
    spec = {
        "clusterName": cluster,
        "bootstrap": {"dataSecretName": BOOTSTRAP},
        "infrastructureRef": reference(DVP_TEMPLATES, template),
        **machine,
    }
    return {
        "clusterName": cluster,
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "rollout": rollout(surge),
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }


def rollout(surge: int) -> Json:
    """Return how Machines are replaced: one more than desired, or one fewer."""
    bounds = {"maxSurge": surge, "maxUnavailable": 0 if surge else 1}
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": bounds}}


def secret_data(**values: bytes) -> Mapping[str, str]:
    """Return the data of a Secret."""
    return {name: base64.b64encode(value).decode() for name, value in values.items()}


def bootstrap_data(token: str) -> Mapping[str, str]:
    """Return bootstrap data as a provider of it writes it. token: a secret in it."""
    text = f"#cloud-config\nruncmd: [[kubeadm, join, --token, {token}]]\n"
    return secret_data(value=text.encode(), format=b"cloud-config")

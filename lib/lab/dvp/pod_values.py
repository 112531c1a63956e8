"""Values of charts/cloud-provider-dvp on a VM of the lab's parent."""

from lib.lab import places
from lib.lab.dvp import project
from lib.lab.images import images
from lib.lab.kube import kubelet_files
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import pod_host, sidecars
from lib.lab.run import ports

CHART = "cloud-provider-dvp"
COMPONENTS = (
    "capdvp",
    "cloud-data-discoverer",
    "csi-controller",
    "csi-node",
    "dvp-ccm",
)
SECRET, MACHINES_SECRET = "dvp-credentials", "dvp-credentials-capdvp"
KEY = "kubernetesConfigBase64"
CLASS = "volumes"
"""Of the chart; cloud-data-discoverer creates one for each class of the parent."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
"""Label of the Nodes on which the chart installs the controllers."""


def values(where: places.Places) -> Json:
    """Return the values of the umbrella chart on the node.

    The Secrets are those of the reference: project and cluster ID are in them. Pods in
    the network of the host do not use the Service of the API server.
    """
    server = {"host": ports.LOOPBACK, "port": where.port("apiserver")}
    machine = pod_host.root(where)
    return {
        "global": {
            "imageRegistry": images.REGISTRY,
            "sidecarRegistry": sidecars.REGISTRY,
            "parent": {"secretNames": {"capdvp": MACHINES_SECRET}, "key": KEY},
        },
        "dvp-ccm": {
            "replicas": 1,
            "securePort": where.port("cloud-controller-manager"),
            "kubeApiServer": server,
        },
        "capdvp": {"replicas": 1},
        "csi-controller": {
            "kubeApiServer": server,
            "storageClasses": [
                {"name": CLASS, "dvpStorageClass": project.STORAGE, "fsType": "xfs"}
            ],
            "sidecars": {"livenessprobe": {"port": where.port("osdpl-webhook")}},
        },
        "csi-node": {
            "kubeletDirectory": str(kubelet_files.kubelet_room(where)),
            "httpEndpoint": f"{ports.LOOPBACK}:{where.port('reference')}",
            "extraArgs": [
                f"--dev-root={machine / 'dev'}",
                f"--sys-root={machine / 'sys'}",
            ],
        },
    }

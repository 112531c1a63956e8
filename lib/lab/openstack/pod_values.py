"""Values of charts/cloud-provider-openstack on a node of the lab's OpenStack."""

from lib.lab import places
from lib.lab.images import images
from lib.lab.kube import kubelet_files
from lib.lab.kube.kube_objects import Json
from lib.lab.openstack import tenant
from lib.lab.pods import pod_host, sidecars
from lib.lab.run import ports

CHART = "cloud-provider-openstack"
COMPONENTS = ("openstack-ccm", "cloud-data-discoverer", "csi-controller", "csi-node")
SECRET, KEY = "cloud-config", "cloud.conf"
ZONE = "nova"
"""Of the volumes of the lab's Cinder."""
CLASS = "volumes"
IMAGE = "tiny"
"""Of the lab's Glance."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
"""Label of the Nodes on which the chart installs openstack-ccm."""


def values(where: places.Places, cluster: str, metadata: str) -> Json:
    """Return the values of the umbrella chart on the node.

    cloud-data-discoverer uses the Service of the API server, by kube-proxy; pods in the
    network of the host do not, as on hosts where kube-proxy does not run yet.

    cluster: its name, and the ID in the ownership tags. metadata: URL of the metadata
    service of the server.
    """
    server = {"host": ports.LOOPBACK, "port": where.port("apiserver")}
    machine = pod_host.root(where)
    return {
        "global": {
            "imageRegistry": images.REGISTRY,
            "sidecarRegistry": sidecars.REGISTRY,
            "clusterID": cluster,
        },
        "cloud-data-discoverer": {
            "moduleConfig": {
                "instances": {"imageName": IMAGE, "mainNetwork": tenant.NETWORK}
            }
        },
        "openstack-ccm": {
            "replicas": 1,
            "clusterName": cluster,
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
            "extraArgs": [
                f"--dev-root={machine / 'dev'}",
                f"--sys-root={machine / 'sys'}",
            ],
        },
    }

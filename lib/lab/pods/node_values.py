"""Values that the charts of all clouds share on a node of the lab."""

from lib.lab import places
from lib.lab.charts import charts
from lib.lab.images import images
from lib.lab.kube import kubelet_files
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import pod_host, sidecars
from lib.lab.run import ports

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
"""Label of the Nodes on which charts install what runs on hosts of a control plane."""


def values(where: places.Places, manager: str, own: Json) -> Json:
    """Return the values of an umbrella chart on the node.

    Pods in the network of the host do not use the Service of the API server, as on
    hosts where kube-proxy does not run yet.

    manager: component that manages Nodes and Services. own: values of the cloud, laid
    over the shared ones.
    """
    server = {"host": ports.LOOPBACK, "port": where.port("apiserver")}
    machine = pod_host.root(where)
    shared: Json = {
        "global": {
            "imageRegistry": images.REGISTRY,
            "sidecarRegistry": sidecars.REGISTRY,
        },
        manager: {
            "replicas": 1,
            "securePort": where.port("cloud-controller-manager"),
            "kubeApiServer": server,
        },
        "csi-controller": {
            "kubeApiServer": server,
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
    return charts.merged(shared, own)

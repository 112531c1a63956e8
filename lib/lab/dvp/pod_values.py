"""Values of charts/cloud-provider-dvp on a VM of the lab's parent."""

from lib.lab import places
from lib.lab.dvp import project
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import node_values

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


def values(where: places.Places) -> Json:
    """Return the values of the umbrella chart on the node.

    The Secrets are those of the reference: project and cluster ID are in them.
    """
    own: Json = {
        "global": {"parent": {"secretNames": {"capdvp": MACHINES_SECRET}, "key": KEY}},
        "capdvp": {"replicas": 1},
        "csi-controller": {
            "storageClasses": [
                {"name": CLASS, "dvpStorageClass": project.STORAGE, "fsType": "xfs"}
            ]
        },
    }
    return node_values.values(where, "dvp-ccm", own)

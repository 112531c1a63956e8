"""Names, labels and annotations of load balancers in the parent. Pure.

Source: deckhouse modules/030-cloud-provider-dvp, cloud-controller-manager (load
balancer), and k8s.io/cloud-provider DefaultLoadBalancerName.
"""

NAME_MAX = 32
LABEL_KEY_MAX = 63
LABEL_PREFIX = "dvp.deckhouse.io/"
LABEL_VALUE = "loadbalancer"
CLASS_ANNOTATION = "network.deckhouse.io/load-balancer-class"
"""The parent chooses the class of the load balancer by it."""
SERVICE_ANNOTATION = "mooring.io/service"
"""Namespace and name of the Service of the cluster, for users of the parent."""
COPIED_ANNOTATION = "mooring.io/copied-annotations"
"""Keys of the annotations that were copied, separated by commas: those that the Service
no longer has are removed."""
NOT_COPIED = ("mooring.io/", "kubectl.kubernetes.io/")
"""Prefixes of annotations that are about the object they are on."""

DISABLING_CONFIG_MAP = "d8-cloud-provider-dvp/dvp-cloud-controller-manager-disable-lb"
"""Of the cluster: as long as it exists, Services get no load balancer."""


def object_name(uid: str) -> str:
    """Return the name of the objects in the parent. uid: of the Service."""
    return ("a" + uid.replace("-", ""))[:NAME_MAX].lower()


def label_key(name: str) -> str:
    """Return the key of the label that selects VMs. name: of the parent's object."""
    return (LABEL_PREFIX + name.lower().replace("-", ""))[:LABEL_KEY_MAX]


def of_label(key: str) -> str:
    """Return the name of the parent's object that selects VMs by a label."""
    return key.removeprefix(LABEL_PREFIX)

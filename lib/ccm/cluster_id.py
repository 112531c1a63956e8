"""Which cluster this is."""

from lib.cloud.load_balancers import Cluster
from lib.kube import client, objects, resources
from lib.process import decoding

NAMESPACE = "kube-system"
"""Every cluster has it for as long as it lives, so its uid is the cluster's own."""
READ_TIMEOUT_S = 10.0


def read(api: client.Api, cluster_id: str, name: str) -> Cluster:
    """Say which cluster this is.

    cluster_id: what the user gave; the uid of namespace kube-system if empty.

    Raises:
        KubeError: that namespace can't be read.
    """
    if cluster_id:
        return Cluster(cluster_id, name)
    body = api.read(resources.NAMESPACES, NAMESPACE, None, timeout_s=READ_TIMEOUT_S)
    found = decoding.decode(body, objects.Bare)
    return Cluster(found.metadata.uid, name)

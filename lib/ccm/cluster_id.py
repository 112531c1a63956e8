"""ID and name of the cluster."""

import threading
from collections.abc import Callable, Iterable

from lib.cloud.load_balancers import Cluster
from lib.kube import client, errors, objects, resources
from lib.process import decoding, logs

NAMESPACE = "kube-system"
"""Every cluster has this namespace all its life: its UID identifies the cluster."""
READ_TIMEOUT_S = 10.0
RETRY_S = 5.0
TURN_S = 1.0


def read(api: client.Api, cluster_id: str, name: str) -> Cluster:
    """Return the ID and name of the cluster.

    cluster_id: of the user; the UID of namespace kube-system if empty.

    Raises:
        KubeError: that namespace can't be read.
    """
    if cluster_id:
        return Cluster(cluster_id, name)
    body = api.read(resources.NAMESPACES, NAMESPACE, None, timeout_s=READ_TIMEOUT_S)
    namespace = decoding.decode(body, objects.Bare)
    return Cluster(namespace.metadata.uid, name)


def wait(
    identify: Callable[[], Cluster],
    needed: Iterable[threading.Event],
    beat: Callable[[], None],
    stop: threading.Event,
) -> Cluster | None:
    """Wait until stores are listed and the cluster is known; None at a stop.

    identify: reads the ID of the cluster. needed: set once a store is listed. beat:
    called while waiting.
    """
    for listed in needed:
        while not listed.wait(TURN_S):
            beat()
            if stop.is_set():
                return None
    while True:
        try:
            return identify()
        except errors.KubeError as error:
            advice = f"allow reading namespace {NAMESPACE}, or set --cluster-id"
            logs.get(__name__).error(
                "cluster not identified", error=str(error), advice=advice
            )
        beat()
        if stop.wait(RETRY_S):
            return None

"""Which cluster this is."""

import threading
from collections.abc import Callable, Iterable

from lib.cloud.load_balancers import Cluster
from lib.kube import client, errors, objects, resources
from lib.process import decoding, logs

NAMESPACE = "kube-system"
"""Every cluster has it for as long as it lives, so its uid is the cluster's own."""
READ_TIMEOUT_S = 10.0
RETRY_S = 5.0
TURN_S = 1.0


def read(api: client.Api, cluster_id: str, name: str) -> Cluster:
    """Return which cluster this is.

    cluster_id: what the user gave; the uid of namespace kube-system if empty.

    Raises:
        KubeError: that namespace can't be read.
    """
    if cluster_id:
        return Cluster(cluster_id, name)
    body = api.read(resources.NAMESPACES, NAMESPACE, None, timeout_s=READ_TIMEOUT_S)
    found = decoding.decode(body, objects.Bare)
    return Cluster(found.metadata.uid, name)


def wait(
    identify: Callable[[], Cluster],
    needed: Iterable[threading.Event],
    beat: Callable[[], None],
    stop: threading.Event,
) -> Cluster | None:
    """Wait until stores are listed and the cluster is known; None at a stop.

    identify: reads which cluster this is. needed: set once a store is listed. beat:
    called as long as this waits.
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
            advice = f"give access to namespace {NAMESPACE}, or --cluster-id"
            logs.get(__name__).error(
                "cluster not identified", error=str(error), advice=advice
            )
        beat()
        if stop.wait(RETRY_S):
            return None

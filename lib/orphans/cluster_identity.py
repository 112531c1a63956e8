"""Whether IDs of clusters are a cluster's own, and whether a cluster still answers."""

import uuid

from lib.kube import client, errors, resources
from lib.orphans import decide
from lib.orphans.model import CloudLists, ClusterLists, FailedList, Settings

TIMEOUT_S = 10.0
_ANSWERS = (errors.Unauthorized, errors.Forbidden, errors.NotFound)


def is_uuid(text: str) -> bool:
    """Report whether a text is a UUID, which no two clusters share."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def is_own(
    cluster_id: str, settings: Settings, lists: CloudLists, cluster: ClusterLists
) -> bool:
    """Report whether ownership tags with an ID are those of this cluster: pure."""
    return cluster_id == settings.own_id or decide.is_own(lists, cluster)


def is_volumes_own(
    cluster_id: str, settings: Settings, lists: CloudLists, cluster: ClusterLists
) -> bool:
    """Report the same of the ownership metadata of volumes: pure."""
    if cluster_id == settings.own_id:
        return True
    if not isinstance(lists.volumes, tuple) or isinstance(
        cluster.persistent, FailedList
    ):
        return False
    handles = {volume.handle for volume in cluster.persistent}
    owned = (volume.id for volume in lists.volumes if volume.cluster == cluster_id)
    return is_uuid(cluster_id) and any(id_ in handles for id_ in owned)


def answers(api: client.Api) -> str:
    """Return the answer of an API server; empty: no answer.

    A refusal is an answer, too.
    """
    try:
        api.read(resources.NAMESPACES, "kube-system", None, timeout_s=TIMEOUT_S)
    except _ANSWERS as error:
        return str(error)
    except errors.KubeError:
        return ""
    return "its namespace kube-system was read"

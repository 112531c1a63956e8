"""All reads of cleanup: the lists of a cloud first, then those of the cluster."""

import functools
from collections.abc import Callable
from typing import TypeVar

from lib.cloud import errors, protocol
from lib.cloud.load_balancers import LoadBalancers, Role
from lib.kube import client, nodes, objects, resources, store
from lib.kube import errors as kube_errors
from lib.kube import persistent_volumes as kube_volumes
from lib.orphans import model
from lib.orphans.model import CloudLists, ClusterLists, FailedList, Other, Settings

_TOGETHER = (
    frozenset({Role.LOAD_BALANCER, Role.USE}),
    frozenset({Role.PART}),
    frozenset({Role.ADDRESS}),
    frozenset({Role.FILTER}),
)
"""Roles that are read by one list."""

T = TypeVar("T")
Object = TypeVar("Object", bound=objects.HasMetadata)


def cloud_lists(cloud: protocol.Cloud, settings: Settings) -> CloudLists:
    """Read what the cloud lists; a list that fails takes no other with it."""
    balancers: dict[Role, model.Listed | FailedList] = {}
    asks_balancers = not settings.subjects.isdisjoint(Role)
    if cloud.load_balancers is not None and asks_balancers:
        for roles in _TOGETHER:
            balancers |= _owned(cloud.load_balancers, settings.cluster.id, roles)
    volumes = None
    if cloud.volumes is not None and Other.VOLUME in settings.subjects:
        volumes = _caught(cloud.volumes.listing)
    return CloudLists(balancers, volumes)


def _owned(
    balancers: LoadBalancers, cluster_id: str, roles: frozenset[Role]
) -> dict[Role, model.Listed | FailedList]:
    listed = _caught(lambda: tuple(balancers.owned(cluster_id, roles)))
    if isinstance(listed, FailedList):
        return dict.fromkeys(roles, listed)
    return {role: tuple(one for one in listed if one.role is role) for role in roles}


def cluster_lists(api: client.Api, settings: Settings) -> ClusterLists:
    """Read what the cluster has of the kinds that the subjects depend on."""
    read = functools.partial(_all, api)
    found = ClusterLists()
    if settings.is_gone:
        return found
    if not settings.subjects.isdisjoint(Role):
        services = read(resources.SERVICES, model.Service)
        found = ClusterLists(services=services)
    if Other.VOLUME not in settings.subjects:
        return found
    return ClusterLists(
        services=found.services,
        persistent=read(resources.PERSISTENT_VOLUMES, kube_volumes.PersistentVolume),
        claims=read(resources.CLAIMS, kube_volumes.VolumeClaim),
    )


def node_names(api: client.Api) -> frozenset[str] | FailedList:
    """Return the names of all Nodes."""
    found = _all(api, resources.NODES, nodes.Node)
    if isinstance(found, FailedList):
        return found
    return frozenset(node.metadata.name for node in found)


def _all(
    api: client.Api, resource: resources.Resource, of: type[Object]
) -> tuple[Object, ...] | FailedList:
    kept = store.Store(api, resource, of)
    try:
        kept.relist()
    except kube_errors.KubeError as error:
        return FailedList(str(error))
    return tuple(one for _, one in sorted(kept.items().items()))


def _caught(read: Callable[[], T]) -> T | FailedList:
    try:
        return read()
    except errors.CloudError as error:
        return FailedList(str(error))

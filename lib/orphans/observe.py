"""All reads of cleanup: the lists of a cloud first, then those of the cluster."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TypeVar

from lib.cloud import errors, protocol, route_records
from lib.cloud import routes as cloud_routes
from lib.cloud.load_balancers import LoadBalancers, Role
from lib.kube import client, listing, nodes, objects, resources
from lib.kube import errors as kube_errors
from lib.kube import persistent_volumes as kube_volumes
from lib.orphans import model
from lib.orphans.model import CloudLists, ClusterLists, FailedList, Other, Settings
from lib.process import decoding

TIMEOUT_S = 10.0
LIST_TIMEOUT_S = 60.0
_TOGETHER = (
    frozenset({Role.LOAD_BALANCER, Role.USE}),
    frozenset({Role.PART}),
    frozenset({Role.ADDRESS}),
    frozenset({Role.FILTER}),
)
"""Roles that are read by one list."""

T = TypeVar("T")
Object = TypeVar("Object", bound=objects.HasMetadata)


def records(api: client.Api, settings: Settings) -> model.Records | FailedList:
    """Read the records of routes and address pairs; none for a deleted cluster."""
    if settings.is_gone or settings.subjects.isdisjoint({Other.ROUTE, Other.PAIR}):
        return ()
    try:
        texts = [_texts(api, 0)]
        if route_records.has_parts(texts[0]):
            texts += (_texts(api, part) for part in range(1, route_records.PARTS))
    except kube_errors.KubeError as error:
        return FailedList(str(error))
    recorded = tuple(route_records.read(texts, settings.cluster.id).values())
    if not all(record.is_readable for record in recorded):
        return FailedList(f"ConfigMap {route_records.KEY}: a record is not readable")
    return recorded


def _texts(api: client.Api, part: int) -> Mapping[str, str]:
    namespace, name = route_records.NAMESPACE, route_records.name(part)
    try:
        body = api.read(resources.CONFIG_MAPS, name, namespace, timeout_s=TIMEOUT_S)
    except kube_errors.NotFound:
        return {}
    return decoding.decode(body, objects.ConfigMap).data or {}


def routes(
    cloud: protocol.Cloud, recorded: model.Records | FailedList
) -> model.Routes | FailedList | None:
    """Read routes and address pairs as far as records lead to them.

    Also the routes of the table of the configuration that no record has.
    """
    if isinstance(recorded, FailedList):
        return recorded
    tables = cloud.routes
    if tables is None:
        owned = any(record.entries for record in recorded)
        return (
            FailedList("the configuration of the cloud has no routes")
            if owned
            else None
        )
    if tables.table and tables.table not in {record.table for record in recorded}:
        recorded = (*recorded, cloud_routes.Record(tables.table, ""))
    return _caught(lambda: tuple(tables.owned(recorded)))


def cloud_lists(
    cloud: protocol.Cloud, settings: Settings, recorded: model.Records | FailedList = ()
) -> CloudLists:
    """Read the lists of the cloud; each list can fail on its own.

    recorded: see `records`.
    """
    balancers: dict[Role, model.Listed | FailedList] = {}
    asks_balancers = not settings.subjects.isdisjoint(Role)
    if cloud.load_balancers is not None and asks_balancers:
        for roles in _TOGETHER:
            balancers |= _owned(cloud.load_balancers, settings.cluster.id, roles)
    volumes = None
    if cloud.volumes is not None and Other.VOLUME in settings.subjects:
        volumes = _caught(cloud.volumes.listing)
    asks_routes = not settings.subjects.isdisjoint({Other.ROUTE, Other.PAIR})
    tables = routes(cloud, recorded) if asks_routes and not settings.is_gone else None
    owned, cluster_id = cloud.machines, settings.cluster.id
    machines = None
    if owned is not None and Other.MACHINE in settings.subjects:
        machines = _caught(lambda: tuple(owned.owned(cluster_id)))
    created = cloud.layouts if Other.LAYOUT in settings.subjects else None
    objects = None
    # Those of a living cluster are in the states of its layout.
    if created is not None and settings.is_gone and settings.layout_cluster:
        objects = _caught(lambda: created.owned(settings.layout_cluster))
    return CloudLists(balancers, volumes, tables, machines, objects)


def _owned(
    balancers: LoadBalancers, cluster_id: str, roles: frozenset[Role]
) -> dict[Role, model.Listed | FailedList]:
    listed = _caught(lambda: tuple(balancers.owned(cluster_id, roles)))
    if isinstance(listed, FailedList):
        return dict.fromkeys(roles, listed)
    return {
        role: tuple(resource for resource in listed if resource.role is role)
        for role in roles
    }


def cluster_lists(api: client.Api, settings: Settings) -> ClusterLists:
    """Read the objects of the cluster on which the subjects depend."""
    read = functools.partial(_all, api)
    lists = ClusterLists()
    if settings.is_gone:
        return lists
    if not settings.subjects.isdisjoint(Role):
        services = read(resources.SERVICES, model.Service)
        lists = ClusterLists(services=services)
    if Other.VOLUME in settings.subjects:
        of = kube_volumes.PersistentVolume
        lists = dataclasses.replace(
            lists,
            persistent=read(resources.PERSISTENT_VOLUMES, of),
            claims=read(resources.CLAIMS, kube_volumes.VolumeClaim),
        )
    if not settings.subjects.isdisjoint({Other.ROUTE, Other.PAIR}):
        lists = dataclasses.replace(lists, nodes=_node_names(api))
    if settings.machine_kind is not None and Other.MACHINE in settings.subjects:
        resource = settings.machine_kind.resource
        machines = read(resource, model.MachineRecord)
        lists = dataclasses.replace(lists, machines=machines)
    return lists


def _node_names(api: client.Api) -> frozenset[str] | FailedList:
    """Return the names of all Nodes."""
    listed = _all(api, resources.NODES, nodes.Node)
    if isinstance(listed, FailedList):
        return listed
    return frozenset(node.metadata.name for node in listed)


def _all(
    api: client.Api, resource: resources.Resource, of: type[Object]
) -> tuple[Object, ...] | FailedList:
    try:
        items = listing.read(api, resource, of, timeout_s=LIST_TIMEOUT_S).items
    except kube_errors.KubeError as error:
        return FailedList(str(error))
    return tuple(sorted(items, key=lambda item: item.metadata.key))


def _caught(read: Callable[[], T]) -> T | FailedList:
    try:
        return read()
    except errors.CloudError as error:
        return FailedList(str(error))

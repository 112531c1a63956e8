"""Which owned resources belong to no Kubernetes object: pure.

Rules: ownership is a tag or a record, never a name. What could not be read, or is
empty although ownership tags point to it, is unknown, and then nothing is an orphan.
"""

import collections
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud import layouts, load_balancers, machines, routes, volumes
from lib.cloud.load_balancers import Role
from lib.kube import volume_references
from lib.orphans import model
from lib.orphans.model import (
    CloudLists,
    ClusterLists,
    FailedList,
    Finding,
    FindingState,
    Other,
    Settings,
    Subject,
    Survey,
    UnknownSubject,
)

_VOLUME = "volume"
_EMPTY = "the list of {} is empty, although ownership tags point to some"


def decide(
    cloud: CloudLists,
    cluster: ClusterLists,
    settings: Settings,
    now: datetime.datetime,
) -> Survey:
    """Return orphans, kept and not owned resources, and unknown subjects.

    now: UTC. Resources younger than `settings.min_age` are ignored.
    """
    findings: list[Finding] = []
    unknown: list[UnknownSubject] = []
    for result in (
        *_balancers(cloud, cluster, settings),
        *_routes(cloud, cluster),
        *_volumes(cloud, cluster, settings),
        *_machines(cloud, cluster, settings),
        *_layouts(cloud, settings),
    ):
        if result.subject not in settings.subjects:
            continue
        if isinstance(result, UnknownSubject):
            unknown.append(result)
        elif not volume_references.is_young(result.created, settings.min_age, now):
            findings.append(result)
    order = {subject: index for index, subject in enumerate(model.SUBJECTS)}
    findings.sort(
        key=lambda finding: (order[finding.subject], finding.created_for, finding.id)
    )
    return Survey(tuple(findings), tuple(unknown))


def is_own(cloud: CloudLists, cluster: ClusterLists) -> bool:
    """Report whether a Service of this cluster has one of the listed resources.

    UIDs are globally unique: the cluster ID in their tags is then the cluster's.
    """
    services = () if isinstance(cluster.services, FailedList) else cluster.services
    uids = {service.metadata.uid for service in services}
    return any(
        resource.uid in uids
        for listed in cloud.balancers.values()
        if not isinstance(listed, FailedList)
        for resource in listed
    )


# ---------------------------------------------------------------- load balancers


def _balancers(
    cloud: CloudLists, cluster: ClusterLists, settings: Settings
) -> Iterator[Finding | UnknownSubject]:
    lists = {
        role: listed
        for role, listed in cloud.balancers.items()
        if not isinstance(listed, FailedList)
    }
    for role, listed in cloud.balancers.items():
        if isinstance(listed, FailedList):
            yield UnknownSubject(role, listed.why)
    for resource in itertools.chain.from_iterable(lists.values()):
        if isinstance(resource, load_balancers.NotOwned):
            yield _not_owned(resource)
    owned = {
        role: [
            resource
            for resource in listed
            if isinstance(resource, load_balancers.Owned)
        ]
        for role, listed in lists.items()
    }
    why = _doubt(cluster, settings, any(owned.values()))
    for role, some in owned.items():
        if why and some:
            yield UnknownSubject(role, why)
        elif some:
            services = (
                () if isinstance(cluster.services, FailedList) else cluster.services
            )
            yield from _Services(services, owned, settings).findings(some)


def _doubt(cluster: ClusterLists, settings: Settings, has_owned: bool) -> str:
    """Return why Services cannot be compared; empty: they can."""
    if settings.is_gone:
        return ""
    if isinstance(cluster.services, FailedList):
        return cluster.services.why
    if has_owned and not cluster.services:
        return _EMPTY.format("Services")
    return ""


class _Services:
    """The Services of a cluster, and the resources of each."""

    def __init__(
        self,
        services: Sequence[model.Service],
        owned: Mapping[Role, Sequence[load_balancers.Owned]],
        settings: Settings,
    ) -> None:
        gone = settings.is_gone
        self._settings = settings
        self._by_uid = (
            {} if gone else {service.metadata.uid: service for service in services}
        )
        self._by_key = (
            {} if gone else {service.metadata.key: service for service in services}
        )
        self._balancers: dict[str, list[load_balancers.Owned]] = (
            collections.defaultdict(list)
        )
        for balancer in owned.get(Role.LOAD_BALANCER, ()):
            self._balancers[balancer.uid].append(balancer)
        self._addresses = owned.get(Role.ADDRESS, ())
        self._knows_addresses = Role.ADDRESS in owned
        # A use without a listener does not name its Service, but its group does.
        self._keys = {
            resource.uid: resource.service
            for resource in itertools.chain.from_iterable(owned.values())
            if resource.service
        }

    def findings(self, owned: Sequence[load_balancers.Owned]) -> Iterator[Finding]:
        for resource in owned:
            why = self._why(resource)
            if why:
                state, why = self._state(resource, why)
                note = f"; {resource.note}" if resource.note else ""
                yield Finding(
                    state,
                    resource.role,
                    resource.kind,
                    resource.id,
                    resource.name,
                    resource.created,
                    self._keys.get(resource.uid, resource.uid),
                    f"{why}{note}",
                    resource,
                )

    def _why(self, resource: load_balancers.Owned) -> str:
        """Return why a resource belongs to no object; empty: it belongs to one."""
        service = self._by_uid.get(resource.uid)
        key = self._keys.get(resource.uid, "")
        shown = f"Service {key}" if key else f"the Service {resource.uid}"
        if self._settings.is_gone:
            return f"cluster {self._settings.cluster.id} does not exist any more"
        if service is None and key in self._by_key:
            return f"{shown} was deleted; the present one has another UID"
        if service is None:
            return f"{shown} does not exist"
        if not service.has_resources:
            return f"{shown} is not of type LoadBalancer and lacks the finalizer"
        if resource.role is Role.LOAD_BALANCER:
            return self._why_spare(resource, service)
        return ""

    def _state(
        self, resource: load_balancers.Owned, why: str
    ) -> tuple[FindingState, str]:
        """Return the state: an address without an owned load balancer is kept."""
        if resource.role is not Role.ADDRESS:
            return FindingState.ORPHAN, why
        balancers = self._balancers.get(resource.uid, [])
        if not resource.is_free and any(
            resource.handles & each.handles for each in balancers
        ):
            return FindingState.ORPHAN, why
        return FindingState.KEPT, f"{why}; the address was retained"

    def _why_spare(self, balancer: load_balancers.Owned, service: model.Service) -> str:
        """Return why a load balancer is not the one that a Service uses."""
        some = self._balancers[balancer.uid]
        if len(some) < 2 or not self._knows_addresses:
            return ""
        if self._is_referred(balancer, service):
            return ""
        referred = [each for each in some if self._is_referred(each, service)]
        first = min(referred or some, key=_age)
        if first is balancer:
            return ""
        key = service.metadata.key
        return f"Service {key} uses load balancer {first.id}, not this second one"

    def _is_referred(
        self, balancer: load_balancers.Owned, service: model.Service
    ) -> bool:
        handles = set(balancer.handles)
        for address in self._addresses:
            if address.handles & balancer.handles:
                handles |= address.handles
        return not handles.isdisjoint(service.handles)


def _age(balancer: load_balancers.Owned) -> tuple[str, str]:
    return (balancer.created.isoformat() if balancer.created else "", balancer.id)


def _not_owned(resource: load_balancers.NotOwned) -> Finding:
    note = f"; {resource.note}" if resource.note else ""
    return Finding(
        FindingState.NOT_OWNED,
        resource.role,
        resource.kind,
        resource.id,
        resource.name,
        resource.created,
        resource.service,
        f"it has no ownership tag{note}",
        resource,
    )


# ---------------------------------------------------------------- routes


def _routes(
    cloud: CloudLists, cluster: ClusterLists
) -> Iterator[Finding | UnknownSubject]:
    if cloud.routes is None:
        return
    why = cloud.routes.why if isinstance(cloud.routes, FailedList) else ""
    listed = () if isinstance(cloud.routes, FailedList) else cloud.routes
    owned = [route for route in listed if isinstance(route, routes.Owned)]
    nodes = cluster.nodes
    if isinstance(nodes, FailedList):
        why = why or nodes.why
    elif owned and not nodes:
        why = "the list of Nodes is empty, although records name some"
    if why:
        yield UnknownSubject(Other.ROUTE, why)
        yield UnknownSubject(Other.PAIR, why)
    for listed_route in listed:
        if isinstance(listed_route, routes.NotOwned):
            yield _unrecorded(listed_route)
        elif not (
            why or isinstance(nodes, FailedList) or listed_route.recorded.node in nodes
        ):
            yield _recorded(listed_route)


def _recorded(owned: routes.Owned) -> Finding:
    recorded = owned.recorded
    is_route = isinstance(recorded.entry, routes.Route)
    since = recorded.since
    return Finding(
        FindingState.ORPHAN,
        Other.ROUTE if is_route else Other.PAIR,
        owned.kind,
        owned.id,
        str(recorded.entry),
        datetime.datetime.fromtimestamp(since, datetime.UTC) if since else None,
        f"Node {recorded.node}",
        f"Node {recorded.node} does not exist",
        owned,
    )


def _unrecorded(route: routes.NotOwned) -> Finding:
    reason = "no record of this cluster has it"
    shown = str(route.route)
    subject: Subject = Other.ROUTE
    return Finding(
        FindingState.NOT_OWNED,
        subject,
        "route",
        route.id,
        shown,
        None,
        "",
        reason,
        route,
    )


# ---------------------------------------------------------------- volumes


def _volumes(
    cloud: CloudLists, cluster: ClusterLists, settings: Settings
) -> Iterator[Finding | UnknownSubject]:
    if cloud.volumes is None:
        return
    if isinstance(cloud.volumes, FailedList):
        yield UnknownSubject(Other.VOLUME, cloud.volumes.why)
        return
    cluster_id = settings.volume_cluster
    owned = [
        volume
        for volume in cloud.volumes
        if cluster_id and volume.cluster == cluster_id
    ]
    yield from (_resembling(volume) for volume in cloud.volumes if _resembles(volume))
    why = _volume_doubt(cluster, settings, has_owned=bool(owned))
    if why:
        yield UnknownSubject(Other.VOLUME, why)
        return
    referenced = _references(cluster, settings)
    for orphaned in owned:
        if volume_references.is_orphan(orphaned, referenced):
            yield _orphaned(orphaned, settings)


def _volume_doubt(cluster: ClusterLists, settings: Settings, *, has_owned: bool) -> str:
    if settings.is_gone:
        return ""
    for listed in (cluster.persistent, cluster.claims):
        if isinstance(listed, FailedList):
            return listed.why
    if has_owned and not cluster.persistent:
        return _EMPTY.format("PersistentVolumes")
    return ""


def _references(
    cluster: ClusterLists, settings: Settings
) -> volume_references.VolumeReferences:
    if settings.is_gone:
        return volume_references.VolumeReferences()
    persistent = (
        () if isinstance(cluster.persistent, FailedList) else cluster.persistent
    )
    claims = () if isinstance(cluster.claims, FailedList) else cluster.claims
    return volume_references.references(persistent, claims)


def _orphaned(volume: volumes.Volume, settings: Settings) -> Finding:
    holders = ", ".join(attachment.holder for attachment in volume.attachments)
    why = "no PersistentVolume leads to it"
    if settings.is_gone:
        why = f"cluster {settings.volume_cluster} does not exist any more"
    reason = f"{why}; attached to {holders}" if holders else why
    return _volume(volume, FindingState.ORPHAN, reason)


def _resembles(volume: volumes.Volume) -> bool:
    """Report whether a volume without ownership metadata is called after a claim."""
    return volume.cluster is None and volume.name.startswith(
        volume_references.CLAIM_PREFIX
    )


def _resembling(volume: volumes.Volume) -> Finding:
    return _volume(volume, FindingState.NOT_OWNED, "it has no ownership metadata")


def _volume(volume: volumes.Volume, state: FindingState, reason: str) -> Finding:
    subject: Subject = Other.VOLUME
    return Finding(
        state,
        subject,
        _VOLUME,
        volume.id,
        volume.name,
        volume.created_at,
        "",
        reason,
        volume,
    )


# ---------------------------------------------------------------- machines


def _machines(
    cloud: CloudLists, cluster: ClusterLists, settings: Settings
) -> Iterator[Finding | UnknownSubject]:
    if cloud.machines is None:
        return
    if isinstance(cloud.machines, FailedList):
        yield UnknownSubject(Other.MACHINE, cloud.machines.why)
        return
    yield from (_no_part(owned) for owned in cloud.machines if owned.ref is None)
    parts = [owned for owned in cloud.machines if owned.ref is not None]
    if parts and (why := _machine_doubt(cluster, settings)):
        yield UnknownSubject(Other.MACHINE, why)
        return
    for owned in parts:
        if why := _why_left(owned, cluster, settings):
            yield _machine(owned, FindingState.ORPHAN, why)


def _machine_doubt(cluster: ClusterLists, settings: Settings) -> str:
    if settings.is_gone:
        return ""
    if settings.machine_kind is None:
        return "the provider has no kind of machine objects"
    if isinstance(cluster.machines, FailedList):
        return cluster.machines.why
    kind = f"{settings.machine_kind.resource.kind} objects"
    return "" if cluster.machines else _EMPTY.format(kind)


def _why_left(owned: machines.Owned, cluster: ClusterLists, settings: Settings) -> str:
    """Return why a part belongs to no machine; empty: it belongs to one.

    One of the reference has no UID, and belongs to the machine object of its name.
    """
    kind, name = settings.machine_kind, owned.ref.key.strip("/") if owned.ref else ""
    if settings.is_gone or kind is None or isinstance(cluster.machines, FailedList):
        return f"cluster {settings.cluster.id} does not exist any more"
    shown = f"{kind.resource.kind} {name}"
    by_uid = {record.metadata.uid: record for record in cluster.machines}
    record = by_uid.get(owned.uid) or _named(owned, cluster.machines)
    if record is None:
        return f"{shown} does not exist"
    if kind.is_released(record):
        return f"{shown} was released although it is left"
    return ""


def _named(
    owned: machines.Owned, records: Sequence[model.MachineRecord]
) -> model.MachineRecord | None:
    """Return the machine object of the same name, in any namespace if none is known."""
    ref = owned.ref
    for record in records:
        about = record.metadata
        is_same = ref is not None and about.name == ref.name
        if is_same and ref is not None and ref.namespace in ("", about.namespace):
            return record
    return None


def _no_part(owned: machines.Owned) -> Finding:
    reason = "it is no part of a machine of Cluster API"
    return _machine(owned, FindingState.NOT_OWNED, reason)


def _machine(owned: machines.Owned, state: FindingState, why: str) -> Finding:
    subject: Subject = Other.MACHINE
    note = f"; {owned.note}" if owned.note and state is FindingState.ORPHAN else ""
    return Finding(
        state,
        subject,
        owned.kind,
        owned.id,
        owned.name,
        owned.created,
        owned.ref.key.strip("/") if owned.ref else "",
        f"{why}{note}",
        owned,
    )


# ---------------------------------------------------------------- layouts


def _layouts(
    cloud: CloudLists, settings: Settings
) -> Iterator[Finding | UnknownSubject]:
    """Yield what a layout created for a cluster that does not exist any more."""
    if cloud.layouts is None or not settings.is_gone:
        return
    if isinstance(cloud.layouts, FailedList):
        yield UnknownSubject(Other.LAYOUT, cloud.layouts.why)
        return
    for item in cloud.layouts:
        if item.owner == settings.layout_cluster:
            yield _created(item)


def _created(item: layouts.ProjectObject) -> Finding:
    subject: Subject = Other.LAYOUT
    return Finding(
        FindingState.ORPHAN,
        subject,
        item.kind,
        item.id,
        item.name,
        item.created,
        f"layout of cluster {item.owner}",
        f"cluster {item.owner} does not exist any more",
        item,
    )

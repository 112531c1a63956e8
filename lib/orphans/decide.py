"""Which owned resources belong to no Kubernetes object: pure.

Rules: ownership is a tag or a record, never a name. What could not be read, or is
empty although ownership tags point to it, is unknown, and then nothing is an orphan.
"""

import collections
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud import load_balancers, routes, volumes
from lib.cloud.load_balancers import Role
from lib.orphans import model, volume_references
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
    """Return orphans, what is kept, what only resembles them, and what is unknown.

    now: UTC. Resources younger than `settings.min_age` are ignored.
    """
    findings: list[Finding] = []
    unknown: list[UnknownSubject] = []
    for found in (
        *_balancers(cloud, cluster, settings),
        *_routes(cloud, cluster),
        *_volumes(cloud, cluster, settings),
    ):
        if found.subject not in settings.subjects:
            continue
        if isinstance(found, UnknownSubject):
            unknown.append(found)
        elif not volume_references.is_young(found.created, settings.min_age, now):
            findings.append(found)
    order = {subject: index for index, subject in enumerate(model.SUBJECTS)}
    findings.sort(key=lambda one: (order[one.subject], one.created_for, one.id))
    return Survey(tuple(findings), tuple(unknown))


def is_own(cloud: CloudLists, cluster: ClusterLists) -> bool:
    """Report whether a Service of this cluster has one of the listed resources.

    UIDs are unique in the world: the cluster ID in their tags is then the cluster's.
    """
    services = () if isinstance(cluster.services, FailedList) else cluster.services
    uids = {service.metadata.uid for service in services}
    return any(
        one.uid in uids
        for listed in cloud.balancers.values()
        if not isinstance(listed, FailedList)
        for one in listed
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
    for one in itertools.chain.from_iterable(lists.values()):
        if isinstance(one, load_balancers.NotOwned):
            yield _not_owned(one)
    owned = {
        role: [one for one in listed if isinstance(one, load_balancers.Owned)]
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
    """The Services of a cluster, and what is owned by each."""

    def __init__(
        self,
        services: Sequence[model.Service],
        owned: Mapping[Role, Sequence[load_balancers.Owned]],
        settings: Settings,
    ) -> None:
        gone = settings.is_gone
        self._settings = settings
        self._by_uid = {} if gone else {one.metadata.uid: one for one in services}
        self._by_key = {} if gone else {one.metadata.key: one for one in services}
        self._balancers: dict[str, list[load_balancers.Owned]] = (
            collections.defaultdict(list)
        )
        for one in owned.get(Role.LOAD_BALANCER, ()):
            self._balancers[one.uid].append(one)
        self._addresses = owned.get(Role.ADDRESS, ())
        self._knows_addresses = Role.ADDRESS in owned
        # A use without a listener does not tell its Service, but its group does.
        self._keys = {
            one.uid: one.service
            for one in itertools.chain.from_iterable(owned.values())
            if one.service
        }

    def findings(self, owned: Sequence[load_balancers.Owned]) -> Iterator[Finding]:
        for one in owned:
            why = self._why(one)
            if why:
                state, why = self._state(one, why)
                note = f"; {one.note}" if one.note else ""
                yield Finding(
                    state,
                    one.role,
                    one.kind,
                    one.id,
                    one.name,
                    one.created,
                    self._keys.get(one.uid, one.uid),
                    f"{why}{note}",
                    one,
                )

    def _why(self, one: load_balancers.Owned) -> str:
        """Return why a resource belongs to no object; empty: it belongs to one."""
        service = self._by_uid.get(one.uid)
        key = self._keys.get(one.uid, "")
        shown = f"Service {key}" if key else f"the Service {one.uid}"
        if self._settings.is_gone:
            return f"cluster {self._settings.cluster.id} does not exist any more"
        if service is None and key in self._by_key:
            return f"{shown} was deleted; the present one has another UID"
        if service is None:
            return f"{shown} does not exist"
        if not service.has_resources:
            return f"{shown} is not of type LoadBalancer and lacks the finalizer"
        if one.role is Role.LOAD_BALANCER:
            return self._why_spare(one, service)
        return ""

    def _state(self, one: load_balancers.Owned, why: str) -> tuple[FindingState, str]:
        """Return whether an address is kept: it leads to no owned load balancer."""
        if one.role is not Role.ADDRESS:
            return FindingState.ORPHAN, why
        balancers = self._balancers.get(one.uid, [])
        if not one.is_free and any(one.handles & each.handles for each in balancers):
            return FindingState.ORPHAN, why
        return FindingState.KEPT, f"{why}; the address was retained"

    def _why_spare(self, one: load_balancers.Owned, service: model.Service) -> str:
        """Return why a load balancer is not the one that a Service uses."""
        some = self._balancers[one.uid]
        if len(some) < 2 or not self._knows_addresses:
            return ""
        if self._is_referred(one, service):
            return ""
        referred = [each for each in some if self._is_referred(each, service)]
        first = min(referred or some, key=_age)
        if first is one:
            return ""
        key = service.metadata.key
        return f"Service {key} uses load balancer {first.id}, not this second one"

    def _is_referred(self, one: load_balancers.Owned, service: model.Service) -> bool:
        handles = set(one.handles)
        for address in self._addresses:
            if address.handles & one.handles:
                handles |= address.handles
        return not handles.isdisjoint(service.handles)


def _age(one: load_balancers.Owned) -> tuple[str, str]:
    return (one.created.isoformat() if one.created else "", one.id)


def _not_owned(one: load_balancers.NotOwned) -> Finding:
    note = f"; {one.note}" if one.note else ""
    return Finding(
        FindingState.NOT_OWNED,
        one.role,
        one.kind,
        one.id,
        one.name,
        one.created,
        one.service,
        f"it has no ownership tag{note}",
        one,
    )


# ---------------------------------------------------------------- routes


def _routes(
    cloud: CloudLists, cluster: ClusterLists
) -> Iterator[Finding | UnknownSubject]:
    if cloud.routes is None:
        return
    why = cloud.routes.why if isinstance(cloud.routes, FailedList) else ""
    listed = () if isinstance(cloud.routes, FailedList) else cloud.routes
    owned = [one for one in listed if isinstance(one, routes.Owned)]
    nodes = cluster.nodes
    if isinstance(nodes, FailedList):
        why = why or nodes.why
    elif owned and not nodes:
        why = "the list of Nodes is empty, although records name some"
    if why:
        yield UnknownSubject(Other.ROUTE, why)
        yield UnknownSubject(Other.PAIR, why)
    for one in listed:
        if isinstance(one, routes.NotOwned):
            yield _unrecorded(one)
        elif not (why or isinstance(nodes, FailedList) or one.recorded.node in nodes):
            yield _recorded(one)


def _recorded(one: routes.Owned) -> Finding:
    recorded = one.recorded
    is_route = isinstance(recorded.entry, routes.Route)
    since = recorded.since
    return Finding(
        FindingState.ORPHAN,
        Other.ROUTE if is_route else Other.PAIR,
        one.kind,
        one.id,
        str(recorded.entry),
        datetime.datetime.fromtimestamp(since, datetime.UTC) if since else None,
        f"Node {recorded.node}",
        f"Node {recorded.node} does not exist",
        one,
    )


def _unrecorded(one: routes.NotOwned) -> Finding:
    reason = "no record of this cluster has it"
    shown = str(one.route)
    subject: Subject = Other.ROUTE
    return Finding(
        FindingState.NOT_OWNED, subject, "route", one.id, shown, None, "", reason, one
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
    owned = [one for one in cloud.volumes if cluster_id and one.cluster == cluster_id]
    yield from (_resembling(one) for one in cloud.volumes if _resembles(one))
    why = _volume_doubt(cluster, settings, has_owned=bool(owned))
    if why:
        yield UnknownSubject(Other.VOLUME, why)
        return
    referenced = _references(cluster, settings)
    for one in owned:
        if volume_references.is_orphan(one, referenced):
            yield _orphaned(one, settings)


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


def _orphaned(one: volumes.Volume, settings: Settings) -> Finding:
    holders = ", ".join(attachment.holder for attachment in one.attachments)
    why = "no PersistentVolume leads to it"
    if settings.is_gone:
        why = f"cluster {settings.volume_cluster} does not exist any more"
    reason = f"{why}; attached to {holders}" if holders else why
    return _volume(one, FindingState.ORPHAN, reason)


def _resembles(one: volumes.Volume) -> bool:
    """Report whether a volume without ownership metadata is called after a claim."""
    return one.cluster is None and one.name.startswith(volume_references.CLAIM_PREFIX)


def _resembling(one: volumes.Volume) -> Finding:
    return _volume(one, FindingState.NOT_OWNED, "it has no ownership metadata")


def _volume(one: volumes.Volume, state: FindingState, reason: str) -> Finding:
    subject: Subject = Other.VOLUME
    return Finding(
        state, subject, _VOLUME, one.id, one.name, one.created_at, "", reason, one
    )

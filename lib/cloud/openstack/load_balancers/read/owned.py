"""Lists objects with a cluster's ownership tag, and objects that merely resemble them.

Rules: a tag alone proves ownership. Names and descriptions of the reference show for
which Service an object was created, never its owner.
"""

import dataclasses
import datetime
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from lib.cloud.load_balancers import Cluster, NotOwned, Owned, Ref, Role
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.read import identity, lists, native
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.desired import Hints

KINDS: Mapping[Role, str] = {
    Role.LOAD_BALANCER: "load balancer",
    Role.USE: "use of a load balancer",
    Role.PART: "pool",
    Role.ADDRESS: "floating IP",
    Role.FILTER: "security group",
}
"""The roles in OpenStack's words."""
_DESCRIBED = re.compile(
    r"(?:Floating IP for )?Kubernetes external service (?P<namespace>[^/\s]+)"
    r"/(?P<name>\S+) from cluster (?P<cluster>.*)"
    r"|Security Group for (?P<namespace_2>[^/\s]+)/(?P<name_2>\S+)"
    r" Service LoadBalancer in cluster (?P<cluster_2>.*)"
)
"""Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go,
loadbalancer_sg.go."""
_GROUP_PREFIX = "lb-sg-"
_POOL_NAME = re.compile(r"pool_\d+_kube_service_")
_SHOWN = 3
"""Ports named in a note, at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Service:
    """For which Service something was created; empty texts: not known."""

    cluster: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.name else ""

    def ref(self, cluster_id: str, uid: str, hints: Hints | None = None) -> Ref:
        cluster = Cluster(cluster_id, self.cluster)
        return Ref(cluster, self.namespace, self.name, uid, hints)


def read(
    api: client.Client, cluster_id: str, roles: Collection[Role], deadline: float
) -> Iterator[Owned | NotOwned]:
    """List resources with ownership tags of these roles; one list for each kind.

    Raises:
        CloudError: a list could not be read.
    """
    has_octavia = api.has(lists.BALANCER)
    if has_octavia and not {Role.LOAD_BALANCER, Role.USE}.isdisjoint(roles):
        resources = _balancers(api, cluster_id, roles, deadline)
        yield from (resource for resource in resources if resource.role in roles)
    if has_octavia and Role.PART in roles:
        yield from _pools(lists.POOLS.of_project(api, deadline), cluster_id)
    if Role.ADDRESS in roles:
        addresses = lists.FLOATING_IPS.of_project(api, deadline)
        yield from _floating_ips(addresses, cluster_id)
    if Role.FILTER in roles:
        yield from _groups(api, cluster_id, deadline)


def _balancers(
    api: client.Client, cluster_id: str, roles: Collection[Role], deadline: float
) -> Iterator[Owned | NotOwned]:
    balancers = lists.LOAD_BALANCERS.of_project(api, deadline)
    users = any(names.users(balancer.tags, cluster_id) for balancer in balancers)
    listeners: tuple[native.Listener, ...] = ()
    if users and Role.USE in roles:
        listeners = lists.LISTENERS.of_project(api, deadline)
    services = _services_of(listeners, cluster_id)
    for balancer in balancers:
        if identity.is_deleting(balancer):
            continue
        tags = identity.ownership_tags_of(balancer)
        if uid := names.uid_of(tags, cluster_id):
            yield _balancer(balancer, cluster_id, uid)
        elif not tags and balancer.name.startswith(names.SERVICE_PREFIX):
            service = _service(balancer.description, balancer.name)
            role = Role.LOAD_BALANCER
            created = _utc(balancer.created_at)
            note = _note(balancer)
            yield NotOwned(
                KINDS[role],
                balancer.id,
                balancer.name,
                role,
                created,
                service.key,
                note,
            )
        for uid in names.users(balancer.tags, cluster_id):
            yield _use(
                balancer, cluster_id, uid, services.get((balancer.id, uid), _Service())
            )


def _balancer(balancer: native.LoadBalancer, cluster_id: str, uid: str) -> Owned:
    own = balancer.name.removesuffix(f"_{uid[:8]}")
    service = _service(balancer.description, own)
    addresses = {balancer.vip_address or ""}
    addresses |= {vip.ip_address for vip in balancer.additional_vips}
    return Owned(
        KINDS[Role.LOAD_BALANCER],
        balancer.id,
        balancer.name,
        uid,
        created=_utc(balancer.created_at),
        service=service.key,
        ref=service.ref(cluster_id, uid),
        handles=frozenset({balancer.id, balancer.vip_port_id or "", *addresses} - {""}),
        note=_note(balancer),
    )


def _note(balancer: native.LoadBalancer) -> str:
    return (
        ""
        if balancer.provisioning_status == native.ACTIVE
        else balancer.provisioning_status
    )


def _use(
    balancer: native.LoadBalancer, cluster_id: str, uid: str, service: _Service
) -> Owned:
    """Describe the objects of a Service on a shared load balancer.

    Tags have no time: the last change of the load balancer came not before them.
    """
    return Owned(
        KINDS[Role.USE],
        balancer.id,
        balancer.name,
        uid,
        Role.USE,
        _utc(balancer.updated_at) or _utc(balancer.created_at),
        service.key,
        service.ref(cluster_id, uid),
        note=_note(balancer),
    )


def _services_of(
    listeners: Iterable[native.Listener], cluster_id: str
) -> Mapping[tuple[str, str], _Service]:
    """Return the Services that have listeners, by load balancer and UID."""
    return {
        (balancer.id, uid): _named(tag)
        for listener in listeners
        for balancer in listener.loadbalancers
        for tag in sorted(identity.services(listener.tags))
        if (uid := names.uid_of(listener.tags, cluster_id))
    }


def _pools(pools: Iterable[native.Pool], cluster_id: str) -> Iterator[Owned | NotOwned]:
    """List pools without a listener: those with one belong to that listener."""
    kind = KINDS[Role.PART]
    for pool in pools:
        if pool.listeners:
            continue
        created = _utc(pool.created_at)
        service = _named(re.sub(r"^pool_\d+_", "", pool.name))
        tags = identity.ownership_tags(pool.tags)
        on = pool.loadbalancers[0].id if pool.loadbalancers else ""
        note = f"on load balancer {on}" if on else ""
        if uid := names.uid_of(tags, cluster_id):
            ref = service.ref(cluster_id, uid, Hints(given_id=on)) if on else None
            yield Owned(
                kind,
                pool.id,
                pool.name,
                uid,
                Role.PART,
                created,
                service.key,
                ref,
                note=note,
            )
        elif not tags and _POOL_NAME.match(pool.name):
            yield NotOwned(
                kind, pool.id, pool.name, Role.PART, created, service.key, note
            )


def _floating_ips(
    floating_ips: Iterable[native.FloatingIp], cluster_id: str
) -> Iterator[Owned | NotOwned]:
    kind = KINDS[Role.ADDRESS]
    for ip in floating_ips:
        tags = identity.ownership_tags_in(ip.description)
        created, service = _utc(ip.created_at), _service(ip.description)
        address, port = ip.floating_ip_address, ip.port_id or ""
        if uid := names.uid_of(tags, cluster_id):
            yield Owned(
                kind,
                ip.id,
                address,
                uid,
                Role.ADDRESS,
                created,
                service.key,
                service.ref(cluster_id, uid),
                frozenset({ip.id, address, port} - {""}),
                is_free=not port,
                note=f"on port {port}" if port else "",
            )
        elif not tags and (ip.description or "").startswith(names.FLOATING_IP_PREFIX):
            yield NotOwned(kind, ip.id, address, Role.ADDRESS, created, service.key)


def _groups(
    api: client.Client, cluster_id: str, deadline: float
) -> Iterator[Owned | NotOwned]:
    kind = KINDS[Role.FILTER]
    groups = [
        group
        for group in lists.SECURITY_GROUPS.of_project(api, deadline)
        if identity.ownership_tags_in(group.description)
        or group.name.startswith(_GROUP_PREFIX)
    ]
    ports = lists.PORTS.of_project(api, deadline) if groups else ()
    carriers: dict[str, list[str]] = {}
    for port in ports:
        for id_ in port.security_groups:
            carriers.setdefault(id_, []).append(port.id)
    for group in groups:
        tags = identity.ownership_tags_in(group.description)
        created, service = _utc(group.created_at), _service(group.description)
        note = _on_ports(carriers.get(group.id, ()))
        if uid := names.uid_of(tags, cluster_id):
            yield Owned(
                kind,
                group.id,
                group.name,
                uid,
                Role.FILTER,
                created,
                service.key,
                service.ref(cluster_id, uid),
                note=note,
            )
        elif not tags:
            yield NotOwned(
                kind, group.id, group.name, Role.FILTER, created, service.key, note
            )


def _on_ports(ports: Collection[str]) -> str:
    if not ports:
        return ""
    some = ", ".join(sorted(ports)[:_SHOWN])
    more = f" and {len(ports) - _SHOWN} more" if len(ports) > _SHOWN else ""
    return f"on {'port' if len(ports) == 1 else 'ports'} {some}{more}"


def _service(description: str | None, name: str = "") -> _Service:
    """Return the Service in a description, else the one in a name."""
    text = names.without_ownership_tag(description or "")
    if match_ := _DESCRIBED.fullmatch(text):
        parts = match_.groupdict()
        return _Service(
            *(
                parts[key] or parts[f"{key}_2"] or ""
                for key in ("cluster", "namespace", "name")
            )
        )
    return _named(name)


def _named(name: str) -> _Service:
    """Return the Service of a name of the reference; neither part has an underscore."""
    if not name.startswith(names.SERVICE_PREFIX):
        return _Service()
    parts = name.removeprefix(names.SERVICE_PREFIX).rsplit("_", 2)
    return _Service(*parts) if len(parts) == 3 else _Service()


def _utc(text: str | None) -> datetime.datetime | None:
    """Read a time of Octavia (UTC, without a zone) or Neutron."""
    try:
        moment = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)

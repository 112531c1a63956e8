"""Takes a load balancer over for a Service, on the word of a person.

After the loss of a cluster the load balancers of its Services have the ownership tags
of Services that do not exist any more. No daemon may judge that: a second cluster with
the same credentials shows the same.
"""

from collections.abc import Iterator

from lib.cloud.load_balancers import Adoption, Ref
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.plan import actions
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.read import identity, lists, native
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.steps import Step

_WHY = "it is taken over"


def read(api: client.Client, ref: Ref, id_: str, deadline: float) -> Adoption:
    """Return what takes a load balancer over for a Service.

    Raises:
        NotFound: none exists with this ID. CloudError: it cannot be read.
    """
    balancer = lists.LOAD_BALANCER.read(api, id_, deadline).loadbalancer
    filters = (("load_balancer_id", id_),)
    listeners = lists.LISTENERS.of_project(api, deadline, filters)
    ips = lists.FLOATING_IPS.of_project(api, deadline)
    on_vip = [ip for ip in ips if ip.port_id and ip.port_id == balancer.vip_port_id]
    has_tags = bool(balancer.tags) or not identity.ownership_tags_in(
        balancer.description
    )
    former = frozenset(
        tag.removeprefix(names.OWNERSHIP_TAG_PREFIX)
        for tag in identity.ownership_tags_of(balancer)
        if tag != names.ownership_tag(ref)
    )
    steps = (
        *(step for each in listeners for step in _listener(ref, balancer, each)),
        *(step for ip in on_vip for step in _floating_ip(ref, ip)),
        *_balancer(ref, balancer, has_tags=has_tags),
    )
    shown = sorted(identity.addresses(balancer, on_vip))
    notes = ((keys.LOAD_BALANCER_ID, id_), (keys.OWNED_ID, id_))
    obstacle = _obstacle(ref, balancer) if steps else ""
    return Adoption(balancer.name, tuple(shown), former, steps, notes, obstacle)


def _obstacle(ref: Ref, balancer: native.LoadBalancer) -> str:
    """Return why a load balancer serves others too, or cannot be changed."""
    is_own = names.ownership_tag(ref) in identity.ownership_tags_of(balancer)
    users = () if is_own else sorted(identity.other_users(balancer, ref))
    if users:
        return (
            f"other Services use it, too: tags {', '.join(users)}; must be used by its"
            " owner alone, or by the Service under the given cluster name"
        )
    status = balancer.provisioning_status
    return "" if status == native.ACTIVE else f"its status is {status}; must be ACTIVE"


def _taken(tags: tuple[str, ...], ref: Ref) -> list[str]:
    """Return tags with that of the Service in place of those of the former owner.

    The reference's tag, a name that contains the cluster's, is added by the daemon: a
    cluster name that is not the daemon's would appear as another user for ever.
    """
    own = names.ownership_tag(ref)
    if identity.ownership_tags(tags) == {own}:
        return [*tags]
    prefixes = (names.SERVICE_PREFIX, names.OWNERSHIP_TAG_PREFIX)
    kept = [tag for tag in tags if tag and not tag.startswith(prefixes)]
    return [*(tag for tag in kept if tag != names.user(ref)), own]


def _listener(
    ref: Ref, balancer: native.LoadBalancer, listener: native.Listener
) -> Iterator[Step]:
    tags = _taken(listener.tags, ref)
    if not identity.ownership_tags(listener.tags) or {*tags} == {*listener.tags}:
        return  # without a tag the daemon adopts it with its load balancer
    action = Action(
        Kind.LISTENER,
        listener.id,
        {"tags": tags},
        balancer_id=balancer.id,
        observed=listener,
    )
    path = (f"load balancer {balancer.name}", f"listener {listener.name}", "tags")
    yield actions.change(path, _WHY, action)


def _floating_ip(ref: Ref, ip: native.FloatingIp) -> Iterator[Step]:
    """Yield the change of a description that names the former owner."""
    text = names.with_ownership_tag(names.floating_ip(ref), ref)
    described = ip.description or ""
    if described == text or not described.startswith(names.FLOATING_IP_PREFIX):
        return
    action = Action(
        Kind.FLOATING_IP,
        ip.id,
        {"description": text, "port_id": ip.port_id},  # without it, it is detached
        revision=ip.revision_number,
        observed=ip,
    )
    path = (f"floating IP {ip.floating_ip_address}", "description")
    yield actions.change(path, _WHY, action)


def _balancer(
    ref: Ref, balancer: native.LoadBalancer, *, has_tags: bool
) -> Iterator[Step]:
    """Yield the change of the load balancer itself, last: by it the daemon finds it."""
    fields: dict[str, object]
    if has_tags:
        fields = {"tags": _taken(balancer.tags, ref)}
        is_same = {*_taken(balancer.tags, ref)} == {*balancer.tags}
    else:
        bare = names.without_ownership_tag(balancer.description or "")
        fields = {"description": names.with_ownership_tag(bare, ref)}
        is_same = fields["description"] == balancer.description
    if is_same:
        return
    action = Action(
        Kind.LOAD_BALANCER,
        balancer.id,
        fields,
        balancer_id=balancer.id,
        observed=balancer,
    )
    path = (f"load balancer {balancer.name}", next(iter(fields)))
    yield actions.change(path, _WHY, action)

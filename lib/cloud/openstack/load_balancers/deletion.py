"""Deletes what is a Service's, and nothing else: pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
(ensureLoadBalancerDeleted).
"""

from collections.abc import Iterator

from lib.cloud.load_balancers import Plan, Ref, Step
from lib.cloud.openstack import settings
from lib.cloud.openstack.load_balancers import (
    floating,
    groups,
    identity,
    names,
    requests,
    tree,
)
from lib.cloud.openstack.load_balancers.lists import quoted
from lib.cloud.openstack.load_balancers.native import (
    ACTIVE,
    ERROR,
    FloatingIp,
    LoadBalancer,
)
from lib.cloud.openstack.load_balancers.observed import Children, Relation, Tree

WHY = "the Service is deleted"
POLL_S = 2.0


def plan(ref: Ref, seen: Tree, config: settings.LoadBalancer) -> Plan:
    """Say what is left to be deleted, and in which order."""
    problem = seen.identity.problem
    if problem is not None and problem.is_fatal and seen.identity.load_balancer:
        return Plan(problems=(problem,))
    steps = list(_of_balancer(ref, seen, config))
    steps += _free_addresses(ref, seen)
    steps += groups.remove(seen.around, seen.around.groups)
    steps += [spare(one) for one in seen.identity.duplicates if _is_deletable(one)]
    is_busy = _is_busy(ref, seen)
    if steps or is_busy:
        return Plan(tuple(steps), retry_after_s=POLL_S)
    return Plan(settled=True)


def spare(one: LoadBalancer) -> Step:
    """Delete a second one with our mark, which nothing refers to."""
    why = "it was made twice, and never used"
    path = (f"load balancer {one.name}",)
    return requests.delete_balancer(path, why, one.id, cascades=True, is_gated=False)


def tags_without(ref: Ref, one: LoadBalancer, children: Children | None) -> list[str]:
    """Give the tags that stay when this Service leaves a load balancer.

    The reference's tag may be that of a namesake in another cluster as well.
    """
    own = {names.mark(ref)}
    listeners = () if children is None else children.listeners
    tag = names.load_balancer(ref)
    others = [
        each
        for each in listeners
        if tag in each.tags
        and names.marks(each.tags)
        and names.mark(ref) not in each.tags
    ]
    if not others:
        own |= {tag}
    return [each for each in one.tags if each not in own]


def is_whole_ours(ref: Ref, seen: Tree) -> bool:
    """Say whether the load balancer itself goes: it was made so, and is ours alone."""
    one = seen.identity.load_balancer
    if one is None or identity.is_used_by_others(one, ref):
        return False
    made = one.name.startswith(names.SERVICE_PREFIX) or names.MADE in one.tags
    if seen.identity.relation is Relation.OWNED:
        return made
    return made and _is_last(ref, seen, one)


def _is_last(ref: Ref, seen: Tree, one: LoadBalancer) -> bool:
    """Say whether the one it was made for has left, and only this Service is on it."""
    if identity.marks_of(one) or names.services(one.tags) != {names.load_balancer(ref)}:
        return False
    if seen.children is None:
        return False
    place = tree.Place(ref, one, seen.identity.relation, seen.children)
    return all(place.owns(each) for each in seen.children.listeners)


def _is_made(ref: Ref, seen: Tree, one: LoadBalancer, found: FloatingIp) -> bool:
    """Say whether a floating IP goes with the load balancer that goes."""
    if seen.identity.relation is Relation.OWNED:
        return identity.is_made_on(found, one.vip_port_id or "", ref)
    # It was made for the Service that has left.
    return (found.description or "").startswith(names.FLOATING_IP_PREFIX)


def _of_balancer(ref: Ref, seen: Tree, config: settings.LoadBalancer) -> Iterator[Step]:
    one = seen.identity.load_balancer
    if one is None or not _is_deletable(one):
        return
    path = (f"load balancer {one.name}",)
    if not is_whole_ours(ref, seen):
        yield from _leave(ref, seen, one)
        return
    current = floating.on_port(seen.around, one.vip_port_id or "")
    keeps = identity.hints_of(ref).keeps_floating_ip
    if current and not keeps and _is_made(ref, seen, one, current):
        yield floating.delete(floating.shown(current), WHY, current)
    if not config.cascade_delete and seen.children is not None:
        place = tree.Place(ref, one, seen.identity.relation, seen.children)
        yield from tree.removals(place, seen.children.listeners, WHY)
    # One in ERROR is taken whole: its children can't be touched.
    cascades = config.cascade_delete or one.provisioning_status == ERROR
    yield requests.delete_balancer(path, WHY, one.id, cascades=cascades)


def _leave(ref: Ref, seen: Tree, one: LoadBalancer) -> Iterator[Step]:
    """Take only our own listeners and tags off a load balancer of others."""
    if seen.children is None:
        return
    place = tree.Place(ref, one, seen.identity.relation, seen.children)
    ours = [each for each in seen.children.listeners if place.owns(each)]
    yield from tree.removals(place, ours, WHY)
    tags = tags_without(ref, one, seen.children)
    if seen.features.tags and tags != list(one.tags):
        # An empty list would change nothing in the eyes of some clients' servers.
        body = {"loadbalancer": {"tags": tags or [""]}}
        url = f"lbaas/loadbalancers/{quoted(one.id)}"
        yield requests.change((*place.path, "tags"), WHY, url, body, one.id)


def _free_addresses(ref: Ref, seen: Tree) -> Iterator[Step]:
    """Delete floating IPs of ours that no load balancer has any more."""
    if identity.hints_of(ref).keeps_floating_ip:
        return
    for ip in seen.around.floating_ips:
        if not ip.port_id and identity.is_ours(ip, ref):
            yield floating.delete(floating.shown(ip), WHY, ip)


def _is_deletable(one: LoadBalancer) -> bool:
    return one.provisioning_status in (ACTIVE, ERROR)


def _is_busy(ref: Ref, seen: Tree) -> bool:
    """Say whether Octavia is still at something of ours."""
    one = seen.identity.load_balancer
    if any(
        each.provisioning_status == "PENDING_DELETE" for each in seen.identity.going
    ):
        return True
    return one is not None and one.is_pending

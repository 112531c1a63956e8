"""Deletes the objects that a Service owns, and no others: pure.

Also on load balancers that the Service has moved away from, one after the other.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
(ensureLoadBalancerDeleted).
"""

import dataclasses
from collections.abc import Collection, Iterator

from lib.cloud.load_balancers import Plan, Reason, Ref, Results
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.plan import actions, floating, groups, tree
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import (
    ACTIVE,
    ERROR,
    FloatingIp,
    Listener,
    LoadBalancer,
)
from lib.cloud.openstack.load_balancers.read.observed import (
    Children,
    Former,
    Relation,
    Tree,
)
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.steps import CommonReason, Problem, Step, grouped

WHY = "the Service is deleted"
POLL_S = 2.0
STUCK_POLL_S = 60.0
"""Interval at which one that cannot be changed is read again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Detach:
    """Removal of a Service from a load balancer. is_former: another one serves it now.

    adopts: see `identity.adopts`. is_abandoned: all Services on it are being deleted.
    """

    ref: Ref
    place: Former
    adopts: bool
    why: str = WHY
    is_former: bool = False
    is_abandoned: bool = False

    @property
    def balancer(self) -> LoadBalancer:
        """The load balancer itself."""
        return self.place.load_balancer

    @property
    def tree_place(self) -> tree.TreePlace:
        """Return the tree below it; empty where that was not read."""
        children = self.place.children or Children()
        relation = self.place.relation
        return tree.TreePlace(self.ref, self.balancer, relation, children, self.adopts)

    @property
    def owned_listeners(self) -> list[Listener]:
        """The Service's listeners.

        On a shared one that was left long ago only the ownership tag proves it.
        """
        owned = [
            x for x in self.tree_place.children.listeners if self.tree_place.owns(x)
        ]
        if self.is_former and self.place.relation is Relation.SHARED:
            return [x for x in owned if names.ownership_tag(self.ref) in x.tags]
        return owned


def detach_of(ref: Ref, balancer: LoadBalancer, observed: Tree) -> Detach:
    """Describe the load balancer that the Service is on."""
    relation = observed.identity.relation
    adopts = identity.adopts(ref, balancer, relation, observed.environment.floating_ips)
    place = Former(balancer, relation, observed.children)
    return Detach(ref, place, adopts, is_abandoned=observed.is_abandoned)


def plan(ref: Ref, observed: Tree, config: settings.LoadBalancer) -> Plan:
    """Return what is left to be deleted, and in which order."""
    if observed.identity.absent_in_s:
        return Plan(retry_after_s=observed.identity.absent_in_s)
    problem = observed.identity.problem
    main = observed.identity.load_balancer
    if problem is not None and problem.is_fatal and main:
        return Plan(problems=(problem,))
    # In this order: the load balancer or our part of it, its floating IP, its security
    # groups (Neutron refuses one that a port still has), duplicates.
    steps: list[Step] = []
    stuck: tuple[Problem, ...] = ()
    beside = (*observed.identity.duplicates, *observed.identity.kept)
    backs_off = any(balancer.provisioning_status == ERROR for balancer in beside)
    results = Results()
    if main is not None:
        detach = detach_of(ref, main, observed)
        if detach.place.relation is Relation.SHARED:
            results = _unserved(detach)
        steps += off(detach, observed, config)
        stuck = is_stuck(detach)
        backs_off |= bool(stuck)
    steps += _free_addresses(ref, observed)
    steps += groups.remove(observed.environment, observed.environment.groups)
    steps += [spare(each, WHY) for each in beside if _is_deletable(each)]
    if steps:
        return Plan(
            tuple(steps),
            retry_after_s=POLL_S,
            backs_off=backs_off,
            results=results,
            problems=stuck,
        )
    if busy_id := _busy_id(observed):
        # Octavia deletes asynchronously: the finalizer stays until nothing is found.
        return Plan(retry_after_s=POLL_S, object_id=busy_id, problems=stuck)
    left = leave(ref, observed, config, WHY)
    problems = (*stuck, *left.problems)
    if problems and not left.steps:
        return Plan(retry_after_s=STUCK_POLL_S, problems=problems)
    results = _without_notes(ref, observed) if left.settled else left.results
    return dataclasses.replace(left, problems=problems, results=results)


def _without_notes(ref: Ref, observed: Tree) -> Results:
    """Remove from the Service what was noted about its load balancer.

    load-balancer-id only if it was written by a controller, or names one that is gone:
    a user may want to use the same shared one again.
    """
    hints = identity.hints_of(ref)
    is_written = hints.given_id == hints.owned_id
    is_kept = bool(observed.identity.load_balancer) and not is_written
    written = (keys.OWNED_ID, keys.LOAD_BALANCER_ADDRESS)
    removed = written if is_kept else (keys.LOAD_BALANCER_ID, *written)
    return Results(annotations=tuple((key, None) for key in removed))


def _unserved(detach: Detach) -> Results:
    """Empty the status before our tag is removed from a shared load balancer.

    Without the tag it would say that what a namesake has there may be ours; see
    `identity.adopts`.
    """
    return Results() if detach.tree_place.has_untagged else Results(ingress=())


def leave(ref: Ref, observed: Tree, config: settings.LoadBalancer, why: str) -> Plan:
    """Return the steps that remove the Service from its former load balancers.

    settled: nothing more can be done; problems list what may remain.
    """
    problems: tuple[Problem, ...] = ()
    pending = ""
    for former in observed.former:
        detach = Detach(
            ref, former, former.relation is Relation.OWNED, why, is_former=True
        )
        stuck = is_stuck(detach)
        problems += stuck
        steps = tuple(off(detach, observed, config))
        if steps:
            return Plan(
                steps,
                retry_after_s=POLL_S,
                object_id=former.load_balancer.id,
                problems=problems,
                backs_off=bool(stuck),
            )
        if identity.is_pending(former.load_balancer):
            pending = former.load_balancer.id
    if pending:
        return Plan(retry_after_s=POLL_S, object_id=pending, problems=problems)
    return Plan(settled=True, problems=problems)


def is_stuck(detach: Detach) -> tuple[Problem, ...]:
    """Return what cannot be removed from a shared load balancer: Octavia refuses it.

    A load balancer that this Service owns is deleted in ERROR, which may fail again.
    """
    balancer = detach.balancer
    if balancer.provisioning_status != ERROR:
        return ()
    if is_deleted_whole(detach):
        message = (
            f"load balancer {balancer.id} is in status ERROR; it is deleted; retry with"
            " backoff if that fails"
        )
        return (Problem(Reason.IN_ERROR, message),)
    owned = [
        f"{x.name or x.id} ({x.protocol} {x.protocol_port})"
        for x in detach.owned_listeners
    ]
    what = f"listeners with their pools: {', '.join(owned)}; and " if owned else ""
    message = (
        f"load balancer {balancer.id} is in status ERROR and cannot be changed, so"
        f" objects of the Service remain on it: {what}tags; an administrator of Octavia"
        " must fail it over"
    )
    return (Problem(CommonReason.CLEANUP_INCOMPLETE, message),)


def spare(
    balancer: LoadBalancer, why: str = "it was created twice and never used"
) -> Step:
    """Delete a second load balancer with the ownership tag, without references."""
    path = (f"load balancer {balancer.name}",)
    step = actions.ungated(delete(path, why, balancer, cascades=True))
    return dataclasses.replace(step, group=f"load balancer {balancer.id}")


def delete(
    path: actions.Path,
    why: str,
    balancer: LoadBalancer,
    *,
    cascades: bool,
    forgets: bool = False,
) -> Step:
    """Delete a load balancer. cascades, forgets: see `actions.Action`."""
    action = Action(
        Kind.LOAD_BALANCER,
        balancer.id,
        observed=balancer,
        balancer_id=balancer.id,
        cascades=cascades,
        forgets=forgets,
    )
    return actions.delete(path, why, action)


def tags_without(
    ref: Ref, balancer: LoadBalancer, stay: Collection[Listener]
) -> list[str]:
    """Return the tags that stay when this Service leaves a load balancer.

    The reference's tag may be that of a namesake in another cluster as well. stay:
    the listeners of others.
    """
    own = {names.ownership_tag(ref), names.user(ref)}
    tag = names.load_balancer(ref)
    if not any(tag in each.tags for each in stay):
        own |= {tag}
    tags = (each for each in balancer.tags if not names.is_former(each, ref))
    return [each for each in tags if each not in own]


def is_deleted_whole(detach: Detach) -> bool:
    """Report whether the load balancer itself is deleted: created so, and unshared."""
    balancer = detach.balancer
    if detach.is_abandoned:
        # In ERROR no Service can be removed alone: Octavia refuses every change.
        return (
            balancer.name.startswith(names.SERVICE_PREFIX)
            or names.MADE in balancer.tags
        )
    if identity.other_users(balancer, detach.ref):
        return False
    is_created_here = (
        balancer.name.startswith(names.SERVICE_PREFIX) or names.MADE in balancer.tags
    )
    if detach.place.relation is Relation.OWNED:
        return is_created_here
    return is_created_here and _is_last(detach)


def _is_last(detach: Detach) -> bool:
    """Report whether its first Service has left, and only this Service is on it."""
    ref, balancer = detach.ref, detach.balancer
    is_only_user = identity.services(balancer.tags) == {names.load_balancer(ref)}
    if identity.ownership_tags_of(balancer) or not is_only_user:
        return False
    if detach.place.children is None:
        return False
    return len(detach.owned_listeners) == len(detach.place.children.listeners)


def _is_made(detach: Detach, floating_ip: FloatingIp) -> bool:
    """Report whether a floating IP is deleted with its load balancer."""
    if detach.place.relation is Relation.OWNED:
        return identity.is_made_on(floating_ip, detach.balancer, detach.ref)
    # It was made for the Service that has left.
    return (floating_ip.description or "").startswith(names.FLOATING_IP_PREFIX)


def off(
    detach: Detach, observed: Tree, config: settings.LoadBalancer
) -> Iterator[Step]:
    """Remove the Service from a load balancer, or delete the load balancer."""
    balancer = detach.balancer
    if not _is_deletable(balancer):
        return
    if not is_deleted_whole(detach):
        yield from _leave(detach, observed)
        return
    # A floating IP is deleted first: afterwards less shows whose it was.
    yield from grouped(f"load balancer {balancer.id}", _whole(detach, observed, config))


def _whole(
    detach: Detach, observed: Tree, config: settings.LoadBalancer
) -> Iterator[Step]:
    balancer = detach.balancer
    current = floating.on_port(observed.environment, balancer.vip_port_id or "")
    keeps = identity.hints_of(detach.ref).keeps_floating_ip
    if current and not keeps and _is_made(detach, current):
        yield floating.delete(floating.shown(current), detach.why, current)
    # One in ERROR is taken whole: its children can't be touched.
    cascades = config.cascade_delete or balancer.provisioning_status == ERROR
    if not cascades:
        listeners = detach.tree_place.children.listeners
        yield from tree.removals(detach.tree_place, listeners, detach.why)
    yield delete(detach.tree_place.path, detach.why, balancer, cascades=cascades)


def _leave(detach: Detach, observed: Tree) -> Iterator[Step]:
    """Remove only owned listeners and tags from a shared load balancer."""
    balancer, place = detach.balancer, detach.tree_place
    if detach.place.children is None or balancer.provisioning_status != ACTIVE:
        return
    owned = detach.owned_listeners
    yield from tree.removals(place, owned, detach.why)
    yield from tree.stray_pools(place)
    if place.has_untagged:
        return  # until the ownership tag is set, they count as owned
    stay = [each for each in place.children.listeners if each not in owned]
    tags = tags_without(detach.ref, balancer, stay)
    if observed.features.tags and tags != list(balancer.tags):
        path = (*place.path, "tags")
        yield actions.change(path, detach.why, place.setting({"tags": tags}))


def _free_addresses(ref: Ref, observed: Tree) -> Iterator[Step]:
    """Delete owned floating IPs that are on no load balancer."""
    if identity.hints_of(ref).keeps_floating_ip:
        return
    for ip in observed.environment.floating_ips:
        if not ip.port_id and identity.was_ours(ip, ref):
            step = floating.delete(floating.shown(ip), WHY, ip)
            yield from grouped(f"floating IP {ip.id}", (step,))


def _is_deletable(balancer: LoadBalancer) -> bool:
    return balancer.provisioning_status in (ACTIVE, ERROR)


def _busy_id(observed: Tree) -> str:
    """Find an owned load balancer that Octavia is changing; empty: none."""
    main = observed.identity.load_balancer
    if main is not None and identity.is_pending(main):
        return main.id
    going = (
        balancer
        for balancer in observed.identity.going
        if identity.is_pending(balancer)
    )
    return next((balancer.id for balancer in going), "")

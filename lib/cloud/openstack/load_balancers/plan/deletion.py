"""Deletes what is a Service's, and nothing else: pure.

Also where the Service has moved away from: what is its own there goes, one load
balancer after the other.

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
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.steps import CommonReason, Problem, Step

WHY = "the Service is deleted"
POLL_S = 2.0
STUCK_POLL_S = 60.0
"""When one that takes no changes is looked at again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Leaving:
    """A load balancer that the Service leaves. is_former: it is on another by now.

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
    def under_it(self) -> tree.TreePlace:
        """What is under it; nothing where that was not read."""
        children = self.place.children or Children()
        relation = self.place.relation
        return tree.TreePlace(self.ref, self.balancer, relation, children, self.adopts)

    @property
    def ours(self) -> list[Listener]:
        """The Service's listeners.

        On one of others that was left long ago the mark alone proves it.
        """
        found = [x for x in self.under_it.children.listeners if self.under_it.owns(x)]
        if self.is_former and self.place.relation is Relation.SHARED:
            return [x for x in found if names.mark(self.ref) in x.tags]
        return found


def leaving_of(ref: Ref, balancer: LoadBalancer, seen: Tree) -> Leaving:
    """Describe the load balancer that the Service is on."""
    relation = seen.identity.relation
    adopts = identity.adopts(ref, balancer, relation, seen.around.floating_ips)
    place = Former(balancer, relation, seen.children)
    return Leaving(ref, place, adopts, is_abandoned=seen.is_abandoned)


def plan(ref: Ref, seen: Tree, config: settings.LoadBalancer) -> Plan:
    """Return what is left to be deleted, and in which order."""
    if seen.identity.absent_in_s:
        return Plan(retry_after_s=seen.identity.absent_in_s)
    problem = seen.identity.problem
    main = seen.identity.load_balancer
    if problem is not None and problem.is_fatal and main:
        return Plan(problems=(problem,))
    steps: list[Step] = []
    stuck: tuple[Problem, ...] = ()
    backs_off = any(
        one.provisioning_status == ERROR for one in seen.identity.duplicates
    )
    results = Results()
    if main is not None:
        leaving = leaving_of(ref, main, seen)
        if leaving.place.relation is Relation.SHARED:
            results = _unserved(leaving)
        steps += off(leaving, seen, config)
        stuck = is_stuck(leaving)
        backs_off |= bool(stuck)
    steps += _free_addresses(ref, seen)
    steps += groups.remove(seen.around, seen.around.groups)
    steps += [spare(one) for one in seen.identity.duplicates if _is_deletable(one)]
    if steps:
        return Plan(
            tuple(steps),
            retry_after_s=POLL_S,
            backs_off=backs_off,
            results=results,
            problems=stuck,
        )
    if busy_id := _busy_id(seen):
        return Plan(retry_after_s=POLL_S, object_id=busy_id, problems=stuck)
    left = leave(ref, seen, config, WHY)
    problems = (*stuck, *left.problems)
    if problems and not left.steps:
        return Plan(retry_after_s=STUCK_POLL_S, problems=problems)
    return dataclasses.replace(left, problems=problems)


def _unserved(leaving: Leaving) -> Results:
    """Empty the status before our own tag goes from a load balancer of others.

    Without the tag it would say that what a namesake has there may be ours; see
    `identity.adopts`.
    """
    return Results() if leaving.under_it.has_unmarked else Results(ingress=())


def leave(ref: Ref, seen: Tree, config: settings.LoadBalancer, why: str) -> Plan:
    """Return what takes the Service off the load balancers it was on before.

    settled: nothing can be done about what may be left; problems say what that is.
    """
    problems: tuple[Problem, ...] = ()
    pending = ""
    for one in seen.former:
        leaving = Leaving(ref, one, one.relation is Relation.OWNED, why, is_former=True)
        stuck = is_stuck(leaving)
        problems += stuck
        steps = tuple(off(leaving, seen, config))
        if steps:
            return Plan(
                steps,
                retry_after_s=POLL_S,
                object_id=one.load_balancer.id,
                problems=problems,
                backs_off=bool(stuck),
            )
        if identity.is_pending(one.load_balancer):
            pending = one.load_balancer.id
    if pending:
        return Plan(retry_after_s=POLL_S, object_id=pending, problems=problems)
    return Plan(settled=True, problems=problems)


def is_stuck(leaving: Leaving) -> tuple[Problem, ...]:
    """Return what can't be taken off a load balancer of others: Octavia refuses it.

    An own one in ERROR is deleted, which may end in ERROR again.
    """
    one = leaving.balancer
    if one.provisioning_status != ERROR:
        return ()
    if is_whole_ours(leaving):
        message = (
            f"load balancer {one.id} is in status ERROR; it is deleted, and again,"
            " less and less often, if that fails"
        )
        return (Problem(Reason.IN_ERROR, message),)
    ours = [f"{x.name or x.id} ({x.protocol} {x.protocol_port})" for x in leaving.ours]
    what = f"listeners with their pools: {', '.join(ours)}; and " if ours else ""
    message = (
        f"load balancer {one.id} is in status ERROR and takes no changes, so what is"
        f" the Service's stays on it: {what}tags"
    )
    return (Problem(CommonReason.CLEANUP_INCOMPLETE, message),)


def spare(one: LoadBalancer) -> Step:
    """Delete a second one with our mark, which nothing refers to."""
    why = "it was made twice, and never used"
    path = (f"load balancer {one.name}",)
    return actions.ungated(delete(path, why, one, cascades=True))


def delete(
    path: actions.Path,
    why: str,
    one: LoadBalancer,
    *,
    cascades: bool,
    forgets: bool = False,
) -> Step:
    """Delete a load balancer. cascades, forgets: see `actions.Action`."""
    action = Action(
        Kind.LOAD_BALANCER,
        one.id,
        observed=one,
        balancer_id=one.id,
        cascades=cascades,
        forgets=forgets,
    )
    return actions.delete(path, why, action)


def tags_without(ref: Ref, one: LoadBalancer, stay: Collection[Listener]) -> list[str]:
    """Return the tags that stay when this Service leaves a load balancer.

    The reference's tag may be that of a namesake in another cluster as well. stay:
    the listeners of others.
    """
    own = {names.mark(ref), names.user(ref)}
    tag = names.load_balancer(ref)
    if not any(tag in each.tags for each in stay):
        own |= {tag}
    tags = (each for each in one.tags if not names.is_former(each, ref))
    return [each for each in tags if each not in own]


def is_whole_ours(leaving: Leaving) -> bool:
    """Report whether the load balancer itself is deleted: created so, and unshared."""
    one = leaving.balancer
    if leaving.is_abandoned:
        # In ERROR nobody can leave it one by one: Octavia refuses every change.
        return one.name.startswith(names.SERVICE_PREFIX) or names.MADE in one.tags
    if identity.is_used_by_others(one, leaving.ref):
        return False
    made = one.name.startswith(names.SERVICE_PREFIX) or names.MADE in one.tags
    if leaving.place.relation is Relation.OWNED:
        return made
    return made and _is_last(leaving)


def _is_last(leaving: Leaving) -> bool:
    """Report whether its first Service has left, and only this Service is on it."""
    ref, one = leaving.ref, leaving.balancer
    is_only_user = identity.services(one.tags) == {names.load_balancer(ref)}
    if identity.marks_of(one) or not is_only_user:
        return False
    if leaving.place.children is None:
        return False
    return len(leaving.ours) == len(leaving.place.children.listeners)


def _is_made(leaving: Leaving, found: FloatingIp) -> bool:
    """Report whether a floating IP goes with the load balancer that goes."""
    if leaving.place.relation is Relation.OWNED:
        return identity.is_made_on(found, leaving.balancer, leaving.ref)
    # It was made for the Service that has left.
    return (found.description or "").startswith(names.FLOATING_IP_PREFIX)


def off(leaving: Leaving, seen: Tree, config: settings.LoadBalancer) -> Iterator[Step]:
    """Take the Service off a load balancer, or that itself down."""
    one = leaving.balancer
    if not _is_deletable(one):
        return
    if not is_whole_ours(leaving):
        yield from _leave(leaving, seen)
        return
    current = floating.on_port(seen.around, one.vip_port_id or "")
    keeps = identity.hints_of(leaving.ref).keeps_floating_ip
    if current and not keeps and _is_made(leaving, current):
        yield floating.delete(floating.shown(current), leaving.why, current)
    # One in ERROR is taken whole: its children can't be touched.
    cascades = config.cascade_delete or one.provisioning_status == ERROR
    if not cascades:
        listeners = leaving.under_it.children.listeners
        yield from tree.removals(leaving.under_it, listeners, leaving.why)
    yield delete(leaving.under_it.path, leaving.why, one, cascades=cascades)


def _leave(leaving: Leaving, seen: Tree) -> Iterator[Step]:
    """Take only our own listeners and tags off a load balancer of others."""
    one, place = leaving.balancer, leaving.under_it
    if leaving.place.children is None or one.provisioning_status != ACTIVE:
        return
    ours = leaving.ours
    yield from tree.removals(place, ours, leaving.why)
    yield from tree.stray_pools(place)
    if place.has_unmarked:
        return  # as long as our own tag is not there, they count as ours
    stay = [each for each in place.children.listeners if each not in ours]
    tags = tags_without(leaving.ref, one, stay)
    if seen.features.tags and tags != list(one.tags):
        path = (*place.path, "tags")
        yield actions.change(path, leaving.why, place.setting({"tags": tags}))


def _free_addresses(ref: Ref, seen: Tree) -> Iterator[Step]:
    """Delete floating IPs of ours that no load balancer has any more."""
    if identity.hints_of(ref).keeps_floating_ip:
        return
    for ip in seen.around.floating_ips:
        if not ip.port_id and identity.was_ours(ip, ref):
            yield floating.delete(floating.shown(ip), WHY, ip)


def _is_deletable(one: LoadBalancer) -> bool:
    return one.provisioning_status in (ACTIVE, ERROR)


def _busy_id(seen: Tree) -> str:
    """Find one of ours that Octavia is still at; empty: there is none."""
    main = seen.identity.load_balancer
    if main is not None and identity.is_pending(main):
        return main.id
    going = (one for one in seen.identity.going if identity.is_pending(one))
    return next((one.id for one in going), "")

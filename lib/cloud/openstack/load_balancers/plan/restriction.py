"""Restricts a plan of a deletion to some of the Service's resources: pure.

Used where only a part of what a Service owns is to be deleted: by cleanup of orphans,
which deletes nothing that was not listed before.
"""

import dataclasses

from lib.cloud.load_balancers import Plan, Ref
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.plan import actions, deletion
from lib.cloud.openstack.load_balancers.plan.actions import Kind
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import Port
from lib.cloud.openstack.load_balancers.read.observed import Tree
from lib.cloud.steps import Step

POLL_S = 2.0
"""When a load balancer that is being deleted is read again."""
_ALONE = (Kind.FLOATING_IP, Kind.SECURITY_GROUP)
"""Objects that no load balancer stands for."""


def to(
    only: frozenset[str],
    whole: Plan,
    ref: Ref,
    observed: Tree,
    config: settings.LoadBalancer,
) -> Plan:
    """Return the part of a plan that concerns the resources with these IDs.

    A load balancer beside the one in use is deleted only after a direct read has
    confirmed the latter; see `absence`. whole: the plan without the restriction.
    """
    own = observed.identity
    is_spared = own.load_balancer is not None and own.load_balancer.id not in only
    if own.twins_in_s and is_spared:
        return Plan(retry_after_s=own.twins_in_s)
    steps = tuple(step for step in whole.steps if _concerns(step, only))
    if steps:
        return dataclasses.replace(whole, steps=steps)
    if pending := _pending(only, observed):
        return Plan(retry_after_s=POLL_S, object_id=pending, problems=whole.problems)
    left = deletion.leave(ref, observed, config, deletion.WHY)
    steps = tuple(step for step in left.steps if _concerns(step, only))
    is_waiting = not steps and left.object_id in only
    return dataclasses.replace(left, steps=steps, settled=not (steps or is_waiting))


def _pending(only: frozenset[str], observed: Tree) -> str:
    """Return the ID of a load balancer that Octavia is changing; empty without any."""
    own = observed.identity
    some = (own.load_balancer, *own.duplicates, *own.kept, *own.going)
    pending = (
        balancer.id
        for balancer in some
        if balancer is not None and identity.is_pending(balancer)
    )
    return next((id_ for id_ in pending if id_ in only), "")


def _concerns(step: Step, only: frozenset[str]) -> bool:
    """Report whether a step changes nothing but resources with these IDs."""
    action = actions.of(step)
    if action.kind in _ALONE:
        return action.id in only
    if isinstance(action.observed, Port):
        kept = action.fields.get("security_groups")
        left = kept if isinstance(kept, list) else []
        return {*action.observed.security_groups} - {*left} <= only
    if action.kind is Kind.POOL and action.id in only:
        return True
    return action.balancer_id in only

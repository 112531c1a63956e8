"""Describes a plan of this package: objects of each step, old and new values. Pure.

Rules: it reads the steps and decides nothing, so it describes what is done.
"""

from collections.abc import Iterator

from lib.cloud.explained import Explanation, Touched
from lib.cloud.load_balancers import IpFamily, Observed, Plan, Target
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.explain import children, differences, network
from lib.cloud.openstack.load_balancers.plan import actions
from lib.cloud.openstack.load_balancers.plan.actions import Kind
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import ERROR, LoadBalancer
from lib.cloud.openstack.load_balancers.read.observed import Relation, Tree
from lib.cloud.steps import Step, Verb


def explain(
    config: settings.LoadBalancer, target: Target, observed: Observed, plan: Plan
) -> Explanation:
    """See `lib.cloud.explained.Explain`."""
    native = observed.native
    if not isinstance(native, Tree):
        raise TypeError("the observation is of another provider package")
    touched = [
        touched_object
        for step in plan.steps
        for touched_object in _of_step(target, native, config, step)
    ]
    return Explanation(
        _shown(native),
        "" if plan.steps or plan.settled else _waits_for(native),
        tuple(map(_not_owned, native.identity.namesakes)),
        tuple(touched),
    )


def _of_step(
    target: Target, observed: Tree, config: settings.LoadBalancer, step: Step
) -> Iterator[Touched]:
    action = actions.of(step)
    match action.kind:
        case Kind.LOAD_BALANCER if step.verb is Verb.CREATE:
            yield from _new(target, observed, config, step)
        case Kind.LOAD_BALANCER:
            yield Touched(step.path, step.verb, differences.changed(action), step.why)
        case Kind.LISTENER | Kind.POOL | Kind.MEMBERS | Kind.MONITOR:
            yield from children.of_step(step)
        case _:
            yield from network.of_step(target, observed, config, step)


def _new(
    target: Target, observed: Tree, config: settings.LoadBalancer, step: Step
) -> Iterator[Touched]:
    """Describe a new load balancer, all below it, and what follows it."""
    action, name = actions.of(step), "listeners"
    yield Touched(step.path, Verb.CREATE, differences.new(action.fields), step.why)
    yield from children.new_listeners(step.path, action.fields.get(name))
    yield from children.new_listeners(step.path, action.later.get(name), is_later=True)
    desired = identity.desired_of(target)
    if desired is None:
        return
    if not desired.is_internal and desired.families[0] is IpFamily.IPV4:
        yield network.floating_ip_later(target.ref, desired, observed)
    if config.manage_security_groups:
        yield from network.group_later(target, observed, config)


def _name(balancer: LoadBalancer) -> str:
    return f"load balancer {balancer.name} ({balancer.id})"


def _shown(observed: Tree) -> str:
    balancer = observed.identity.load_balancer
    if balancer is None:
        return ""
    text = f"{_name(balancer)}, {balancer.provisioning_status}"
    if observed.identity.relation is Relation.SHARED:
        text += ", shared: the Service only owns listeners on it"
    return text


def _not_owned(balancer: LoadBalancer) -> str:
    has_tag = bool(identity.ownership_tags_of(balancer))
    tag = "ownership tag of another owner" if has_tag else "no ownership tag"
    return f"{_name(balancer)}: has the Service's name, but {tag}; not changed"


def _waits_for(observed: Tree) -> str:
    balancer = observed.identity.load_balancer
    waited = [] if balancer is None else [balancer]
    waited += (*observed.identity.going, *observed.identity.former)
    for each in waited:
        if identity.is_pending(each) or each.provisioning_status == ERROR:
            return f"{_name(each)}: provisioning_status is {each.provisioning_status}"
    return ""

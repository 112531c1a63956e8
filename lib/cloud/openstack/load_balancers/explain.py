"""Puts a plan of this room into words: old values of what is there, new ones of what
the requests send. Pure.

Rules: it reads the requests and decides nothing, so it can say no more than is done.
"""

import dataclasses
import urllib.parse
from collections.abc import Iterator, Sequence

from lib.cloud.explained import Change, Explanation, Touched
from lib.cloud.load_balancers import IpFamily, Observed, Plan, Step, Target, Verb
from lib.cloud.openstack import client, settings
from lib.cloud.openstack.load_balancers import creation, differences, identity
from lib.cloud.openstack.load_balancers import explain_children as children
from lib.cloud.openstack.load_balancers import explain_network as network
from lib.cloud.openstack.load_balancers import plan as plans
from lib.cloud.openstack.load_balancers.native import ERROR, LoadBalancer
from lib.cloud.openstack.load_balancers.observe import wanted_of
from lib.cloud.openstack.load_balancers.observed import Relation, Tree
from lib.cloud.openstack.load_balancers.requests import Request


def explain(
    config: settings.LoadBalancer, target: Target, observed: Observed, plan: Plan
) -> Explanation:
    """See `lib.cloud.explained.Explain`."""
    seen = observed.native
    if not isinstance(seen, Tree):
        raise TypeError("the observation is of another room")
    touched = [
        one
        for step in plan.steps
        for one in tuple(_of_step(target, seen, config, step, _write(step)))
        or (Touched(step.path, step.verb, why=step.why),)  # no step goes untold
    ]
    return Explanation(
        _shown(seen),
        "" if plan.steps or plan.settled else _waits_for(seen),
        tuple(map(_foreign, seen.identity.namesakes)),
        tuple(touched),
    )


def _write(step: Step) -> client.Write:
    """Give what a step sends: of alternatives the one that is tried first."""
    request = step.native
    if not isinstance(request, Request):
        raise TypeError("the step is of another room")
    return request.writes[0]


def _of_step(
    target: Target,
    seen: Tree,
    config: settings.LoadBalancer,
    step: Step,
    write: client.Write,
) -> Iterator[Touched]:
    parts = tuple(urllib.parse.unquote(part) for part in write.path.split("/"))
    match write.method, parts:
        case "POST", ("lbaas", "loadbalancers"):
            yield from _new(target, seen, config, step, write)
        case "PUT", ("lbaas", "loadbalancers", _):
            yield _on_balancer(seen, step, write)
        case _, ("lbaas", kind, *rest) if kind != "loadbalancers":
            there = _where(seen, step)
            yield from children.of_step(target, there, step, write, (kind, *rest))
        case _, ("lbaas", *_):
            yield Touched(step.path, step.verb, why=step.why)
        case _:
            yield from network.of_step(target, seen, config, step, write)


def _new(
    target: Target,
    seen: Tree,
    config: settings.LoadBalancer,
    step: Step,
    write: client.Write,
) -> Iterator[Touched]:
    """Tell of a new load balancer, all under it, and what follows it."""
    body = differences.inside(write)
    yield Touched(step.path, Verb.CREATE, differences.new(body), step.why)
    wanted = wanted_of(target)
    listeners = body.get("listeners")
    if isinstance(listeners, Sequence):
        yield from children.new_listeners(step.path, listeners)
    elif wanted is not None:
        context = plans.context_new(target.ref, wanted, seen)
        found = creation.listeners(context)
        yield from children.new_listeners(step.path, found, is_later=True)
    if wanted is None:
        return
    if not wanted.is_internal and wanted.family is IpFamily.IPV4:
        yield network.floating_ip_later(target.ref, wanted, seen)
    if config.manage_security_groups:
        yield from network.group_later(target, seen, config)


def _where(seen: Tree, step: Step) -> Tree:
    """Give the tree as it is on the load balancer that a step is about."""
    request = step.native
    for one in seen.former:
        if isinstance(request, Request) and request.balancer_id == one.load_balancer.id:
            main = dataclasses.replace(seen.identity, load_balancer=one.load_balancer)
            return dataclasses.replace(seen, identity=main, children=one.children)
    return seen


def _on_balancer(seen: Tree, step: Step, write: client.Write) -> Touched:
    found = _where(seen, step).identity.load_balancer
    changes: tuple[Change, ...] = ()
    if found is not None:
        changes = differences.changed(differences.inside(write), found)
    return Touched(step.path, step.verb, changes, step.why)


def _name(one: LoadBalancer) -> str:
    return f"load balancer {one.name} ({one.id})"


def _shown(seen: Tree) -> str:
    one = seen.identity.load_balancer
    if one is None:
        return ""
    text = f"{_name(one)}, {one.provisioning_status}"
    if seen.identity.relation is Relation.SHARED:
        text += ", of somebody else: the Service only has listeners on it"
    return text


def _foreign(one: LoadBalancer) -> str:
    whose = "marked as another's" if identity.marks_of(one) else "without a mark"
    return (
        f"{_name(one)}, {whose}, has the Service's name, but is not its own:"
        " left alone"
    )


def _waits_for(seen: Tree) -> str:
    one = seen.identity.load_balancer
    waited = [] if one is None else [one]
    waited += (*seen.identity.going, *seen.identity.former)
    for each in waited:
        if each.is_pending:
            return f"{_name(each)}, at which Octavia is: {each.provisioning_status}"
        if each.provisioning_status == ERROR:
            return f"{_name(each)}, which is in status ERROR"
    return ""

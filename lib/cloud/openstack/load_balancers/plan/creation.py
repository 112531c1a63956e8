"""A new load balancer: one request with all that is under it. Pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
(createOctaviaLoadBalancer).
"""

from lib.cloud.load_balancers import IpFamily, Reason
from lib.cloud.openstack.load_balancers.plan import actions, bodies, report
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.plan.bodies import Body, Context
from lib.cloud.openstack.load_balancers.plan.case import Case
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.desired import DesiredPort
from lib.cloud.steps import Problem, Step


def name_of(case: Case) -> str:
    """Choose the usual name, or a distinct one where another load balancer has it."""
    is_taken = any(
        balancer.name == names.load_balancer(case.ref)
        for balancer in case.observed.identity.namesakes
    )
    return names.distinct(case.ref) if is_taken else names.load_balancer(case.ref)


def step(case: Case, context: Context) -> Step:
    """Create it; where the provider requires single calls, without its children."""
    body = _balancer(case, context)
    under = {"listeners": listeners(context)}
    is_whole = not case.config.provider_requires_serial_api_calls
    if is_whole:
        body |= under
    why = "the Service has none"
    if case.observed.identity.was_lost:
        why = "the Service's own was deleted by another client"
    later = {} if is_whole else under
    action = Action(Kind.LOAD_BALANCER, fields=body, later=later)
    return actions.create((f"load balancer {context.owner}",), why, action)


def diagnostics(case: Case) -> tuple[Problem, ...]:
    """Return the requests for a new load balancer that are not supported."""
    problems: list[Problem] = []
    if case.observed.identity.namesakes:
        ids = ", ".join(
            sorted(balancer.id for balancer in case.observed.identity.namesakes)
        )
        message = (
            f"load balancer {ids}: has this Service's name, but is not owned by it;"
            " not changed, another one is created"
        )
        problems.append(Problem(Reason.NOT_OWNED, message))
    return tuple(problems)


def _balancer(case: Case, context: Context) -> Body:
    desired, can = context.desired, context.can
    body: Body = {
        "name": context.owner,
        "description": names.description(case.ref),
        "provider": case.config.lb_provider,
    }
    if can.tags:
        body["tags"] = [context.owner, names.ownership_tag(case.ref), names.MADE]
    else:
        body["description"] = names.with_ownership_tag(
            names.description(case.ref), case.ref
        )
    place = desired.placement
    if can.flavors and place.flavor_id:
        body["flavor_id"] = place.flavor_id
    if can.zones and place.availability_zone:
        body["availability_zone"] = place.availability_zone
    if place.port_id:
        body["vip_port_id"] = place.port_id
    else:
        subnet_id = place.subnet_id or case.environment.node_subnet_id
        if subnet_id:
            body["vip_subnet_id"] = subnet_id
        if place.network_id:
            body["vip_network_id"] = place.network_id
        if second := second_vip(case):
            body["additional_vips"] = [second]
    is_vip = desired.is_internal or desired.families[0] is IpFamily.IPV6
    if desired.address and is_vip:
        body["vip_address"] = desired.address
    return body


def second_vip(case: Case) -> Body:
    """Describe the VIP of the second family; empty where it is not supported."""
    if len(case.desired.families) < 2 or report.why_no_second_vip(case):
        return {}
    return {"subnet_id": case.environment.second_subnet_id}


def listeners(context: Context) -> list[Body]:
    """Describe all listeners with their pools, members and monitors."""
    bodies_: list[Body] = []
    for port in context.desired.ports:
        name = names.child("listener", port.index, context.owner)
        body = bodies.listener(context, port, name)
        bodies_.append(body | {"default_pool": pool(context, port)})
    return bodies_


def pool(context: Context, port: DesiredPort) -> Body:
    """Describe a pool with its members and monitor."""
    name = names.child("pool", port.index, context.owner)
    body = bodies.pool(context, port, name)
    body["members"] = bodies.members(context, port)
    if context.monitors:
        name = names.child("monitor", port.index, context.owner)
        body["healthmonitor"] = bodies.monitor(context, port, name)
    return body

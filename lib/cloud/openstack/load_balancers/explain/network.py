"""Describes steps on floating IPs, security groups and ports: pure."""

from collections.abc import Iterator, Sequence

from lib.cloud.explained import FieldChange, Touched
from lib.cloud.load_balancers import Ref, Target
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.explain import differences
from lib.cloud.openstack.load_balancers.plan import actions, floating, groups
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import (
    FloatingIp,
    Port,
    Rule,
    SecurityGroup,
)
from lib.cloud.openstack.load_balancers.read.observed import Tree
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.desired import Desired
from lib.cloud.steps import Step, Verb

VIP_PORT = "port of the VIP"
_PORT = "port_id"


def of_step(
    target: Target, observed: Tree, config: settings.LoadBalancer, step: Step
) -> Iterator[Touched]:
    """Describe a step on an object of Neutron."""
    action = actions.of(step)
    yield Touched(step.path, step.verb, _changes(observed, step, action), step.why)
    if action.kind is Kind.SECURITY_GROUP and step.verb is Verb.CREATE:
        yield from _rules_later(target, observed, config, step.path)


def _changes(observation: Tree, step: Step, action: Action) -> tuple[FieldChange, ...]:
    observed = action.observed
    if isinstance(observed, FloatingIp):
        return _moved(observation, observed, action)
    if isinstance(observed, Port):
        return _groups_on(observation, observed, action)
    if isinstance(observed, Rule):
        text = groups.shown(groups.key_of(observed))
        return (FieldChange(text, observed.direction, ""),)
    if action.kind is Kind.RULE:
        keys = map(groups.key_in, action.batch)
        return tuple(FieldChange(groups.shown(key), "", "ingress") for key in keys)
    return differences.new(action.fields) if step.verb is Verb.CREATE else ()


def floating_ip_later(ref: Ref, desired: Desired, observed: Tree) -> Touched:
    """Return the floating IP that a load balancer gets once it exists."""
    known = observed.environment.floating_ips
    why = "the Service is external"
    if desired.address:
        mine = [ip for ip in known if ip.floating_ip_address == desired.address]
        why = f"loadBalancerIP is {desired.address}"
    else:
        mine = [ip for ip in known if not ip.port_id and identity.is_ours(ip, ref)]
    if mine:
        change = FieldChange(_PORT, mine[0].port_id or "", VIP_PORT)
        path = (floating.shown(mine[0]),)
        return Touched(path, Verb.CHANGE, (change,), why, is_later=True)
    source = observed.environment.source.network_id or desired.floating.network_id
    network = source or "the first external network, if there is one"
    changes = (
        FieldChange("floating_network_id", "", network),
        FieldChange(_PORT, "", VIP_PORT),
    )
    path = (f"floating IP {desired.address}".rstrip(),)
    return Touched(path, Verb.CREATE, changes, why, is_later=True)


def group_later(
    target: Target, observed: Tree, config: settings.LoadBalancer
) -> Iterator[Touched]:
    """Yield the security group that is created once the load balancer exists."""
    if observed.environment.groups:
        return
    path = (f"security group {names.security_group(target.ref)}",)
    why = "security groups are managed"
    yield Touched(path, Verb.CREATE, why=why, is_later=True)
    yield from _rules_later(target, observed, config, path)


def _rules_later(
    target: Target, observed: Tree, config: settings.LoadBalancer, path: tuple[str, ...]
) -> Iterator[Touched]:
    desired, subnet = identity.desired_of(target), observed.environment.member_subnet
    if desired is None or subnet is None:
        return
    provider = observed.identity.provider(config)
    rules = sorted(groups.desired_rules(desired, subnet, provider))
    changes = tuple(FieldChange(groups.shown(key), "", "ingress") for key in rules)
    yield Touched((*path, "rules"), Verb.CREATE, changes, is_later=True)
    members = tuple(
        FieldChange(member.address, "", member.name) for member in desired.members
    )
    yield Touched((*path, "members' ports"), Verb.CHANGE, members, is_later=True)


def _moved(
    observed: Tree, floating_ip: FloatingIp, action: Action
) -> tuple[FieldChange, ...]:
    """Describe the ports of a floating IP before and after; empty if it is deleted."""
    old, new = floating_ip.port_id or "", differences.plain(action.fields.get(_PORT))
    if old == new:
        return ()
    return (FieldChange(_PORT, _port(observed, old), _port(observed, new)),)


def _port(observed: Tree, id_: str) -> str:
    balancer = observed.identity.load_balancer
    if id_ and balancer is not None and balancer.vip_port_id == id_:
        return f"{id_} ({VIP_PORT})"
    return id_


def _groups_on(observed: Tree, port: Port, action: Action) -> tuple[FieldChange, ...]:
    """Describe which security groups a port has, and would have; ours by name."""
    new = action.fields.get("security_groups")
    ids = tuple(map(str, new)) if isinstance(new, Sequence) else ()
    old, own_groups = port.security_groups, observed.environment.groups
    return (
        FieldChange(
            "security_groups", _named(old, own_groups), _named(ids, own_groups)
        ),
    )


def _named(ids: Sequence[str], groups: Sequence[SecurityGroup]) -> str:
    known = {group.id: group.name for group in groups}
    return ", ".join(known.get(id_, id_) for id_ in ids)

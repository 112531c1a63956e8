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
from lib.cloud.openstack.load_balancers.spec.wanted import Wanted
from lib.cloud.steps import Step, Verb

VIP_PORT = "port of the VIP"
_PORT = "port_id"


def of_step(
    target: Target, seen: Tree, config: settings.LoadBalancer, step: Step
) -> Iterator[Touched]:
    """Describe a step on an object of Neutron."""
    action = actions.of(step)
    yield Touched(step.path, step.verb, _changes(seen, step, action), step.why)
    if action.kind is Kind.SECURITY_GROUP and step.verb is Verb.CREATE:
        yield from _rules_later(target, seen, config, step.path)


def _changes(seen: Tree, step: Step, action: Action) -> tuple[FieldChange, ...]:
    observed = action.observed
    if isinstance(observed, FloatingIp):
        return _moved(seen, observed, action)
    if isinstance(observed, Port):
        return _groups_on(seen, observed, action)
    if isinstance(observed, Rule):
        text = groups.shown(groups.key_of(observed))
        return (FieldChange(text, observed.direction, ""),)
    if action.kind is Kind.RULE:
        keys = map(groups.key_in, action.batch)
        return tuple(FieldChange(groups.shown(key), "", "ingress") for key in keys)
    return differences.new(action.fields) if step.verb is Verb.CREATE else ()


def floating_ip_later(ref: Ref, wanted: Wanted, seen: Tree) -> Touched:
    """Return the floating IP that a load balancer gets once it exists."""
    known = seen.around.floating_ips
    why = "the Service is external"
    if wanted.address:
        mine = [ip for ip in known if ip.floating_ip_address == wanted.address]
        why = f"loadBalancerIP is {wanted.address}"
    else:
        mine = [ip for ip in known if not ip.port_id and identity.is_ours(ip, ref)]
    if mine:
        change = FieldChange(_PORT, mine[0].port_id or "", VIP_PORT)
        path = (floating.shown(mine[0]),)
        return Touched(path, Verb.CHANGE, (change,), why, is_later=True)
    source = seen.around.source.network_id or wanted.floating.network_id
    network = source or "the first external network, if there is one"
    changes = (
        FieldChange("floating_network_id", "", network),
        FieldChange(_PORT, "", VIP_PORT),
    )
    path = (f"floating IP {wanted.address}".rstrip(),)
    return Touched(path, Verb.CREATE, changes, why, is_later=True)


def group_later(
    target: Target, seen: Tree, config: settings.LoadBalancer
) -> Iterator[Touched]:
    """Yield the security group that is created once the load balancer exists."""
    if seen.around.groups:
        return
    path = (f"security group {names.security_group(target.ref)}",)
    why = "security groups are managed"
    yield Touched(path, Verb.CREATE, why=why, is_later=True)
    yield from _rules_later(target, seen, config, path)


def _rules_later(
    target: Target, seen: Tree, config: settings.LoadBalancer, path: tuple[str, ...]
) -> Iterator[Touched]:
    wanted, subnet = identity.wanted_of(target), seen.around.member_subnet
    if wanted is None or subnet is None:
        return
    rules = sorted(groups.wanted_rules(wanted, subnet, config.lb_provider))
    changes = tuple(FieldChange(groups.shown(key), "", "ingress") for key in rules)
    yield Touched((*path, "rules"), Verb.CREATE, changes, is_later=True)
    members = tuple(FieldChange(one.address, "", one.name) for one in wanted.members)
    yield Touched((*path, "members' ports"), Verb.CHANGE, members, is_later=True)


def _moved(seen: Tree, found: FloatingIp, action: Action) -> tuple[FieldChange, ...]:
    """Describe from which port to which a floating IP goes; none if it is deleted."""
    old, new = found.port_id or "", differences.plain(action.fields.get(_PORT))
    if old == new:
        return ()
    return (FieldChange(_PORT, _port(seen, old), _port(seen, new)),)


def _port(seen: Tree, id_: str) -> str:
    balancer = seen.identity.load_balancer
    if id_ and balancer is not None and balancer.vip_port_id == id_:
        return f"{id_} ({VIP_PORT})"
    return id_


def _groups_on(seen: Tree, found: Port, action: Action) -> tuple[FieldChange, ...]:
    """Describe which security groups a port has, and would have; ours by name."""
    new = action.fields.get("security_groups")
    ids = tuple(map(str, new)) if isinstance(new, Sequence) else ()
    old, ours = found.security_groups, seen.around.groups
    return (FieldChange("security_groups", _named(old, ours), _named(ids, ours)),)


def _named(ids: Sequence[str], ours: Sequence[SecurityGroup]) -> str:
    known = {group.id: group.name for group in ours}
    return ", ".join(known.get(id_, id_) for id_ in ids)

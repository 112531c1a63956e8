"""Puts requests for floating IPs and security groups into words: pure."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lib.cloud.explained import Change, Touched
from lib.cloud.load_balancers import Ref, Step, Target, Verb
from lib.cloud.openstack import client, settings
from lib.cloud.openstack.load_balancers import (
    differences,
    floating,
    groups,
    identity,
    names,
)
from lib.cloud.openstack.load_balancers.differences import inside
from lib.cloud.openstack.load_balancers.native import FloatingIp, Rule, SecurityGroup
from lib.cloud.openstack.load_balancers.observe import wanted_of
from lib.cloud.openstack.load_balancers.observed import Tree
from lib.cloud.openstack.load_balancers.wanted import Wanted

VIP_PORT = "port of the VIP"
_PORT = "port_id"


def of_step(
    target: Target,
    seen: Tree,
    config: settings.LoadBalancer,
    step: Step,
    write: client.Write,
) -> Iterator[Touched]:
    """Tell what a request to Neutron does."""
    body = inside(write)
    path, verb, why = step.path, step.verb, step.why
    match write.method, tuple(write.path.split("/")):
        case "PUT", ("floatingips", id_):
            yield Touched(path, verb, _moved(seen, id_, body), why)
        case "DELETE", ("floatingips", id_):
            yield Touched(path, verb, _moved(seen, id_, {_PORT: None}), why)
        case "POST", ("security-groups",):
            yield Touched(path, verb, differences.new(body), why)
            yield from _rules_later(target, seen, config, path)
        case "POST", ("security-group-rules",):
            yield Touched(path, verb, _new_rules(write), why)
        case "DELETE", ("security-group-rules", id_):
            yield Touched(path, verb, _gone_rule(seen, id_), why)
        case "PUT", ("ports", id_):
            yield Touched(path, verb, _groups_on(seen, id_, body), why)
        case "POST", _:
            yield Touched(path, verb, differences.new(body), why)
        case _:
            yield Touched(path, verb, why=why)


def floating_ip_later(ref: Ref, wanted: Wanted, seen: Tree) -> Touched:
    """Tell which floating IP a load balancer gets once it is there."""
    known = seen.around.floating_ips
    why = "the Service is external"
    if wanted.address:
        mine = [ip for ip in known if ip.floating_ip_address == wanted.address]
        why = f"loadBalancerIP is {wanted.address}"
    else:
        mine = [ip for ip in known if not ip.port_id and identity.is_ours(ip, ref)]
    if mine:
        change = Change(_PORT, mine[0].port_id or "", VIP_PORT)
        path = (floating.shown(mine[0]),)
        return Touched(path, Verb.CHANGE, (change,), why, is_later=True)
    source = seen.around.source.network_id or wanted.floating.network_id
    network = source or "the first external network, if there is one"
    changes = (
        Change("floating_network_id", "", network),
        Change(_PORT, "", VIP_PORT),
    )
    path = (f"floating IP {wanted.address}".rstrip(),)
    return Touched(path, Verb.CREATE, changes, why, is_later=True)


def group_later(
    target: Target, seen: Tree, config: settings.LoadBalancer
) -> Iterator[Touched]:
    """Tell of the security group that comes once the load balancer is there."""
    if seen.around.groups:
        return
    path = (f"security group {names.security_group(target.ref)}",)
    why = "security groups are managed"
    yield Touched(path, Verb.CREATE, why=why, is_later=True)
    yield from _rules_later(target, seen, config, path)


def _rules_later(
    target: Target, seen: Tree, config: settings.LoadBalancer, path: tuple[str, ...]
) -> Iterator[Touched]:
    wanted, subnet = wanted_of(target), seen.around.member_subnet
    if wanted is None or subnet is None:
        return
    rules = sorted(groups.wanted_rules(wanted, subnet, config.lb_provider))
    changes = tuple(Change(_rule(key), "", "ingress") for key in rules)
    yield Touched((*path, "rules"), Verb.CREATE, changes, is_later=True)
    members = tuple(Change(one.address, "", one.name) for one in wanted.members)
    yield Touched((*path, "members' ports"), Verb.CHANGE, members, is_later=True)


def _moved(seen: Tree, id_: str, body: Mapping[str, object]) -> tuple[Change, ...]:
    """Say from which port to which a floating IP goes."""
    found = _floating_ip(seen, id_)
    old = "" if found is None else found.port_id or ""
    new = differences.plain(body.get(_PORT))
    if old == new:
        return ()
    return (Change(_PORT, _port(seen, old), _port(seen, new)),)


def _port(seen: Tree, id_: str) -> str:
    balancer = seen.identity.load_balancer
    if id_ and balancer is not None and balancer.vip_port_id == id_:
        return f"{id_} ({VIP_PORT})"
    return id_


def _floating_ip(seen: Tree, id_: str) -> FloatingIp | None:
    return next((ip for ip in seen.around.floating_ips if ip.id == id_), None)


def _new_rules(write: client.Write) -> tuple[Change, ...]:
    rules = (write.body or {}).get("security_group_rules")
    if not isinstance(rules, Sequence):
        return ()
    return tuple(
        Change(_rule(groups.key_of(_read(rule))), "", "ingress") for rule in rules
    )


def _read(rule: object) -> Rule:
    """Read a rule of a request, which has no id yet."""
    return msgspec.convert({"id": "", **msgspec.to_builtins(rule)}, Rule)


def _gone_rule(seen: Tree, id_: str) -> tuple[Change, ...]:
    return tuple(
        Change(_rule(groups.key_of(rule)), rule.direction, "")
        for group in seen.around.groups
        for rule in group.security_group_rules
        if rule.id == id_
    )


def _rule(key: groups.Key) -> str:
    """Write a rule as "tcp 30080 from 10.0.0.0/16"."""
    protocol, ethertype, prefix, low, high = key
    ports = str(low) if low == high else f"{low}-{high}"
    return f"{protocol or 'any'} {ports} from {prefix or ethertype}"


def _groups_on(
    seen: Tree, port_id: str, body: Mapping[str, object]
) -> tuple[Change, ...]:
    """Say which security groups a port has, and would have; ours by name."""
    found = next((one for one in seen.around.ports if one.id == port_id), None)
    old = () if found is None else found.security_groups
    new = body.get("security_groups")
    ids = tuple(map(str, new)) if isinstance(new, Sequence) else ()
    ours = seen.around.groups
    return (Change("security_groups", _named(old, ours), _named(ids, ours)),)


def _named(ids: Sequence[str], ours: Sequence[SecurityGroup]) -> str:
    known = {group.id: group.name for group in ours}
    return ", ".join(known.get(id_, id_) for id_ in ids)

"""Security groups that let the load balancer reach the Nodes: pure.

Rules: only ingress rules are compared; what Neutron gives a new group for egress stays.
Ports are changed only as they were seen (revision number).

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer_sg.go.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping

import msgspec

from lib.cloud.openstack.load_balancers.plan import actions
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.plan.case import Case
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import (
    Port,
    Rule,
    SecurityGroup,
    Subnet,
)
from lib.cloud.openstack.load_balancers.read.observed import Environment
from lib.cloud.openstack.load_balancers.spec import annotations, names, providers
from lib.cloud.openstack.load_balancers.spec.desired import Desired
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import Problem, Step, grouped

Key = tuple[str, str, str, int, int]
"""Protocol, ethertype, remote prefix, lowest and highest port."""


def keep(case: Case) -> tuple[tuple[Step, ...], tuple[Problem, ...]]:
    """Return what brings the group, its rules and its ports about."""
    path = (f"security group {identity.names_of(case.ref).security_group}",)
    if case.environment.member_subnet is None:
        message = (
            "the subnet of the members is not known or can't be seen, so that security"
            f" groups are not changed; set annotation {annotations.MEMBER_SUBNET_ID}"
        )
        return (), (Problem(OctaviaReason.SUBNET, message),)
    if not case.environment.groups:
        body = {
            "name": identity.names_of(case.ref).security_group,
            "description": names.with_ownership_tag(
                names.security_group_description(case.ref), case.ref
            ),
        }
        action = Action(Kind.SECURITY_GROUP, fields=body)
        step = actions.create(path, "security groups are managed", action)
        return tuple(grouped(path[0], (step,))), ()
    group, *spares = case.environment.groups
    rules = tuple(
        _rules(
            path,
            case.desired,
            case.environment.member_subnet,
            group,
            case.provider,
        )
    )
    ports = tuple(
        _ports(case.desired, case.environment, case.environment.member_subnet, group)
    )
    if rules or ports:
        return (*rules, *ports), ()
    return tuple(remove(case.environment, spares)), ()


def remove(
    environment: Environment, groups: Collection[SecurityGroup]
) -> Iterator[Step]:
    """Take groups off all ports, then delete them."""
    ids = {group.id for group in groups}
    for port in environment.ports:
        if ids & set(port.security_groups):
            kept = [id_ for id_ in port.security_groups if id_ not in ids]
            yield _set(port, kept, "the Service's group is not required there")
    for group in groups:
        action = Action(Kind.SECURITY_GROUP, group.id, observed=group)
        path = (f"security group {group.name}",)
        step = actions.delete(path, "it is no longer required", action)
        yield from grouped(path[0], (step,))


def desired_rules(desired: Desired, subnet: Subnet, provider: str) -> frozenset[Key]:
    """Return the rules: the load balancer's subnet may reach each nodePort.

    ovn keeps the address of the client, so the rules allow the clients; those of
    another IP family than the subnet's never use it, and Neutron refuses them.
    """
    is_six = subnet.ip_version == 6
    ethertype = "IPv6" if is_six else "IPv4"
    sources: Collection[str] = (subnet.cidr,)
    if provider == providers.OVN:
        sources = [cidr for cidr in desired.cidrs if (":" in cidr) == is_six]
    rules = {
        (port.protocol.lower(), ethertype, source, port.node_port, port.node_port)
        for port in desired.ports
        for source in sources
        if port.node_port
    }
    if desired.health_port:
        at = desired.health_port
        rules.add(("tcp", ethertype, subnet.cidr, at, at))
    return frozenset(rules)


def _rules(
    path: tuple[str, ...],
    desired: Desired,
    subnet: Subnet,
    group: SecurityGroup,
    provider: str,
) -> Iterator[Step]:
    existing = {
        key_of(r): r for r in group.security_group_rules if r.direction == "ingress"
    }
    keys = desired_rules(desired, subnet, provider)
    missing = sorted(keys - existing.keys())
    if missing:
        why = "ports without a rule: " + ", ".join(f"{k[3]}/{k[0]}" for k in missing)
        batch = tuple(_body(key, group) for key in missing)
        step = actions.create((*path, "rules"), why, Action(Kind.RULE, batch=batch))
        yield from grouped("rules", (step,))
    for key in sorted(existing.keys() - keys, key=str):
        rule = existing[key]
        action = Action(Kind.RULE, rule.id, observed=rule)
        why = "the Service has no such port"
        step = actions.delete((*path, f"rule {rule.id}"), why, action)
        yield from grouped(f"rule {rule.id}", (step,))


def key_of(rule: Rule) -> Key:
    """Return what a rule lets through; rules of one key are the same."""
    return (
        (rule.protocol or "").lower(),
        rule.ethertype,
        rule.remote_ip_prefix or "",
        rule.port_range_min or 0,
        rule.port_range_max or 0,
    )


def shown(key: Key) -> str:
    """Return a rule as "tcp 30080 from 10.0.0.0/16"."""
    protocol, ethertype, prefix, low, high = key
    ports = str(low) if low == high else f"{low}-{high}"
    return f"{protocol or 'any'} {ports} from {prefix or ethertype}"


def key_in(body: actions.Body) -> Key:
    """Return what a rule lets through that is to be created."""
    return key_of(msgspec.convert({"id": "", **body}, Rule))


def _body(key: Key, group: SecurityGroup) -> Mapping[str, object]:
    protocol, ethertype, prefix, low, high = key
    return {
        "security_group_id": group.id,
        "direction": "ingress",
        "protocol": protocol,
        "ethertype": ethertype,
        "remote_ip_prefix": prefix,
        "port_range_min": low,
        "port_range_max": high,
    }


def _ports(
    desired: Desired, environment: Environment, subnet: Subnet, group: SecurityGroup
) -> Iterator[Step]:
    addresses = {member.address for member in desired.members}
    for port in environment.ports:
        has = group.id in port.security_groups
        is_member = bool(port.device_id) and any(
            fixed.ip_address in addresses and fixed.subnet_id == subnet.id
            for fixed in port.fixed_ips
        )
        if is_member and not has and port.port_security_enabled:
            ids = [*port.security_groups, group.id]
            yield _set(port, ids, f"it has a member's address, not {group.name}")
        elif has and not is_member:
            yield _without(port, group)


def _without(port: Port, group: SecurityGroup) -> Step:
    ids = [id_ for id_ in port.security_groups if id_ != group.id]
    return _set(port, ids, f"{group.name} is not required there")


def _set(port: Port, ids: list[str], why: str) -> Step:
    action = Action(
        Kind.PORT,
        port.id,
        {"security_groups": ids},
        revision=port.revision_number,
        observed=port,
    )
    path = (f"port {port.id}", "security groups")
    return dataclasses.replace(actions.change(path, why, action), group=path[0])

"""Desired objects as bodies of Octavia's requests: pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go (the options
of listeners, pools, monitors and members).
"""

import dataclasses
from collections.abc import Mapping

from lib.cloud.load_balancers import PortProtocol
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.plan import protocols, session_affinity
from lib.cloud.openstack.load_balancers.read.native import Member
from lib.cloud.openstack.load_balancers.read.observed import Features
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.desired import (
    Desired,
    DesiredMember,
    DesiredPort,
    Timeouts,
)

FORWARDED_FOR = "X-Forwarded-For"
UDP_CONNECT = "UDP-CONNECT"
UDP_LEAST_DELAY_S = 3
"""Octavia refuses less for UDP-CONNECT monitors.

Source: octavia/common/config.py, udp_connect_min_interval_health_monitor.
"""
HTTP_MONITOR: Mapping[str, object] = {
    "url_path": "/healthz",
    "http_method": "GET",
    "expected_codes": "200",
}
WEIGHT = 1
SWITCHED_ON: Mapping[str, object] = {"admin_state_up": True}
"""Set only where another client has disabled an object: it is the default."""

Body = dict[str, object]


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What requests for one Service have in common.

    tags: of listeners; empty where Octavia has none. owner: the part of names that is
    the load balancer's. member_subnet_id: empty: not said. monitors: whether pools
    have them.
    """

    desired: Desired
    can: Features
    owner: str
    tags: tuple[str, ...]
    member_subnet_id: str
    monitors: bool


def asks_health_port(context: Context, port: DesiredPort) -> bool:
    """Report whether members are probed at the Service's healthCheckNodePort."""
    if not (
        context.monitors
        and context.desired.health_port > 0
        and context.can.http_monitors
    ):
        return False
    return port.protocol is not PortProtocol.UDP or context.can.udp_http_monitors


def monitor_type(context: Context, port: DesiredPort) -> str:
    """Return the type of a health monitor."""
    if asks_health_port(context, port):
        return "HTTP"
    return UDP_CONNECT if port.protocol is PortProtocol.UDP else str(port.protocol)


def monitor_settings(context: Context, port: DesiredPort) -> dict[str, int]:
    """Return the mutable settings of a health monitor."""
    monitoring = context.desired.monitoring
    is_udp = monitor_type(context, port) == UDP_CONNECT
    return {
        "delay": (
            max(monitoring.delay_s, UDP_LEAST_DELAY_S) if is_udp else monitoring.delay_s
        ),
        "timeout": monitoring.timeout_s,
        "max_retries": monitoring.max_retries,
        "max_retries_down": monitoring.max_retries_down,
    }


def monitor(context: Context, port: DesiredPort, name: str) -> Body:
    """Return the request that creates a health monitor."""
    kind = monitor_type(context, port)
    more = HTTP_MONITOR if kind == "HTTP" else {}
    return {"name": name, "type": kind, **monitor_settings(context, port), **more}


def member(context: Context, port: DesiredPort, desired: DesiredMember) -> Body:
    """Describe a member."""
    body: Body = {
        "name": desired.name,
        "address": desired.address,
        "protocol_port": port.node_port,
    }
    if context.member_subnet_id:
        body["subnet_id"] = context.member_subnet_id
    if asks_health_port(context, port):
        body["monitor_port"] = context.desired.health_port
    return body


def members(context: Context, port: DesiredPort) -> list[Body]:
    """Describe all members of a pool; none without a nodePort."""
    if not port.node_port:
        return []
    return [member(context, port, desired) for desired in context.desired.members]


def changed_member(
    context: Context,
    port: DesiredPort,
    desired: DesiredMember,
    observed: Member,
    *,
    full: bool
) -> Body:
    """Describe a member that is there already: also what it must not have.

    A good name stays, and so does the lack of a subnet. full: everything of `observed`
    was read; otherwise Octavia enables it, as it does by default.
    """
    body = member(context, port, desired)
    if observed.name in _good_names(body):
        body["name"] = observed.name
    if full and not observed.subnet_id:
        body.pop("subnet_id", None)
    if not observed.admin_state_up:
        body |= SWITCHED_ON
    return {**body, "monitor_port": body.get("monitor_port"), "weight": WEIGHT}


def pool(context: Context, port: DesiredPort, name: str) -> Body:
    """Describe a pool without members and monitor."""
    desired = context.desired
    body: Body = {
        "name": name,
        "protocol": protocols.of_pool(desired, port),
        "lb_algorithm": desired.algorithm or settings.LB_METHODS[0],
    }
    return body | session_affinity.of_new_pool(desired)


def timeouts(desired: Timeouts) -> dict[str, int]:
    """Return a listener's timeouts."""
    return {
        "timeout_client_data": desired.client_data,
        "timeout_member_connect": desired.member_connect,
        "timeout_member_data": desired.member_data,
        "timeout_tcp_inspect": desired.tcp_inspect,
    }


def listener(context: Context, port: DesiredPort, name: str) -> Body:
    """Describe a listener without its pool."""
    desired, can = context.desired, context.can
    protocol = protocols.of_listener(desired, port)
    body: Body = {
        "name": name,
        "protocol": protocol,
        "protocol_port": port.port,
        "connection_limit": desired.connection_limit,
    }
    if context.tags:
        body["tags"] = list(context.tags)
    if can.timeouts:
        body |= timeouts(desired.timeouts)
    if desired.forwards_for and protocols.transport(protocol) == "TCP":
        body["insert_headers"] = {FORWARDED_FOR: "true"}
    if protocol == "TERMINATED_HTTPS":
        body["default_tls_container_ref"] = desired.tls_ref
    if can.cidrs and desired.cidrs:
        body["allowed_cidrs"] = list(desired.cidrs)
    return body


def is_same_member(
    member: Member, body: Mapping[str, object], *, is_full: bool
) -> bool:
    """Compare an observed member with the desired one, as far as it was read.

    A member's subnet can't be changed; one that was not said when it was made stays
    so, and one that is not said any more stays as it is.
    """
    if member.name not in _good_names(body):
        return False
    if not is_full:
        return True
    if not member.admin_state_up:
        return False
    return (member.monitor_port, member.weight) == (body.get("monitor_port"), WEIGHT)


def _good_names(body: Mapping[str, object]) -> tuple[str, str]:
    """Return what a member may be called: as its Node, or as the reference calls it.

    Source: kubernetes/cloud-provider-openstack, provider-requires-serial-api-calls.
    """
    name, port = str(body["name"]), int(str(body["protocol_port"]))
    return name, names.serial_member(name, str(body["address"]), port)

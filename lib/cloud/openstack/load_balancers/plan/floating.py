"""Floating IPs of a load balancer's VIP: created, adopted, kept, detached. Pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
(ensureFloatingIP); other than there, a changed address is applied.

One is changed or deleted only as it was observed (revision number): the steps before
may take minutes, and another client may have attached it to a server since then.
"""

import dataclasses

from lib.cloud.load_balancers import Reason, Ref
from lib.cloud.openstack.load_balancers.plan import actions
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.plan.case import Case
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import FloatingIp
from lib.cloud.openstack.load_balancers.read.observed import Environment, Relation
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.desired import Desired
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import Notice, NoticeType, Problem, Step


@dataclasses.dataclass(frozen=True, slots=True)
class VipEndpoint:
    """Address at which clients reach the load balancer; empty: not known yet."""

    address: str = ""
    steps: tuple[Step, ...] = ()
    notices: tuple[Notice, ...] = ()
    problems: tuple[Problem, ...] = ()


def reach(case: Case) -> VipEndpoint:
    """Return what brings the VIP its floating IP, or frees it of one."""
    vip = case.balancer.vip_address or ""
    current = on_port(case.environment, case.balancer.vip_port_id or "")
    if ":" in vip:
        return _without(case, vip)
    if case.relation is not Relation.OWNED:
        return _shared(case, current)
    if case.desired.is_internal:
        steps = () if current is None else (_free(case, current),)
        return VipEndpoint(vip, steps)
    if case.desired.address:
        return _at(case, current)
    if current is not None:
        return VipEndpoint(current.floating_ip_address)
    return _any(case)


def on_port(environment: Environment, port_id: str) -> FloatingIp | None:
    """Find the floating IP that is on a port."""
    if not port_id:
        return None
    return next((ip for ip in environment.floating_ips if ip.port_id == port_id), None)


def delete(path: str, why: str, floating_ip: FloatingIp) -> Step:
    """Delete a floating IP that this cluster owns."""
    return actions.delete((path,), why, _action(floating_ip))


def shown(floating_ip: FloatingIp) -> str:
    """Return the name of a floating IP in a step's path."""
    return f"floating IP {floating_ip.floating_ip_address}"


def _without(case: Case, vip: str) -> VipEndpoint:
    if case.desired.is_internal:
        return VipEndpoint(vip)
    message = (
        f"Floating IP not supported for IPv6 Service {case.ref.key}."
        f" Using IPv6 address instead {vip}."
    )
    notice = Notice(NoticeType.WARNING, "LoadBalancerFloatingIPSkipped", message)
    return VipEndpoint(vip, notices=(notice,))


def _free(case: Case, current: FloatingIp) -> Step:
    """Detach a floating IP from the VIP; delete it if it was created for it."""
    is_made = identity.is_made_on(current, case.balancer, case.ref)
    if is_made and not case.desired.keeps_floating_ip:
        return delete(shown(current), "it is no longer required", current)
    return _attach(current, None, "it is no longer required")


def _shared(case: Case, current: FloatingIp | None) -> VipEndpoint:
    if current is not None:
        return VipEndpoint(current.floating_ip_address)
    message = (
        "cannot attach a floating IP to a load balancer for a shared Service"
        f" {case.ref.key}, only owner Service can do that"
    )
    return VipEndpoint(problems=(Problem(OctaviaReason.NO_FLOATING_NETWORK, message),))


def _at(case: Case, current: FloatingIp | None) -> VipEndpoint:
    """Attach the floating IP of this address; the former one stays until it exists."""
    if current is not None and current.floating_ip_address == case.desired.address:
        return VipEndpoint(case.desired.address)
    existing = next(
        (
            ip
            for ip in case.environment.floating_ips
            if ip.floating_ip_address == case.desired.address
        ),
        None,
    )
    now = current.floating_ip_address if current else ""
    if existing is None:
        endpoint = _create(case, is_attached=current is None)
        return dataclasses.replace(endpoint, address=now)
    if existing.port_id:
        message = (
            f"floating IP {case.desired.address}: not available: already in use by port"
            f" {existing.port_id}; detach it there, or choose another address"
        )
        return VipEndpoint(now, problems=(Problem(Reason.ADDRESS_TAKEN, message),))
    steps = () if current is None else (_free(case, current),)
    why = f"loadBalancerIP is {case.desired.address}"
    return VipEndpoint("", (*steps, _attach(existing, case.balancer.vip_port_id, why)))


def _any(case: Case) -> VipEndpoint:
    """Attach any floating IP; one that the Service had before is preferred."""
    had = identity.hints_of(case.ref).addresses
    owned = [
        ip
        for ip in case.environment.floating_ips
        if not ip.port_id and identity.was_ours(ip, case.ref)
    ]
    owned.sort(key=lambda ip: (ip.floating_ip_address not in had, ip.id))
    if owned:
        why = "it was created for this Service"
        return VipEndpoint("", (_attach(owned[0], case.balancer.vip_port_id, why),))
    return _create(case, is_attached=True)


def _create(case: Case, *, is_attached: bool) -> VipEndpoint:
    source = case.environment.source
    if source.problem is not None:
        return VipEndpoint(problems=(source.problem,))
    if not source.network_id:
        message = (
            f"Floating network configuration not provided for Service {case.ref.key},"
            " forcing to ensure an internal load balancer service"
        )
        forced = Problem(
            OctaviaReason.NO_FLOATING_NETWORK,
            message,
            event="LoadBalancerForcedInternal",
        )
        problems = (*_search_failed(case.ref, case.desired), forced)
        return VipEndpoint(case.balancer.vip_address or "", problems=problems)
    body: dict[str, object] = {
        "floating_network_id": source.network_id,
        "description": names.with_ownership_tag(names.floating_ip(case.ref), case.ref),
    }
    if is_attached:
        body["port_id"] = case.balancer.vip_port_id
    if case.desired.address:
        body["floating_ip_address"] = case.desired.address
    subnet_ids = () if case.desired.address else source.subnet_ids
    choices = [body | {"subnet_id": subnet_id} for subnet_id in subnet_ids] or [body]
    first, *others = choices
    action = Action(Kind.FLOATING_IP, fields=first, alternatives=tuple(others))
    path = (f"floating IP {case.desired.address}".rstrip(),)
    return VipEndpoint("", (actions.create(path, "the Service is external", action),))


def _search_failed(ref: Ref, desired: Desired) -> tuple[Problem, ...]:
    if desired.floating.network_id:
        return ()
    message = (
        f"Failed to find floating-network-id for Service {ref.key}:"
        " there is no external network"
    )
    event = "LoadBalancerExternalNetworkSearchFailed"
    return (Problem(OctaviaReason.NO_FLOATING_NETWORK, message, event=event),)


def _attach(floating_ip: FloatingIp, port_id: str | None, why: str) -> Step:
    action = _action(floating_ip, {"port_id": port_id})
    return actions.change((shown(floating_ip),), why, action)


def _action(floating_ip: FloatingIp, fields: actions.Body | None = None) -> Action:
    return Action(
        Kind.FLOATING_IP,
        floating_ip.id,
        fields or {},
        revision=floating_ip.revision_number,
        observed=floating_ip,
    )

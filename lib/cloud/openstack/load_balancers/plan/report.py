"""Report of a plan: problems, the Service's status, and annotations with IDs.

Problems: requests that are refused, ignored, or immutable. Pure.

Source of the texts that the reference has, too: kubernetes/cloud-provider-openstack
pkg/openstack/loadbalancer.go.
"""

from collections.abc import Collection, Sequence

from lib.cloud import absence_limit
from lib.cloud.load_balancers import (
    Ingress,
    IpMode,
    PortProtocol,
    Reason,
    Results,
)
from lib.cloud.openstack.load_balancers.plan import bodies
from lib.cloud.openstack.load_balancers.plan.bodies import Context
from lib.cloud.openstack.load_balancers.plan.case import Case
from lib.cloud.openstack.load_balancers.plan.floating import VipEndpoint
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import LoadBalancer
from lib.cloud.openstack.load_balancers.read.observed import Identity, Relation, Tree
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names, providers
from lib.cloud.openstack.load_balancers.spec.desired import (
    Desired,
    DesiredPort,
    OnError,
    Proxy,
    Timeouts,
)
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason, Problem
from lib.cloud.support import absence
from lib.process.config import quoted

NAMED = 5
"""Source ranges or ports named in one problem, at most."""


def may_share(case: Case) -> tuple[Problem, ...]:
    """Return why the Service must not use the load balancer of another owner."""
    if not case.can.tags:
        message = (
            "a load balancer is shared only where Octavia has tags (API 2.5); remove"
            f" annotation {keys.LOAD_BALANCER_ID}"
        )
        return (Problem(CommonReason.UNSUPPORTED, message, is_fatal=True),)
    if case.desired.is_internal:
        message = (
            "internal Service cannot share a load balancer; remove annotation"
            f" {keys.LOAD_BALANCER_ID} or {keys.INTERNAL}"
        )
        return (Problem(CommonReason.UNSUPPORTED, message, is_fatal=True),)
    users = identity.services(case.balancer.tags)
    if (
        names.load_balancer(case.ref) not in users
        and len(users) >= case.config.max_shared_lb
    ):
        message = (
            f"load balancer {case.balancer.id} already shared with {len(users)}"
            " Services;"
            f" [LoadBalancer] max-shared-lb is {case.config.max_shared_lb}; raise it,"
            f" or change annotation {keys.LOAD_BALANCER_ID}"
        )
        return (Problem(OctaviaReason.SHARED_LIMIT, message, is_fatal=True),)
    return ()


def unsupported_algorithm(
    case: Case, allowed: Sequence[str], *, is_fatal: bool
) -> Problem:
    """Report an algorithm that the provider of the load balancer does not have."""
    field = "[LoadBalancer] lb-method"
    if case.desired.names_algorithm:
        field = f"annotation {keys.METHOD}"
    message = (
        f"{field}: unsupported value {quoted(case.desired.algorithm)}: must be"
        f" {' or '.join(allowed)} with provider {case.provider}"
    )
    return Problem(CommonReason.UNSUPPORTED, message, is_fatal=is_fatal)


def health(desired: Desired, context: Context) -> tuple[Problem, ...]:
    """Warn of ports on which Nodes without a Pod would drop traffic."""
    if not desired.health_port:
        return ()
    can = context.can
    unprobed = [p for p in desired.ports if not bodies.asks_health_port(context, p)]
    unable = [
        port
        for port in unprobed
        if not can.http_monitors
        or (port.protocol is PortProtocol.UDP and not can.udp_http_monitors)
    ]
    unset = [port for port in unprobed if port not in unable]
    remedies = {
        "set externalTrafficPolicy to Cluster: health monitors of provider ovn cannot"
        " probe it": [] if can.http_monitors else unable,
        "set externalTrafficPolicy to Cluster: a health monitor of UDP can probe it"
        " only with Octavia API 2.16": unable if can.http_monitors else [],
        f'set annotation {keys.ENABLE_MONITOR} to "true"': unset,
    }
    return tuple(
        _unprobed(ports, desired, remedy) for remedy, ports in remedies.items() if ports
    )


def _unprobed(ports: Sequence[DesiredPort], desired: Desired, remedy: str) -> Problem:
    shown = _shown([f"{port.port}/{port.protocol}" for port in ports])
    which = "" if len(ports) == len(desired.ports) else f" for {shown}"
    message = (
        "externalTrafficPolicy is Local, but no health monitor probes"
        f" healthCheckNodePort{which}: Nodes without a Pod drop traffic; {remedy}"
    )
    return Problem(Reason.NO_HEALTH_CHECK, message)


def unchangeable(case: Case) -> tuple[Problem, ...]:
    """Report fields that differ and are immutable after creation."""
    if case.relation is not Relation.OWNED:
        return ()
    place, can = case.desired.placement, case.can
    pairs = [
        (
            "lb-provider",
            providers.canonical(case.config.lb_provider),
            providers.canonical(case.balancer.provider),
        ),
        ("port-id", place.port_id, case.balancer.vip_port_id),
        (
            "subnet-id",
            "" if place.port_id else place.subnet_id,
            case.balancer.vip_subnet_id,
        ),
        ("flavor-id", place.flavor_id if can.flavors else "", case.balancer.flavor_id),
        (
            "availability-zone",
            place.availability_zone if can.zones else "",
            case.balancer.availability_zone,
        ),
    ]
    if not place.port_id and not place.subnet_id:
        pairs.append(("network-id", place.network_id, case.balancer.vip_network_id))
    is_vip = case.desired.is_internal or ":" in (case.balancer.vip_address or "")
    if is_vip:
        pairs.append(
            ("loadBalancerIP", case.desired.address, case.balancer.vip_address)
        )
    differences = [
        f"{name} is {is_ or 'none'}, desired {desired}"
        for name, desired, is_ in pairs
        if desired and desired != is_
    ]
    version = 6 if ":" in (case.balancer.vip_address or "") else 4
    if case.balancer.vip_address and str(case.desired.families[0]) != f"IPv{version}":
        differences.append(
            f"the VIP is IPv{version}, desired {case.desired.families[0]}"
        )
    if _lacks_second_vip(case) and not why_no_second_vip(case):
        differences.append(f"there is no VIP of {case.desired.families[1]}")
    if case.environment.source.misfit:
        differences.append(case.environment.source.misfit)
    if not differences:
        return ()
    message = (
        f"load balancer {case.balancer.id}: immutable fields differ:"
        f" {'; '.join(differences)}; recreate the Service to apply the change"
    )
    return (Problem(CommonReason.IMMUTABLE, message),)


def _lacks_second_vip(case: Case) -> bool:
    balancer = case.observed.identity.load_balancer
    has_more = balancer is not None and bool(balancer.additional_vips)
    return len(case.desired.families) > 1 and not has_more


def why_no_second_vip(case: Case) -> str:
    """Return why a load balancer cannot have a VIP of the second family; empty: it can.

    Then a new load balancer would get no such VIP either.
    """
    if not case.can.additional_vips:
        return "requires Octavia API 2.26 and a provider other than ovn"
    if case.desired.placement.port_id:
        return f"annotation {keys.PORT_ID} names the only port of the VIP"
    if not case.environment.second_subnet_id:
        return f"the network of the VIP has no {case.desired.families[1]} subnet"
    return ""


def ignored_family(case: Case) -> tuple[Problem, ...]:
    """Report the second family of spec.ipFamilies where no VIP can have it."""
    if case.relation is Relation.SHARED or not _lacks_second_vip(case):
        return ()
    why = why_no_second_vip(case)
    if not why:
        return ()
    families = case.desired.families
    message = (
        f"spec.ipFamilies: the load balancer has no {families[1]} address: {why};"
        f" only {families[0]} is served"
    )
    return (Problem(CommonReason.UNSUPPORTED, message),)


def unreachable_ranges(
    desired: Desired, versions: Collection[int]
) -> tuple[Problem, ...]:
    """Report source ranges of an IP family of which the load balancer has no VIP.

    versions: of the VIPs.
    """
    dropped = [cidr for cidr in desired.cidrs if version_of(cidr) not in versions]
    if not (desired.has_ranges and dropped and versions):
        return ()
    family = " and ".join(f"IPv{version}" for version in sorted(versions))
    what = "ignored"
    if len(dropped) == len(desired.cidrs):
        what = f"Octavia refuses listeners without a CIDR of {family}"
    message = (
        f"LoadBalancerSourceRanges: {_shown(dropped)}: not of the family of the VIP,"
        f" {family}: {what}; must be CIDRs of {family}"
    )
    return (Problem(CommonReason.UNSUPPORTED, message),)


def _shown(texts: Sequence[str]) -> str:
    return ", ".join(texts[:NAMED]) + (", ..." if len(texts) > NAMED else "")


def version_of(address: str) -> int:
    """Return the IP version of an address or a CIDR."""
    return 6 if ":" in address else 4


def ignored(case: Case) -> tuple[Problem, ...]:
    """Return requests that the provider, or Octavia's version, does not support."""
    return (
        *_ignored_ranges(case),
        *_ignored_zone(case),
        *_ignored_flavor(case),
        *_ignored_timeouts(case),
    )


def enforces_ranges(case: Case) -> bool:
    """Report whether source ranges restrict the clients: with ovn by security group."""
    is_ovn = case.provider == providers.OVN
    return case.can.cidrs or (is_ovn and case.config.manage_security_groups)


def _ignored_ranges(case: Case) -> tuple[Problem, ...]:
    """Report that source ranges are ignored, where the Service has any."""
    if enforces_ranges(case) or not case.desired.has_ranges:
        return ()
    message = (
        f"LoadBalancerSourceRanges are ignored for Service {case.ref.key} because"
        " Octavia provider does not support it"
    )
    event = "LoadBalancerSourceRangesIgnored"
    return (Problem(CommonReason.UNSUPPORTED, message, event=event),)


def _ignored_zone(case: Case) -> tuple[Problem, ...]:
    if case.can.zones or not case.desired.placement.availability_zone:
        return ()
    message = (
        "LoadBalancer Availability Zones aren't supported. Please, upgrade Octavia"
        " API to version 2.14 or later (Ussuri release) to use them for Service"
        f" {case.ref.key}"
    )
    event = "LoadBalancerAvailabilityZonesIgnored"
    return (Problem(CommonReason.UNSUPPORTED, message, event=event),)


def _ignored_flavor(case: Case) -> tuple[Problem, ...]:
    """Report that a flavor is ignored; the reference ignores it silently."""
    flavor_id = case.desired.placement.flavor_id
    if case.can.flavors or not flavor_id:
        return ()
    message = (
        f"flavor-id {flavor_id}: not supported: requires Octavia API 2.6 and a"
        " provider other than ovn; ignored"
    )
    return (Problem(CommonReason.UNSUPPORTED, message),)


def _ignored_timeouts(case: Case) -> tuple[Problem, ...]:
    """Report that timeouts are ignored, where the Service has any: likewise."""
    if case.can.timeouts or case.desired.timeouts == Timeouts():
        return ()
    message = (
        "timeout annotations: not supported: require Octavia API 2.1 and a provider"
        " other than ovn; ignored"
    )
    return (Problem(CommonReason.UNSUPPORTED, message),)


def lost_vip(observed: Tree, balancer: LoadBalancer) -> tuple[Problem, ...]:
    """Report that the port of the VIP was deleted, so that no client reaches it."""
    if not observed.environment.vip_is_gone:
        return ()
    message = (
        f"port {balancer.vip_port_id} of load balancer {balancer.id} was deleted by"
        " another client, so it is unreachable; delete the load balancer to have it"
        " recreated"
    )
    return (Problem(CommonReason.DRIFT, message),)


def error_remedy(*, is_own: bool) -> str:
    """Return what ends the status ERROR, where nothing is done by itself."""
    if not is_own:
        return "its owner must have it failed over or recreated"
    return (
        "an administrator of Octavia must fail it over; or set annotation"
        f" {keys.ON_ERROR} to {OnError.FAILOVER} or {OnError.RECREATE}"
    )


def pending(balancer: LoadBalancer) -> str:
    """Report a load balancer that Octavia is changing, and the remedy if that lasts.

    Octavia refuses every change, and the deletion, as long as the state lasts.
    """
    return (
        f"load balancer {balancer.id} is in status {balancer.provisioning_status} and"
        " cannot be changed or deleted: if the state does not end, such as after the"
        " crash of a worker of Octavia, an administrator must set its"
        " provisioning_status to ERROR in the database of Octavia"
    )


def stays(observed: Tree) -> tuple[Problem, ...]:
    """Report objects on former load balancers that remain until the new one serves."""
    if not observed.former:
        return ()
    ids = ", ".join(sorted(former.load_balancer.id for former in observed.former))
    message = (
        f"objects of the Service on load balancer {ids}, its former one, remain there"
        " until the load balancer that it names now serves it"
    )
    return (Problem(CommonReason.CLEANUP_INCOMPLETE, message),)


def absent(observed: Identity) -> tuple[Problem, ...]:
    """Report a load balancer whose absence has to last before it is recreated."""
    id_ = observed.absent_id
    if not id_:
        return ()
    message = (
        f"load balancer {id_} is absent; it is recreated, with another address, once it"
        f" has been absent for {absence.IN_USE_S / 60:.0f} minutes, or when annotation"
        f' {absence_limit.CONFIRM_ANNOTATION} is "{id_}"'
    )
    return (Problem(Reason.MISSING, message),)


def kept(observed: Identity) -> tuple[Problem, ...]:
    """Report load balancers beside the one in use that only a person may delete."""
    main = observed.load_balancer
    if main is None or not observed.kept:
        return ()
    ids = ",".join(sorted(balancer.id for balancer in observed.kept))
    message = (
        f"load balancer {ids} has the ownership tag of the Service beside {main.id} and"
        " may have been in use, so it is not deleted; to have it deleted, set"
        f" annotation {absence_limit.CONFIRM_ANNOTATION}: {ids}"
    )
    return (Problem(CommonReason.CLEANUP_INCOMPLETE, message),)


def switched_off(balancer: LoadBalancer, relation: Relation) -> tuple[Problem, ...]:
    """Report a disabled load balancer that is not owned; an owned one is enabled."""
    if balancer.admin_state_up or relation is Relation.OWNED:
        return ()
    message = (
        f"load balancer {balancer.id} is disabled (admin_state_up is false); it is not"
        " owned by the Service, so its owner must enable it"
    )
    return (Problem(CommonReason.DRIFT, message),)


def annotations(
    balancer: LoadBalancer, relation: Relation
) -> tuple[tuple[str, str | None], ...]:
    """Write the ids down: by them a Service finds its load balancer again."""
    owned = balancer.id if relation is Relation.OWNED else None
    return ((keys.LOAD_BALANCER_ID, balancer.id), (keys.OWNED_ID, owned))


def results(case: Case, endpoint: VipEndpoint) -> Results:
    """Return what may be written now; without an address the status stays as it is."""
    ids = annotations(case.balancer, case.relation)
    if not endpoint.address:
        return Results(annotations=ids)
    return Results(
        ingress=ingress(case, endpoint.address),
        annotations=(*ids, (keys.LOAD_BALANCER_ADDRESS, endpoint.address)),
    )


def ingress(case: Case, address: str) -> tuple[Ingress, ...]:
    """Return the status: a hostname, or addresses with their mode.

    With the proxy protocol kube-proxy must not short-cut the load balancer.

    Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
    (createLoadBalancerStatus); KEP 1860.
    """
    if case.desired.hostname:
        return (Ingress(hostname=case.desired.hostname),)
    if case.desired.proxy is not Proxy.NONE and case.config.enable_ingress_hostname:
        return (Ingress(hostname=f"{address}.{case.config.ingress_hostname_suffix}"),)
    mode = IpMode.PROXY if case.desired.proxy is not Proxy.NONE else IpMode.VIP
    others: tuple[str, ...] = ()
    if len(case.desired.families) > 1:
        others = tuple(vip.ip_address for vip in case.balancer.additional_vips)
    return tuple(Ingress(ip=each, ip_mode=mode) for each in (address, *others))

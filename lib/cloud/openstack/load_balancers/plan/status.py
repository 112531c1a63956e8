"""What the Service is told: its status, and the annotations that name what it has.

Pure.
"""

from lib.cloud.load_balancers import Ingress, IpMode, Results
from lib.cloud.openstack.load_balancers.plan.case import Case
from lib.cloud.openstack.load_balancers.plan.floating import Reached
from lib.cloud.openstack.load_balancers.read.native import LoadBalancer
from lib.cloud.openstack.load_balancers.read.observed import Relation
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.wanted import Proxy


def annotations(
    balancer: LoadBalancer, relation: Relation
) -> tuple[tuple[str, str | None], ...]:
    """Write the ids down: by them a Service finds its load balancer again."""
    owned = balancer.id if relation is Relation.OWNED else None
    return ((keys.LOAD_BALANCER_ID, balancer.id), (keys.OWNED_ID, owned))


def results(case: Case, reached: Reached) -> Results:
    """Give what may be written now; without an address the status stays as it is."""
    ids = annotations(case.balancer, case.relation)
    if not reached.address:
        return Results(annotations=ids)
    return Results(
        ingress=ingress(case, reached.address),
        annotations=(*ids, (keys.LOAD_BALANCER_ADDRESS, reached.address)),
    )


def ingress(case: Case, address: str) -> tuple[Ingress, ...]:
    """Give the status: a hostname, or addresses with their mode.

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

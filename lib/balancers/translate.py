"""What a Service asks for, in the vocabulary of `lib/cloud`. Pure."""

from lib.balancers.model import Service, ServiceIngress, ServicePort
from lib.cloud.load_balancers import (
    Cluster,
    Facts,
    Ingress,
    IpFamily,
    IpMode,
    LoadBalancers,
    Node,
    Port,
    PortProtocol,
    Problems,
    Target,
)
from lib.cloud.steps import Problem


def target(
    service: Service,
    nodes: tuple[Node, ...],
    cluster: Cluster,
    load_balancers: LoadBalancers,
    serving: frozenset[str] | None = None,
) -> tuple[Target | None, tuple[Problem, ...]]:
    """Return what a Service asks of the cloud, or why that can't be served.

    serving: names of the Nodes with ready endpoints; None: not known.
    """
    asked = of(service, nodes, cluster, serving)
    ref = load_balancers.refer(asked)
    if not service.is_desired:
        return Target(ref, None), ()
    parsed = load_balancers.parse(asked)
    if isinstance(parsed, Problems):
        return None, parsed.problems
    return Target(ref, parsed), ()


def of(
    service: Service,
    nodes: tuple[Node, ...],
    cluster: Cluster,
    serving: frozenset[str] | None = None,
) -> Facts:
    """Return what a Service and the Nodes that may receive traffic ask for."""
    spec = service.spec
    is_local = spec.is_local
    families = tuple(IpFamily(family) for family in spec.ip_families)
    return Facts(
        cluster=cluster,
        namespace=service.metadata.namespace,
        name=service.metadata.name,
        uid=service.metadata.uid,
        annotations=service.metadata.annotations,
        ports=tuple(map(_port, spec.ports)),
        nodes=nodes,
        is_local=is_local,
        health_check_node_port=spec.health_check_node_port if is_local else 0,
        has_affinity=spec.session_affinity == "ClientIP",
        load_balancer_ip=spec.load_balancer_ip,
        load_balancer_class=spec.load_balancer_class or "",
        source_ranges=spec.load_balancer_source_ranges,
        ip_families=families or (IpFamily.IPV4,),
        external_ips=spec.external_ips,
        ingress=ingress(service),
        serving_nodes=serving if is_local else None,
    )


def _port(port: ServicePort) -> Port:
    return Port(
        port=port.port,
        protocol=PortProtocol(port.protocol),
        node_port=port.node_port,
        name=port.name,
        app_protocol=port.app_protocol,
    )


def ingress(service: Service) -> tuple[Ingress, ...]:
    """Return the addresses that the Service shows now."""
    return tuple(map(_ingress, service.status.load_balancer.ingress))


def _ingress(service_ingress: ServiceIngress) -> Ingress:
    mode = IpMode(service_ingress.ip_mode) if service_ingress.ip_mode else None
    return Ingress(
        ip=service_ingress.ip, hostname=service_ingress.hostname, ip_mode=mode
    )

"""Parses a Service's facts and cloud.conf into the desired state: pure.

Where several places set the same, the order of the reference applies: annotation,
class, configuration for networks and subnets; class, annotation, configuration for
floating ones.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go.
"""

import dataclasses
import ipaddress
import re

from lib.cloud import absence_limit
from lib.cloud.load_balancers import (
    Facts,
    IpFamily,
    Problems,
    Reason,
    Ref,
    Spec,
    shown_ports,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import backends, names, subnets, unknown
from lib.cloud.openstack.load_balancers.spec.annotations import AnnotationReader
from lib.cloud.openstack.load_balancers.spec.desired import (
    Desired,
    DesiredPort,
    Floating,
    Hints,
    Monitored,
    Monitoring,
    OnError,
    Placement,
    Proxy,
    Timeouts,
)
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason, Problem
from lib.process import config as config_problems

ALGORITHMS = settings.LB_METHODS
LONGEST_TIMEOUT_MS = 24 * 24 * 60 * 60 * 1000
MOST_RETRIES = 10
LONGEST_MONITOR_S = 86400
MOST_CONNECTIONS = 2**31 - 1
"""Source: octavia/common/constants.py, API ranges; its database for the last."""
_PROXIES = {"true": Proxy.V1, "v1": Proxy.V1, "v2": Proxy.V2, "false": Proxy.NONE}
_DNS_NAME = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
"""Source: Kubernetes, "Object Names and IDs", DNS subdomain names."""
_TLS_REF = re.compile(r".*/(?:containers|secrets)/[^/]+")
EVERYWHERE = {IpFamily.IPV4: "0.0.0.0/0", IpFamily.IPV6: "::/0"}


def refer(facts: Facts, config: settings.LoadBalancer) -> Ref:
    """Return the references to existing objects; never fails."""
    annotations = facts.annotations
    suffix = f".{config.ingress_hostname_suffix}"
    addresses = [
        entry.ip or entry.hostname.removesuffix(suffix) for entry in facts.ingress
    ]
    given_id = annotations.get(keys.DECKHOUSE_ID) or annotations.get(
        keys.LOAD_BALANCER_ID, ""
    )
    owned_id = annotations.get(keys.OWNED_ID, "")
    hints = Hints(
        given_id=given_id if keys.is_uuid(given_id) else "",
        owned_id=owned_id if keys.is_uuid(owned_id) else "",
        addresses=tuple(address for address in addresses if is_ip(address)),
        keeps_floating_ip=annotations.get(keys.KEEP_FLOATING_IP) == "true",
        shows_name=any(address and not is_ip(address) for address in addresses),
        shown_ips=tuple(entry.ip for entry in facts.ingress if entry.ip),
        is_leftover=keys.LOAD_BALANCER_ADDRESS in annotations and not facts.ingress,
        confirmed=frozenset(
            annotations.get(absence_limit.CONFIRM_ANNOTATION, "")
            .replace(",", " ")
            .split()
        ),
    )
    ref = Ref(facts.cluster, facts.namespace, facts.name, facts.uid)
    hints = dataclasses.replace(hints, names=names.of(ref))
    return dataclasses.replace(ref, native=hints)


def parse(
    facts: Facts,
    config: settings.LoadBalancer,
    choose: backends.Choose = backends.choose,
) -> Spec | Problems:
    """Read everything; all problems are reported together."""
    reader = AnnotationReader(facts.annotations)
    reader.problems += _of_service(facts)
    reader.problems += unknown.problems(facts.annotations)
    class_ = _class(reader, config)
    chosen = backends.select(facts, reader, config, choose)
    is_internal = _is_internal(reader, config)
    algorithm = _algorithm(reader, config)
    cidrs, has_ranges = _cidrs(facts, reader)
    proxy, forwards_for, tls_ref = _protocols(facts, reader, config)
    desired = Desired(
        ports=tuple(
            DesiredPort(index, port.protocol, port.port, port.node_port)
            for index, port in enumerate(facts.ports)
        ),
        members=chosen.members,
        anchor=chosen.anchor,
        anchor_server=chosen.anchor_server,
        families=facts.ip_families[:2] or (IpFamily.IPV4,),
        is_internal=is_internal,
        given_id=reader.id(keys.DECKHOUSE_ID) or reader.id(keys.LOAD_BALANCER_ID),
        address=_address(facts, reader),
        placement=_placement(reader, class_, config, is_internal),
        floating=_floating(reader, class_, config),
        keeps_floating_ip=reader.boolean(keys.KEEP_FLOATING_IP, False),
        proxy=proxy,
        forwards_for=forwards_for,
        tls_ref=tls_ref,
        connection_limit=reader.whole(keys.CONNECTION_LIMIT, -1, -1, MOST_CONNECTIONS),
        algorithm=algorithm,
        names_algorithm=bool(reader.text(keys.METHOD)),
        timeouts=_timeouts(reader),
        has_affinity=facts.has_affinity,
        monitored=_monitored(facts, reader, config),
        monitoring=_monitoring(reader, config),
        health_port=facts.health_check_node_port if facts.is_local else 0,
        cidrs=cidrs,
        has_ranges=has_ranges,
        hostname=_hostname(reader),
        on_error=OnError(reader.choice(keys.ON_ERROR, "report", tuple(OnError))),
    )
    problems = tuple(reader.problems)
    if any(problem.is_fatal for problem in problems):
        return Problems(problems)
    return Spec(desired, problems)


def is_ip(text: str) -> bool:
    """Report whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _of_service(facts: Facts) -> list[Problem]:
    problems: list[Problem] = []
    if not facts.ports:
        message = "spec.ports: not set: must be at least one port"
        problems.append(Problem(Reason.INVALID_SERVICE, message, is_fatal=True))
    if not facts.nodes:
        message = "there are no available Nodes for the load balancer"
        problems.append(Problem(Reason.NO_NODES, message, is_fatal=True))
    bare = [port for port in facts.ports if not port.node_port]
    if bare:
        message = (
            f"spec.ports: {shown_ports(bare)} has no nodePort, so that its pool has no"
            " members: set allocateLoadBalancerNodePorts to true, or nodePort of each"
        )
        problems.append(Problem(Reason.NO_NODE_PORT, message))
    return problems


def _class(
    reader: AnnotationReader, config: settings.LoadBalancer
) -> settings.LoadBalancerClass:
    name = reader.text(keys.CLASS)
    if not name:
        return settings.LoadBalancerClass()
    if name not in config.classes:
        known = ", ".join(sorted(config.classes)) or "none"
        allowed = f'the name of a [LoadBalancerClass "..."]: {known}'
        reader.fatal(keys.CLASS, name, allowed, Reason.UNKNOWN_CLASS)
    return config.classes.get(name, settings.LoadBalancerClass())


def _is_internal(reader: AnnotationReader, config: settings.LoadBalancer) -> bool:
    return reader.boolean(keys.INTERNAL, config.internal_lb) or config.internal_lb


def _algorithm(reader: AnnotationReader, config: settings.LoadBalancer) -> str:
    """Choose the pools' algorithm; the plan compares it with the provider's."""
    method = reader.text(keys.METHOD) or config.lb_method
    if method in ALGORITHMS:
        return method
    field = reader.where(keys.METHOD)
    allowed = f"one of {', '.join(ALGORITHMS)}"
    problem_text = config_problems.FieldProblem(field, method, allowed)
    used = config.lb_method if config.lb_method in ALGORITHMS else ALGORITHMS[0]
    message = (
        f"Error updating LB method for LoadBalancer: {problem_text};"
        f' using the default "{used}"'
    )
    event = "LoadBalancerLbMethodUnknown"
    problem = Problem(Reason.INVALID_ANNOTATION, message, event=event)
    reader.problems.append(problem)
    return used


def _cidrs(facts: Facts, reader: AnnotationReader) -> tuple[tuple[str, ...], bool]:
    """Return the allowed clients, and whether the user set them; spec comes first."""
    text = reader.text(keys.SOURCE_RANGES).strip()
    ranges = facts.source_ranges or tuple(
        part.strip() for part in text.split(",") if part.strip()
    )
    if not ranges:
        families = facts.ip_families or (IpFamily.IPV4,)
        return tuple(EVERYWHERE[family] for family in families[:2]), False
    cidrs: list[str] = []
    bad: list[str] = []
    for text_range in ranges:
        try:
            if "/" not in text_range:
                raise ValueError
            cidrs.append(str(ipaddress.ip_network(text_range.strip(), strict=False)))
        except ValueError:
            bad.append(text_range)
    for text_range in bad[: keys.MOST_NAMED]:
        _bad_range(facts, reader, text_range)
    return tuple(dict.fromkeys(cidrs)), True


def _bad_range(facts: Facts, reader: AnnotationReader, value: str) -> None:
    allowed = "CIDRs such as 10.0.0.0/24"
    if not facts.source_ranges:
        reader.fatal(keys.SOURCE_RANGES, value, f"{allowed}, separated by commas")
        return
    message = str(
        config_problems.FieldProblem("spec.loadBalancerSourceRanges", value, allowed)
    )
    reader.problems.append(Problem(Reason.INVALID_SERVICE, message, is_fatal=True))


def _protocols(
    facts: Facts, reader: AnnotationReader, config: settings.LoadBalancer
) -> tuple[Proxy, bool, str]:
    """Read what changes protocols: proxy protocol, X-Forwarded-For, TLS."""
    proxy = _PROXIES[
        reader.choice(keys.PROXY_PROTOCOL, "false", tuple(_PROXIES)) or "false"
    ]
    forwards_for = reader.boolean(keys.FORWARDED_FOR, False)
    if proxy and forwards_for:
        value = reader.text(keys.FORWARDED_FOR)
        reader.fatal(
            keys.FORWARDED_FOR, value, f"false together with {keys.PROXY_PROTOCOL}"
        )
    tls_ref = reader.text(keys.TLS_REF, config.default_tls_container_ref)
    if (
        tls_ref
        and config.container_store == "barbican"
        and not _TLS_REF.fullmatch(tls_ref)
    ):
        allowed = "a URL that ends in containers/<uuid> or secrets/<uuid>"
        reader.fatal(keys.TLS_REF, tls_ref, allowed, OctaviaReason.TLS)
    others = [port for port in facts.ports if port.protocol != "TCP"]
    if others and (proxy or forwards_for or tls_ref):
        named = ", ".join(f"{port.port}/{port.protocol}" for port in others)
        message = (
            "proxy protocol, X-Forwarded-For and TLS: not supported for"
            f" {named}: require TCP; ignored"
        )
        reader.problems.append(Problem(CommonReason.UNSUPPORTED, message))
    return proxy, forwards_for, tls_ref


def _address(facts: Facts, reader: AnnotationReader) -> str:
    deckhouse = reader.text(keys.DECKHOUSE_ADDRESS)
    if deckhouse and not is_ip(deckhouse):
        reader.fatal(keys.DECKHOUSE_ADDRESS, deckhouse, "an IP address")
    elif not deckhouse and facts.load_balancer_ip and not is_ip(facts.load_balancer_ip):
        problem = config_problems.FieldProblem(
            "spec.loadBalancerIP", facts.load_balancer_ip, "an IP address"
        )
        message = str(problem)
        reader.problems.append(Problem(Reason.INVALID_SERVICE, message, is_fatal=True))
    return deckhouse or facts.load_balancer_ip


def _placement(
    reader: AnnotationReader,
    class_: settings.LoadBalancerClass,
    config: settings.LoadBalancer,
    is_internal: bool,
) -> Placement:
    """Return where VIP and members are placed; the class wins for an external VIP."""
    subnet_id = reader.id(keys.SUBNET_ID) or class_.subnet_id or config.subnet_id
    network_id = reader.id(keys.NETWORK_ID) or class_.network_id or config.network_id
    member_subnet_id = (
        reader.id(keys.MEMBER_SUBNET_ID)
        or class_.member_subnet_id
        or config.member_subnet_id
        or config.subnet_id
        or subnet_id
    )
    if not is_internal:
        subnet_id = class_.subnet_id or subnet_id
        network_id = class_.network_id or network_id
    return Placement(
        port_id=reader.id(keys.PORT_ID),
        network_id=network_id,
        subnet_id=subnet_id,
        member_subnet_id=member_subnet_id,
        names_member_subnet=reader.has(keys.MEMBER_SUBNET_ID),
        flavor_id=reader.text(keys.FLAVOR_ID, config.flavor_id),
        availability_zone=reader.text(keys.AVAILABILITY_ZONE, config.availability_zone),
    )


def _floating(
    reader: AnnotationReader,
    class_: settings.LoadBalancerClass,
    config: settings.LoadBalancer,
) -> Floating:
    network_id = class_.floating_network_id or (
        reader.id(keys.FLOATING_NETWORK_ID)
        if reader.has(keys.FLOATING_NETWORK_ID)
        else config.floating_network_id
    )
    offers = (
        (
            class_.floating_subnet_id,
            class_.floating_subnet,
            class_.floating_subnet_tags,
        ),
        (
            reader.id(keys.FLOATING_SUBNET_ID),
            reader.text(keys.FLOATING_SUBNET),
            reader.text(keys.FLOATING_SUBNET_TAGS),
        ),
        (
            config.floating_subnet_id,
            config.floating_subnet,
            config.floating_subnet_tags,
        ),
    )
    subnet_id, subnet, tags = next(filter(any, offers), ("", "", ""))
    if not subnet_id and not subnets.is_pattern(subnet):
        allowed = (
            "a name, a glob, or a regular expression behind ~, of at most"
            f" {subnets.LONGEST_PATTERN} characters"
        )
        reader.fatal(keys.FLOATING_SUBNET, subnet, allowed)
    if subnet_id:
        subnet, tags = "", ""
    return Floating(network_id, subnet_id, subnet, tags)


def _timeouts(reader: AnnotationReader) -> Timeouts:
    most = LONGEST_TIMEOUT_MS
    usual = Timeouts()
    return Timeouts(
        client_data=reader.whole(keys.TIMEOUT_CLIENT_DATA, usual.client_data, 0, most),
        member_connect=reader.whole(
            keys.TIMEOUT_MEMBER_CONNECT, usual.member_connect, 0, most
        ),
        member_data=reader.whole(keys.TIMEOUT_MEMBER_DATA, usual.member_data, 0, most),
        tcp_inspect=reader.whole(keys.TIMEOUT_TCP_INSPECT, usual.tcp_inspect, 0, most),
    )


def _monitored(
    facts: Facts, reader: AnnotationReader, config: settings.LoadBalancer
) -> Monitored:
    is_said = reader.text(keys.ENABLE_MONITOR) in ("true", "false")
    if reader.boolean(keys.ENABLE_MONITOR, config.create_monitor):
        return Monitored.YES
    return Monitored.LOCAL if facts.is_local and not is_said else Monitored.NO


def _monitoring(reader: AnnotationReader, config: settings.LoadBalancer) -> Monitoring:
    longest = LONGEST_MONITOR_S
    return Monitoring(
        delay_s=reader.whole(
            keys.MONITOR_DELAY, int(config.monitor_delay_s), 0, longest
        ),
        timeout_s=reader.whole(
            keys.MONITOR_TIMEOUT, int(config.monitor_timeout_s), 0, longest
        ),
        max_retries=reader.whole(
            keys.MONITOR_RETRIES, config.monitor_max_retries, 1, MOST_RETRIES
        ),
        max_retries_down=reader.whole(
            keys.MONITOR_RETRIES_DOWN,
            config.monitor_max_retries_down,
            1,
            MOST_RETRIES,
        ),
    )


def _hostname(reader: AnnotationReader) -> str:
    value = reader.text(keys.HOSTNAME)
    if value and (len(value) > 253 or not _DNS_NAME.fullmatch(value)):
        reader.wrong(keys.HOSTNAME, value, "a DNS name in lower case", "the address")
        return ""
    return value

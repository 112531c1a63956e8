"""What a Service asks of the parent, parsed. Pure."""

import dataclasses
import ipaddress
import re
from collections.abc import Iterator

from lib.cloud.dvp.load_balancers import lb_names
from lib.cloud.load_balancers import (
    Facts,
    IpFamily,
    Node,
    Problems,
    Reason,
    Spec,
    shown_ports,
)
from lib.cloud.steps import CommonReason, Problem, ProblemReason
from lib.process import config

PROVIDER = "dvp://"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class DvpReason(ProblemReason):
    """Problems that only Services on DVP have."""

    NO_PARENT_ADDRESS = "NoParentAddress"
    """The parent does not give the load balancer an address."""
    NO_VIRTUAL_MACHINE = "NoVirtualMachine"
    """A Node has no VM, or several VMs have its name: it gets no traffic."""
    NOT_FORWARDED = "NotForwarded"
    """The configuration of dvp-ccm does not allow to pass something on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Forwarding:
    """How far a Service of the cluster reaches into the parent.

    prefixes: of annotations that are copied; "*" for all. external_ips: whether those
    are copied. By default all is, as by the reference.
    """

    prefixes: tuple[str, ...] = ("*",)
    external_ips: bool = True

    def copies(self, key: str) -> bool:
        """Report whether an annotation is copied."""
        return "*" in self.prefixes or key.startswith(self.prefixes)


ALL = Forwarding()


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredParentPort:
    """A port of the parent's object. target_port: the node port of the cluster."""

    name: str
    protocol: str
    port: int
    target_port: int


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredService:
    """The object in the parent, and the Nodes whose VMs are to get the label.

    annotations: key to value, sorted. withheld: annotations that are not copied. hosts:
    names of the Nodes. virtual_machines: by Node, the name of the VM that its provider
    ID shows. service: "namespace/name".
    """

    service: str
    uid: str
    ports: tuple[DesiredParentPort, ...]
    annotations: tuple[tuple[str, str], ...]
    is_local: bool
    external_ips: tuple[str, ...]
    load_balancer_class: str
    load_balancer_ip: str
    source_ranges: tuple[str, ...]
    hosts: frozenset[str]
    virtual_machines: tuple[tuple[str, str], ...]
    withheld: tuple[tuple[str, str], ...] = ()

    @property
    def only_plain(self) -> tuple[str, ...]:
        """The fields that no ServiceWithHealthchecks passes on to its Service.

        Source: the Service that its controller in deckhouse creates: ports, type, both
        traffic policies, publishNotReadyAddresses, and nothing else.
        """
        fields = {
            "spec.loadBalancerSourceRanges": self.source_ranges,
            "spec.loadBalancerClass": self.load_balancer_class,
            "spec.loadBalancerIP": self.load_balancer_ip,
            "spec.externalIPs": self.external_ips,
        }
        return tuple(field for field, value in fields.items() if value)

    @property
    def name(self) -> str:
        """The name of the objects in the parent."""
        return lb_names.object_name(self.uid)

    @property
    def requested_class(self) -> str:
        """The class that the parent is asked for; empty: its default."""
        annotations = dict(self.annotations)
        return self.load_balancer_class or annotations.get(
            lb_names.CLASS_ANNOTATION, ""
        )


def parse(facts: Facts, forwarding: Forwarding) -> Spec | Problems:
    """See the protocol."""
    problems = (*_of_ports(facts), *_of_nodes(facts), *_of_values(facts))
    if any(problem.is_fatal for problem in problems):
        return Problems(problems)
    nodes = tuple(node for node in facts.nodes if is_vm(node))
    if facts.is_local and facts.serving_nodes is not None:
        nodes = tuple(node for node in nodes if node.name in facts.serving_nodes)
    annotations = [
        (key, value)
        for key, value in sorted(facts.annotations.items())
        if not key.startswith(lb_names.NOT_COPIED)
    ]
    desired = DesiredService(
        f"{facts.namespace}/{facts.name}",
        facts.uid,
        tuple(
            DesiredParentPort(port.name, port.protocol.value, port.port, port.node_port)
            for port in facts.ports
        ),
        tuple(row for row in annotations if forwarding.copies(row[0])),
        facts.is_local,
        facts.external_ips if forwarding.external_ips else (),
        facts.load_balancer_class,
        facts.load_balancer_ip,
        facts.source_ranges,
        frozenset(node.name for node in nodes),
        tuple(
            (node.name, node.provider_id.removeprefix(PROVIDER))
            for node in nodes
            if node.provider_id
        ),
        tuple(row for row in annotations if not forwarding.copies(row[0])),
    )
    return Spec(desired, (*problems, *_ignored(facts), *_withheld(facts, desired)))


def _ignored(facts: Facts) -> Iterator[Problem]:
    """Yield fields without effect on the parent's object, whatever its kind is.

    The reference passes neither on and is silent.
    """
    if facts.has_affinity:
        text = (
            "spec.sessionAffinity: ClientIP is not supported by the load balancer in"
            " the parent; ignored: connections of one client reach any Node"
        )
        yield Problem(CommonReason.UNSUPPORTED, text)
    others = [each.value for each in facts.ip_families if each is not IpFamily.IPV4]
    if others:
        text = (
            f"spec.ipFamilies: {', '.join(others)} is not supported by the load"
            " balancer in the parent, which has the family that the parent chooses;"
            " ignored"
        )
        yield Problem(CommonReason.UNSUPPORTED, text)


def _withheld(facts: Facts, desired: DesiredService) -> tuple[Problem, ...]:
    """Report what the Service asks for, and the administrator does not allow."""
    names = [f"annotation {key}" for key, _ in desired.withheld]
    if facts.external_ips and not desired.external_ips:
        names.append("spec.externalIPs")
    if not names:
        return ()
    text = f"{', '.join(names)}: not passed on to the parent, as dvp-ccm is configured"
    return (Problem(DvpReason.NOT_FORWARDED, text),)


def of(spec: Spec | None) -> DesiredService | None:
    """Return the parsed state of a target; None: it is to be deleted."""
    if spec is None:
        return None
    if not isinstance(spec.native, DesiredService):
        raise TypeError("the spec is of another provider package")
    return spec.native


def is_vm(node: Node) -> bool:
    """Report whether a Node may be a VM of the parent.

    Those of other providers, and static ones, are not. A new one has no provider ID.
    """
    return not node.provider_id or node.provider_id.startswith(PROVIDER)


def _of_ports(facts: Facts) -> tuple[Problem, ...]:
    if not facts.ports:
        message = str(config.not_set("spec.ports", "at least one port"))
        return (Problem(Reason.INVALID_SERVICE, message, is_fatal=True),)
    bare = [port for port in facts.ports if not port.node_port]
    if not bare:
        return ()
    message = (
        f"spec.ports: {shown_ports(bare)} has no nodePort: must be allocated"
        " (spec.allocateLoadBalancerNodePorts), since the parent sends traffic there"
    )
    return (Problem(Reason.NO_NODE_PORT, message, is_fatal=True),)


def _of_nodes(facts: Facts) -> tuple[Problem, ...]:
    if not facts.nodes:
        text = "there are no available Nodes for the load balancer"
    elif not any(map(is_vm, facts.nodes)):
        text = f"none of the {len(facts.nodes)} Nodes is a VM of the parent cluster"
    else:
        return ()
    return (Problem(Reason.NO_NODES, text, is_fatal=True),)


def _of_values(facts: Facts) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    class_name = facts.annotations.get(lb_names.CLASS_ANNOTATION, "")
    if class_name and not _SUBDOMAIN.fullmatch(class_name):
        wrong = config.FieldProblem(
            f"annotation {lb_names.CLASS_ANNOTATION}",
            class_name,
            "the name of a load balancer class of the parent cluster",
        )
        problems.append(Problem(Reason.INVALID_ANNOTATION, str(wrong), is_fatal=True))
    if facts.load_balancer_ip and not _is_ip(facts.load_balancer_ip):
        wrong = config.FieldProblem(
            "spec.loadBalancerIP", facts.load_balancer_ip, "an IP address"
        )
        problems.append(Problem(Reason.INVALID_SERVICE, str(wrong), is_fatal=True))
    return tuple(problems)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

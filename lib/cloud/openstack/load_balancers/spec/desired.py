"""Desired state of a Service in Octavia: the provider's value inside a Spec."""

import dataclasses
import enum

from lib.cloud.load_balancers import IpFamily, PortProtocol
from lib.cloud.openstack.load_balancers.spec.names import Names


class Proxy(enum.StrEnum):
    """The pool protocol that carries a client's address; none: the listener's own."""

    NONE = ""
    V1 = "PROXY"
    V2 = "PROXYV2"


class OnError(enum.StrEnum):
    """Reaction to a load balancer that was usable and is in ERROR now."""

    REPORT = "report"
    FAILOVER = "failover"
    RECREATE = "recreate"


class Monitored(enum.Enum):
    """Whether pools have health monitors."""

    YES = "yes"
    NO = "no"
    LOCAL = "local"
    """Not set, but required by the traffic policy Local: on created load balancers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Timeouts:
    """Of a listener, in milliseconds."""

    client_data: int = 50000
    member_connect: int = 5000
    member_data: int = 50000
    tcp_inspect: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Monitoring:
    """Of a pool's monitor. Times in seconds."""

    delay_s: int = 5
    timeout_s: int = 3
    max_retries: int = 1
    max_retries_down: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredPort:
    """One port. index: in the Service; part of names."""

    index: int
    protocol: PortProtocol
    port: int
    node_port: int


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredMember:
    """A Node that receives traffic, at its address."""

    name: str
    address: str


@dataclasses.dataclass(frozen=True, slots=True)
class Floating:
    """Where floating IPs come from.

    network_id: empty: the first external network. subnet_id beats subnet (a name
    pattern) and tags (an expression).
    """

    network_id: str = ""
    subnet_id: str = ""
    subnet: str = ""
    tags: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """Where the address of a new load balancer lives; port_id replaces the others.

    member_subnet_id: empty: not set. names_member_subnet: the Service itself sets it.
    Where neither network nor subnet is set, the subnet of the first Node's address
    is used, for members too.
    """

    port_id: str = ""
    network_id: str = ""
    subnet_id: str = ""
    member_subnet_id: str = ""
    names_member_subnet: bool = False
    flavor_id: str = ""
    availability_zone: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Desired:
    """Desired state of one Service.

    anchor: the address of a Node (the first member, if any), of which the subnet is
    used where none is set. anchor_server: the ID of that Node's server; empty: not
    known. families: the first one is the VIP's; a second one asks
    for an additional VIP. given_id: the load balancer to use. address: loadBalancerIP,
    empty: any. cidrs: the allowed clients, normalised; has_ranges: the user set them.
    health_port: of the traffic policy Local, else 0. algorithm: lb-method; empty: any,
    so that pools keep theirs. names_algorithm: the Service names it by annotation.
    """

    ports: tuple[DesiredPort, ...]
    members: tuple[DesiredMember, ...]
    anchor: str = ""
    families: tuple[IpFamily, ...] = (IpFamily.IPV4,)
    anchor_server: str = ""
    is_internal: bool = False
    given_id: str = ""
    address: str = ""
    placement: Placement = dataclasses.field(default_factory=Placement)
    floating: Floating = dataclasses.field(default_factory=Floating)
    keeps_floating_ip: bool = False
    proxy: Proxy = Proxy.NONE
    forwards_for: bool = False
    tls_ref: str = ""
    connection_limit: int = -1
    algorithm: str = "ROUND_ROBIN"
    names_algorithm: bool = False
    timeouts: Timeouts = dataclasses.field(default_factory=Timeouts)
    has_affinity: bool = False
    monitored: Monitored = Monitored.NO
    monitoring: Monitoring = dataclasses.field(default_factory=Monitoring)
    health_port: int = 0
    cidrs: tuple[str, ...] = ("0.0.0.0/0",)
    has_ranges: bool = False
    hostname: str = ""
    on_error: OnError = OnError.REPORT


@dataclasses.dataclass(frozen=True, slots=True)
class Hints:
    """References of a Ref beside the Service's name.

    given_id: the id in the annotations. owned_id: of the load balancer that we have
    once owned for this Service, by our own annotation. addresses: in the status.
    keeps_floating_ip: keep-floatingip, however wrong the rest may be. shows_name: the
    status shows a name without an address. shown_ips: the IP addresses in the
    status; only we write them, while a hostname there may be a user's annotation.
    names: of the Service's objects; None: not computed yet. confirmed: IDs of load
    balancers that a user declares to be deleted, or to be deletable. is_leftover: the
    given id was written for a load balancer that served the Service before; now its
    status shows no address.
    """

    given_id: str = ""
    owned_id: str = ""
    addresses: tuple[str, ...] = ()
    keeps_floating_ip: bool = False
    shows_name: bool = False
    shown_ips: tuple[str, ...] = ()
    names: Names | None = dataclasses.field(default=None, compare=False)
    confirmed: frozenset[str] = frozenset()
    is_leftover: bool = False

"""What Octavia and Neutron send, as far as load balancers need it."""

import msgspec

from lib.cloud.openstack.native import FixedIp, page

ACTIVE = "ACTIVE"
ERROR = "ERROR"
DELETED = "DELETED"
PENDING_CREATE = "PENDING_CREATE"
PENDING_DELETE = "PENDING_DELETE"


class Id(msgspec.Struct, frozen=True):
    """A reference to another thing."""

    id: str


class Vip(msgspec.Struct, frozen=True):
    """One of a load balancer's additional addresses."""

    ip_address: str = ""
    subnet_id: str | None = None


class LoadBalancer(msgspec.Struct, frozen=True):
    """A load balancer. created_at, updated_at: UTC, without a zone.

    admin_state_up, as of all below it: false when another client has disabled it.
    """

    id: str
    name: str = ""
    description: str | None = ""
    provisioning_status: str = ""
    created_at: str | None = ""
    updated_at: str | None = ""
    vip_address: str | None = ""
    vip_port_id: str | None = ""
    vip_subnet_id: str | None = ""
    vip_network_id: str | None = ""
    additional_vips: tuple[Vip, ...] = ()
    provider: str | None = ""
    flavor_id: str | None = ""
    availability_zone: str | None = ""
    tags: tuple[str, ...] = ()
    admin_state_up: bool = True
    project_id: str | None = ""


class Listener(msgspec.Struct, frozen=True):
    """A listener."""

    id: str
    name: str = ""
    protocol: str = ""
    protocol_port: int = 0
    connection_limit: int | None = -1
    default_pool_id: str | None = None
    insert_headers: dict[str, str] | None = None
    default_tls_container_ref: str | None = None
    timeout_client_data: int | None = None
    timeout_member_connect: int | None = None
    timeout_member_data: int | None = None
    timeout_tcp_inspect: int | None = None
    allowed_cidrs: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    loadbalancers: tuple[Id, ...] = ()
    admin_state_up: bool = True


class Persistence(msgspec.Struct, frozen=True):
    """How a pool keeps a client at a member."""

    type: str = ""


class Pool(msgspec.Struct, frozen=True):
    """A pool, without its members."""

    id: str
    name: str = ""
    protocol: str = ""
    lb_algorithm: str = ""
    session_persistence: Persistence | None = None
    listeners: tuple[Id, ...] = ()
    loadbalancers: tuple[Id, ...] = ()
    healthmonitor_id: str | None = None
    admin_state_up: bool = True
    tags: tuple[str, ...] = ()
    created_at: str | None = ""


class Monitor(msgspec.Struct, frozen=True):
    """A health monitor. Times in seconds."""

    id: str
    name: str | None = ""
    type: str = ""
    delay: int = 0
    timeout: int = 0
    max_retries: int = 0
    max_retries_down: int | None = 3
    url_path: str | None = None
    http_method: str | None = None
    expected_codes: str | None = None
    pools: tuple[Id, ...] = ()
    admin_state_up: bool = True


class Member(msgspec.Struct, frozen=True, gc=False):
    """A member; of it the status tree shows only name, address and port.

    There may be hundreds of thousands: it has no field that is not read.
    """

    name: str | None = ""
    address: str = ""
    protocol_port: int = 0
    subnet_id: str | None = None
    weight: int | None = 1
    monitor_port: int | None = None
    admin_state_up: bool = True


class TreePool(msgspec.Struct, frozen=True):
    """A pool in the status tree."""

    id: str
    members: tuple[Member, ...] = ()


class TreeListener(msgspec.Struct, frozen=True):
    """A listener in the status tree."""

    id: str
    pools: tuple[TreePool, ...] = ()


class StatusTree(msgspec.Struct, frozen=True):
    """A load balancer in the status tree."""

    id: str
    listeners: tuple[TreeListener, ...] = ()


class Statuses(msgspec.Struct, frozen=True):
    """The tree's root."""

    loadbalancer: StatusTree


class StatusAnswer(msgspec.Struct, frozen=True):
    """GET /lbaas/loadbalancers/{id}/status."""

    statuses: Statuses


class FloatingIp(msgspec.Struct, frozen=True):
    """A floating IP; port_id: empty when it is free."""

    id: str
    floating_ip_address: str = ""
    floating_network_id: str = ""
    port_id: str | None = None
    description: str | None = ""
    revision_number: int | None = None
    created_at: str | None = ""


class Rule(msgspec.Struct, frozen=True):
    """A rule of a security group."""

    id: str
    direction: str = ""
    protocol: str | None = None
    ethertype: str = ""
    remote_ip_prefix: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None


class SecurityGroup(msgspec.Struct, frozen=True):
    """A security group with its rules."""

    id: str
    name: str = ""
    description: str | None = ""
    security_group_rules: tuple[Rule, ...] = ()
    created_at: str | None = ""


class Port(msgspec.Struct, frozen=True):
    """A Neutron port, as security groups and subnets are concerned."""

    id: str
    device_id: str = ""
    fixed_ips: tuple[FixedIp, ...] = ()
    security_groups: tuple[str, ...] = ()
    port_security_enabled: bool = True
    revision_number: int | None = None


class Subnet(msgspec.Struct, frozen=True):
    """A subnet."""

    id: str
    name: str = ""
    network_id: str = ""
    cidr: str = ""
    ip_version: int = 4
    tags: tuple[str, ...] = ()


class Network(msgspec.Struct, frozen=True):
    """A network."""

    id: str
    name: str = ""
    subnets: tuple[str, ...] = ()


LoadBalancersPage = page("loadbalancers", LoadBalancer)
"""GET /lbaas/loadbalancers."""


ListenersPage = page("listeners", Listener)
"""GET /lbaas/listeners."""


PoolsPage = page("pools", Pool)
"""GET /lbaas/pools."""


class MonitorAnswer(msgspec.Struct, frozen=True):
    """GET /v2.0/lbaas/healthmonitors/{id}."""

    healthmonitor: Monitor


MonitorsPage = page("healthmonitors", Monitor)
"""GET /lbaas/healthmonitors."""


MembersPage = page("members", Member)
"""GET /lbaas/pools/{id}/members."""


FloatingIpsPage = page("floatingips", FloatingIp)
"""GET /v2.0/floatingips."""


SecurityGroupsPage = page("security_groups", SecurityGroup)
"""GET /v2.0/security-groups."""


PortsPage = page("ports", Port)
"""GET /v2.0/ports."""


SubnetsPage = page("subnets", Subnet)
"""GET /v2.0/subnets."""


NetworksPage = page("networks", Network)
"""GET /v2.0/networks."""


class LoadBalancerAnswer(msgspec.Struct, frozen=True):
    """GET /lbaas/loadbalancers/{id}."""

    loadbalancer: LoadBalancer

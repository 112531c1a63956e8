"""What Nova, Neutron and Cinder send of objects of layouts, as far as they are read."""

import datetime

import msgspec

from lib.cloud.openstack.native import page


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """What objects of Neutron share. tags: none where Neutron lacks the extension."""

    id: str
    name: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    created_at: datetime.datetime | None = None


class Network(Tagged, frozen=True, kw_only=True):
    """A network."""

    is_external: bool = msgspec.field(default=False, name="router:external")


class Subnet(Tagged, frozen=True, kw_only=True):
    """A subnet."""

    network_id: str = ""
    cidr: str = ""


class Router(Tagged, frozen=True, kw_only=True):
    """A router."""


class FixedIp(msgspec.Struct, frozen=True):
    """One address of a port."""

    subnet_id: str = ""


class Port(Tagged, frozen=True, kw_only=True):
    """A port. device_id: of the server or router that has it."""

    network_id: str = ""
    device_id: str = ""
    device_owner: str = ""
    fixed_ips: tuple[FixedIp, ...] = ()


class SecurityGroup(Tagged, frozen=True, kw_only=True):
    """A security group."""


class Rule(msgspec.Struct, frozen=True):
    """A rule of a security group. None: any."""

    id: str
    security_group_id: str = ""
    direction: str = ""
    ethertype: str = ""
    protocol: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_ip_prefix: str | None = None
    remote_group_id: str | None = None


class FloatingIp(Tagged, frozen=True, kw_only=True):
    """A floating IP, which has no name."""

    floating_ip_address: str = ""
    port_id: str | None = None


class Server(msgspec.Struct, frozen=True):
    """A server."""

    id: str
    name: str | None = None
    status: str = ""
    metadata: dict[str, str] = {}
    created: datetime.datetime | None = None


class Attached(msgspec.Struct, frozen=True):
    """An attachment of a volume. server_id: None: to a host."""

    server_id: str | None = None


class Volume(msgspec.Struct, frozen=True):
    """A volume. created_at: UTC, without a zone."""

    id: str
    name: str | None = None
    status: str = ""
    metadata: dict[str, str | None] = {}
    attachments: tuple[Attached, ...] = ()
    created_at: datetime.datetime | None = None


class KeyPair(msgspec.Struct, frozen=True):
    """A key pair of the user."""

    name: str
    public_key: str = ""


class KeyPairEntry(msgspec.Struct, frozen=True):
    """An entry of Nova's list."""

    keypair: KeyPair


class KeyPairs(msgspec.Struct, frozen=True):
    """GET /os-keypairs below microversion 2.35: all of them."""

    items: tuple[KeyPairEntry, ...] = msgspec.field(name="keypairs")


class ServerGroup(msgspec.Struct, frozen=True):
    """A server group. policies: below microversion 2.64, policy: from there on."""

    id: str
    name: str | None = None
    policies: tuple[str, ...] = ()
    policy: str = ""


class ServerGroups(msgspec.Struct, frozen=True):
    """GET /os-server-groups, which has no links to further pages."""

    items: tuple[ServerGroup, ...] = msgspec.field(name="server_groups")


NetworksPage = page("networks", Network)
SubnetsPage = page("subnets", Subnet)
RoutersPage = page("routers", Router)
PortsPage = page("ports", Port)
SecurityGroupsPage = page("security_groups", SecurityGroup)
RulesPage = page("security_group_rules", Rule)
FloatingIpsPage = page("floatingips", FloatingIp)
ServersPage = page("servers", Server)
VolumesPage = page("volumes", Volume)

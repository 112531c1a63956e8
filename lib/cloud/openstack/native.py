"""What Nova and Neutron send, as far as this room reads it."""

import types
from typing import Protocol, TypeVar, cast

import msgspec

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class PageLink(msgspec.Struct, frozen=True):
    """A link of a list; rel "next" means that there is another page."""

    rel: str = ""
    href: str = ""


class Page(Protocol[T_co]):
    """One page of any list."""

    @property
    def items(self) -> tuple[T_co, ...]:
        """Return the objects of the page."""
        ...

    @property
    def links(self) -> tuple[PageLink, ...]:
        """Where other pages are."""
        ...


def page(key: str, item: type[T], links: str = "") -> type[Page[T]]:
    """Return the type of one page of a list.

    key: of the items in the answer. links: of the links, if not the key with "_links".
    """
    items = types.GenericAlias(tuple, (item, ...))
    fields = [
        ("items", items, msgspec.field(name=key)),
        (
            "links",
            tuple[PageLink, ...],
            msgspec.field(default=(), name=links or f"{key}_links"),
        ),
    ]
    page = msgspec.defstruct(f"{item.__name__}Page", fields, frozen=True)
    return cast(type[Page[T]], page)


class NovaAddress(msgspec.Struct, frozen=True):
    """One address as Nova's cache knows it; kind: fixed or floating."""

    addr: str
    kind: str = msgspec.field(default="", name="OS-EXT-IPS:type")


class Flavor(msgspec.Struct, frozen=True):
    """A server's flavor: id below microversion 2.47, original_name from there on.

    Source: Nova API microversion history, 2.47.
    """

    id: str = ""
    original_name: str = ""


class Server(msgspec.Struct, frozen=True):
    """A Nova server. addresses: by network name."""

    id: str
    name: str | None = None
    status: str = "UNKNOWN"
    flavor: Flavor = Flavor()
    metadata: dict[str, str] = {}
    addresses: dict[str, tuple[NovaAddress, ...]] = {}
    access_ipv4: str | None = msgspec.field(default=None, name="accessIPv4")
    access_ipv6: str | None = msgspec.field(default=None, name="accessIPv6")
    zone: str | None = msgspec.field(default=None, name="OS-EXT-AZ:availability_zone")


ServersPage = page("servers", Server)
"""GET /servers/detail, and GET /servers with only id and name filled."""


class ServerAnswer(msgspec.Struct, frozen=True):
    """GET /servers/{id}."""

    server: Server


class NamedFlavor(msgspec.Struct, frozen=True):
    """An entry of Nova's list of flavors."""

    id: str
    name: str


FlavorsPage = page("flavors", NamedFlavor)
"""GET /flavors/detail."""


class FixedIp(msgspec.Struct, frozen=True):
    """One address of a port."""

    ip_address: str
    subnet_id: str = ""


class SubPort(msgspec.Struct, frozen=True):
    """A port that travels on a trunk."""

    port_id: str


class TrunkDetails(msgspec.Struct, frozen=True):
    """What the trunk-details extension adds to a trunk's parent port."""

    sub_ports: tuple[SubPort, ...] = ()


class Port(msgspec.Struct, frozen=True):
    """A Neutron port; device_id: the server it is attached to."""

    id: str
    device_id: str = ""
    status: str = ""
    network_id: str = ""
    fixed_ips: tuple[FixedIp, ...] = ()
    trunk_details: TrunkDetails | None = None


PortsPage = page("ports", Port)
"""GET /v2.0/ports."""


class Network(msgspec.Struct, frozen=True):
    """A Neutron network."""

    id: str
    name: str = ""


NetworksPage = page("networks", Network)
"""GET /v2.0/networks."""


class ZoneState(msgspec.Struct, frozen=True):
    """Whether a zone takes new servers, or volumes."""

    available: bool = False


class Zone(msgspec.Struct, frozen=True):
    """An availability zone of Nova or Cinder."""

    name: str = msgspec.field(name="zoneName")
    state: ZoneState = msgspec.field(default=ZoneState(), name="zoneState")


class Zones(msgspec.Struct, frozen=True):
    """GET /os-availability-zone."""

    items: tuple[Zone, ...] = msgspec.field(name="availabilityZoneInfo")

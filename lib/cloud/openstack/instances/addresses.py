"""Which addresses a Node gets: pure, rule by rule as the reference has them.

Source: kubernetes/cloud-provider-openstack pkg/openstack/instances_addresses.go.
"""

import dataclasses
import ipaddress
from collections.abc import Mapping, Sequence

from lib.cloud.model import Address, AddressType
from lib.cloud.openstack import native
from lib.cloud.openstack.config.settings import Network, Networking
from lib.process.config import quoted

_HOSTNAME_KEY = "hostname"
_IPS = (AddressType.INTERNAL_IP, AddressType.EXTERNAL_IP)


@dataclasses.dataclass(frozen=True, slots=True)
class Wiring:
    """What Neutron knows of one server.

    ports: attached ones, in API order. trunked: network name and address of the ports
    on their trunks, in API order.
    """

    ports: tuple[native.Port, ...] = ()
    trunked: tuple[tuple[str, str], ...] = ()


def of_server(
    server: native.Server, wiring: Wiring, networking: Networking
) -> tuple[Address, ...]:
    """Return the server's addresses in order, each type and address once."""
    addresses: list[Address] = []
    for fixed in _from_ports(wiring.ports):
        _add(addresses, AddressType.INTERNAL_IP, fixed, networking)
    if server.access_ipv4:
        _append(addresses, Address(AddressType.EXTERNAL_IP, server.access_ipv4))
    if server.access_ipv6 and not networking.ipv6_support_disabled:
        _append(addresses, Address(AddressType.EXTERNAL_IP, server.access_ipv6))
    if hostname := server.metadata.get(_HOSTNAME_KEY):
        _append(addresses, Address(AddressType.HOSTNAME, hostname))
    for network, known in sorted(_by_network(server, wiring, networking).items()):
        for address in known:
            _place(addresses, network, address, networking)
    return _sorted(addresses, networking.address_sort_order)


def problem(
    server: native.Server,
    wiring: Wiring,
    networking: Networking,
    left: Sequence[Address],
) -> str:
    """Return why [Networking] leaves a server with addresses none; empty: it does not.

    left: what `of_server` returns.
    """
    if any(address.type in _IPS for address in left):
        return ""
    unfiltered = dataclasses.replace(
        networking, internal_network_names=(), ipv6_support_disabled=False
    )
    if not any(a.type in _IPS for a in of_server(server, wiring, unfiltered)):
        return ""
    names = networking.internal_network_names
    networks = ", ".join(quoted(name) for name in sorted(server.addresses))
    with_ipv6 = dataclasses.replace(networking, ipv6_support_disabled=False)
    if any(a.type in _IPS for a in of_server(server, wiring, with_ipv6)):
        return (
            "[Networking] ipv6-support-disabled is true, and all addresses of the"
            f" server are of IPv6, in the networks {networks}"
        )
    allowed = " or ".join(quoted(name) for name in names)
    return (
        f"[Networking] internal-network-name is {allowed}, and the server has addresses"
        f" only in the networks {networks}: must be the name of one of them"
    )


def _from_ports(ports: Sequence[native.Port]) -> list[str]:
    return [
        fixed.ip_address
        for port in ports
        if port.status == "ACTIVE"
        for fixed in port.fixed_ips
    ]


def _by_network(
    server: native.Server, wiring: Wiring, networking: Networking
) -> Mapping[str, Sequence[native.NovaAddress]]:
    known = {network: list(some) for network, some in server.addresses.items()}
    for network, address in wiring.trunked:
        if not (networking.ipv6_support_disabled and _is_ipv6(address)):
            known.setdefault(network, []).append(native.NovaAddress(address, "fixed"))
    return known


def _place(
    addresses: list[Address],
    network: str,
    address: native.NovaAddress,
    networking: Networking,
) -> None:
    """Rule 4: the type by the network's name; a removal takes every type."""
    internal = networking.internal_network_names
    if address.kind == "floating":
        _add(addresses, AddressType.EXTERNAL_IP, address.addr, networking)
    elif network in networking.public_network_names:
        _remove(addresses, address.addr)
        _add(addresses, AddressType.EXTERNAL_IP, address.addr, networking)
    elif not internal or network in internal:
        _add(addresses, AddressType.INTERNAL_IP, address.addr, networking)
    else:
        _remove(addresses, address.addr)


def _add(
    addresses: list[Address], kind: AddressType, address: str, networking: Networking
) -> None:
    if not (networking.ipv6_support_disabled and _is_ipv6(address)):
        _append(addresses, Address(kind, address))


def _append(addresses: list[Address], address: Address) -> None:
    if address not in addresses:
        addresses.append(address)


def _remove(addresses: list[Address], address: str) -> None:
    addresses[:] = [other for other in addresses if other.address != address]


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an IP; one of IPv4 written in IPv6 form is an IPv4 one, as in Go."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_ipv6(text: str) -> bool:
    return not isinstance(_parsed(text), ipaddress.IPv4Address)


def _sorted(
    addresses: Sequence[Address], order: tuple[Network, ...]
) -> tuple[Address, ...]:
    """Rule 6: matching networks first, in their order; the rest as it was."""

    def rank(address: Address) -> tuple[int, bytes]:
        parsed = _parsed(address.address)
        if parsed is not None:
            for position, network in enumerate(order):
                if parsed.version == network.version and parsed in network:
                    return position, parsed.packed
        return len(order), b""

    return tuple(sorted(addresses, key=rank))

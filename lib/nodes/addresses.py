"""Desired addresses of a Node, from its instance and its annotation."""

import ipaddress
from collections.abc import Iterable

from lib.cloud.model import Address, AddressType
from lib.kube import nodes as kube_nodes
from lib.nodes import model


class ProvidedIpError(Exception):
    """The Node asks for an address that its instance does not have."""


def desired(node: kube_nodes.Node, cloud: tuple[Address, ...]) -> tuple[Address, ...]:
    """Return the Node's addresses in order; empty when the cloud knows none.

    Existing Hostname addresses stay when the cloud gives none. Addresses named in
    the annotation come first and displace all others of their type.

    Raises:
        ProvidedIpError: an address named in the annotation is not the instance's.

    Source: k8s.io/cloud-provider controllers/node and node/helpers (address.go).
    """
    if not cloud:
        return ()
    known = _with_hostname(node, cloud)
    asked = node.metadata.annotations.get(model.PROVIDED_IP_ANNOTATION)
    return known if asked is None else _preferring(_parsed(asked), known)


def are_shown(node: kube_nodes.Node, addresses: tuple[Address, ...]) -> bool:
    """Compare exactly and in order; the reference misses some changes here."""
    shown = tuple((a.type, a.address) for a in node.status.addresses)
    return shown == tuple((str(a.type), a.address) for a in addresses)


def _with_hostname(
    node: kube_nodes.Node, cloud: tuple[Address, ...]
) -> tuple[Address, ...]:
    if any(address.type is AddressType.HOSTNAME for address in cloud):
        return cloud
    return cloud + tuple(
        Address(AddressType.HOSTNAME, address.address)
        for address in node.status.addresses
        if address.type == AddressType.HOSTNAME
    )


def _parsed(asked: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        return [ipaddress.ip_address(part.strip()) for part in asked.split(",")]
    except ValueError:
        raise ProvidedIpError(
            f'annotation {model.PROVIDED_IP_ANNOTATION}: invalid value "{asked[:100]}":'
            " must be one IP address, or an IPv4 and an IPv6 address"
        ) from None


def _preferring(
    asked: Iterable[ipaddress.IPv4Address | ipaddress.IPv6Address],
    known: tuple[Address, ...],
) -> tuple[Address, ...]:
    first: list[Address] = []
    for ip in asked:
        matches = [address for address in known if _ip(address) == ip]
        if not matches:
            listed = ", ".join(address.address for address in known)
            raise ProvidedIpError(
                f'annotation {model.PROVIDED_IP_ANNOTATION}: unsupported value "{ip}":'
                f" must be an address of the instance: {listed}"
            )
        first.extend(match for match in matches if match not in first)
    displaced = {address.type for address in first}
    return (*first, *(address for address in known if address.type not in displaced))


def _ip(address: Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address.address)
    except ValueError:
        return None

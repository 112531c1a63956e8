"""Reads what surrounds a load balancer, as far as its plan needs it.

Lists that several targets need are read once per observation.
"""

import dataclasses
from collections.abc import Collection, Mapping

from lib.cloud.load_balancers import IpFamily, Problem, Reason
from lib.cloud.openstack import client, settings
from lib.cloud.openstack.load_balancers import lists, native, subnets
from lib.cloud.openstack.load_balancers.observed import (
    Children,
    FloatingSource,
    Identity,
    Surroundings,
)
from lib.cloud.openstack.load_balancers.wanted import Floating, Wanted

_VERSION = {IpFamily.IPV4: 4, IpFamily.IPV6: 6}


Groups = tuple[native.SecurityGroup, ...]


@dataclasses.dataclass(slots=True)
class Batch:
    """What one observation has read already. Used by one thread.

    floating_ips: of the project. groups: security groups by name. vip_ports: which of
    the load balancers' VIP ports are there; None: not read.
    """

    api: client.Client
    config: settings.LoadBalancer
    deadline: float
    floating_ips: tuple[native.FloatingIp, ...]
    groups: Mapping[str, Groups]
    vip_ports: Collection[str] | None = None
    _ports: dict[client.Query, tuple[native.Port, ...]] = dataclasses.field(
        default_factory=dict
    )
    _subnets: dict[client.Query, tuple[native.Subnet, ...]] = dataclasses.field(
        default_factory=dict
    )
    _networks: tuple[native.Network, ...] | None = None
    _readable: dict[str, bool] = dataclasses.field(default_factory=dict)

    def ports(self, filters: client.Query) -> tuple[native.Port, ...]:
        """List ports, once for all who ask the same."""
        if () in self._ports:
            return self._ports[()]
        if filters not in self._ports:
            self._ports[filters] = lists.ports(self.api, filters, self.deadline)
        return self._ports[filters]

    def subnets(self, filters: client.Query) -> tuple[native.Subnet, ...]:
        """List subnets, once for all who ask the same."""
        if filters not in self._subnets:
            self._subnets[filters] = lists.subnets(self.api, filters, self.deadline)
        return self._subnets[filters]

    def networks(self) -> tuple[native.Network, ...]:
        """List the external networks once."""
        if self._networks is None:
            self._networks = lists.external_networks(self.api, self.deadline)
        return self._networks

    def is_readable(self, tls_ref: str) -> bool:
        """Ask for a TLS container once."""
        if tls_ref not in self._readable:
            found = lists.is_readable(self.api, tls_ref, self.deadline)
            self._readable[tls_ref] = found
        return self._readable[tls_ref]


def of_deletion(batch: Batch, groups: Groups) -> Surroundings:
    """Read what the deletion of a load balancer has to know.

    Raises:
        CloudError: something could not be read.
    """
    return Surroundings(
        floating_ips=batch.floating_ips, groups=groups, ports=_carriers(batch, groups)
    )


def of_wanted(
    batch: Batch,
    wanted: Wanted,
    identity: Identity,
    children: Children | None,
    groups: Groups,
) -> Surroundings:
    """Read what making or changing a load balancer has to know.

    Raises:
        CloudError: something could not be read.
    """
    manages = batch.config.manage_security_groups
    problems: list[Problem] = []
    node_subnet_id = ""
    place = wanted.placement
    is_new = identity.load_balancer is None
    if place.from_node and wanted.members and (is_new or not place.member_subnet_id):
        node_subnet_id = _node_subnet(batch, wanted.members[0].address)
    if place.from_node and is_new and not (node_subnet_id or place.port_id):
        problems.append(_no_node_subnet(wanted))
    known = wanted.placement.member_subnet_id or node_subnet_id
    vip = identity.load_balancer.vip_subnet_id if identity.load_balancer else ""
    problems += _tls(batch, wanted, children)
    return Surroundings(
        floating_ips=batch.floating_ips,
        groups=groups,
        ports=batch.ports(()) if manages else _carriers(batch, groups),
        node_subnet_id=node_subnet_id,
        member_subnet=_subnet(batch, known or vip or "") if manages else None,
        second_subnet_id=_second_subnet(batch, wanted, identity, node_subnet_id),
        source=_source(batch, wanted, identity),
        problems=tuple(problems),
        vip_is_gone=_is_vip_gone(batch, identity),
    )


def _is_vip_gone(batch: Batch, identity: Identity) -> bool:
    found = identity.load_balancer
    if found is None or batch.vip_ports is None or not found.vip_port_id:
        return False
    return found.vip_port_id not in batch.vip_ports


def _carriers(batch: Batch, groups: Groups) -> tuple[native.Port, ...]:
    """List the ports that carry one of these groups, each once."""
    found: dict[str, native.Port] = {}
    for group in groups:
        ports = batch.ports((("security_groups", group.id),))
        found |= {port.id: port for port in ports}
    return tuple(found.values())


def _node_subnet(batch: Batch, address: str) -> str:
    """Find the subnet of the port that has this address and belongs to a server."""
    filters: client.Query = (("fixed_ips", f"ip_address={address}"),)
    if batch.config.manage_security_groups:
        filters = ()  # all ports are read anyway
    for port in batch.ports(filters):
        for fixed in port.fixed_ips:
            if fixed.ip_address == address and port.device_id:
                return fixed.subnet_id
    return ""


def _no_node_subnet(wanted: Wanted) -> Problem:
    address = wanted.members[0].address if wanted.members else "of any Node"
    message = (
        f"no subnet is configured, and no port of a server has the address {address};"
        " set subnet-id or network-id, by annotation or in [LoadBalancer]"
    )
    return Problem(Reason.SUBNET, message, is_fatal=True)


def _subnet(batch: Batch, subnet_id: str) -> native.Subnet | None:
    if not subnet_id:
        return None
    found = batch.subnets((("id", subnet_id),))
    return found[0] if found else None


def _second_subnet(
    batch: Batch, wanted: Wanted, identity: Identity, node_subnet_id: str
) -> str:
    """Find in the VIP's network a subnet of the second family; empty: there is none."""
    if len(wanted.families) < 2 or identity.load_balancer is not None:
        return ""
    network_id = wanted.placement.network_id
    if not network_id:
        first = _subnet(batch, wanted.placement.subnet_id or node_subnet_id)
        network_id = first.network_id if first else ""
    if not network_id:
        return ""
    version = _VERSION[wanted.families[1]]
    found = batch.subnets((("network_id", network_id),))
    return next((one.id for one in found if one.ip_version == version), "")


def _tls(
    batch: Batch, wanted: Wanted, children: Children | None
) -> tuple[Problem, ...]:
    """Look at a TLS container unless all listeners have it already."""
    ref = wanted.tls_ref
    if not ref or batch.config.container_store != "barbican":
        return ()
    used = () if children is None else children.listeners
    if used and all(one.default_tls_container_ref == ref for one in used):
        return ()
    if batch.is_readable(ref):
        return ()
    message = f"the TLS container {ref} can't be read with the credentials in use"
    return (Problem(Reason.TLS, message, is_fatal=True),)


def _source(batch: Batch, wanted: Wanted, identity: Identity) -> FloatingSource:
    """Find where a floating IP may come from, where one may be needed."""
    found = identity.load_balancer
    if wanted.is_internal or (found and ":" in (found.vip_address or "")):
        return FloatingSource()
    limits = wanted.floating.subnet_id or wanted.floating.subnet or wanted.floating.tags
    if found is None and (wanted.family is IpFamily.IPV6 or not limits):
        return FloatingSource()  # nothing to be told before it is there
    if not _needs_floating_ip(batch, wanted, found.vip_port_id if found else ""):
        return FloatingSource()
    network_id = wanted.floating.network_id or _first_external(batch)
    if not network_id:
        return FloatingSource()
    return _subnets_of(batch, network_id, wanted.floating)


def _needs_floating_ip(batch: Batch, wanted: Wanted, port_id: str | None) -> bool:
    """Say whether a floating IP may have to be made."""
    if wanted.address:
        known = {ip.floating_ip_address for ip in batch.floating_ips}
        return wanted.address not in known
    return not (port_id and any(ip.port_id == port_id for ip in batch.floating_ips))


def _first_external(batch: Batch) -> str:
    """Choose the first external network with an IPv4 subnet, or one we can't see.

    Source: kubernetes/cloud-provider-openstack pkg/util/openstack/network.go.
    """
    candidates = [one for one in batch.networks() if one.subnets]
    if not candidates:
        return ""
    query = tuple(("network_id", one.id) for one in candidates)
    versions = {one.id: one.ip_version for one in batch.subnets(query)}
    for one in candidates:
        if any(versions.get(subnet_id, 4) == 4 for subnet_id in one.subnets):
            return one.id
    return ""


def _subnets_of(batch: Batch, network_id: str, floating: Floating) -> FloatingSource:
    """Find the subnets that the id, or name pattern and tags, allow."""
    if floating.subnet_id:
        subnet = _subnet(batch, floating.subnet_id)
        if subnet is not None and subnet.network_id == network_id:
            return FloatingSource(network_id, (subnet.id,))
        message = (
            f"floating subnet {floating.subnet_id} is not in the floating network"
            f" {network_id}"
        )
        problem = Problem(Reason.SUBNET, message, is_fatal=True)
        return FloatingSource(network_id, problem=problem)
    if not (floating.subnet or floating.tags):
        return FloatingSource(network_id)
    query = (("network_id", network_id), *subnets.tag_filter(floating.tags))
    fits = subnets.matches(floating.subnet)
    ids = tuple(one.id for one in batch.subnets(query) if fits(one.name))
    if ids:
        return FloatingSource(network_id, ids)
    message = (
        f"no subnet of floating network {network_id} has a name like"
        f" {floating.subnet!r} and tags like {floating.tags!r}"
    )
    problem = Problem(Reason.SUBNET, message, is_fatal=True)
    return FloatingSource(network_id, problem=problem)

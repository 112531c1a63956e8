"""Reads the environment of a load balancer, as far as its plan requires it.

Lists that several targets need are read once per observation.
"""

import dataclasses
import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence

from lib.cloud import errors
from lib.cloud.load_balancers import IpFamily
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client, listings
from lib.cloud.openstack.load_balancers.read import lists, native
from lib.cloud.openstack.load_balancers.read.observed import (
    Children,
    Environment,
    FloatingSource,
    Identity,
)
from lib.cloud.openstack.load_balancers.spec import subnets
from lib.cloud.openstack.load_balancers.spec.desired import Desired, Floating
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import Problem
from lib.cloud.support import expiring
from lib.process import config

_VERSION = {IpFamily.IPV4: 4, IpFamily.IPV6: 6}


Groups = tuple[native.SecurityGroup, ...]
_EXTERNAL = "external network"
MANY_GROUPS = 3
"""More security groups than these cost a call each to find on ports, or one for all."""
TLS_TIMEOUT_S = 10.0
"""Of reading one TLS container: other Services of the batch wait for it."""
TLS_PAUSE_S = 60.0
"""Interval before a key manager that did not answer is called again."""
KEPT_S = 60.0
"""Many Services in succession need the same IDs."""


class Kept:
    """Cache of floating networks and Node subnets, for one minute.

    Only what was found; what is missing may come any time. `unavailable` has the error
    of a service that did not answer lately. Thread-safe.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: monotonic seconds."""
        self.ids = expiring.Expiring[str, tuple[str, ...]](KEPT_S, clock)
        self.unavailable = expiring.Expiring[client.Service, errors.Unavailable](
            TLS_PAUSE_S, clock
        )


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
    kept: Kept
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
        """List ports, once for all callers with equal filters."""
        if () in self._ports:
            return self._ports[()]
        if filters not in self._ports:
            self._ports[filters] = lists.PORTS.of_project(
                self.api, self.deadline, filters
            )
        return self._ports[filters]

    def subnets(self, filters: client.Query) -> tuple[native.Subnet, ...]:
        """List subnets, once for all callers with equal filters."""
        if filters not in self._subnets:
            self._subnets[filters] = lists.SUBNETS.visible(
                self.api, self.deadline, filters
            )
        return self._subnets[filters]

    def networks(self) -> tuple[native.Network, ...]:
        """List the external networks once."""
        if self._networks is None:
            self._networks = lists.EXTERNAL_NETWORKS.visible(
                self.api, self.deadline, (("router:external", "True"),)
            )
        return self._networks

    def is_readable(self, tls_ref: str) -> bool:
        """Report whether a TLS container is readable; ask once.

        Raises:
            CloudError: it is unknown; no Service waits long for that.
        """
        if tls_ref not in self._readable:
            if error := self.kept.unavailable.get(lists.KEYS):
                raise error
            try:
                self._readable[tls_ref] = self._reads_tls(tls_ref)
            except errors.Unavailable as error:
                self.kept.unavailable.put(lists.KEYS, error)
                raise
        return self._readable[tls_ref]

    def _reads_tls(self, tls_ref: str) -> bool:
        """Read a TLS container or secret of Barbican; False if there is none for us."""
        deadline = min(self.deadline, self.api.now() + TLS_TIMEOUT_S)
        if not self.api.has(lists.KEYS):
            return False
        kind, uuid = tls_ref.rstrip("/").split("/")[-2:]
        path = f"{listings.quoted(kind)}/{listings.quoted(uuid)}"
        call = client.Get(lists.KEYS, path, "get TLS container", resource=uuid)
        try:
            self.api.get(call, deadline)
        except (errors.NotFound, errors.Forbidden, errors.InvalidRequest):
            return False
        return True

    def read_vip_ports(self, ids: Collection[str]) -> None:
        """Read which of the load balancers' VIP ports exist."""
        ordered = sorted(ids)
        port_ids: set[str] = set()
        for at in range(0, len(ordered), lists.FILTERED):
            some = tuple(("id", id_) for id_ in ordered[at : at + lists.FILTERED])
            ports = lists.PORTS.of_project(self.api, self.deadline, some)
            port_ids |= {port.id for port in ports}
        self.vip_ports = frozenset(port_ids)


def of_deletion(batch: Batch, groups: Groups) -> Environment:
    """Read what the deletion of a load balancer has to know.

    Raises:
        CloudError: something could not be read.
    """
    return Environment(
        floating_ips=batch.floating_ips, groups=groups, ports=_carriers(batch, groups)
    )


def of_desired(
    batch: Batch,
    desired: Desired,
    identity: Identity,
    children: Children | None,
    groups: Groups,
) -> Environment:
    """Read what making or changing a load balancer has to know.

    Raises:
        CloudError: something could not be read.
    """
    manages = batch.config.manage_security_groups
    problems: list[Problem] = []
    node_subnet_id = ""
    place = desired.placement
    is_from_node = not (place.network_id or place.subnet_id)
    is_new = identity.load_balancer is None
    vip = identity.load_balancer.vip_subnet_id if identity.load_balancer else ""
    if is_from_node and desired.anchor and (is_new or not place.member_subnet_id):
        subnet_ids = _node_subnets(batch, desired.anchor, desired.anchor_server)
        node_subnet_id = vip if vip in subnet_ids else next(iter(subnet_ids), "")
        if len(subnet_ids) > 1 and node_subnet_id != vip:
            problems.append(_many_node_subnets(desired, subnet_ids))
        elif is_new and not (node_subnet_id or place.port_id):
            problems.append(_no_node_subnet(desired))
    elif is_from_node and is_new and not place.port_id:
        problems.append(_no_node_subnet(desired))
    if is_new:
        problems += _missing_subnets(batch, desired)
    known = desired.placement.member_subnet_id or node_subnet_id
    problems += _tls(batch, desired, children)
    return Environment(
        floating_ips=batch.floating_ips,
        groups=groups,
        ports=batch.ports(()) if manages else _carriers(batch, groups),
        node_subnet_id=node_subnet_id,
        member_subnet=_subnet(batch, known or vip or "") if manages else None,
        second_subnet_id=_second_subnet(batch, desired, identity, node_subnet_id),
        source=_source(batch, desired, identity),
        problems=tuple(problems),
        vip_is_gone=_is_vip_gone(batch, identity),
    )


def _is_vip_gone(batch: Batch, identity: Identity) -> bool:
    balancer = identity.load_balancer
    if balancer is None or batch.vip_ports is None or not balancer.vip_port_id:
        return False
    return balancer.vip_port_id not in batch.vip_ports


def _carriers(batch: Batch, groups: Groups) -> tuple[native.Port, ...]:
    """List the ports that carry one of these groups, each once.

    Where the batch has many groups, one list of all ports serves all of them.
    """
    by_id: dict[str, native.Port] = {}
    is_many = len(batch.groups) > MANY_GROUPS
    for group in groups:
        ports = batch.ports(() if is_many else (("security_groups", group.id),))
        carriers = (port for port in ports if group.id in port.security_groups)
        by_id |= {port.id: port for port in carriers}
    return tuple(by_id.values())


def _node_subnets(batch: Batch, address: str, server: str) -> tuple[str, ...]:
    """Return the subnets of the Node's ports that have this address.

    A project may use an address in several networks: only ports of the Node's own
    server count, where its provider ID shows which that is.

    Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
    (getSubnetIDForLB).
    """
    key = f"{server} {address}"
    filters: client.Query = (("fixed_ips", f"ip_address={address}"),)
    if batch.config.manage_security_groups:
        filters = ()  # all ports are read anyway
    elif known := batch.kept.ids.get(key):
        return known
    subnet_ids = tuple(
        dict.fromkeys(
            fixed.subnet_id
            for port in batch.ports(filters)
            for fixed in port.fixed_ips
            if fixed.ip_address == address
            and port.device_id
            and server in ("", port.device_id)
        )
    )
    if subnet_ids:
        batch.kept.ids.put(key, subnet_ids)
    return subnet_ids


def _no_node_subnet(desired: Desired) -> Problem:
    address = desired.anchor or "of any Node"
    message = (
        f"subnet-id: not set, and no port of a server has the address {address};"
        " set subnet-id or network-id, by annotation or in [LoadBalancer]"
    )
    return Problem(OctaviaReason.SUBNET, message, is_fatal=True)


def _many_node_subnets(desired: Desired, subnet_ids: Sequence[str]) -> Problem:
    message = (
        f"no subnet is configured, and the address {desired.anchor} is on ports of"
        f" servers in several: {', '.join(sorted(subnet_ids))}; set subnet-id, by"
        " annotation or in [LoadBalancer]"
    )
    return Problem(OctaviaReason.SUBNET, message, is_fatal=True)


def _missing_subnets(batch: Batch, desired: Desired) -> tuple[Problem, ...]:
    """Check that the named subnets exist, before objects are created in them."""
    place = desired.placement
    named = {"member-subnet-id": place.member_subnet_id}
    if not place.port_id:
        named["subnet-id"] = place.subnet_id
    return tuple(
        Problem(
            OctaviaReason.SUBNET,
            f"{name}: subnet {id_}: not found, or not accessible",
            is_fatal=True,
        )
        for name, id_ in {
            id_: (name, id_) for name, id_ in named.items() if id_
        }.values()
        if _subnet(batch, id_) is None
    )


def _subnet(batch: Batch, subnet_id: str) -> native.Subnet | None:
    if not subnet_id:
        return None
    subnets_ = batch.subnets((("id", subnet_id),))
    return subnets_[0] if subnets_ else None


def _second_subnet(
    batch: Batch, desired: Desired, identity: Identity, node_subnet_id: str
) -> str:
    """Find in the VIP's network a subnet of the second family; empty: none."""
    if len(desired.families) < 2:
        return ""
    balancer = identity.load_balancer
    if balancer is not None and balancer.additional_vips:
        return ""
    network_id = desired.placement.network_id
    if balancer is not None:
        network_id = balancer.vip_network_id or ""
    elif not network_id:
        first = _subnet(batch, desired.placement.subnet_id or node_subnet_id)
        network_id = first.network_id if first else ""
    if not network_id:
        return ""
    version = _VERSION[desired.families[1]]
    key = f"IPv{version} in {network_id}"
    if (known := batch.kept.ids.get(key)) is not None:
        return next(iter(known), "")
    subnets_ = batch.subnets((("network_id", network_id),))
    ids = tuple(each.id for each in subnets_ if each.ip_version == version)
    if ids or balancer is not None:
        batch.kept.ids.put(key, ids)
    return next(iter(ids), "")


def _tls(
    batch: Batch, desired: Desired, children: Children | None
) -> tuple[Problem, ...]:
    """Check a TLS container unless all listeners use it already."""
    ref = desired.tls_ref
    if not ref or batch.config.container_store != "barbican":
        return ()
    used = () if children is None else children.listeners
    if used and all(listener.default_tls_container_ref == ref for listener in used):
        return ()
    if batch.is_readable(ref):
        return ()
    message = (
        f"TLS container {config.quoted(ref)}: cannot be read with the credentials of"
        " cloud.conf"
    )
    return (Problem(OctaviaReason.TLS, message, is_fatal=True),)


def _source(batch: Batch, desired: Desired, identity: Identity) -> FloatingSource:
    """Find where a floating IP may come from, where one may be needed."""
    balancer = identity.load_balancer
    if desired.is_internal or (balancer and ":" in (balancer.vip_address or "")):
        return FloatingSource()
    limits = (
        desired.floating.subnet_id or desired.floating.subnet or desired.floating.tags
    )
    if balancer is None and (desired.families[0] is IpFamily.IPV6 or not limits):
        return FloatingSource()  # nothing to report before it exists
    port_id = (balancer.vip_port_id if balancer else "") or ""
    if not _needs_floating_ip(batch, desired, port_id):
        return FloatingSource(misfit=_misfit(batch, desired, port_id))
    network_id = desired.floating.network_id or _first_external(batch)
    if not network_id:
        return FloatingSource()
    return _subnets_of(batch, network_id, desired.floating)


def _misfit(batch: Batch, desired: Desired, port_id: str) -> str:
    """Return how the floating IP differs from the desired one; empty: it does not.

    One that was asked for by its address fits.
    """
    floating_ip = next((ip for ip in batch.floating_ips if ip.port_id == port_id), None)
    floating = desired.floating
    if floating_ip is None or desired.address:
        return ""
    if floating.network_id and floating.network_id != floating_ip.floating_network_id:
        return (
            f"floating-network-id is {floating_ip.floating_network_id}, desired"
            f" {floating.network_id}"
        )
    if not (floating.subnet_id or floating.subnet or floating.tags):
        return ""
    address = ipaddress.ip_address(floating_ip.floating_ip_address)
    for subnet in _fitting(batch, floating_ip.floating_network_id, floating):
        if subnet.cidr and address in ipaddress.ip_network(subnet.cidr):
            return ""
    named = floating.subnet_id or (
        f"{config.quoted(floating.subnet)} with tags" f" {config.quoted(floating.tags)}"
    )
    return f"floating IP {address} is in no floating subnet {named}"


def _needs_floating_ip(batch: Batch, desired: Desired, port_id: str | None) -> bool:
    """Report whether a floating IP may have to be made."""
    if desired.address:
        known = {ip.floating_ip_address for ip in batch.floating_ips}
        return desired.address not in known
    return not (port_id and any(ip.port_id == port_id for ip in batch.floating_ips))


def _first_external(batch: Batch) -> str:
    """Choose the first external network with an IPv4 subnet, or one we can't see.

    Source: kubernetes/cloud-provider-openstack pkg/util/openstack/network.go.
    """
    if known := batch.kept.ids.get(_EXTERNAL):
        return known[0]
    network_id_ = _choose_external(batch)
    if network_id_:
        batch.kept.ids.put(_EXTERNAL, (network_id_,))
    return network_id_


def _choose_external(batch: Batch) -> str:
    candidates = [network for network in batch.networks() if network.subnets]
    if not candidates:
        return ""
    query = tuple(("network_id", network.id) for network in candidates)
    versions = {subnet.id: subnet.ip_version for subnet in batch.subnets(query)}
    for network in candidates:
        if any(versions.get(subnet_id, 4) == 4 for subnet_id in network.subnets):
            return network.id
    return ""


def _subnets_of(batch: Batch, network_id: str, floating: Floating) -> FloatingSource:
    """Find the subnets that the id, or name pattern and tags, allow."""
    subnets_ = _fitting(batch, network_id, floating)
    if subnets_:
        return FloatingSource(network_id, tuple(subnet.id for subnet in subnets_))
    if floating.subnet_id:
        message = (
            f"floating subnet {floating.subnet_id} is not in the floating network"
            f" {network_id}"
        )
        problem = Problem(OctaviaReason.SUBNET, message, is_fatal=True)
        return FloatingSource(network_id, problem=problem)
    if not (floating.subnet or floating.tags):
        return FloatingSource(network_id)
    message = (
        f"no subnet of floating network {network_id} has a name like"
        f" {config.quoted(floating.subnet)} and tags like"
        f" {config.quoted(floating.tags)}"
    )
    problem = Problem(OctaviaReason.SUBNET, message, is_fatal=True)
    return FloatingSource(network_id, problem=problem)


def _fitting(
    batch: Batch, network_id: str, floating: Floating
) -> tuple[native.Subnet, ...]:
    """Find the subnets of a network that the id, or name pattern and tags, allow."""
    if floating.subnet_id:
        subnet = _subnet(batch, floating.subnet_id)
        is_there = subnet is not None and subnet.network_id == network_id
        return (subnet,) if subnet is not None and is_there else ()
    if not (floating.subnet or floating.tags):
        return ()
    query = (("network_id", network_id), *subnets.tag_filter(floating.tags))
    fits = subnets.matches(floating.subnet)
    return tuple(subnet for subnet in batch.subnets(query) if fits(subnet.name))

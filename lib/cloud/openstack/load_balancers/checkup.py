"""Facts of Octavia, and of the objects that cloud.conf names for it, for the doctor.

Reads only, each list once.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator

import msgspec

from lib.cloud import errors
from lib.cloud.checkup import Balancing, NamedSetting
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client, listings
from lib.cloud.openstack.load_balancers.read import lists
from lib.cloud.openstack.load_balancers.read.observe import features
from lib.cloud.openstack.load_balancers.read.plan_environment import Batch, Kept
from lib.cloud.openstack.load_balancers.spec import subnets

TIMEOUT_S = 60.0
"""Of everything here."""
SECTION = "[LoadBalancer]"

Find = Callable[[], Collection[str]]


class _Provider(msgspec.Struct, frozen=True):
    name: str


class _Providers(msgspec.Struct, frozen=True):
    providers: tuple[_Provider, ...]


class _Offer(msgspec.Struct, frozen=True):
    name: str = ""
    enabled: bool = True


def look(api: client.Client, config: settings.LoadBalancer) -> Balancing:
    """Read Octavia's version, and search for all objects that cloud.conf names."""
    try:
        version = api.version(client.Service.LOAD_BALANCER)
    except errors.CloudError as error:
        return Balancing(error=error)
    can = features(version, config.lb_provider)
    batch = Batch(api, config, api.now() + TIMEOUT_S, (), {}, Kept(api.now))
    named = [*_of_octavia(batch, config)]
    for section, class_ in _sections(config):
        named += _of_network(batch, section, class_, config)
    return Balancing(".".join(map(str, version)), has_tags=can.tags, named=tuple(named))


def _sections(
    config: settings.LoadBalancer,
) -> Iterator[tuple[str, settings.LoadBalancerClass]]:
    """Yield the networks that [LoadBalancer] and each class name."""
    fields = dataclasses.fields(settings.LoadBalancerClass)
    own = {field.name: getattr(config, field.name) for field in fields}
    yield SECTION, settings.LoadBalancerClass(**own)
    for name, class_ in sorted(config.classes.items()):
        yield f'[LoadBalancerClass "{name}"]', class_


def _named(setting: str, kind: str, value: str, find: Find) -> NamedSetting:
    try:
        return NamedSetting(setting, kind, value, tuple(find()))
    except errors.CloudError as error:
        return NamedSetting(setting, kind, value, error=error)


def _of_octavia(batch: Batch, config: settings.LoadBalancer) -> Iterator[NamedSetting]:
    """Search for provider, flavor and availability zone."""
    setting, name = f"{SECTION} lb-provider", config.lb_provider
    find = functools.partial(_provider, batch, name)
    yield _named(setting, "enabled provider", name, find)
    if name := config.flavor_id:
        find = functools.partial(_offer, batch, "flavors", name)
        yield _named(f"{SECTION} flavor-id", "enabled flavor", name, find)
    if name := config.availability_zone:
        setting, kind = f"{SECTION} availability-zone", "enabled availability zone"
        find = functools.partial(_offer, batch, "availabilityzones", name)
        yield _named(setting, kind, name, find)


def _provider(batch: Batch, name: str) -> Collection[str]:
    call = client.Get(lists.BALANCER, "lbaas/providers", "list providers")
    offered = batch.api.read(call, _Providers, batch.deadline).providers
    return [provider.name for provider in offered if provider.name == name]


def _offer(batch: Batch, kind: str, id_: str) -> Collection[str]:
    """Read a flavor or an availability zone; empty when it is not available."""
    path = f"lbaas/{kind}/{listings.quoted(id_)}"
    call = client.Get(lists.BALANCER, path, f"get {kind}", resource=id_)
    try:
        offers = batch.api.read(call, dict[str, _Offer], batch.deadline)
    except (errors.NotFound, errors.InvalidRequest):
        return ()
    return [id_ for offer in offers.values() if offer.enabled]


def _of_network(
    batch: Batch,
    section: str,
    class_: settings.LoadBalancerClass,
    config: settings.LoadBalancer,
) -> Iterator[NamedSetting]:
    """Search for networks and subnets that the section names."""
    subnet, network = functools.partial(_subnet, batch), functools.partial(_net, batch)
    for key, kind, value, find in (
        ("subnet-id", "subnet", class_.subnet_id, subnet),
        ("member-subnet-id", "subnet", class_.member_subnet_id, subnet),
        ("network-id", "network", class_.network_id, network),
    ):
        if value:
            yield _named(
                f"{section} {key}", kind, value, functools.partial(find, value)
            )
    network_id = class_.floating_network_id
    if network_id or (section == SECTION and not config.internal_lb):
        find_external = functools.partial(_external, batch, network_id)
        setting = f"{section} floating-network-id"
        yield _named(setting, "external network", network_id, find_external)
    yield from _of_floating_subnet(batch, section, class_, config)


def _subnet(batch: Batch, id_: str) -> Collection[str]:
    return [subnet.id for subnet in batch.subnets((("id", id_),))]


def _net(batch: Batch, id_: str) -> Collection[str]:
    networks = lists.NETWORKS.visible(batch.api, batch.deadline, (("id", id_),))
    return [network.id for network in networks]


def _external(batch: Batch, id_: str) -> Collection[str]:
    """Find an external network; without an id all that have subnets."""
    networks = batch.networks()
    return [
        network.id
        for network in networks
        if network.id == id_ or not id_ and network.subnets
    ]


def _of_floating_subnet(
    batch: Batch,
    section: str,
    class_: settings.LoadBalancerClass,
    config: settings.LoadBalancer,
) -> Iterator[NamedSetting]:
    """Search for the subnets of floating IPs; an ID is used before a pattern."""
    network = class_.floating_network_id or config.floating_network_id
    kind = f"subnet in floating network {network}" if network else "subnet"
    if id_ := class_.floating_subnet_id:
        setting, value = f"{section} floating-subnet-id", id_
        query: client.Query = (("id", id_),)
        pattern = ""
    elif class_.floating_subnet or class_.floating_subnet_tags:
        keys = ("floating-subnet", "floating-subnet-tags")
        values = (class_.floating_subnet, class_.floating_subnet_tags)
        configured = [pair for pair in zip(keys, values, strict=True) if pair[1]]
        setting = f"{section} {' and '.join(key for key, _ in configured)}"
        value = ", ".join(text for _, text in configured)
        query, pattern = subnets.tag_filter(values[1]), values[0]
    else:
        return
    if network:
        query = (*query, ("network_id", network))
    find = functools.partial(_matching, batch, tuple(query), pattern)
    yield _named(setting, kind, value, find)


def _matching(batch: Batch, query: client.Query, pattern: str) -> Collection[str]:
    if not subnets.is_pattern(pattern):
        return ()
    fits = subnets.matches(pattern)
    return [subnet.id for subnet in batch.subnets(query) if fits(subnet.name)]

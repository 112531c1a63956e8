"""What Octavia, and the things that cloud.conf names for it, say to a doctor: facts.

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
from lib.cloud.openstack.load_balancers.read.surroundings import Batch, Kept
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
    """Read Octavia's version, and look for all that the configuration names."""
    try:
        version = api.version(client.Service.LOAD_BALANCER)
    except errors.CloudError as error:
        return Balancing(error=error)
    can = features(version, config.lb_provider)
    batch = Batch(api, config, api.now() + TIMEOUT_S, (), {}, Kept(api.now))
    named = [*_of_octavia(batch, config)]
    for section, given in _sections(config):
        named += _of_network(batch, section, given, config)
    return Balancing(".".join(map(str, version)), has_tags=can.tags, named=tuple(named))


def _sections(
    config: settings.LoadBalancer,
) -> Iterator[tuple[str, settings.LoadBalancerClass]]:
    """Yield what [LoadBalancer] and each class say about networks."""
    fields = dataclasses.fields(settings.LoadBalancerClass)
    own = {field.name: getattr(config, field.name) for field in fields}
    yield SECTION, settings.LoadBalancerClass(**own)
    for name, given in sorted(config.classes.items()):
        yield f'[LoadBalancerClass "{name}"]', given


def _named(setting: str, kind: str, value: str, find: Find) -> NamedSetting:
    try:
        return NamedSetting(setting, kind, value, tuple(find()))
    except errors.CloudError as error:
        return NamedSetting(setting, kind, value, error=error)


def _of_octavia(batch: Batch, config: settings.LoadBalancer) -> Iterator[NamedSetting]:
    """Look for provider, flavor and availability zone."""
    setting, wanted = f"{SECTION} lb-provider", config.lb_provider
    find = functools.partial(_provider, batch, wanted)
    yield _named(setting, "enabled provider", wanted, find)
    if wanted := config.flavor_id:
        find = functools.partial(_offer, batch, "flavors", wanted)
        yield _named(f"{SECTION} flavor-id", "enabled flavor", wanted, find)
    if wanted := config.availability_zone:
        setting, kind = f"{SECTION} availability-zone", "enabled availability zone"
        find = functools.partial(_offer, batch, "availabilityzones", wanted)
        yield _named(setting, kind, wanted, find)


def _provider(batch: Batch, wanted: str) -> Collection[str]:
    call = client.Get(lists.BALANCER, "lbaas/providers", "list providers")
    offered = batch.api.read(call, _Providers, batch.deadline).providers
    return [one.name for one in offered if one.name == wanted]


def _offer(batch: Batch, kind: str, id_: str) -> Collection[str]:
    """Read a flavor or an availability zone; none when it is not to be had."""
    path = f"lbaas/{kind}/{listings.quoted(id_)}"
    call = client.Get(lists.BALANCER, path, f"get {kind}", resource=id_)
    try:
        found = batch.api.read(call, dict[str, _Offer], batch.deadline)
    except (errors.NotFound, errors.InvalidRequest):
        return ()
    return [id_ for one in found.values() if one.enabled]


def _of_network(
    batch: Batch,
    section: str,
    given: settings.LoadBalancerClass,
    config: settings.LoadBalancer,
) -> Iterator[NamedSetting]:
    """Look for networks and subnets, where the section names them."""
    subnet, network = functools.partial(_subnet, batch), functools.partial(_net, batch)
    for key, kind, value, find in (
        ("subnet-id", "subnet", given.subnet_id, subnet),
        ("member-subnet-id", "subnet", given.member_subnet_id, subnet),
        ("network-id", "network", given.network_id, network),
    ):
        if value:
            yield _named(
                f"{section} {key}", kind, value, functools.partial(find, value)
            )
    wanted = given.floating_network_id
    if wanted or (section == SECTION and not config.internal_lb):
        find_external = functools.partial(_external, batch, wanted)
        setting = f"{section} floating-network-id"
        yield _named(setting, "external network", wanted, find_external)
    yield from _of_floating_subnet(batch, section, given, config)


def _subnet(batch: Batch, id_: str) -> Collection[str]:
    return [one.id for one in batch.subnets((("id", id_),))]


def _net(batch: Batch, id_: str) -> Collection[str]:
    found = lists.NETWORKS.visible(batch.api, batch.deadline, (("id", id_),))
    return [one.id for one in found]


def _external(batch: Batch, id_: str) -> Collection[str]:
    """Find an external network; without an id all that have subnets."""
    found = batch.networks()
    return [one.id for one in found if one.id == id_ or not id_ and one.subnets]


def _of_floating_subnet(
    batch: Batch,
    section: str,
    given: settings.LoadBalancerClass,
    config: settings.LoadBalancer,
) -> Iterator[NamedSetting]:
    """Look for the subnets that floating IPs come from; an id beats a pattern."""
    network = given.floating_network_id or config.floating_network_id
    kind = f"subnet in floating network {network}" if network else "subnet"
    if id_ := given.floating_subnet_id:
        setting, value = f"{section} floating-subnet-id", id_
        query: client.Query = (("id", id_),)
        pattern = ""
    elif given.floating_subnet or given.floating_subnet_tags:
        keys = ("floating-subnet", "floating-subnet-tags")
        values = (given.floating_subnet, given.floating_subnet_tags)
        said = [pair for pair in zip(keys, values, strict=True) if pair[1]]
        setting = f"{section} {' and '.join(key for key, _ in said)}"
        value = ", ".join(text for _, text in said)
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
    return [one.id for one in batch.subnets(query) if fits(one.name)]

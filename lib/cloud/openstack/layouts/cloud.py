"""Objects of layouts in one OpenStack project, and their owners."""

import dataclasses
import datetime
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from lib.cloud import layouts
from lib.cloud.layouts import ProjectObject
from lib.cloud.openstack import native as shared
from lib.cloud.openstack.catalog import lists
from lib.cloud.openstack.catalog import native as catalog_native
from lib.cloud.openstack.http import client
from lib.cloud.openstack.layouts import native
from lib.cloud.openstack.layouts.layout_offers import ImageOffer, LayoutOffers
from lib.cloud.support import parallel

T = TypeVar("T")

TIMEOUT_S = 60.0
"""Of all lists together."""
PAGE = 1000
"""Source: default upper limits of Nova ([api] max_limit) and Cinder."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TAG = re.compile(rf"\b{layouts.KEY}=({_UUID})\b")

OWNED = (
    "server",
    "volume",
    "floating IP",
    "port",
    "router",
    "subnet",
    "network",
    "security group",
)
"""Kinds with a tag, in the order in which they can be deleted."""
NAMED = ("network", "subnet", "security group", "server group", "key pair")
"""Kinds that the inputs of a layout name, or whose names must be unique."""
_GIB = 2**30
_Read = Callable[[client.Client, client.Query, float], Iterable[ProjectObject]]
"""Takes a query for Neutron and a deadline."""


class OpenStackLayouts:
    """Reads one project. Implements `lib.cloud.layouts.Layouts`."""

    def __init__(self, api: client.Client) -> None:
        self._api = api

    def owned(self, cluster_uuid: str) -> tuple[ProjectObject, ...]:
        """See the protocol."""
        owned = [each for each in self.of_project(OWNED) if each.owner == cluster_uuid]
        return tuple(sorted(owned, key=_order))

    def of_project(self, kinds: Collection[str] = ()) -> tuple[ProjectObject, ...]:
        """Return the project's objects of some kinds, by kind; of all if empty.

        Raises:
            CloudError: a list could not be read.
        """
        return self._all(kinds or KINDS, self._api.project_filter())

    def visible(self, kinds: Collection[str]) -> tuple[ProjectObject, ...]:
        """Return all objects of some kinds that a lookup by name can find, by kind.

        Raises:
            CloudError: a list could not be read.
        """
        return self._all(kinds, ())

    def offers(self) -> LayoutOffers:
        """Return what the inputs of a layout can name.

        Raises:
            CloudError: a list could not be read.
        """
        deadline = self._api.now() + TIMEOUT_S
        return LayoutOffers(
            zones=lists.zones(self._api, deadline),
            flavors={
                each.name: each.disk for each in lists.flavors(self._api, deadline)
            },
            images=tuple(map(_image, lists.images(self._api, deadline))),
            volume_types=frozenset(
                each.name for each in lists.volume_types(self._api, deadline)
            ),
            objects=self.visible(NAMED),
        )

    def _all(
        self, kinds: Collection[str], query: client.Query
    ) -> tuple[ProjectObject, ...]:
        deadline = self._api.now() + TIMEOUT_S
        lists = parallel.each(
            lambda kind: tuple(_READS[kind](self._api, query, deadline)),
            kinds,
            "layouts",
        )
        return tuple(each for listed in lists for each in listed)


def _image(image: catalog_native.Image) -> ImageOffer:
    """Return an image; its content may need more than its smallest disk."""
    size_bytes = max(image.size or 0, image.virtual_size or 0)
    least_gib = max(image.min_disk, -(-size_bytes // _GIB))
    return ImageOffer(image.id, image.name or "", least_gib)


def _order(item: ProjectObject) -> tuple[int, str, str]:
    return OWNED.index(item.kind), item.name, item.id


def _tagged(kind: str, item: native.Tagged, **fields: str) -> ProjectObject:
    """Return an object of Neutron; its owner is in a tag or in its description."""
    description = item.description or ""
    match = _TAG.search("\n".join((*item.tags, description)))
    return ProjectObject(
        kind,
        item.id,
        item.name or "",
        match[1] if match else "",
        item.created_at,
        {**fields, "description": description},
    )


def _plain(kind: str, item: native.Tagged) -> ProjectObject:
    return _tagged(kind, item)


def _network(kind: str, item: native.Network) -> ProjectObject:
    return _tagged(kind, item, external=str(item.is_external).lower())


def _subnet(kind: str, item: native.Subnet) -> ProjectObject:
    return _tagged(kind, item, network_id=item.network_id, cidr=item.cidr)


def _port(kind: str, item: native.Port) -> ProjectObject:
    return _tagged(
        kind,
        item,
        network_id=item.network_id,
        device_id=item.device_id,
        device_owner=item.device_owner,
        subnet_ids=" ".join(sorted(each.subnet_id for each in item.fixed_ips)),
    )


def _floating_ip(kind: str, item: native.FloatingIp) -> ProjectObject:
    port, address = item.port_id or "", item.floating_ip_address
    return _tagged(kind, item, port_id=port, address=address)


def _rule(kind: str, item: native.Rule) -> ProjectObject:
    values = {
        "security_group_id": item.security_group_id,
        "direction": item.direction,
        "ethertype": item.ethertype,
        "protocol": item.protocol,
        "port_range_min": item.port_range_min,
        "port_range_max": item.port_range_max,
        "remote_ip_prefix": item.remote_ip_prefix,
        "remote_group_id": item.remote_group_id,
    }
    fields = {name: str(value) for name, value in values.items() if value is not None}
    return ProjectObject(kind, item.id, "", fields=fields)


def _servers(
    api: client.Client, _: client.Query, deadline: float
) -> Iterable[ProjectObject]:
    call = client.Get(client.Service.COMPUTE, "servers/detail", "list servers")
    for item in api.items(call, PAGE, native.ServersPage, deadline):
        owner = item.metadata.get(layouts.KEY, "")
        fields = {"status": item.status}
        yield ProjectObject(
            "server", item.id, item.name or "", owner, item.created, fields
        )


def _volumes(
    api: client.Client, _: client.Query, deadline: float
) -> Iterable[ProjectObject]:
    call = client.Get(client.Service.VOLUME, "volumes/detail", "list volumes")
    for item in api.items(call, PAGE, native.VolumesPage, deadline):
        owner = item.metadata.get(layouts.KEY) or ""
        servers = sorted(each.server_id or "" for each in item.attachments)
        fields = {"status": item.status, "server_ids": " ".join(servers)}
        created = _utc(item.created_at)
        yield ProjectObject("volume", item.id, item.name or "", owner, created, fields)


def _key_pairs(
    api: client.Client, _: client.Query, deadline: float
) -> Iterable[ProjectObject]:
    """Yield the user's key pairs; a key pair has no ID but its name."""
    call = client.Get(client.Service.COMPUTE, "os-keypairs", "list key pairs")
    for item in api.read(call, native.KeyPairs, deadline).items:
        fields = {"public_key": item.keypair.public_key}
        name = item.keypair.name
        yield ProjectObject("key pair", name, name, fields=fields)


def _server_groups(
    api: client.Client, _: client.Query, deadline: float
) -> Iterable[ProjectObject]:
    call = client.Get(client.Service.COMPUTE, "os-server-groups", "list server groups")
    for item in api.read(call, native.ServerGroups, deadline).items:
        fields = {"policy": item.policy or " ".join(item.policies)}
        yield ProjectObject("server group", item.id, item.name or "", fields=fields)


def _utc(at: datetime.datetime | None) -> datetime.datetime | None:
    """Return a time of Cinder, which is UTC without a zone."""
    if at is None or at.tzinfo is not None:
        return at
    return at.replace(tzinfo=datetime.UTC)


def _list(
    kind: str,
    path: str,
    page: type[shared.Page[T]],
    translate: Callable[[str, T], ProjectObject],
) -> tuple[str, _Read]:
    call = client.Get(client.Service.NETWORK, path, f"list {kind}s")

    def read(
        api: client.Client, query: client.Query, deadline: float
    ) -> Iterable[ProjectObject]:
        asked = dataclasses.replace(call, query=query)
        for item in api.items(asked, PAGE, page, deadline):
            yield translate(kind, item)

    return kind, read


_READS: Mapping[str, _Read] = dict(
    (
        _list("network", "networks", native.NetworksPage, _network),
        _list("subnet", "subnets", native.SubnetsPage, _subnet),
        _list("router", "routers", native.RoutersPage, _plain),
        _list("port", "ports", native.PortsPage, _port),
        _list("security group", "security-groups", native.SecurityGroupsPage, _plain),
        _list("rule", "security-group-rules", native.RulesPage, _rule),
        _list("floating IP", "floatingips", native.FloatingIpsPage, _floating_ip),
        ("server", _servers),
        ("volume", _volumes),
        ("key pair", _key_pairs),
        ("server group", _server_groups),
    )
)
KINDS = tuple(_READS)

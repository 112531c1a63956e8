"""Whether what the inputs of a layout name exists in the cloud: all problems. Pure.

OpenTofu reports one lookup at a time, with "Your query returned no results".
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.cloud import layouts
from lib.cloud.openstack.layouts.layout_offers import LayoutOffers
from lib.layouts.openstack import layout_objects
from lib.process import config

Json = Mapping[str, Any]
Problems = Iterator[config.FieldProblem]

BASTION_GIB = 50
"""Size of a bastion's disk that is not set."""
_MUST_BE_EXTERNAL = ("Standard", "SimpleWithInternalNetwork")
_UNIQUE = ("subnet", "security group", "server group", "key pair")
"""Kinds that later steps look up by the prefix, or that exist once."""


def problems(
    document: Json, cluster: Json, offers: LayoutOffers, cluster_uuid: str = ""
) -> tuple[config.FieldProblem, ...]:
    """Return the problems of valid inputs with a cloud, sorted by field.

    cluster_uuid: of a cluster that exists, whose own objects have its prefix; empty: it
    is a new one.
    """
    lookups = _Lookups(offers)
    prefix = str((cluster.get("cloud") or {}).get("prefix") or "")
    some = [
        *_zones("zones", document.get("zones", ()), lookups),
        *_block(document, lookups),
        *_masters(document, lookups),
        *_prefix(prefix, lookups, cluster_uuid),
    ]
    own = (prefix,) if document["layout"] in layout_objects.OWN_NETWORK else ()
    for index, group in enumerate(document.get("nodeGroups", ())):
        some += _group(f"nodeGroups[{index}]", group, lookups, own)
    return tuple(sorted(some, key=lambda problem: (problem.field, problem.value or "")))


@dataclasses.dataclass(frozen=True, slots=True)
class _Lookups:
    """Lookups by name, as the provider does them."""

    offers: LayoutOffers

    def named(self, kind: str, name: str) -> list[layouts.ProjectObject]:
        items = self.offers.objects
        return [each for each in items if (each.kind, each.name) == (kind, name)]

    def names(self, kind: str) -> list[str]:
        return [each.name for each in self.offers.objects if each.kind == kind]

    def unique(self, field: str, kind: str, name: str) -> Problems:
        """Yield the problem of a name that none or several objects have."""
        items = self.named(kind, name)
        if not items:
            yield _absent(field, name, kind, self.names(kind))
        elif len(items) > 1:
            ids = ", ".join(sorted(each.id for each in items))
            expected = f"the name of one {kind}: {ids} all have it; rename all but one"
            yield config.FieldProblem(field, name, expected)


def _absent(
    field: str, name: str, kind: str, names: Sequence[str]
) -> config.FieldProblem:
    listed = ", ".join(sorted(filter(None, set(names)))) or "none"
    return config.FieldProblem(field, name, f"a {kind} of the project: {listed}")


def _zones(field: str, zones: Sequence[str], lookups: _Lookups) -> Problems:
    for zone in zones:
        if zone not in lookups.offers.zones:
            yield _absent(field, zone, "zone", lookups.offers.zones)


def _volume_types(field: str, types: Mapping[str, str], lookups: _Lookups) -> Problems:
    if types and not set(types) & set(lookups.offers.zones):
        keys = ", ".join(sorted(types))
        zones = ", ".join(lookups.offers.zones)
        yield config.FieldProblem(field, keys, f"a map with a zone of Nova: {zones}")
    for zone, name in types.items():
        yield from _volume_type(f"{field}.{zone}", name, lookups)


def _volume_type(field: str, name: str, lookups: _Lookups) -> Problems:
    if name not in lookups.offers.volume_types:
        yield _absent(field, name, "volume type", sorted(lookups.offers.volume_types))


def _block(document: Json, lookups: _Lookups) -> Problems:
    layout = document["layout"]
    name = layout_objects.BLOCKS[layout]
    block = document[name]
    if external := block.get("externalNetworkName"):
        field = f"{name}.externalNetworkName"
        must_be_external = layout in _MUST_BE_EXTERNAL
        yield from _network(field, external, lookups, must_be_external)
    if subnet := block.get("internalSubnetName"):
        yield from lookups.unique(f"{name}.internalSubnetName", "subnet", subnet)
    bastion = block.get("bastion") or {}
    if bastion.get("instanceClass"):
        field = f"{name}.bastion"
        instance_class = {"rootDiskSize": BASTION_GIB, **bastion["instanceClass"]}
        yield from _class(f"{field}.instanceClass", instance_class, lookups)
        if zone := bastion.get("zone"):
            yield from _zones(f"{field}.zone", [zone], lookups)
        if volume_type := bastion.get("volumeType"):
            yield from _volume_type(f"{field}.volumeType", volume_type, lookups)


def _network(
    field: str, name: str, lookups: _Lookups, must_be_external: bool
) -> Problems:
    yield from lookups.unique(field, "network", name)
    items = lookups.named("network", name)
    if must_be_external and len(items) == 1 and items[0].fields["external"] != "true":
        expected = f"an external network; {items[0].id} is not external"
        yield config.FieldProblem(field, name, expected)


def _masters(document: Json, lookups: _Lookups) -> Problems:
    masters = document["masterNodeGroup"]
    field, instance_class = "masterNodeGroup.instanceClass", masters["instanceClass"]
    yield from _class(field, instance_class, lookups)
    yield from _groups(field, instance_class, lookups)
    types = masters["volumeTypeMap"]
    yield from _volume_types("masterNodeGroup.volumeTypeMap", types, lookups)
    manual = (masters.get("serverGroup") or {}).get("manuallyManaged") or {}
    ids = {each.id for each in lookups.offers.objects if each.kind == "server group"}
    if manual.get("id") and manual["id"] not in ids:
        field = "masterNodeGroup.serverGroup.manuallyManaged.id"
        yield _absent(field, manual["id"], "server group", sorted(ids))


def _groups(field: str, instance_class: Json, lookups: _Lookups) -> Problems:
    for name in instance_class.get("additionalSecurityGroups", ()):
        yield from lookups.unique(
            f"{field}.additionalSecurityGroups", "security group", name
        )


def _class(field: str, instance_class: Json, lookups: _Lookups) -> Problems:
    """Yield the problems of a flavor, an image and the disk for both."""
    flavor, image = instance_class["flavorName"], instance_class["imageName"]
    root_gib = instance_class.get("rootDiskSize")
    flavors = lookups.offers.flavors
    disk_gib = root_gib
    if flavor not in flavors:
        yield _absent(f"{field}.flavorName", flavor, "flavor", sorted(flavors))
    elif root_gib is None:
        disk_gib = flavors[flavor]
        if not disk_gib:
            expected = "a flavor with a disk, or rootDiskSize must be set"
            yield config.FieldProblem(f"{field}.flavorName", flavor, expected)
    images = [each for each in lookups.offers.images if each.name == image]
    if not images:
        names = [each.name for each in lookups.offers.images]
        yield _absent(f"{field}.imageName", image, "image", names)
    elif len(images) > 1:
        ids = ", ".join(sorted(each.id for each in images))
        expected = f"the name of one image: {ids} all have it; rename all but one"
        yield config.FieldProblem(f"{field}.imageName", image, expected)
    elif disk_gib and disk_gib < images[0].min_disk_gib:
        is_root = root_gib is not None
        yield config.FieldProblem(
            f"{field}.{'rootDiskSize' if is_root else 'flavorName'}",
            str(root_gib) if is_root else flavor,
            f"a disk of {images[0].min_disk_gib} GiB at least, which image {image}"
            f" needs; it has {disk_gib}",
        )


def _group(field: str, group: Json, lookups: _Lookups, own: Sequence[str]) -> Problems:
    """Yield the problems of a node group. own: networks that the base creates."""
    instance_class = group["instanceClass"]
    at = f"{field}.instanceClass"
    yield from _class(at, instance_class, lookups)
    yield from _groups(at, instance_class, lookups)
    yield from _zones(f"{field}.zones", group.get("zones", ()), lookups)
    types = group.get("volumeTypeMap", {})
    yield from _volume_types(f"{field}.volumeTypeMap", types, lookups)
    networks = {"mainNetwork": [instance_class["mainNetwork"]]}
    networks["additionalNetworks"] = instance_class.get("additionalNetworks", [])
    for name, values in networks.items():
        for value in values:
            if value not in own:
                yield from _network(f"{at}.{name}", value, lookups, False)
    for pool in instance_class.get("floatingIPPools", ()):
        yield from _network(f"{at}.floatingIPPools", pool, lookups, True)


def _prefix(prefix: str, lookups: _Lookups, cluster_uuid: str) -> Problems:
    """Yield the problem of a prefix that other objects have as their name."""
    others = [
        each
        for kind in _UNIQUE
        for each in lookups.named(kind, prefix)
        if not cluster_uuid or each.owner and each.owner != cluster_uuid
    ]
    if others:
        listed = ", ".join(f"{each.kind} {each.id}" for each in others)
        yield config.FieldProblem(
            "cloud.prefix",
            prefix,
            f"a prefix that is not in use: {listed} have that name; of a cluster that"
            " exists, add --cluster-uuid",
        )

"""Whether the inputs of a layout are valid: all problems together. Pure.

terraform/openstack refuses the same inputs; here they are reported together, without
OpenTofu.

Source: names of 63 characters: RFC 1123; tags of 60: Neutron's tags before 2023.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from lib.discovery.openstack import schemas
from lib.layouts.openstack import layout_objects
from lib.process import config

Json = Mapping[str, Any]

PREFIX_LONGEST = 40
NAME_LONGEST = 63
TAG_LONGEST = 60
MASK_LONGEST = 28
"""Of the internal network: DHCP, a router and three masters need 16 addresses."""
_CLUSTER_NETWORKS = ("podSubnetCIDR", "serviceSubnetCIDR")


def problems(document: Json, cluster: Json) -> tuple[config.FieldProblem, ...]:
    """Return the problems of an OpenStackClusterConfiguration, sorted by field.

    cluster: the ClusterConfiguration: cloud.prefix and the networks of pods and
    Services. Rules that need a valid document follow when its schema is satisfied.
    """
    own = schemas.problems(schemas.Schema.CLUSTER_CONFIGURATION, document)
    rules = () if own else tuple(_rules(document, cluster))
    return tuple(sorted((*own, *rules), key=lambda problem: problem.field))


def prefix_of(cluster: Json) -> str:
    """Return cloud.prefix; empty: it is not set."""
    return str((cluster.get("cloud") or {}).get("prefix") or "")


def _rules(document: Json, cluster: Json) -> Iterator[config.FieldProblem]:
    yield from _prefix(prefix_of(cluster))
    yield from _network(document, cluster)
    yield from _tags(document)
    yield from _zones(document)
    for index, group in enumerate(document.get("nodeGroups", ())):
        yield from _group(f"nodeGroups[{index}]", group, document, prefix_of(cluster))


def _prefix(prefix: str) -> Iterator[config.FieldProblem]:
    if len(prefix) > PREFIX_LONGEST:
        yield config.FieldProblem(
            "cloud.prefix", prefix, f"{PREFIX_LONGEST} characters at most"
        )


def _network(document: Json, cluster: Json) -> Iterator[config.FieldProblem]:
    block_name = layout_objects.BLOCKS[document["layout"]]
    text = document[block_name].get("internalNetworkCIDR")
    if text is None:
        return
    field, network = f"{block_name}.internalNetworkCIDR", ipaddress.ip_network(text)
    if network.prefixlen > MASK_LONGEST:
        yield config.FieldProblem(
            field, text, f"a network of 16 addresses at least, /{MASK_LONGEST} or less"
        )
    for name in _CLUSTER_NETWORKS:
        other = cluster.get(name)
        if other and network.overlaps(ipaddress.ip_network(other, strict=False)):
            yield config.FieldProblem(
                field, text, f"a network that does not overlap {name} {other}"
            )


def _tags(document: Json) -> Iterator[config.FieldProblem]:
    for name, value in document.get("tags", {}).items():
        text = f"{name}={value}"
        if len(text) > TAG_LONGEST or "," in text:
            yield config.FieldProblem(
                f"tags.{name}",
                value,
                f"{TAG_LONGEST} characters at most, with its name and =, and no comma",
            )


def _zones(document: Json) -> Iterator[config.FieldProblem]:
    zones, types = document.get("zones"), document["masterNodeGroup"]["volumeTypeMap"]
    if zones and not set(zones) & set(types):
        yield config.FieldProblem(
            "masterNodeGroup.volumeTypeMap",
            ", ".join(sorted(types)),
            f"a map with one of zones: {', '.join(sorted(zones))}",
        )


def _group(
    field: str, group: Json, document: Json, prefix: str
) -> Iterator[config.FieldProblem]:
    instance_class = group["instanceClass"]
    networks = [
        instance_class["mainNetwork"],
        *instance_class.get("additionalNetworks", ()),
    ]
    for name in instance_class.get("networksWithSecurityDisabled", ()):
        if name not in networks:
            yield config.FieldProblem(
                f"{field}.instanceClass.networksWithSecurityDisabled",
                name,
                f"among the networks of the group: {', '.join(networks)}",
            )
    last = f"{prefix}-{group['name']}-{max(0, group['replicas'] - 1)}"
    if len(last) > NAME_LONGEST:
        yield config.FieldProblem(
            f"{field}.name",
            group["name"],
            f"shorter: {last} has more than {NAME_LONGEST} characters",
        )
    yield from _zones_of_group(field, group, document.get("zones"))


def _zones_of_group(
    field: str, group: Json, permitted: list[str] | None
) -> Iterator[config.FieldProblem]:
    zones, types = group.get("zones"), group.get("volumeTypeMap")
    sets = [set(each) for each in (zones, types, permitted) if each]
    if len(sets) > 1 and not set.intersection(*sets):
        yield config.FieldProblem(
            f"{field}.zones",
            ", ".join(zones or sorted(types or ())),
            "among zones of the configuration and keys of volumeTypeMap",
        )

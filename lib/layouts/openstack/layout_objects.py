"""What the roots of a layout would create, from its configuration. Pure.

terraform/openstack decides; a test compares both.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

LAYOUTS: Mapping[str, str] = {
    "Standard": "standard",
    "StandardWithNoRouter": "standard-with-no-router",
    "Simple": "simple",
    "SimpleWithInternalNetwork": "simple-with-internal-network",
}
"""Folder of each layout by its name."""
BLOCKS: Mapping[str, str] = {
    "Standard": "standard",
    "StandardWithNoRouter": "standardWithNoRouter",
    "Simple": "simple",
    "SimpleWithInternalNetwork": "simpleWithInternalNetwork",
}
"""Key of each layout's settings."""
PURPOSES: Mapping[str, str] = {
    "Standard": "a network of its own with a router; floating IPs or a bastion",
    "StandardWithNoRouter": "nodes in a routed network, pods in a second one",
    "Simple": "nodes in an existing routed network",
    "SimpleWithInternalNetwork": "nodes in an existing subnet with a router",
}
BASE, MASTER, STATIC = "base-infrastructure", "master-node", "static-node"
OWN_NETWORK = ("Standard", "StandardWithNoRouter")


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutObject:
    """An object of the cloud. root: its step, with the node's name where it has one.

    name: empty where the object has none, such as a floating IP.
    """

    root: str
    kind: str
    name: str


def planned(document: Json, prefix: str) -> tuple[LayoutObject, ...]:
    """Return the objects of all roots of a cluster, in the order of creation.

    document: a valid OpenStackClusterConfiguration. prefix: cloud.prefix.
    """
    layout = document["layout"]
    block = document[BLOCKS[layout]]
    masters = document["masterNodeGroup"]
    return (
        *_base(layout, block, masters, prefix),
        *(
            each
            for index in range(masters["replicas"])
            for each in _master(layout, block, masters["instanceClass"], prefix, index)
        ),
        *(
            each
            for group in document.get("nodeGroups", ())
            for index in range(group["replicas"])
            for each in _static(group, f"{prefix}-{group['name']}-{index}")
        ),
    )


def _base(
    layout: str, block: Json, masters: Json, prefix: str
) -> Iterator[LayoutObject]:
    kinds = ["key pair"]
    if masters.get("serverGroup", {}).get("policy") == "AntiAffinity":
        kinds.append("server group")
    if layout in OWN_NETWORK:
        kinds += ["network", "subnet"]
        if block.get("internalNetworkSecurity", True):
            kinds.append("security group")
    if layout == "Standard":
        kinds.append("router")
    yield from (LayoutObject(BASE, kind, prefix) for kind in kinds)
    if (block.get("bastion") or {}).get("instanceClass"):
        name = f"{prefix}-bastion"
        yield LayoutObject(BASE, "port", name)
        yield LayoutObject(BASE, "volume", f"{name}-root-volume")
        yield LayoutObject(BASE, "server", name)
        yield LayoutObject(BASE, "floating IP", "")


def _master(
    layout: str, block: Json, instance_class: Json, prefix: str, index: int
) -> Iterator[LayoutObject]:
    name = f"{prefix}-master-{index}"
    root = f"{MASTER} {name}"
    if layout == "StandardWithNoRouter":
        yield LayoutObject(root, "port", f"{name}-external")
    if layout != "Simple":
        yield LayoutObject(root, "port", name)
    if "rootDiskSize" in instance_class:
        yield LayoutObject(root, "volume", f"{prefix}-master-root-volume-{index}")
    yield LayoutObject(root, "volume", f"{prefix}-kubernetes-data-{index}")
    yield LayoutObject(root, "server", name)
    if _has_address(layout, block):
        yield LayoutObject(root, "floating IP", "")


def _has_address(layout: str, block: Json) -> bool:
    """Report whether masters have a floating IP."""
    if layout == "Standard":
        return not (block.get("bastion") or {}).get("instanceClass")
    is_wanted = block.get("masterWithExternalFloatingIP", True)
    has_pool = bool(block.get("externalNetworkName"))
    return layout == "SimpleWithInternalNetwork" and is_wanted and has_pool


def _static(group: Json, name: str) -> Iterator[LayoutObject]:
    root, instance_class = f"{STATIC} {name}", group["instanceClass"]
    networks = {*instance_class.get("additionalNetworks", ()), ""}
    yield from (LayoutObject(root, "port", name) for _ in networks)
    if "rootDiskSize" in instance_class:
        yield LayoutObject(root, "volume", name)
    yield LayoutObject(root, "server", name)
    for _ in set(instance_class.get("floatingIPPools", ())):
        yield LayoutObject(root, "floating IP", "")

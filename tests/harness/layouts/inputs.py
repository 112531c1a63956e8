"""The installer's inputs for each layout, for the lab's cloud. Pure."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

UUID = "5f1e7d2c-3b44-4c9a-9d11-8f6a2b7c0e55"
KEY = "ssh-ed25519 " + "AAAAC3NzaC1lZDI1NTE5AAAAI" + "B" * 43 + " lab"
LAYOUTS = {
    "Standard": "standard",
    "StandardWithNoRouter": "standard-with-no-router",
    "Simple": "simple",
    "SimpleWithInternalNetwork": "simple-with-internal-network",
}
"""Folder of each layout by its name."""
BASE, MASTER, STATIC = "base-infrastructure", "master-node", "static-node"
STEPS = (BASE, MASTER, STATIC)

BLOCKS: Mapping[str, tuple[str, Json]] = {
    "Standard": (
        "standard",
        {
            "internalNetworkCIDR": "192.168.199.0/24",
            "internalNetworkDNSServers": ["192.0.2.53"],
            "externalNetworkName": "public",
        },
    ),
    "StandardWithNoRouter": (
        "standardWithNoRouter",
        {
            "internalNetworkCIDR": "192.168.199.0/24",
            "externalNetworkName": "lab-net",
        },
    ),
    "Simple": ("simple", {"externalNetworkName": "lab-net"}),
    "SimpleWithInternalNetwork": (
        "simpleWithInternalNetwork",
        {"internalSubnetName": "lab-subnet", "externalNetworkName": "public"},
    ),
}
"""Key and settings of each layout's block; lab-net is the project's own network."""
BASTION: Json = {
    "zone": "az2",
    "instanceClass": {
        "flavorName": "m1.tiny",
        "imageName": "tiny",
        "rootDiskSize": 1,
    },
}

NO_CLOUD: Json = {
    "authURL": "http://192.0.2.1:5000/v3",
    "domainName": "Default",
    "username": "demo",
    "password": "secret",
    "region": "RegionOne",
    "tenantName": "demo",
}
"""A provider block for plans that ask no cloud."""


def cluster(prefix: str) -> Json:
    """Return a ClusterConfiguration, as far as layouts read it."""
    return {
        "cloud": {"prefix": prefix, "provider": "OpenStack"},
        "podSubnetCIDR": "10.111.0.0/16",
        "serviceSubnetCIDR": "10.222.0.0/16",
    }


def document(layout: str, provider: Json, **changes: Any) -> Json:
    """Return an OpenStackClusterConfiguration.

    changes: fields of the layout's block; masters: of masterNodeGroup; instance_class:
    of its instance class; groups: nodeGroups; top: of the document.
    """
    top = changes.pop("top", {})
    masters = changes.pop("masters", {})
    instance_class = changes.pop("instance_class", {})
    groups = changes.pop("groups", None)
    name, block = BLOCKS[layout]
    document: Json = {
        "apiVersion": "deckhouse.io/v1",
        "kind": "OpenStackClusterConfiguration",
        "layout": layout,
        "sshPublicKey": KEY,
        "sshAllowList": ["192.0.2.0/24", "198.51.100.7/32"],
        "provider": provider,
        "masterNodeGroup": {
            "replicas": 1,
            "instanceClass": {
                "flavorName": "m1.tiny",
                "imageName": "tiny",
                "etcdDiskSizeGb": 1,
                **instance_class,
            },
            "volumeTypeMap": {"az1": "fast", "az2": "slow"},
            **masters,
        },
        name: {**block, **changes},
        **top,
    }
    if groups is not None:
        document["nodeGroups"] = groups
    return document


def group(**instance_class: Any) -> Json:
    """Return a node group "front" in lab-net. instance_class: fields of its class."""
    base = {"flavorName": "m1.tiny", "imageName": "tiny", "mainNetwork": "lab-net"}
    return {"name": "front", "replicas": 1, "instanceClass": {**base, **instance_class}}

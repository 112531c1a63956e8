"""A cluster on OpenStack, as documents and as the model has it."""

from collections.abc import Callable

import pytest

from lib.discovery.openstack import model

Document = dict[str, object]
MakeConfiguration = Callable[[str], Document]

KEY = (
    "ssh-ed25519 "
    "AAAAC3NzaC1lZDI1NTE5AAAAIGtpdmVraXZla2l2ZWtpdmVraXZla2l2ZWtpdmVraXZl me@here"
)
BLOCKS: dict[str, tuple[str, Document]] = {
    "Standard": (
        "standard",
        {
            "internalNetworkCIDR": "192.168.199.0/24",
            "internalNetworkDNSServers": ["192.0.2.1"],
            "externalNetworkName": "public",
        },
    ),
    "StandardWithNoRouter": (
        "standardWithNoRouter",
        {"internalNetworkCIDR": "192.168.199.0/24", "externalNetworkName": "public"},
    ),
    "Simple": ("simple", {"externalNetworkName": "public"}),
    "SimpleWithInternalNetwork": (
        "simpleWithInternalNetwork",
        {"internalSubnetName": "inner"},
    ),
}


@pytest.fixture()
def configuration() -> MakeConfiguration:
    """Return a maker of the smallest OpenStackClusterConfiguration of a layout."""

    def make(layout: str) -> Document:
        name, block = BLOCKS[layout]
        return {
            "apiVersion": "deckhouse.io/v1",
            "kind": "OpenStackClusterConfiguration",
            "layout": layout,
            "sshPublicKey": KEY,
            "provider": {
                "authURL": "https://keystone.example:5000/v3",
                "domainName": "Default",
                "username": "captain",
                "password": "s3cr3t",
                "region": "north",
                "tenantName": "fleet",
            },
            "masterNodeGroup": {
                "replicas": 1,
                "instanceClass": {"flavorName": "m1.large", "imageName": "ubuntu"},
                "volumeTypeMap": {"a": "fast"},
            },
            name: dict(block),
        }

    return make


@pytest.fixture()
def provider() -> model.ProviderSettings:
    """Return a provider as the layout Standard makes it."""
    return model.ProviderSettings(
        connection=model.Connection(
            auth_url="https://keystone.example:5000/v3",
            domain_name="Default",
            username="captain",
            password="s3cr3t",
            region="north",
            tenant_name="fleet",
        ),
        internal_network_names=("inner",),
        external_network_names=("outer", "public"),
        zones=("a", "b"),
        instances=model.InstanceDefaults(
            ssh_key_pair_name="sea",
            image_name="ubuntu",
            main_network="inner",
            additional_networks=("storage",),
            security_groups=("sea",),
        ),
        pod_network_mode=model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY,
        load_balancer=model.LoadBalancerPlace("subnet-1", "net-1"),
        tags={"owner": "port", "env": "prod"},
    )


@pytest.fixture()
def cluster() -> model.ClusterFacts:
    """Return the cluster of the reference's own naming vectors."""
    uuid = "f49dd1c3-a63a-4565-a06c-625e35587eab"
    return model.ClusterFacts(uuid=uuid, pod_subnet="10.111.0.0/16", prefix="sea")

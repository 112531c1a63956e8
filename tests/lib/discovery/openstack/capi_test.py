"""Cluster API's OpenStack provider is told what the reference would tell it."""

import base64
import dataclasses

import pytest
import yaml

from lib.discovery.openstack import capi, model
from lib.process import config

SPEC = model.InstanceClass("m1.large")


def named(name: str) -> dict[str, object]:
    return {"filter": {"name": name}}


def group(spec: model.InstanceClass = SPEC) -> model.Group:
    return model.Group("worker", "zonea", spec)


def test_the_whole_template(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """Everything that a class with a disk and a rich provider make."""
    spec = model.InstanceClass(
        "m1.large",
        root_disk_size_gib=20,
        additional_security_groups=("web",),
        additional_tags={"owner": "me"},
        tags=("fast",),
        preemptible=True,
    )
    groups = [named("sea"), named("web")]
    created = capi.machine_template(cluster, provider, group(spec))
    metadata = created["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["name"] == "worker-02320933-gen1"
    assert metadata["labels"]["node-group"] == "worker"
    assert metadata["annotations"]["helm.sh/resource-policy"] == "keep"
    assert len(metadata["annotations"]["checksum/instance-class"]) == 64
    assert created["apiVersion"] == "infrastructure.cluster.x-k8s.io/v1beta1"
    assert created["kind"] == "OpenStackMachineTemplate"
    assert created["spec"] == {
        "template": {
            "spec": {
                "configDrive": True,
                "flavor": "m1.large",
                "image": named("ubuntu"),
                "sshKeyName": "sea",
                "securityGroups": groups,
                "ports": [
                    {
                        "network": named("inner"),
                        "securityGroups": groups,
                        "allowedAddressPairs": [{"ipAddress": "10.111.0.0/16"}],
                    },
                    {"network": named("storage"), "securityGroups": groups},
                ],
                "rootVolume": {"sizeGiB": 20, "availabilityZone": {"from": "Machine"}},
                "tags": [
                    "env=prod",
                    "owner=me",
                    "fast",
                    "preemptible",
                    "deckhouse-f49dd1c3-a63a-4565-a06c-625e35587eab=1",
                    "role-deckhouse-worker-zonea=1",
                    "use-cluster-api=1",
                ],
                "schedulerHintAdditionalProperties": [
                    {
                        "name": "deckhouse-zone",
                        "value": {"type": "String", "string": "zonea"},
                    }
                ],
            }
        }
    }


# Security groups of the provider, mode, ports rendered, address pairs rendered.
PORTS = [
    (("sea",), model.PodNetworkMode.VXLAN, True, False),
    (("sea",), model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY, True, True),
    ((), model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY, True, True),
    ((), model.PodNetworkMode.VXLAN, False, False),
    ((), model.PodNetworkMode.DIRECT, False, False),
]


@pytest.mark.parametrize(("groups", "mode", "ports", "pairs"), PORTS)
def test_when_ports_are_spelled_out(  # one row
    cluster: model.ClusterFacts,
    provider: model.ProviderSettings,
    groups: tuple[str, ...],
    mode: model.PodNetworkMode,
    ports: bool,
    pairs: bool,
) -> None:
    """With security groups, or where pods' addresses must pass."""
    instances = dataclasses.replace(provider.instances, security_groups=groups)
    arguments = dataclasses.replace(
        provider, instances=instances, pod_network_mode=mode
    )
    observed = capi.machine_spec(cluster, arguments, group())
    assert ("ports" in observed) == ports
    assert ("allowedAddressPairs" in str(observed)) == pairs
    assert ("securityGroups" in observed) == bool(groups)
    assert "rootVolume" not in observed


REFUSED = ["a,b", "a/b", "x" * 61, ""]


@pytest.mark.parametrize("tag", REFUSED)
def test_tags_that_nova_refuses_are_told(
    cluster: model.ClusterFacts, provider: model.ProviderSettings, tag: str
) -> None:
    """Before a machine fails on them, whoever wrote them."""
    with pytest.raises(config.ConfigError) as caught:
        capi.machine_spec(
            cluster, provider, group(dataclasses.replace(SPEC, tags=(tag,)))
        )
    assert f'tags: invalid value "{tag}": must be a tag of 1 to 60 characters' in str(
        caught.value
    )


def test_a_tag_given_twice_stands_once(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """The list is a set to its reader."""
    spec = dataclasses.replace(SPEC, tags=("preemptible",), preemptible=True)
    tags = capi.machine_spec(cluster, provider, group(spec))["tags"]
    assert isinstance(tags, list)
    assert len(tags) == len(set(tags))


def test_the_cluster(provider: model.ProviderSettings) -> None:
    """The API server is nobody's load balancer; the first networks count."""
    assert capi.cluster_object(provider)["spec"] == {
        "identityRef": {"name": "capi-user-credentials", "cloudName": "openstack"},
        "apiServerLoadBalancer": {"enabled": False},
        "network": named("inner"),
        "externalNetwork": named("outer"),
    }
    alone = dataclasses.replace(provider, external_network_names=())
    assert capi.cluster_object(alone, ("192.0.2.1", 6443))["spec"] == {
        "identityRef": {"name": "capi-user-credentials", "cloudName": "openstack"},
        "apiServerLoadBalancer": {"enabled": False},
        "network": named("inner"),
        "disableExternalNetwork": True,
        "disableAPIServerFloatingIP": True,
        "controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443},
    }


@pytest.mark.parametrize(
    ("change", "project"),
    [
        ({}, {"project_name": "fleet"}),
        ({"tenant_id": "7", "tenant_name": ""}, {"project_id": "7"}),
    ],
)
def test_the_credentials(
    provider: model.ProviderSettings, change: dict[str, str], project: dict[str, str]
) -> None:
    """A clouds.yaml with one cloud, the project by name or by id."""
    connection = dataclasses.replace(provider.connection, ca_cert="PEM", **change)
    data = capi.credentials(connection)["data"]
    assert isinstance(data, dict)
    clouds = yaml.safe_load(base64.b64decode(data["clouds.yaml"]))
    assert clouds["clouds"]["openstack"]["region_name"] == "north"
    assert clouds["clouds"]["openstack"]["auth"] == {
        "auth_url": "https://keystone.example:5000/v3",
        "username": "captain",
        "password": "s3cr3t",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        **project,
    }
    assert base64.b64decode(data["cacert"]) == b"PEM"

"""OpenStackMachineClass says what the reference's would say."""

import base64
import dataclasses

import pytest

from lib.discovery.openstack import machine_class, model
from lib.process import config

SPEC = model.InstanceClass("m1.large")


def group(spec: model.InstanceClass = SPEC, zone: str = "zonea") -> model.Group:
    return model.Group("worker", zone, spec)


def made(
    cluster: model.ClusterFacts,
    provider: model.ProviderSettings,
    spec: model.InstanceClass = SPEC,
) -> dict[str, object]:
    observed = machine_class.machine_class(cluster, provider, group(spec))["spec"]
    assert isinstance(observed, dict)
    return observed


def test_the_whole_object(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """Everything that a small class and a rich provider make."""
    assert machine_class.machine_class(cluster, provider, group()) == {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "OpenStackMachineClass",
        "metadata": {
            "name": "worker-02320933",
            "namespace": "d8-cloud-instance-manager",
            "labels": {"heritage": "deckhouse", "module": "cloud-provider-openstack"},
            "annotations": {
                "checksum/machine-class": "4ee4cb025ad7205893214aaea510ec49717f324b110"
                "688727f60f98bb6e823d4"
            },
        },
        "spec": {
            "region": "north",
            "availabilityZone": "zonea",
            "flavorName": "m1.large",
            "imageName": "ubuntu",
            "networks": [{"name": "inner", "podNetwork": True}, {"name": "storage"}],
            "podNetworkCidr": "10.111.0.0/16",
            "keyName": "sea",
            "securityGroups": ["sea"],
            "tags": {
                "owner": "port",
                "env": "prod",
                "kubernetes.io-cluster-deckhouse-f49dd1c3-a63a-4565-a06c-625e35587eab"
                "": "1",
                "kubernetes.io-role-deckhouse-worker-zonea": "1",
            },
            "secretRef": {
                "namespace": "d8-cloud-instance-manager",
                "name": "worker-02320933",
            },
        },
    }


def test_names_follow_the_vectors(cluster: model.ClusterFacts) -> None:
    names = [machine_class.name_of(cluster, group(zone=z)) for z in ("zonea", "zoneb")]
    assert names == ["worker-02320933", "worker-6bdb5b0d"]


def test_the_class_wins_over_the_provider(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """Networks are replaced, security groups joined, tags overwritten."""
    spec = model.InstanceClass(
        "m1.large",
        "debian",
        20,
        "shared",
        ("inner", "shared", "inner"),
        ("web", "sea"),
        {"owner": "me"},
    )
    observed = made(cluster, provider, spec)
    assert observed["imageName"] == "debian"
    assert observed["rootDiskSize"] == 20
    networks = [{"name": "shared"}, {"name": "inner", "podNetwork": True}]
    assert observed["networks"] == networks
    assert observed["securityGroups"] == ["sea", "web"]
    assert isinstance(observed["tags"], dict)
    assert (observed["tags"]["owner"], observed["tags"]["env"]) == ("me", "prod")


def test_only_one_mode_opens_ports_to_pods(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """podNetwork stands on internal networks, in that mode alone."""
    for mode in model.PodNetworkMode:
        changed = dataclasses.replace(provider, pod_network_mode=mode)
        is_open = "podNetwork" in str(made(cluster, changed)["networks"])
        assert is_open == (mode is model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY)


def test_without_dhcp_there_is_a_config_drive(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """Else the switch is left out."""
    assert "useConfigDrive" not in made(cluster, provider)
    without = dataclasses.replace(provider, external_network_dhcp=False)
    assert made(cluster, without)["useConfigDrive"] is True


def test_what_can_not_be_made_is_told(
    cluster: model.ClusterFacts, provider: model.ProviderSettings
) -> None:
    """No image, no network and raw tags: all three at once."""
    bare = dataclasses.replace(provider, instances=model.InstanceDefaults())
    with pytest.raises(config.ConfigError) as caught:
        made(cluster, bare, model.InstanceClass("m1", tags=("fast",)))
    assert str(caught.value).splitlines() == [
        (
            "imageName: not set: must be a name, here or in the provider's"
            " instances.imageName"
        ),
        (
            "mainNetwork: not set: must be a name, here or in the provider's"
            " instances.mainNetwork"
        ),
        "tags: not supported: raw server tags require Cluster API",
    ]


FULL = model.Connection(
    "https://keystone",
    "Default",
    "captain",
    "s3cr3t",
    "north",
    "fleet",
    "7",
    "PEM",
    "id",
    "name",
    "secret",
    "token",
)
SECRETS = [
    (
        FULL,
        {
            "authURL": "https://keystone",
            "username": "captain",
            "password": "s3cr3t",
            "applicationCredentialId": "id",
            "applicationCredentialName": "name",
            "applicationCredentialSecret": "secret",
            "token": "token",
            "domainName": "Default",
            "tenantID": "7",
            "caCert": "PEM",
        },
    ),
    (
        model.Connection("https://keystone", "D", "c", "p", "north", "fleet"),
        {
            "authURL": "https://keystone",
            "username": "c",
            "password": "p",
            "domainName": "D",
            "tenantName": "fleet",
        },
    ),
    (
        model.Connection(
            "https://keystone",
            application_credential_id="id",
            application_credential_secret="secret",
        ),
        {
            "authURL": "https://keystone",
            "applicationCredentialId": "id",
            "applicationCredentialSecret": "secret",
        },
    ),
]


@pytest.mark.parametrize(("connection", "texts"), SECRETS)
def test_the_secret_holds_what_is_set(
    cluster: model.ClusterFacts, connection: model.Connection, texts: dict[str, str]
) -> None:
    """The tenant by id wins over its name; nothing empty is written."""
    observed = machine_class.secret(cluster, connection, group())
    data = observed["data"]
    assert isinstance(data, dict)
    assert {key: base64.b64decode(item).decode() for key, item in data.items()} == texts
    assert observed["metadata"] == {
        "name": "worker-02320933",
        "namespace": "d8-cloud-instance-manager",
        "labels": {"heritage": "deckhouse", "module": "cloud-provider-openstack"},
    }

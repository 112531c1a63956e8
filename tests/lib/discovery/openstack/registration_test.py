"""The Secrets hold the keys and the texts that their readers look for."""

import base64
import dataclasses
import json

import pytest

from lib.discovery.openstack import manifests, model, registration

CONNECTION = {
    "authURL": "https://keystone.example:5000/v3",
    "domainName": "Default",
    "username": "captain",
    "password": "s3cr3t",
    "region": "north",
}


def texts(secret: manifests.Manifest) -> dict[str, str]:
    data = secret["data"]
    assert isinstance(data, dict)
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


def where(secret: manifests.Manifest) -> tuple[str, str]:
    metadata = secret["metadata"]
    assert isinstance(metadata, dict)
    return metadata["namespace"], metadata["name"]


def test_the_registration(provider: model.ProviderSettings) -> None:
    """Every key of the reference, and those that Cluster API needs."""
    secret = registration.registration(provider)
    assert where(secret) == ("kube-system", "d8-node-manager-cloud-provider")
    observed = texts(secret)
    description = json.loads(observed.pop("openstack"))
    assert observed == {
        "type": "openstack",
        "region": "north",
        "zones": '["a","b"]',
        "instanceClassKind": "OpenStackInstanceClass",
        "machineClassKind": "OpenStackMachineClass",
        "capiClusterKind": "OpenStackCluster",
        "capiClusterAPIVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "capiClusterName": "openstack",
        "capiMachineTemplateKind": "OpenStackMachineTemplate",
        "capiMachineTemplateAPIVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
    }
    assert description == {
        "connection": {**CONNECTION, "tenantName": "fleet"},
        "instances": {
            "sshKeyPairName": "sea",
            "securityGroups": ["sea"],
            "imageName": "ubuntu",
            "mainNetwork": "inner",
            "additionalNetworks": ["storage"],
        },
        "externalNetworkNames": ["outer", "public"],
        "externalNetworkDHCP": True,
        "internalNetworkNames": ["inner"],
        "podNetworkMode": "DirectRoutingWithPortSecurityEnabled",
        "tags": {"owner": "port", "env": "prod"},
    }


def test_what_is_not_set_has_no_field(provider: model.ProviderSettings) -> None:
    """Optional fields are left out, never null or empty."""
    connection = dataclasses.replace(
        provider.connection, tenant_name="", tenant_id="7", ca_cert="PEM"
    )
    bare = model.ProviderSettings(connection, internal_network_names=("inner",))
    observed = json.loads(texts(registration.registration(bare))["openstack"])
    assert observed == {
        "connection": {**CONNECTION, "tenantID": "7", "caCert": "PEM"},
        "externalNetworkDHCP": True,
        "internalNetworkNames": ["inner"],
        "tags": {},
    }


def test_the_secret_of_the_ccm(provider: model.ProviderSettings) -> None:
    """cloud-config always, ca.crt only with a certificate."""
    secret = registration.cloud_controller_manager(
        provider, ignore_volume_microversion=False
    )
    assert where(secret) == ("d8-cloud-provider-openstack", "cloud-controller-manager")
    assert list(texts(secret)) == ["cloud-config"]
    connection = dataclasses.replace(provider.connection, ca_cert="PEM")
    trusted = dataclasses.replace(provider, connection=connection)
    observed = texts(
        registration.cloud_controller_manager(trusted, ignore_volume_microversion=True)
    )
    assert observed["ca.crt"] == "PEM"
    assert "ca-file = /etc/config/ca.crt\n" in observed["cloud-config"]


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, {"tenantName": "fleet"}),
        ({"tenant_name": "", "tenant_id": "7"}, {"tenantID": "7"}),
        ({"ca_cert": "PEM"}, {"tenantName": "fleet", "ca.crt": "PEM"}),
    ],
)
def test_the_secret_of_the_discoverer(
    provider: model.ProviderSettings, change: dict[str, str], more: dict[str, str]
) -> None:
    """What its environment is made of; MODULE_CONFIG says instances and zones."""
    connection = dataclasses.replace(provider.connection, **change)
    secret = registration.cloud_data_discoverer(
        dataclasses.replace(provider, connection=connection)
    )
    assert where(secret) == ("d8-cloud-provider-openstack", "cloud-data-discoverer")
    observed = texts(secret)
    module = json.loads(observed.pop("moduleConfig"))
    assert observed == {**CONNECTION, **more}
    assert module["zones"] == ["a", "b"]
    assert module["instances"]["mainNetwork"] == "inner"

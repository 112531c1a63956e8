"""The Secrets that register the cloud with its readers in the cluster."""

from collections.abc import Mapping
from typing import TypeVar

from lib.discovery import go_json
from lib.discovery.openstack import capi, cloud_conf_writer, manifests, model

_Value = TypeVar("_Value")

REGISTRATION = "d8-node-manager-cloud-provider"


def registration(provider: model.ProviderSettings) -> manifests.Manifest:
    """Return the manifest that registers the cloud with the node manager.

    Source: Deckhouse, node-manager, Secret d8-node-manager-cloud-provider; the capi*
    keys as in its sibling providers.
    """
    return manifests.secret(
        manifests.SYSTEM_NAMESPACE,
        REGISTRATION,
        {
            "type": "openstack",
            "region": provider.connection.region,
            "zones": go_json.dump(provider.zones),
            "instanceClassKind": "OpenStackInstanceClass",
            "machineClassKind": "OpenStackMachineClass",
            "capiClusterKind": capi.CLUSTER_KIND,
            "capiClusterAPIVersion": capi.API_VERSION,
            "capiClusterName": capi.CLUSTER_NAME,
            "capiMachineTemplateKind": capi.TEMPLATE_KIND,
            "capiMachineTemplateAPIVersion": capi.API_VERSION,
            "openstack": go_json.dump(description(provider)),
        },
    )


def description(provider: model.ProviderSettings) -> Mapping[str, object]:
    """Return the object that machine templates read as `provider`, with the password.

    `tags` is for those templates; the reference lacks it.
    """
    return {
        "connection": _connection(provider.connection),
        **_if_any("instances", _instances(provider.instances)),
        **_if_any("externalNetworkNames", list(provider.external_network_names)),
        "externalNetworkDHCP": provider.external_network_dhcp,
        "internalNetworkNames": list(provider.internal_network_names),
        **_if_any("podNetworkMode", str(provider.pod_network_mode or "")),
        "tags": dict(provider.tags),
    }


def cloud_controller_manager(
    provider: model.ProviderSettings, *, ignore_volume_microversion: bool
) -> manifests.Manifest:
    """Return the Secret that openstack-ccm and the CSI driver mount."""
    text = cloud_conf_writer.render(
        provider, ignore_volume_microversion=ignore_volume_microversion
    )
    return manifests.secret(
        manifests.MODULE_NAMESPACE,
        "cloud-controller-manager",
        {"cloud-config": text, **_ca(provider)},
        {"app": "cloud-controller-manager"},
    )


def cloud_data_discoverer(provider: model.ProviderSettings) -> manifests.Manifest:
    """Return the Secret with the environment of cloud-data-discoverer."""
    connection = provider.connection
    module_config = {
        **_if_any("instances", _instances(provider.instances)),
        **_if_any("zones", list(provider.zones)),
    }
    return manifests.secret(
        manifests.MODULE_NAMESPACE,
        "cloud-data-discoverer",
        {
            "authURL": connection.auth_url,
            "domainName": connection.domain_name,
            "username": connection.username,
            "password": connection.password,
            "region": connection.region,
            **_if_any("tenantName", connection.tenant_name),
            **_if_any("tenantID", connection.tenant_id),
            **_ca(provider),
            "moduleConfig": go_json.dump(module_config),
        },
        {"app": "cloud-data-discoverer"},
    )


def _connection(connection: model.Connection) -> Mapping[str, str]:
    return {
        "authURL": connection.auth_url,
        "domainName": connection.domain_name,
        "username": connection.username,
        "password": connection.password,
        "region": connection.region,
        **_if_any("tenantName", connection.tenant_name),
        **_if_any("tenantID", connection.tenant_id),
        **_if_any("caCert", connection.ca_cert),
    }


def _instances(instances: model.InstanceDefaults) -> Mapping[str, object]:
    return {
        **_if_any("sshKeyPairName", instances.ssh_key_pair_name),
        **_if_any("securityGroups", list(instances.security_groups)),
        **_if_any("imageName", instances.image_name),
        **_if_any("mainNetwork", instances.main_network),
        **_if_any("additionalNetworks", list(instances.additional_networks)),
    }


def _ca(provider: model.ProviderSettings) -> Mapping[str, str]:
    return _if_any("ca.crt", provider.connection.ca_cert)


def _if_any(key: str, value: _Value) -> Mapping[str, _Value]:
    return {key: value} if value else {}

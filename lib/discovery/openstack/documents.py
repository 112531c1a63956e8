"""Reads documents that have been judged by their schemas into the model."""

from collections.abc import Mapping
from typing import TypeGuard

from lib.discovery.openstack import model, schemas
from lib.process import config

Document = Mapping[str, object]

_DHCP_BLOCKS = {
    "Simple": "simple",
    "SimpleWithInternalNetwork": "simpleWithInternalNetwork",
    "StandardWithNoRouter": "standardWithNoRouter",
}
"""Layouts whose settings say whether the external network has DHCP."""


def cluster_configuration(document: object) -> model.ClusterConfiguration:
    """Read an OpenStackClusterConfiguration.

    Raises:
        ConfigError: with everything that its schema does not allow.
    """
    found = _judged(schemas.Schema.CLUSTER_CONFIGURATION, document)
    layout = _text(found, "layout")
    block = _object(found, _DHCP_BLOCKS.get(layout, ""))
    return model.ClusterConfiguration(
        layout=layout,
        connection=_connection(_object(found, "provider")),
        external_network_dhcp=block.get("externalNetworkDHCP") is not False,
        tags=_texts_by_name(found, "tags"),
    )


def settings(document: object) -> model.ModuleSettings:
    """Read the settings of the module; None stands for none.

    Raises:
        ConfigError: with everything that their schema does not allow.
    """
    found = _judged(schemas.Schema.SETTINGS, document if document is not None else {})
    storage_class = _object(found, "storageClass")
    driver = _object(found, "csiDriver")
    return model.ModuleSettings(
        connection=_connection(_object(found, "connection")),
        internal_network_names=_texts(found, "internalNetworkNames"),
        external_network_names=_texts(found, "externalNetworkNames"),
        additional_external_network_names=_texts(
            found, "additionalExternalNetworkNames"
        ),
        pod_network_mode=_mode(found),
        instances=_instances(found),
        load_balancer=_load_balancer(found),
        zones=_texts(found, "zones"),
        tags=_texts_by_name(found, "tags"),
        storage_class_exclude=_texts(storage_class, "exclude"),
        storage_class_default=_text(storage_class, "default"),
        topology_enabled=storage_class.get("topologyEnabled") is not False,
        ignore_volume_microversion=found.get("ignoreVolumeMicroversion") is True,
        fs_group_policy=_text(driver, "fsGroupPolicy") or "ReadWriteOnceWithFSType",
    )


def discovered(document: object) -> model.Discovered:
    """Read an OpenStackCloudDiscoveryData.

    Raises:
        ConfigError: with everything that its schema does not allow.
    """
    found = _judged(schemas.Schema.CLOUD_DISCOVERY_DATA, document)
    return model.Discovered(
        internal_network_names=_texts(found, "internalNetworkNames"),
        external_network_names=_texts(found, "externalNetworkNames"),
        pod_network_mode=_mode(found),
        zones=_texts(found, "zones"),
        instances=_instances(found),
        load_balancer=_load_balancer(found),
    )


def instance_class(spec: object) -> model.InstanceClass:
    """Read the spec of an OpenStackInstanceClass.

    Raises:
        ConfigError: with everything that its schema does not allow.
    """
    found = _judged(schemas.Schema.INSTANCE_CLASS, spec)
    size = found.get("rootDiskSize")
    return model.InstanceClass(
        flavor_name=_text(found, "flavorName"),
        image_name=_text(found, "imageName"),
        root_disk_size_gib=int(size) if isinstance(size, int | float) else 0,
        main_network=_text(found, "mainNetwork"),
        additional_networks=_texts(found, "additionalNetworks"),
        additional_security_groups=_texts(found, "additionalSecurityGroups"),
        additional_tags=_texts_by_name(found, "additionalTags"),
        tags=_texts(found, "tags"),
        preemptible=found.get("preemptible") is True,
    )


def _judged(judge: schemas.Schema, document: object) -> Document:
    config.require(schemas.problems(judge, document))
    return document if _is_document(document) else {}


def _connection(found: Document) -> model.Connection:
    return model.Connection(
        auth_url=_text(found, "authURL"),
        domain_name=_text(found, "domainName"),
        username=_text(found, "username"),
        password=_text(found, "password"),
        region=_text(found, "region"),
        tenant_name=_text(found, "tenantName"),
        tenant_id=_text(found, "tenantID"),
        ca_cert=_text(found, "caCert"),
    )


def _instances(found: Document) -> model.InstanceDefaults:
    given = _object(found, "instances")
    return model.InstanceDefaults(
        ssh_key_pair_name=_text(given, "sshKeyPairName"),
        image_name=_text(given, "imageName"),
        main_network=_text(given, "mainNetwork"),
        additional_networks=_texts(given, "additionalNetworks"),
        security_groups=_texts(given, "securityGroups"),
    )


def _load_balancer(found: Document) -> model.LoadBalancerPlace:
    given = _object(found, "loadBalancer")
    return model.LoadBalancerPlace(
        subnet_id=_text(given, "subnetID"),
        floating_network_id=_text(given, "floatingNetworkID"),
        disabled=given.get("disabled") is True,
    )


def _mode(found: Document) -> model.PodNetworkMode | None:
    mode = _text(found, "podNetworkMode")
    return model.PodNetworkMode(mode) if mode else None


def _is_document(value: object) -> TypeGuard[Document]:
    return isinstance(value, Mapping)


def _object(found: Document, name: str) -> Document:
    value = found.get(name)
    return value if _is_document(value) else {}


def _text(found: Document, name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def _texts(found: Document, name: str) -> tuple[str, ...]:
    value = found.get(name)
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _texts_by_name(found: Document, name: str) -> Mapping[str, str]:
    return {key: str(value) for key, value in _object(found, name).items()}

"""Reads documents that are valid by their schemas into the model."""

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
"""Layouts with a setting for DHCP in the external network."""


def cluster_configuration(document: object) -> model.ClusterConfiguration:
    """Read an OpenStackClusterConfiguration.

    Raises:
        ConfigError: with every violation of its schema.
    """
    judged = _judged(schemas.Schema.CLUSTER_CONFIGURATION, document)
    layout = _text(judged, "layout")
    block = _object(judged, _DHCP_BLOCKS.get(layout, ""))
    return model.ClusterConfiguration(
        layout=layout,
        connection=_connection(_object(judged, "provider")),
        external_network_dhcp=block.get("externalNetworkDHCP") is not False,
        tags=_texts_by_name(judged, "tags"),
    )


def settings(document: object) -> model.ModuleSettings:
    """Read the settings of the module; None: not set.

    Raises:
        ConfigError: with every violation of their schema.
    """
    judged = _judged(schemas.Schema.SETTINGS, document if document is not None else {})
    storage_class = _object(judged, "storageClass")
    driver = _object(judged, "csiDriver")
    return model.ModuleSettings(
        connection=_connection(_object(judged, "connection")),
        internal_network_names=_texts(judged, "internalNetworkNames"),
        external_network_names=_texts(judged, "externalNetworkNames"),
        additional_external_network_names=_texts(
            judged, "additionalExternalNetworkNames"
        ),
        pod_network_mode=_mode(judged),
        instances=_instances(judged),
        load_balancer=_load_balancer(judged),
        zones=_texts(judged, "zones"),
        tags=_texts_by_name(judged, "tags"),
        storage_class_exclude=_texts(storage_class, "exclude"),
        storage_class_default=_text(storage_class, "default"),
        topology_enabled=storage_class.get("topologyEnabled") is not False,
        ignore_volume_microversion=judged.get("ignoreVolumeMicroversion") is True,
        fs_group_policy=_text(driver, "fsGroupPolicy") or "ReadWriteOnceWithFSType",
    )


def discovered(document: object) -> model.Discovered:
    """Read an OpenStackCloudDiscoveryData.

    Raises:
        ConfigError: with every violation of its schema.
    """
    judged = _judged(schemas.Schema.CLOUD_DISCOVERY_DATA, document)
    return model.Discovered(
        internal_network_names=_texts(judged, "internalNetworkNames"),
        external_network_names=_texts(judged, "externalNetworkNames"),
        pod_network_mode=_mode(judged),
        zones=_texts(judged, "zones"),
        instances=_instances(judged),
        load_balancer=_load_balancer(judged),
    )


def instance_class(spec: object) -> model.InstanceClass:
    """Read the spec of an OpenStackInstanceClass.

    Raises:
        ConfigError: with every violation of its schema.
    """
    judged = _judged(schemas.Schema.INSTANCE_CLASS, spec)
    size = judged.get("rootDiskSize")
    return model.InstanceClass(
        flavor_name=_text(judged, "flavorName"),
        image_name=_text(judged, "imageName"),
        root_disk_size_gib=int(size) if isinstance(size, int | float) else 0,
        main_network=_text(judged, "mainNetwork"),
        additional_networks=_texts(judged, "additionalNetworks"),
        additional_security_groups=_texts(judged, "additionalSecurityGroups"),
        additional_tags=_texts_by_name(judged, "additionalTags"),
        tags=_texts(judged, "tags"),
        preemptible=judged.get("preemptible") is True,
    )


def _judged(judge: schemas.Schema, document: object) -> Document:
    config.require(schemas.problems(judge, document))
    return document if _is_document(document) else {}


def _connection(document: Document) -> model.Connection:
    return model.Connection(
        auth_url=_text(document, "authURL"),
        domain_name=_text(document, "domainName"),
        username=_text(document, "username"),
        password=_text(document, "password"),
        region=_text(document, "region"),
        tenant_name=_text(document, "tenantName"),
        tenant_id=_text(document, "tenantID"),
        ca_cert=_text(document, "caCert"),
    )


def _instances(document: Document) -> model.InstanceDefaults:
    instances = _object(document, "instances")
    return model.InstanceDefaults(
        ssh_key_pair_name=_text(instances, "sshKeyPairName"),
        image_name=_text(instances, "imageName"),
        main_network=_text(instances, "mainNetwork"),
        additional_networks=_texts(instances, "additionalNetworks"),
        security_groups=_texts(instances, "securityGroups"),
    )


def _load_balancer(document: Document) -> model.LoadBalancerPlace:
    load_balancer = _object(document, "loadBalancer")
    return model.LoadBalancerPlace(
        subnet_id=_text(load_balancer, "subnetID"),
        floating_network_id=_text(load_balancer, "floatingNetworkID"),
        disabled=load_balancer.get("disabled") is True,
    )


def _mode(document: Document) -> model.PodNetworkMode | None:
    mode = _text(document, "podNetworkMode")
    return model.PodNetworkMode(mode) if mode else None


def _is_document(value: object) -> TypeGuard[Document]:
    return isinstance(value, Mapping)


def _object(document: Document, name: str) -> Document:
    value = document.get(name)
    return value if _is_document(value) else {}


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _texts(document: Document, name: str) -> tuple[str, ...]:
    value = document.get(name)
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _texts_by_name(document: Document, name: str) -> Mapping[str, str]:
    return {key: str(value) for key, value in _object(document, name).items()}

"""Reads documents that are valid by their schemas into the model. Pure."""

from collections.abc import Mapping

from lib.discovery.dvp import kubeconfig_text, model, schemas
from lib.discovery.findings import is_document, part_of, text_of
from lib.process import config

Document = Mapping[str, object]


def project(configuration: object) -> model.Project:
    """Read the part of a DVPClusterConfiguration that describes the project.

    Raises:
        ConfigError: with every violation of its schema.
    """
    document = _valid(schemas.Schema.CLUSTER_CONFIGURATION, configuration)
    provider = part_of(document, "provider")
    ports = provider.get("ingressPorts")
    return model.Project(
        namespace=text_of(provider, "namespace"),
        kubeconfig=kubeconfig_text.decode(text_of(provider, "kubeconfigDataBase64")),
        network_policy=model.NetworkPolicy(
            text_of(provider, "networkPolicy") or "Isolated"
        ),
        ingress_ports=tuple(ports) if isinstance(ports, list) else (22,),
        additional_vm_labels=_texts_by_name(provider, "additionalVMLabels"),
    )


def settings(document: object, version: object) -> model.ModuleSettings:
    """Read the settings of the module; None: not set. version: of their schema.

    Raises:
        ConfigError: with every violation of their schema.
    """
    valid = _valid(schemas.Schema.SETTINGS, document if document is not None else {})
    nodes = part_of(valid, "nodes", "parameters")
    provider = part_of(valid, "provider", "parameters")
    policy = text_of(provider, "networkPolicy")
    excluded = (
        *_texts(part_of(valid, "storageClass"), "exclude"),
        *_texts(part_of(valid, "storage", "parameters"), "excludedStorageClasses"),
    )
    return model.ModuleSettings(
        namespace=text_of(provider, "namespace"),
        network_policy=model.NetworkPolicy(policy) if policy else None,
        ssh_public_key=text_of(nodes, "sshPublicKey"),
        zones=_texts(nodes, "zones"),
        storage_class_exclude=excluded,
        is_second_generation=isinstance(version, int) and version >= 2,
    )


def instance_class(spec: object) -> model.Spec:
    """Return the spec of a DVPInstanceClass.

    Raises:
        ConfigError: with every violation of its schema.
    """
    return _valid(schemas.Schema.INSTANCE_CLASS, spec)


def zones(discovered: object) -> tuple[str, ...]:
    """Return the zones of a DVPCloudDiscoveryData.

    Raises:
        ConfigError: with every violation of its schema.
    """
    return _texts(_valid(schemas.Schema.DISCOVERY_DATA, discovered), "zones")


def _valid(kind: schemas.Schema, document: object) -> Document:
    config.require(schemas.problems(kind, document))
    return document if is_document(document) else {}


def _texts(document: Document, name: str) -> tuple[str, ...]:
    value = document.get(name)
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _texts_by_name(document: Document, name: str) -> Mapping[str, str]:
    return {key: str(value) for key, value in part_of(document, name).items()}

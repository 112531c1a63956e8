"""Sorts the documents of a cluster's configuration by kind, and validates them. Pure.

Rules: the problems of all documents are reported together; documents of unused kinds
are skipped and listed.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from lib.discovery import document_kinds, storage_classes
from lib.discovery.findings import (
    Document,
    SourceFindings,
    is_document,
    part_of,
    text_of,
)
from lib.discovery.openstack import (
    assumed,
    documents,
    merge,
    model,
    node_groups,
    schemas,
)
from lib.process import config

CONFIGURATION = "OpenStackClusterConfiguration"
CLUSTER = "ClusterConfiguration"
MODULE_CONFIG = document_kinds.MODULE_CONFIG
DISCOVERED = "OpenStackCloudDiscoveryData"
OFFERED = "OpenStackCloudProviderDiscoveryData"
MODULE = "cloud-provider-openstack"

_ONCE = (CONFIGURATION, CLUSTER, MODULE_CONFIG, DISCOVERED, OFFERED)
_KINDS = document_kinds.DocumentKinds(CONFIGURATION, _ONCE, node_groups.KINDS, MODULE)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigurationSources:
    """All documents, validated and merged.

    configuration, discovery, offered: the documents themselves; offered is
    discovery-data.json. skipped: unused kinds. is_assumed: without discovery data;
    the likely values are used.
    """

    configuration: Document | None
    discovery: Document | None
    offered: Document | None
    settings: model.ModuleSettings
    provider: model.ProviderSettings
    cluster: model.ClusterFacts
    groups: tuple[node_groups.NodeGroup, ...] = ()
    classes: tuple[storage_classes.StorageClass, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def is_assumed(self) -> bool:
        """Report whether the discovery data is assumed."""
        return self.discovery is None


def read(documents: Sequence[object], uuid: str = "") -> ConfigurationSources:
    """Read documents as YAML or JSON decodes them.

    documents: one OpenStackClusterConfiguration (none in a hybrid cluster); and
    optionally discovery data of both kinds, a ClusterConfiguration, the module's
    ModuleConfig, NodeGroups and their instance classes. uuid: of the cluster; only
    machines require it.

    Raises:
        ConfigError: with every problem of every document.
    """
    findings = SourceFindings()
    by_kind, skipped = document_kinds.sort(documents, _KINDS, findings)
    once = {kind: next(iter(by_kind.get(kind, ())), None) for kind in _ONCE}
    contents = _validated(by_kind, once, uuid, findings)
    provider = merge.merge(
        contents.settings, contents.configuration, contents.discovered
    )
    findings.add("", merge.problems(provider, _naming_networks(once, provider)))
    findings.add("", _problems_of_cluster(contents, provider))
    classes = _classes(once[OFFERED], contents.settings, findings)
    findings.require()
    return ConfigurationSources(
        configuration=once[CONFIGURATION],
        discovery=once[DISCOVERED],
        offered=once[OFFERED],
        settings=contents.settings,
        provider=provider,
        cluster=contents.cluster,
        groups=contents.groups,
        classes=classes,
        skipped=skipped,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Contents:
    """Contents of the documents, not merged; configuration is None when hybrid."""

    settings: model.ModuleSettings
    configuration: model.ClusterConfiguration | None
    discovered: model.Discovered
    cluster: model.ClusterFacts
    groups: tuple[node_groups.NodeGroup, ...]


def _validated(
    by_kind: Mapping[str, Sequence[Document]],
    once: Mapping[str, Document | None],
    uuid: str,
    findings: SourceFindings,
) -> _Contents:
    """Read each document, or raise with the problems of all of them."""
    raw = once[CONFIGURATION]
    cluster = _cluster(once[CLUSTER], uuid)
    settings = findings.part(MODULE, lambda: _settings(once[MODULE_CONFIG]))
    configuration = None
    if raw is not None:
        configuration = findings.part(
            CONFIGURATION, lambda: documents.cluster_configuration(raw)
        )
    is_valid = configuration is not None
    discovered = _discovered(raw if is_valid else None, once, cluster.prefix, findings)
    _validate_offered(once[OFFERED], findings)
    groups = node_groups.read(by_kind, findings)
    findings.require()
    return _Contents(
        settings or model.ModuleSettings(),
        configuration,
        discovered or model.Discovered(),
        cluster,
        groups,
    )


def _cluster(document: Document | None, uuid: str) -> model.ClusterFacts:
    content = document or {}
    return model.ClusterFacts(
        uuid=uuid,
        pod_subnet=text_of(content, "podSubnetCIDR"),
        prefix=text_of(part_of(content, "cloud"), "prefix"),
    )


def _settings(document: Document | None) -> model.ModuleSettings:
    return documents.settings(part_of(document or {}, "spec").get("settings"))


def _naming_networks(
    once: Mapping[str, Document | None], provider: model.ProviderSettings
) -> config.FieldProblem | None:
    """Return the problem of an internal network without a name.

    None when no other document could name it.
    """
    configuration = once[CONFIGURATION]
    if configuration is None or once[DISCOVERED] is not None:
        return None
    if provider.internal_network_names or not assumed.is_named_by_prefix(configuration):
        return None
    expected = "the prefix in the name of the internal network"
    return config.not_set(f"{CLUSTER} cloud.prefix", expected)


def _discovered(
    raw: Document | None,
    once: Mapping[str, Document | None],
    prefix: str,
    findings: SourceFindings,
) -> model.Discovered | None:
    """Read the discovery data; without it, assume those of the layout.

    raw: the configuration when it is valid. Missing zones are those that the cloud
    offers.
    """
    document = once[DISCOVERED]
    if document is not None:
        discovered = findings.part(DISCOVERED, lambda: documents.discovered(document))
    else:
        discovered = assumed.discovered(raw, prefix) if raw else None
    offered = (once[OFFERED] or {}).get("zones")
    if discovered is not None and not discovered.zones and isinstance(offered, list):
        return dataclasses.replace(discovered, zones=tuple(map(str, offered)))
    return discovered


def _validate_offered(document: Document | None, findings: SourceFindings) -> None:
    if document is not None:
        schema = schemas.Schema.DISCOVERY_DATA
        findings.add(OFFERED, schemas.problems(schema, document))


def _problems_of_cluster(
    contents: _Contents, provider: model.ProviderSettings
) -> tuple[config.FieldProblem, ...]:
    """Return the problems of the cluster's properties that machines require."""
    if not contents.groups:
        return ()
    cluster = contents.cluster
    problems = []
    if not cluster.uuid:
        expected = "the UUID of the cluster, which NodeGroups require"
        problems.append(config.not_set("--cluster-uuid", expected))
    for field, value in (
        ("cloud.prefix", cluster.prefix),
        ("podSubnetCIDR", cluster.pod_subnet),
    ):
        if not value:
            expected = "a value, which NodeGroups require"
            problems.append(config.not_set(f"{CLUSTER} {field}", expected))
    if not provider.zones and any(not group.zones for group in contents.groups):
        expected = "at least one zone: a NodeGroup names none"
        problems.append(config.not_set("zones", expected))
    return tuple(problems)


def _classes(
    offered: Document | None, settings: model.ModuleSettings, findings: SourceFindings
) -> tuple[storage_classes.StorageClass, ...]:
    """Return the StorageClasses of the volume types that the cloud offers."""
    rules = findings.part(
        MODULE,
        lambda: storage_classes.read_rules(
            settings.storage_class_exclude, settings.storage_class_default
        ),
    )
    types = (offered or {}).get("volumeTypes")
    if rules is None or not isinstance(types, list):
        return ()
    names = [
        text_of(volume_type, "name")
        for volume_type in types
        if is_document(volume_type)
    ]
    choice = storage_classes.choose(names, rules)
    findings.add(OFFERED, choice.problems)
    return choice.classes

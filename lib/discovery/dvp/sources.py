"""Sorts the documents of a cluster's configuration by kind, and validates them. Pure.

Rules: the problems of all documents are reported together; documents of unused kinds
are skipped and listed. Both generations are read: a DVPClusterConfiguration; or the
module's settings of version 2 with the Secret d8-credentials. Settings override the
configuration field by field.
"""

import base64
import binascii
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence

from lib.discovery import document_kinds, node_groups, storage_classes
from lib.discovery.dvp import (
    documents,
    kubeconfig_text,
    model,
    parent_rules,
    registration,
)
from lib.discovery.findings import (
    Document,
    SourceFindings,
    is_document,
    name_of,
    part_of,
    text_of,
)
from lib.process import config

CONFIGURATION = "DVPClusterConfiguration"
CLUSTER = "ClusterConfiguration"
DISCOVERED = "DVPCloudDiscoveryData"
INSTANCE_CLASS = "DVPInstanceClass"
CREDENTIALS = "Secret"
MODULE = "cloud-provider-dvp"

_ONCE = (CONFIGURATION, CLUSTER, document_kinds.MODULE_CONFIG, DISCOVERED, CREDENTIALS)
_MORE = (node_groups.NODE_GROUP, INSTANCE_CLASS)
_KINDS = document_kinds.DocumentKinds(CONFIGURATION, _ONCE, _MORE, MODULE)
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigurationSources:
    """All documents, validated and merged.

    configuration, discovery: the documents themselves. skipped: unused kinds.
    """

    configuration: Document | None
    discovery: Document | None
    settings: model.ModuleSettings
    provider: model.ProviderSettings
    cluster: model.ClusterFacts
    groups: tuple[model.NodeGroup, ...] = ()
    classes: tuple[storage_classes.StorageClass, ...] = ()
    skipped: tuple[str, ...] = ()


def read(documents_read: Sequence[object], uuid: str) -> ConfigurationSources:
    """Read documents as YAML or JSON decodes them. uuid: of the cluster.

    documents_read: one DVPClusterConfiguration, or the module's ModuleConfig and its
    Secret d8-credentials; optionally discovery-data.json, a ClusterConfiguration,
    NodeGroups and their instance classes.

    Raises:
        ConfigError: with every problem of every document.
    """
    findings = SourceFindings()
    by_kind, skipped = document_kinds.sort(
        list(_without_other_secrets(documents_read)), _KINDS, findings
    )
    once = {kind: next(iter(by_kind.get(kind, ())), None) for kind in _ONCE}
    prefix = text_of(part_of(once[CLUSTER] or {}, "cloud"), "prefix")
    settings = _settings(once[document_kinds.MODULE_CONFIG], findings)
    project = _project(once[CONFIGURATION], prefix, findings)
    zones = _zones(once[DISCOVERED], findings)
    groups = _groups(by_kind, findings)
    findings.add("", _problems_of_cluster(uuid, groups, prefix))
    if once[CONFIGURATION] is None:
        project = _of_module(once[CREDENTIALS], findings)
    elif once[CREDENTIALS] is not None:
        other = f"{CONFIGURATION} provider.kubeconfigDataBase64"
        findings.add(CREDENTIALS, [config.conflict("", other)])
    provider = _merged(project, settings, zones, once[CONFIGURATION])
    findings.require()
    findings.add("", _not_set(provider.project))
    classes = _classes(once[DISCOVERED], settings, findings)
    findings.require()
    return ConfigurationSources(
        configuration=once[CONFIGURATION],
        discovery=once[DISCOVERED],
        settings=settings,
        provider=provider,
        cluster=model.ClusterFacts(uuid, prefix),
        groups=groups,
        classes=classes,
        skipped=skipped,
    )


def _without_other_secrets(documents_read: Sequence[object]) -> Iterator[object]:
    """Yield the documents without Secrets that are no credentials of the module."""
    for document in documents_read:
        is_secret = is_document(document) and document.get("kind") == CREDENTIALS
        if not is_secret or _is_credentials(document):
            yield document


def _is_credentials(document: object) -> bool:
    kind = registration.CREDENTIALS_TYPE
    return is_document(document) and document.get("type") == kind


def _settings(
    document: Document | None, findings: SourceFindings
) -> model.ModuleSettings:
    spec = part_of(document or {}, "spec")
    read_settings = functools.partial(
        documents.settings, spec.get("settings"), spec.get("version")
    )
    return findings.part(MODULE, read_settings) or model.ModuleSettings()


def _project(
    configuration: Document | None, prefix: str, findings: SourceFindings
) -> model.Project:
    if configuration is None:
        return model.Project()
    read_project = functools.partial(documents.project, configuration)
    project = findings.part(CONFIGURATION, read_project)
    if project is not None:
        findings.add(CONFIGURATION, parent_rules.problems(configuration, prefix))
    return project or model.Project()


def _of_module(secret: Document | None, findings: SourceFindings) -> model.Project:
    """Return the project of a cluster without a configuration: its kubeconfig."""
    if secret is None:
        return model.Project()
    label = f"{CREDENTIALS}/{name_of(secret)}"
    scheme = _decoded(secret, "authScheme")
    if scheme != "kubeconfig":
        problem = config.required("data.authScheme", scheme, "kubeconfig")
        findings.add(label, [problem])
    text = kubeconfig_text.decode(_decoded(secret, "secret"))
    findings.add(label, kubeconfig_text.problems("data.secret", text))
    return model.Project(kubeconfig=text)


def _decoded(secret: Document, key: str) -> str:
    plain = text_of(part_of(secret, "stringData"), key)
    if plain:
        return plain
    try:
        encoded = text_of(part_of(secret, "data"), key)
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _zones(document: Document | None, findings: SourceFindings) -> tuple[str, ...]:
    if document is None:
        return ()
    read_zones = functools.partial(documents.zones, document)
    return findings.part(DISCOVERED, read_zones) or ()


def _groups(
    by_kind: Mapping[str, Sequence[Document]], findings: SourceFindings
) -> tuple[model.NodeGroup, ...]:
    groups = node_groups.read(
        by_kind, findings, INSTANCE_CLASS, documents.instance_class
    )
    for document in by_kind.get(INSTANCE_CLASS, ()):
        label = f"{INSTANCE_CLASS}/{name_of(document)}"
        findings.add(label, parent_rules.of_class("", part_of(document, "spec")))
    return tuple(
        model.NodeGroup(
            group.name, group.instance_class, group.zones, group.manual_rollout_id
        )
        for group in groups
    )


def _problems_of_cluster(
    uuid: str, groups: Sequence[model.NodeGroup], prefix: str
) -> Iterator[config.FieldProblem]:
    if not _LABEL_VALUE.fullmatch(uuid):
        expected = "the UUID of the cluster, which labels its VMs and disks"
        yield config.required("--cluster-uuid", uuid, expected)
    if groups and not prefix:
        expected = "a value, which NodeGroups require"
        yield config.not_set(f"{CLUSTER} cloud.prefix", expected)


def _merged(
    project: model.Project,
    settings: model.ModuleSettings,
    discovered: tuple[str, ...],
    configuration: Document | None,
) -> model.ProviderSettings:
    key = text_of(configuration or {}, "sshPublicKey")
    return model.ProviderSettings(
        project=dataclasses.replace(
            project,
            namespace=settings.namespace or project.namespace,
            network_policy=settings.network_policy or project.network_policy,
        ),
        ssh_public_key=settings.ssh_public_key or key,
        zones=discovered or settings.zones or model.DEFAULT_ZONES,
    )


def _not_set(project: model.Project) -> Iterator[config.FieldProblem]:
    if not project.namespace:
        expected = "the namespace of the project in the parent"
        yield config.not_set(f"{MODULE} provider.parameters.namespace", expected)
    if not project.kubeconfig:
        kind = registration.CREDENTIALS_TYPE
        expected = f"a Secret of the type {kind}, or a {CONFIGURATION}"
        yield config.not_set("kubeconfig of the parent", expected)


def _classes(
    discovered: Document | None,
    settings: model.ModuleSettings,
    findings: SourceFindings,
) -> tuple[storage_classes.StorageClass, ...]:
    """Return the StorageClasses of the enabled classes of the parent."""
    listed = (discovered or {}).get("storageClasses")
    enabled = [
        item
        for item in (listed if isinstance(listed, list) else ())
        if is_document(item) and item.get("isEnabled")
    ]
    defaults = [text_of(item, "name") for item in enabled if item.get("isDefault")]
    rules = findings.part(
        MODULE,
        lambda: storage_classes.read_rules(
            settings.storage_class_exclude,
            next(map(storage_classes.name_of, defaults), ""),
            has_other_default=True,
        ),
    )
    if rules is None:
        return ()
    choice = storage_classes.choose([text_of(item, "name") for item in enabled], rules)
    findings.add(DISCOVERED, choice.problems)
    return choice.classes

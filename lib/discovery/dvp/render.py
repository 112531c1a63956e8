"""Renders the objects of a cluster's configuration. Pure.

The documents hold the kubeconfig of the parent: they must never be logged.
"""

import base64
import dataclasses
from collections.abc import Iterator, Mapping

from lib.discovery import go_json, yaml_text
from lib.discovery.dvp import (
    capi,
    manifests,
    network_policy,
    registration,
    sources,
    templates,
)


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedDocuments:
    """Rendered objects. parent: those of the parent. values: no Kubernetes object."""

    secrets: tuple[manifests.Manifest, ...]
    templates: tuple[manifests.Manifest, ...]
    parent: tuple[manifests.Manifest, ...]
    values: Mapping[str, object]


def render(configuration: sources.ConfigurationSources) -> RenderedDocuments:
    """Render all objects for which the sources suffice."""
    policy = network_policy.isolated(
        configuration.provider.project, configuration.cluster
    )
    return RenderedDocuments(
        secrets=tuple(_secrets(configuration)),
        templates=tuple(_machines(configuration)),
        parent=() if policy is None else (policy,),
        values={"cloudProviderDvp": {"internal": values(configuration)}},
    )


def _secrets(
    configuration: sources.ConfigurationSources,
) -> Iterator[manifests.Manifest]:
    provider = configuration.provider
    yield from registration.registrations(provider)
    yield from registration.credentials(provider.project, configuration.cluster)
    if configuration.settings.is_second_generation:
        yield registration.module_credentials(provider.project)
    yield from templates.secrets()
    if configuration.configuration is not None and configuration.discovery is not None:
        yield manifests.secret(
            manifests.SYSTEM_NAMESPACE,
            "d8-provider-cluster-configuration",
            {
                "cloud-provider-cluster-configuration.yaml": yaml_text.dump(
                    configuration.configuration
                ),
                "cloud-provider-discovery-data.json": go_json.dump(
                    configuration.discovery
                ),
            },
        )


def _machines(
    configuration: sources.ConfigurationSources,
) -> Iterator[manifests.Manifest]:
    """Yield the cluster of Cluster API, and the machines of each group and zone."""
    yield capi.cluster_object(configuration.cluster)
    for group in configuration.groups:
        for zone in group.zones or configuration.provider.zones:
            yield capi.machine_template(configuration.cluster, group, zone)


def values(configuration: sources.ConfigurationSources) -> Mapping[str, object]:
    """Return the internal values of the module.

    Source: deckhouse modules/030-cloud-provider-dvp, values.
    """
    provider, discovery = configuration.provider, configuration.discovery
    default = [item.name for item in configuration.classes if item.is_default]
    project = provider.project
    return {
        "provider": {
            "namespace": project.namespace,
            "kubeconfigDataBase64": base64.b64encode(
                project.kubeconfig.encode()
            ).decode(),
            "networkPolicy": str(project.network_policy),
            **registration.description(project),
        },
        "clusterUUID": configuration.cluster.uuid,
        "zones": list(provider.zones),
        "storageClasses": [
            {"name": item.name, "dvpStorageClass": item.volume_type}
            for item in configuration.classes
        ],
        **({"defaultStorageClass": default[0]} if default else {}),
        **({"providerDiscoveryData": discovery} if discovery else {}),
    }

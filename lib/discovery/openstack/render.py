"""Renders the objects of a cluster's configuration. Pure.

The documents hold passwords: they must never be logged.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping

from lib.discovery import go_json, yaml_text
from lib.discovery.findings import SourceFindings
from lib.discovery.openstack import (
    capi,
    machine_class,
    manifests,
    model,
    node_groups,
    registration,
    sources,
    templates,
)


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedDocuments:
    """Rendered objects. values: of the module's charts; no Kubernetes object."""

    secrets: tuple[manifests.Manifest, ...]
    templates: tuple[manifests.Manifest, ...]
    values: Mapping[str, object]


def render(configuration: sources.ConfigurationSources) -> RenderedDocuments:
    """Render all objects for which the sources suffice.

    Raises:
        ConfigError: with all problems of the machines of node groups.
    """
    findings = SourceFindings()
    machines = tuple(_machines(configuration, findings))
    findings.require()
    return RenderedDocuments(
        secrets=tuple(_secrets(configuration)),
        templates=machines,
        values={"cloudProviderOpenstack": {"internal": values(configuration)}},
    )


def _secrets(
    configuration: sources.ConfigurationSources,
) -> Iterator[manifests.Manifest]:
    ignore = configuration.settings.ignore_volume_microversion
    provider = configuration.provider
    yield registration.registration(provider)
    yield registration.cloud_controller_manager(
        provider, ignore_volume_microversion=ignore
    )
    yield registration.cloud_data_discoverer(provider)
    yield capi.credentials(provider.connection)
    yield from map(templates.secret, templates.ENGINES)
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
    configuration: sources.ConfigurationSources, findings: SourceFindings
) -> Iterator[manifests.Manifest]:
    """Yield the cluster of Cluster API, and the machines of each group and zone."""
    yield capi.cluster_object(configuration.provider)
    for group in configuration.groups:
        for zone_group in node_groups.per_zone(group, configuration.provider.zones):
            label = f"{node_groups.NODE_GROUP}/{group.name}"
            documents_of_zone = findings.part(
                label, functools.partial(_of_zone, configuration, group, zone_group)
            )
            yield from documents_of_zone or ()


def _of_zone(
    configuration: sources.ConfigurationSources,
    group: node_groups.NodeGroup,
    zone_group: model.Group,
) -> tuple[manifests.Manifest, ...]:
    cluster, provider = configuration.cluster, configuration.provider
    if not group.use_mcm:
        return (capi.machine_template(cluster, provider, zone_group),)
    return (
        machine_class.machine_class(cluster, provider, zone_group),
        machine_class.secret(cluster, provider.connection, zone_group),
    )


def values(configuration: sources.ConfigurationSources) -> Mapping[str, object]:
    """Return the internal values of the module.

    Source: Deckhouse, cloud-provider-openstack, values.
    """
    provider = configuration.provider
    described = registration.description(provider)
    balancer = provider.load_balancer
    return {
        **described,
        "externalNetworkNames": list(provider.external_network_names),
        "hybridMode": provider.hybrid,
        "loadBalancer": {
            key: value
            for key, value in (
                ("subnetID", balancer.subnet_id),
                ("floatingNetworkID", balancer.floating_network_id),
                ("disabled", balancer.disabled),
            )
            if value
        },
        "storageClasses": [
            {"name": storage_class.name, "type": storage_class.volume_type}
            for storage_class in configuration.classes
        ],
        "zones": list(provider.zones),
        **({"discoveryData": configuration.offered} if configuration.offered else {}),
    }

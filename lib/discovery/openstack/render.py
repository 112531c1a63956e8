"""Makes of a cluster's configuration the objects that its readers wait for. Pure.

The documents hold passwords: they are for their readers, never for a log.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping

from lib.discovery.openstack import (
    capi,
    machine_class,
    manifests,
    model,
    node_groups,
    registration,
    sources,
    templates,
    yaml_text,
)
from lib.discovery.openstack.findings import SourceFindings


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedDocuments:
    """What was made. values: of the module's charts; no Kubernetes object."""

    secrets: tuple[manifests.Manifest, ...]
    templates: tuple[manifests.Manifest, ...]
    values: Mapping[str, object]


def render(given: sources.ConfigurationSources) -> RenderedDocuments:
    """Make everything that the sources allow.

    Raises:
        ConfigError: with all that the machines of a node group lack.
    """
    findings = SourceFindings()
    machines = tuple(_machines(given, findings))
    findings.require()
    return RenderedDocuments(
        secrets=tuple(_secrets(given)),
        templates=machines,
        values={"cloudProviderOpenstack": {"internal": values(given)}},
    )


def _secrets(given: sources.ConfigurationSources) -> Iterator[manifests.Manifest]:
    ignore = given.settings.ignore_volume_microversion
    provider = given.provider
    yield registration.registration(provider)
    yield registration.cloud_controller_manager(
        provider, ignore_volume_microversion=ignore
    )
    yield registration.cloud_data_discoverer(provider)
    yield capi.credentials(provider.connection)
    yield from map(templates.secret, templates.ENGINES)
    if given.configuration is not None and given.discovery is not None:
        yield manifests.secret(
            manifests.SYSTEM_NAMESPACE,
            "d8-provider-cluster-configuration",
            {
                "cloud-provider-cluster-configuration.yaml": yaml_text.dump(
                    given.configuration
                ),
                "cloud-provider-discovery-data.json": registration.to_json(
                    given.discovery
                ),
            },
        )


def _machines(
    given: sources.ConfigurationSources, findings: SourceFindings
) -> Iterator[manifests.Manifest]:
    """Yield the cluster of Cluster API, and the machines of each group and zone."""
    yield capi.cluster_object(given.provider)
    for group in given.groups:
        for one in group.per_zone(given.provider.zones):
            label = f"{node_groups.NODE_GROUP}/{group.name}"
            made = findings.part(label, functools.partial(_of_zone, given, group, one))
            yield from made or ()


def _of_zone(
    given: sources.ConfigurationSources, group: node_groups.NodeGroup, one: model.Group
) -> tuple[manifests.Manifest, ...]:
    cluster, provider = given.cluster, given.provider
    if not group.use_mcm:
        return (capi.machine_template(cluster, provider, one),)
    return (
        machine_class.machine_class(cluster, provider, one),
        machine_class.secret(cluster, provider.connection, one),
    )


def values(given: sources.ConfigurationSources) -> Mapping[str, object]:
    """Return the internal values of the module.

    Source: Deckhouse, cloud-provider-openstack, values.
    """
    provider = given.provider
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
            {"name": one.name, "type": one.volume_type} for one in given.classes
        ],
        "zones": list(provider.zones),
        **({"discoveryData": given.offered} if given.offered else {}),
    }

"""Merges the module's settings, the installer's documents and the discovery data."""

from collections.abc import Iterable
from typing import TypeVar

from lib.discovery.openstack import model
from lib.process import config

_Whole = TypeVar(
    "_Whole", model.Connection, model.InstanceDefaults, model.LoadBalancerPlace
)


def merge(
    settings: model.ModuleSettings,
    configuration: model.ClusterConfiguration | None,
    discovered: model.Discovered,
) -> model.ProviderSettings:
    """Return the settings of the cluster. The module's settings override, each whole.

    The connection, `instances` and `loadBalancer` are those of the settings when any
    part of them is set there, and never mixed with another source's.
    configuration: None in a hybrid cluster, whose masters are not in this cloud.

    Source: Deckhouse, cloud-provider-openstack, merging of cluster configuration.
    """
    installed = configuration.connection if configuration else model.Connection()
    external = settings.external_network_names or discovered.external_network_names
    return model.ProviderSettings(
        connection=_first(settings.connection, installed),
        internal_network_names=_names(
            settings.internal_network_names or discovered.internal_network_names
        ),
        external_network_names=_names(
            (*external, *settings.additional_external_network_names)
        ),
        external_network_dhcp=(
            configuration.external_network_dhcp if configuration else True
        ),
        zones=_names(settings.zones or discovered.zones),
        instances=_first(settings.instances, discovered.instances),
        pod_network_mode=settings.pod_network_mode or discovered.pod_network_mode,
        load_balancer=_first(settings.load_balancer, discovered.load_balancer),
        tags=settings.tags or (configuration.tags if configuration else {}),
        hybrid=configuration is None,
    )


def problems(
    provider: model.ProviderSettings, unnamed: config.FieldProblem | None = None
) -> tuple[config.FieldProblem, ...]:
    """Return the problems of fields that the readers of the Secrets require.

    unnamed: why the internal network has no name, where that is known.
    """
    connection = provider.connection
    problems = [
        config.not_set(f"connection.{name}")
        for name, value in (
            ("authURL", connection.auth_url),
            ("domainName", connection.domain_name),
            ("username", connection.username),
            ("password", connection.password),
            ("region", connection.region),
        )
        if not value
    ]
    if bool(connection.tenant_name) == bool(connection.tenant_id):
        text = "must set exactly one of tenantName, tenantID"
        problems.append(config.stated("connection", text))
    if not provider.internal_network_names:
        expected = "at least one name, from the settings or from the discovery data"
        problems.append(unnamed or config.not_set("internalNetworkNames", expected))
    return tuple(problems)


def _first(configured: _Whole, discovered: _Whole) -> _Whole:
    return configured if configured != type(configured)() else discovered


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))

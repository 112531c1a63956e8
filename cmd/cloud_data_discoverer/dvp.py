"""The discoverer's DVP: the project of the cluster in its parent."""

from collections.abc import Mapping, Sequence

import prometheus_client

from lib.cloud import protocol
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.catalog import cloud
from lib.cloud.support.source import Observers, Opened
from lib.discovery.provider import Signal


def read(kubeconfig: str, env: Mapping[str, str]) -> config.ParentConfig:
    """Read the configuration. kubeconfig: of --parent-kubeconfig; may be empty.

    Raises:
        ConfigError: every problem names the flag or variable.
    """
    return config.read(kubeconfig, env)


def open_cloud(
    settings: config.ParentConfig, agent: str, observers: Observers
) -> Opened:
    """Open the cloud; nothing is asked of it yet."""
    access = parent.connect(settings, agent, observers.observe, observers.circuit)
    opened = protocol.Cloud("dvp", catalog=cloud.DvpCatalog(access))
    # The client of the parent reads a changed kubeconfig itself.
    return Opened(opened, lambda: False)


def problems(document: object) -> Sequence[str]:
    """Return what a discovery document lacks for its consumers.

    Source: deckhouse modules/030-cloud-provider-dvp, cloud_discovery_data.yaml.
    """
    zones = document.get("zones") if isinstance(document, Mapping) else None
    if not isinstance(zones, list) or not zones:
        return ("zones: not set: must be a list of at least one name",)
    if len(set(map(str, zones))) != len(zones):
        return ("zones: invalid value: must be a list without repetitions",)
    return ()


def signals(
    registry: prometheus_client.CollectorRegistry,
) -> Mapping[Signal, prometheus_client.Gauge]:
    """Create the metrics of the alerts of Deckhouse's module."""
    return {
        Signal.DEFAULT_CLASS_DRIFTED: prometheus_client.Gauge(
            "d8_cloud_provider_dvp_default_storage_class_drifted",
            "1 while the parent's default StorageClass is not that of the cluster.",
            registry=registry,
        ),
        Signal.INSTALLER_CONFIGURATION: prometheus_client.Gauge(
            "d8_cloud_provider_dvp_migration_pending",
            "1 while the cluster is configured by a DVPClusterConfiguration.",
            registry=registry,
        ),
    }

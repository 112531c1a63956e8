"""OpenStack as openstack-ccm uses it: opened from the cloud.conf of --cloud-config."""

from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.openstack import reference_metrics, with_routes
from lib.cloud.openstack.config import cloud_conf, settings
from lib.cloud.openstack.instances import cloud
from lib.cloud.support import absence_scope
from lib.cloud.support.source import CloudSource, Observers
from lib.daemon import counting

REFERENCE = counting.Reference(
    reference_metrics.CALLS,
    reference_metrics.request,
    reference_metrics.RECONCILIATIONS,
)
"""cloud-provider-openstack."""


def source(
    path: str, env: Mapping[str, str], user_agents: tuple[str, ...]
) -> CloudSource[settings.Config]:
    """Return what opens the cloud of one cloud.conf, as often as its files change."""
    memory = absence_scope.HomeMemory()

    def connect(configuration: settings.Config, observers: Observers) -> protocol.Cloud:
        api = cloud.open_client(
            configuration, observers.observe, user_agents, observers.circuit
        )
        return with_routes.of_client(api, configuration, memory)

    return cloud_conf.CloudConf((path,), env).source(connect)

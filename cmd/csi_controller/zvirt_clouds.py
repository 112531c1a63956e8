"""zVirt as csi-controller uses it: opened from the environment and its files."""

from collections.abc import Mapping

from lib.cloud import protocol, provider_id
from lib.cloud.support import absence_scope, cluster_witnesses
from lib.cloud.support.source import CloudSource, Observers, ReadConfig
from lib.cloud.zvirt import client, config, home, http
from lib.cloud.zvirt.config import EngineConfig
from lib.cloud.zvirt.volumes import cloud
from lib.csi import driver
from lib.process import clock

FEATURES = cloud.FEATURES
DRIVER = "csi.ovirt.org"
"""Source: openshift/ovirt-csi-driver."""


def read(env: Mapping[str, str]) -> ReadConfig[EngineConfig]:
    """Read the configuration of an environment.

    Raises:
        ConfigError: with every problem.
    """
    return config.read(env, clock.utc_now())


def opener(
    env: Mapping[str, str],
    user_agent: str,
    cluster: cluster_witnesses.OfCluster,
    data_center: str,
) -> driver.Open:
    """Return the opener of the engine. data_center: whose storage is used; or empty.

    Raises:
        ConfigError: the configuration cannot be used; every problem is listed.
    """
    read(env)
    memory = absence_scope.HomeMemory()

    def connect(settings: EngineConfig, observers: Observers) -> protocol.Cloud:
        access = client.EngineClient(
            lambda: settings,
            http.connect(settings),
            user_agent=user_agent,
            on_call=observers.observe,
            on_circuit=observers.circuit,
        )
        place = home.EngineHome(access, data_center, memory)
        volumes = cloud.EngineVolumes(access, place, cluster, data_center)
        return protocol.Cloud(
            provider_id.ZVIRT, volumes=volumes, check_reload=place.guard.check_reload
        )

    paths = [str(path) for path in sorted(config.watched(env))]
    return CloudSource(paths, lambda: read(env), connect).open

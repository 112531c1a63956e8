"""The discoverer's zVirt: the data center of the cluster in an engine."""

from collections.abc import Mapping, Sequence

from lib.cloud import protocol
from lib.cloud.support.source import CloudSource, Observers
from lib.cloud.zvirt import client, config, http
from lib.cloud.zvirt.catalog import cloud
from lib.cloud.zvirt.config import EngineConfig
from lib.process import clock


def source(
    env: Mapping[str, str], agent: str, data_center: str
) -> CloudSource[EngineConfig]:
    """Return what opens the cloud, as often as a file of the environment changes."""

    def connect(settings: EngineConfig, observers: Observers) -> protocol.Cloud:
        access = client.EngineClient(
            lambda: settings,
            http.connect(settings),
            user_agent=agent,
            on_call=observers.observe,
            on_circuit=observers.circuit,
        )
        return protocol.Cloud("zvirt", catalog=cloud.EngineCatalog(access, data_center))

    paths = [str(path) for path in sorted(config.watched(env))]
    return CloudSource(paths, lambda: config.read(env, clock.utc_now()), connect)


def problems(document: object) -> Sequence[str]:
    """Return what a discovery document lacks for its consumers.

    Source: deckhouse modules/030-cloud-provider-zvirt, cloud_discovery_data.yaml.
    """
    zones = document.get("zones") if isinstance(document, Mapping) else None
    if not isinstance(zones, list) or not zones:
        return ("zones: not set: must be a list of at least one name",)
    return ()

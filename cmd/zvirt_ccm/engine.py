"""zVirt as zvirt-ccm uses it: opened from the environment, again when files change."""

from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.support import absence_scope
from lib.cloud.support.source import CloudSource, Observers, ReadConfig
from lib.cloud.zvirt import client, config, home, http
from lib.cloud.zvirt.config import EngineConfig
from lib.cloud.zvirt.instances import cloud
from lib.process import clock
from zvirt_ccm import version


def source(
    env: Mapping[str, str], user_agents: tuple[str, ...], rules: cloud.InstanceRules
) -> CloudSource[EngineConfig]:
    """Return what opens the cloud, as often as a file of the environment changes."""
    agent = " ".join((f"zvirt-ccm/{version.VERSION}", *user_agents))
    memory = absence_scope.HomeMemory()

    def connect(settings: EngineConfig, observers: Observers) -> protocol.Cloud:
        access = client.EngineClient(
            lambda: settings,
            http.connect(settings),
            user_agent=agent,
            on_call=observers.observe,
            on_circuit=observers.circuit,
        )
        place = home.EngineHome(access, rules.data_center, memory)
        return cloud.of_engine(access, place, rules)

    paths = [str(path) for path in sorted(config.watched(env))]
    return CloudSource(paths, lambda: read(env), connect)


def read(env: Mapping[str, str]) -> ReadConfig[EngineConfig]:
    """Read the configuration of an environment.

    Raises:
        ConfigError: with every problem.
    """
    return config.read(env, clock.utc_now())

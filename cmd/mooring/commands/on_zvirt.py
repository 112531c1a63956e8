"""zVirt as the commands reach it: the only module here that knows its package."""

import dataclasses
from collections.abc import Mapping

from lib.cloud import checkup, explained, load_balancers, protocol
from lib.cloud.support import cluster_witnesses
from lib.cloud.zvirt import checkup as engine_checkup
from lib.cloud.zvirt import client, home, http
from lib.cloud.zvirt import config as engine_config
from lib.cloud.zvirt.instances import cloud as instances_cloud
from lib.cloud.zvirt.volumes import cloud as volumes_cloud
from lib.process import clock, config

_NO_BALANCERS = "--cloud: zvirt: an engine has no load balancers"


@dataclasses.dataclass(frozen=True, slots=True)
class OnZvirt:
    """What variables or one file describe; nothing has been asked of the engine yet."""

    settings: engine_config.EngineConfig
    cluster_id: str = ""

    @classmethod
    def read(cls, path: str, env: Mapping[str, str], title: str = "") -> "OnZvirt":
        """Read the YAML of OVIRT_CONFIG, or the variables of an environment.

        path: empty: variables. title: of a Secret of which the keys are variables in
        `env`, or of which one key is the file.

        Raises:
            ConfigError: they cannot be used; every problem is named, and no secret.
        """
        keys = engine_config.of_secret(env) if title else {}
        is_file = bool(path) and not keys
        if path:
            env = keys or {engine_config.OVIRT_CONFIG: path}
        field = title or "--cloud-config"
        try:
            return cls(engine_config.read(env, clock.utc_now(), field).config)
        except config.ConfigError as error:
            if is_file or not title:
                raise
            problems = [f"{title}: {problem}" for problem in error.problems]
            raise config.ConfigError(problems) from error

    def instances(self) -> protocol.Instances:
        """Return the instances of the engine."""
        access = self._connect()
        return instances_cloud.EngineInstances(access, home.EngineHome(access))

    def plans(self) -> tuple[load_balancers.LoadBalancers, explained.Explain]:
        """Refuse: there are no load balancers.

        Raises:
            ConfigError: always.
        """
        raise config.ConfigError([_NO_BALANCERS])

    def owner(self, volume_cluster: str = "") -> protocol.Cloud:
        """Return all of the cloud in which a cluster may own something.

        Without the ID of the cluster no disk is its own.
        """
        access = self._connect()
        opened = instances_cloud.of_engine(access, home.EngineHome(access))
        if not volume_cluster:
            return opened
        of_cluster = cluster_witnesses.OfCluster(volume_cluster)
        place = home.EngineHome(access)
        volumes = volumes_cloud.EngineVolumes(access, place, of_cluster)
        return dataclasses.replace(opened, volumes=volumes)

    def _connect(self) -> client.EngineClient:
        exchange = http.connect(self.settings)
        return client.EngineClient(
            lambda: self.settings, exchange, user_agent="mooring"
        )

    def checkup(self, timeout_s: float) -> checkup.Checkup:
        """Return the engine as `mooring doctor` reads it."""
        return engine_checkup.EngineCheckup(self.settings, timeout_s)

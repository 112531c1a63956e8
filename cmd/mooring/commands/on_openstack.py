"""OpenStack as the commands reach it: the only module here that knows its package."""

import dataclasses
import functools
from collections.abc import Mapping

from lib.cloud import checkup, explained, load_balancers, protocol
from lib.cloud.openstack import checkup as openstack_checkup
from lib.cloud.openstack import with_routes, with_volumes
from lib.cloud.openstack.config import cloud_conf, settings
from lib.cloud.openstack.instances import cloud
from lib.cloud.openstack.layouts import cloud as layouts
from lib.cloud.openstack.load_balancers.explain import explain
from lib.cloud.support.source import CloudSource, Observers, Unobserved
from lib.process import config as process_config


@dataclasses.dataclass(frozen=True, slots=True)
class OnOpenStack:
    """What one cloud.conf describes; nothing has been asked of the cloud yet."""

    config: settings.Config
    source: CloudSource[settings.Config]
    cluster_id: str = ""

    @classmethod
    def read(cls, path: str, env: Mapping[str, str], title: str = "") -> "OnOpenStack":
        """Read a cloud.conf and what it refers to. title: name in messages.

        Raises:
            ConfigError: it can't be used; every problem is named, and no secret.
        """
        files = cloud_conf.CloudConf((path,), env, title=title)
        return cls(files.read().config, files.source(_connect))

    def instances(self) -> protocol.Instances:
        """Return the instances of the cloud.

        Raises:
            ConfigError: a certificate file can't be read.
        """
        opened = self.source.open(Unobserved()).cloud.instances
        if opened is None:
            raise TypeError("OpenStack has instances")
        return opened

    def plans(self) -> tuple[load_balancers.LoadBalancers, explained.Explain]:
        """Return the load balancers of the cloud, and what describes their plans.

        Raises:
            ConfigError: a certificate file can't be read, or there are to be none.
        """
        opened = self.source.open(Unobserved()).cloud.load_balancers
        if opened is None:
            problem = "[LoadBalancer] enabled is false: load balancers are disabled"
            raise process_config.ConfigError([problem])
        return opened, functools.partial(explain.explain, self.config.load_balancer)

    def owner(self, volume_cluster: str = "") -> protocol.Cloud:
        """Return all of the cloud in which a cluster may own something.

        Raises:
            ConfigError: a certificate file can't be read.
        """
        del volume_cluster  # all volumes of the project are listed
        return self.source.open(Unobserved()).cloud

    def checkup(self, timeout_s: float) -> checkup.Checkup:
        """Return the cloud as `mooring doctor` reads it.

        Raises:
            ConfigError: a certificate file can't be read.
        """
        try:
            return openstack_checkup.OpenStackCheckup(self.config, timeout_s)
        except settings.CloudConfError as error:
            raise process_config.ConfigError(list(error.problems)) from error


def _connect(config: settings.Config, observers: Observers) -> protocol.Cloud:
    api = cloud.open_client(config, observers.observe, ("mooring",), observers.circuit)
    opened = with_routes.of_client(api, config)
    volumes = with_volumes.of_client(api, config).volumes
    return dataclasses.replace(
        opened, volumes=volumes, layouts=layouts.OpenStackLayouts(api)
    )

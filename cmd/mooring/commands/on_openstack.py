"""OpenStack, as `plan` and `doctor` reach it: the only one here that knows its room."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping

from lib.cloud import checkup, explained, load_balancers, protocol
from lib.cloud.openstack import checkup as openstack_checkup
from lib.cloud.openstack import with_load_balancers
from lib.cloud.openstack.config import reader as config
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.instances import cloud
from lib.cloud.openstack.load_balancers.explain import explain
from lib.process import config as process_config


@dataclasses.dataclass(frozen=True, slots=True)
class OnOpenStack:
    """What one cloud.conf describes; nothing has been asked of the cloud yet."""

    config: settings.Config

    @classmethod
    def read(cls, path: str, env: Mapping[str, str]) -> "OnOpenStack":
        """Read a cloud.conf and what it refers to.

        Raises:
            ConfigError: it can't be used; every problem is named, and no secret.
        """
        try:
            return cls(config.read(pathlib.Path(path).read_text(), env))
        except settings.ConfigError as error:
            told = [f"{path}: {problem}" for problem in error.problems]
            raise process_config.ConfigError(told) from error
        except UnicodeDecodeError as error:
            # Its own words quote the file, which holds passwords.
            told = [f"{path}: it, or its clouds.yaml, is no text"]
            raise process_config.ConfigError(told) from error
        except OSError as error:
            told = [f"{error.filename or path} can't be read ({error.strerror})"]
            raise process_config.ConfigError(told) from error

    def instances(self) -> protocol.Instances:
        """Give the instances of the cloud.

        Raises:
            ConfigError: a certificate file can't be read.
        """
        opened = self._connect().instances
        if opened is None:
            raise TypeError("OpenStack has instances")
        return opened

    def plans(self) -> tuple[load_balancers.LoadBalancers, explained.Explain]:
        """Give the load balancers of the cloud, and what puts plans for them in words.

        Raises:
            ConfigError: a certificate file can't be read, or there are to be none.
        """
        opened = self._connect().load_balancers
        if opened is None:
            told = "[LoadBalancer] enabled is false: no load balancers are kept"
            raise process_config.ConfigError([told])
        return opened, functools.partial(explain.explain, self.config.load_balancer)

    def _connect(self) -> protocol.Cloud:
        try:
            api = cloud.open_client(self.config, user_agent=("mooring",))
            return with_load_balancers.of_client(api, self.config)
        except settings.ConfigError as error:
            raise process_config.ConfigError(list(error.problems)) from error

    def checkup(self, timeout_s: float) -> checkup.Checkup:
        """Give the cloud as a doctor sees it.

        Raises:
            ConfigError: a certificate file can't be read.
        """
        try:
            return openstack_checkup.OpenStackCheckup(self.config, timeout_s)
        except settings.ConfigError as error:
            raise process_config.ConfigError(list(error.problems)) from error

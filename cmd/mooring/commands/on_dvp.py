"""DVP as the commands reach it: the only module here that knows its package."""

import dataclasses
from collections.abc import Mapping

from lib.cloud import checkup, explained, load_balancers, protocol
from lib.cloud.dvp import checkup as parent_checkup
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.instances import cloud
from lib.process import config as process_config

REMEDIES = parent_checkup.REMEDIES
_NO_PLANS = "load balancers are not supported for DVP"


@dataclasses.dataclass(frozen=True, slots=True)
class OnDvp:
    """What one kubeconfig and the environment describe; nothing was asked yet."""

    settings: config.ParentConfig

    @classmethod
    def read(cls, path: str, env: Mapping[str, str], title: str = "") -> "OnDvp":
        """Read the parent's kubeconfig. path: empty: that of the environment.

        title: name in messages.

        Raises:
            ConfigError: it can't be used; every problem is named, and no secret.
        """
        return cls(config.read(path, env, field=title or "--cloud-config"))

    def instances(self) -> protocol.Instances:
        """Return the instances of the cluster."""
        opened = self.owner().instances
        if opened is None:
            raise TypeError("DVP has instances")
        return opened

    def plans(self) -> tuple[load_balancers.LoadBalancers, explained.Explain]:
        """Return the load balancers, and what describes their plans.

        Raises:
            ConfigError: there are none.
        """
        raise process_config.ConfigError([_NO_PLANS])

    def owner(self) -> protocol.Cloud:
        """Return all of the cloud in which a cluster may own something."""
        return cloud.of_parent(parent.connect(self.settings, "mooring"))

    def checkup(self, timeout_s: float) -> checkup.Checkup:
        """Return the parent as `mooring doctor` reads it."""
        return parent_checkup.ParentCheckup(self.settings, timeout_s)

"""DVP as the commands reach it: the only module here that knows its package."""

import dataclasses
from collections.abc import Mapping

from lib.cloud import checkup, explained, load_balancers, protocol
from lib.cloud.dvp import checkup as parent_checkup
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.instances import cloud as instances_cloud
from lib.cloud.dvp.load_balancers import cloud as balancers_cloud
from lib.cloud.dvp.load_balancers import service_explanation
from lib.cloud.dvp.volumes import cloud as volumes_cloud

REMEDIES = parent_checkup.REMEDIES


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

    @property
    def cluster_id(self) -> str:
        """The cluster UUID of the environment."""
        return self.settings.cluster_uuid

    def instances(self) -> protocol.Instances:
        """Return the instances of the cluster."""
        return instances_cloud.ParentInstances(self._connect())

    def plans(self) -> tuple[load_balancers.LoadBalancers, explained.Explain]:
        """Return the load balancers of the cluster, and what describes their plans."""
        balancers = balancers_cloud.DvpLoadBalancers(self._connect())
        return balancers, service_explanation.explain

    def owner(self) -> protocol.Cloud:
        """Return all of the cloud in which a cluster may own something."""
        access = self._connect()
        return dataclasses.replace(
            instances_cloud.of_parent(access),
            load_balancers=balancers_cloud.DvpLoadBalancers(access),
            volumes=volumes_cloud.DvpVolumes(access),
        )

    def _connect(self) -> parent.Parent:
        return parent.connect(self.settings, "mooring")

    def checkup(self, timeout_s: float) -> checkup.Checkup:
        """Return the parent as `mooring doctor` reads it."""
        return parent_checkup.ParentCheckup(self.settings, timeout_s)

"""DVP as the commands reach it: the only module here that knows its package."""

import dataclasses
from collections.abc import Mapping

from lib.cloud import checkup, errors, explained, load_balancers, protocol
from lib.cloud.dvp import checkup as parent_checkup
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.instances import cloud as instances_cloud
from lib.cloud.dvp.load_balancers import cloud as balancers_cloud
from lib.cloud.dvp.load_balancers import desired_service, service_explanation
from lib.cloud.dvp.machines import capi_kinds
from lib.cloud.dvp.machines import cloud as machines_cloud
from lib.cloud.dvp.volumes import cloud as volumes_cloud
from lib.cloud.machines import Bootstrap, BootstrapData
from lib.doctor import machine_api, rights
from lib.machines.kinds import Kinds

CONTRACTS = ("cluster.x-k8s.io/v1beta2",)
"""Labels of the CRDs, of the contracts that they fulfil."""
REMEDIES = parent_checkup.REMEDIES
KINDS = Kinds(
    capi_kinds.MACHINES,
    capi_kinds.MACHINE_FINALIZER,
    capi_kinds.CONDITION,
    capi_kinds.FIELD_MANAGER,
    mirrors=capi_kinds.MIRRORS,
)


def machines() -> machine_api.MachineProvider:
    """Return what `mooring doctor` expects of capdvp in its cluster."""
    kinds = (
        capi_kinds.CLUSTERS,
        capi_kinds.CLUSTER_TEMPLATES,
        capi_kinds.MACHINES,
        capi_kinds.TEMPLATES,
    )
    return machine_api.MachineProvider(
        "capdvp",
        (KINDS.clusters, KINDS.owners),
        kinds,
        dict.fromkeys(CONTRACTS, capi_kinds.VERSION),
        rights.parse(rights.manifest("capdvp"), "capdvp"),
        finalizers={
            capi_kinds.CLUSTERS: capi_kinds.CLUSTER_FINALIZER,
            capi_kinds.MACHINES: capi_kinds.MACHINE_FINALIZER,
        },
    )


def _no_bootstrap(bootstrap: Bootstrap) -> BootstrapData:
    """Refuse: commands create no machine.

    Raises:
        Unavailable: always.
    """
    about = f"{bootstrap.namespace}/{bootstrap.name}"
    text = "commands do not read bootstrap data"
    raise errors.Unavailable(text, operation="read bootstrap Secret", resource=about)


@dataclasses.dataclass(frozen=True, slots=True)
class OnDvp:
    """What one kubeconfig and the environment describe; nothing was asked yet."""

    settings: config.ParentConfig
    forwarded: desired_service.Forwarding = desired_service.ALL

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
        balancers = balancers_cloud.DvpLoadBalancers(self._connect(), self.forwarded)
        return balancers, service_explanation.explain

    def forwarding(self, prefixes: tuple[str, ...], external_ips: bool) -> "OnDvp":
        """See `provider_entry.Forwarding`."""
        forwarded = desired_service.Forwarding(prefixes, external_ips)
        return dataclasses.replace(self, forwarded=forwarded)

    def owner(self, volume_cluster: str = "") -> protocol.Cloud:
        """Return all of the cloud in which a cluster may own something."""
        del volume_cluster  # all disks of the project are listed
        access = self._connect()
        return dataclasses.replace(
            instances_cloud.of_parent(access),
            load_balancers=balancers_cloud.DvpLoadBalancers(access),
            volumes=volumes_cloud.DvpVolumes(access),
            machines=machines_cloud.DvpMachines(access, _no_bootstrap),
        )

    def _connect(self) -> parent.Parent:
        return parent.connect(self.settings, "mooring")

    def checkup(self, timeout_s: float) -> checkup.Checkup:
        """Return the parent as `mooring doctor` reads it."""
        return parent_checkup.ParentCheckup(self.settings, timeout_s)

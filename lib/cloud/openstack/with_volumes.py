"""The instances and the volumes of one OpenStack project."""

import dataclasses

from lib.cloud import protocol
from lib.cloud.openstack.config.settings import Config
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import cloud
from lib.cloud.openstack.volumes import cloud as volumes
from lib.cloud.support import absence_scope, cluster_witnesses


def of_client(
    api: client.Client,
    config: Config,
    memory: absence_scope.HomeMemory | None = None,
    cluster: cluster_witnesses.OfCluster | None = None,
) -> protocol.Cloud:
    """Return the cloud. memory: of the cloud that this one replaces.

    cluster: of which an object must be observed before the absence of a volume counts.
    """
    guard = cloud.guard_of(api, config, memory)
    bare = cloud.of_client(api, config, guard)
    opened = volumes.OpenStackVolumes(api, config.block_storage, guard, cluster=cluster)
    return dataclasses.replace(bare, volumes=opened)

"""The instances and the load balancers of one OpenStack project."""

import dataclasses

from lib.cloud import protocol
from lib.cloud.openstack.config.settings import Config
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import cloud
from lib.cloud.openstack.load_balancers import cloud as load_balancers
from lib.cloud.support import absence_scope


def of_client(
    api: client.Client, config: Config, memory: absence_scope.HomeMemory | None = None
) -> protocol.Cloud:
    """Return the cloud; without load balancers where cloud.conf disables them.

    memory: of the cloud that this one replaces.
    """
    guard = cloud.guard_of(api, config, memory)
    bare = cloud.of_client(api, config, guard)
    if not config.load_balancer.enabled:
        return bare
    balancers = load_balancers.OctaviaLoadBalancers(api, config.load_balancer, guard)
    return dataclasses.replace(bare, load_balancers=balancers)

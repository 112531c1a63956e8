"""The instances, load balancers and pod routes of one OpenStack project."""

import dataclasses

from lib.cloud import protocol
from lib.cloud.openstack import with_load_balancers
from lib.cloud.openstack.config.settings import Config
from lib.cloud.openstack.http import client
from lib.cloud.openstack.routes import cloud as routes
from lib.cloud.support import absence_scope


def of_client(
    api: client.Client, config: Config, memory: absence_scope.HomeMemory | None = None
) -> protocol.Cloud:
    """Return the cloud; without routes where cloud.conf names no router.

    With [Route] address-pairs-only there are routes, in a table without a router.
    memory: of the cloud that this one replaces.
    """
    bare = with_load_balancers.of_client(api, config, memory)
    if not config.router_id and not config.address_pairs_only:
        return bare
    router_id = "" if config.address_pairs_only else config.router_id
    tables = routes.NeutronRoutes(api, router_id)
    return dataclasses.replace(bare, routes=tables)

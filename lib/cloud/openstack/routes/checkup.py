"""Facts about the router of cloud.conf for the doctor, by a few reads."""

from lib.cloud import errors
from lib.cloud.checkup import Routing
from lib.cloud.model import Seen
from lib.cloud.openstack.http import client
from lib.cloud.openstack.routes import native
from lib.cloud.openstack.routes.cloud import NeutronRoutes
from lib.cloud.routes import Depth

SETTING = "[Route] router-id"


def read(api: client.Client, router_id: str) -> Routing:
    """Return the router with the number of its interfaces and routes."""
    observation = NeutronRoutes(api, router_id).observe([router_id], Depth.FULL)[
        router_id
    ]
    if not isinstance(observation, Seen):
        return Routing(SETTING, router_id, error=observation.error)
    if not observation.value.exists:
        text = "not found, or of another project"
        error = errors.NotFound(text, operation="get router", resource=router_id)
        return Routing(SETTING, router_id, error=error)
    table = native.of(observation.value)
    return Routing(SETTING, router_id, len(table.subnets), len(table.routes))

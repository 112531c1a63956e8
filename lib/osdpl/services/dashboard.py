"""Values of the service dashboard: Horizon."""

from lib.osdpl import model, secret_shapes
from lib.osdpl.context import Context
from lib.osdpl.contract import Contract
from lib.osdpl.services import common


def horizon(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart horizon."""
    secret = secret_shapes.service_secret("dashboard")
    key = context.credentials.text(secret, "secret_key")
    settings = {"config": {"horizon_secret_key": key}}
    own = {"conf": {"horizon": {"local_settings": settings}}}
    return common.join(common.openstack(context, contract, "dashboard"), own)

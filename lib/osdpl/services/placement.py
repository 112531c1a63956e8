"""Values of the service placement."""

from lib.osdpl import model
from lib.osdpl.context import Context
from lib.osdpl.contract import Contract
from lib.osdpl.services import common


def placement(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart placement."""
    own: model.Tree = {}
    if "compute" in context.get("features.services", ()):
        # The database that placement was once part of belongs to Nova.
        user = context.credentials.database("compute").values()
        own = {"endpoints": {"oslo_db": {"auth": {"nova_api": user}}}}
    base = common.openstack(context, contract, "placement")
    return common.join(base, own, common.program(context, "placement"))

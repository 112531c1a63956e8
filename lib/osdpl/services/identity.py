"""Values of the service identity: Keystone."""

from lib.osdpl import model
from lib.osdpl.context import Context
from lib.osdpl.contract import Contract
from lib.osdpl.services import common


def keystone(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart keystone."""
    logging = common.program(context, "keystone")
    return common.join(common.openstack(context, contract, "identity"), logging)

"""Values of the service identity: Keystone."""

from lib.osdpl.api import model
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.services import common


def keystone(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart keystone."""
    logging = common.program(context, "keystone")
    return common.join(common.openstack(context, contract, "identity"), logging)

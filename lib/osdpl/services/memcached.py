"""Values of the service memcached."""

from lib.osdpl import model
from lib.osdpl.context import Context
from lib.osdpl.contract import Contract
from lib.osdpl.services import common


def memcached(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart memcached."""
    endpoint = {"endpoints": {"oslo_cache": {"namespace": context.namespace}}}
    return common.join(common.infra(context, contract), endpoint)

"""Values of the service memcached."""

from lib.osdpl import model
from lib.osdpl.context import Context
from lib.osdpl.contract import Contract
from lib.osdpl.services import common


def memcached(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart memcached.

    Its Service is headless: clients name each server, and share one cache. An installed
    Service cannot become headless later.
    """
    endpoint = {"endpoints": {"oslo_cache": {"namespace": context.namespace}}}
    headless = {"network": {"memcached": {"service": {"clusterIP": "None"}}}}
    return common.join(common.infra(context, contract), endpoint, headless)

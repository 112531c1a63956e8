"""Values of the service memcached."""

from lib.osdpl.api import model
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import common


def memcached(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart memcached.

    Its Service is headless: clients name each server, and share one cache. An installed
    Service cannot become headless later.
    """
    endpoint = {"endpoints": {"oslo_cache": {"namespace": context.namespace}}}
    headless = {"network": {"memcached": {"service": {"clusterIP": "None"}}}}
    return common.join(common.infra(context, contract), endpoint, headless)


SERVICE = Service(
    name="memcached",
    charts=(
        Chart(
            name="memcached",
            release="openstack-memcached",
            values=memcached,
            replicas={"server": (1, 3, 3, 3)},
        ),
    ),
    workload=model.Workload(
        kind=model.Kind.STATEFUL_SET, name="openstack-memcached-memcached"
    ),
)
